"""The page as HTML: native fields with labels, figures, tables.

Text fields, selects and range inputs take the keyboard and screen readers as they come. Everything
that comes from a profile or a user is escaped here or in `csdplan.document.table`.
"""

from __future__ import annotations

import json
from importlib import resources

from csdplan.document.table import STYLE as TABLE_STYLE
from csdplan.document.table import table
from csdplan.page import figures as own
from csdplan.page.answer import Answer
from csdplan.page.fields import form
from csdplan.page.state import PROFILE_BYTES_MAX, State
from csdplan.plot import figures, screen
from csdplan.plot.svg import safe
from csdplan.result.words import PROVENANCES, measure_sentence

_ASSETS = resources.files("csdplan.page") / "assets"
STYLE = screen.STYLE + TABLE_STYLE + (_ASSETS / "page.css").read_text(encoding="utf-8")
SCRIPT = screen.SCRIPT + (_ASSETS / "page.js").read_text(encoding="utf-8")
_PICTURE = (_ASSETS / "break-even.svg").read_text(encoding="utf-8")
_EXPLAINED = (
    "Ordinary SSDs send all data to the host, whose link and cores are soon full: more SSDs then "
    "add nothing. Drives that compute each work on their own data, so each adds as much as the "
    "last; the break-even point is the number of drives from which on they are faster than as "
    "many SSDs."
)
#: Parts that every answer fills, in the order of the page, and their headings.
PARTS = {
    "curves": "How fast",
    "cost": "What it costs",
    "surface": "What a better drive would do",
    "points": "Break-even points of your workloads",
    "basis": "What it rests on",
}
_NOTES = {
    "cost": (
        '<p class="note">At the prices of the scenario. It starts with those of the catalogue, by '
        "which the purchase above is planned.</p>"
    ),
}
_WORKING = "Working: what to buy"
Answers = tuple[tuple[State, Answer], ...]
_NAMES = "AB"


def page(first: State, second: State | None, shown: dict[str, str], refused: str, link: str) -> str:
    """Return the whole page.

    Parameters
    ----------
    first, second : State
        The scenarios; the second one may be None.
    shown : dict of str to str
        The parts, as `parts` returns them.
    refused : str
        Fault of the link, or empty.
    link : str
        Link to what is shown.
    """
    compares = second is not None
    sections = "".join(
        f'<section class="panel"><h2>{heading}</h2>{_NOTES.get(name, "")}'
        f'<div id="{name}">{shown.get(name, "")}</div></section>'
        for name, heading in PARTS.items()
    )
    forms = form("a", first) + form("b", second or first)
    return f"""<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>csdplan: ordinary SSDs or drives that compute</title>
<link rel="icon" href="data:,"><link rel="stylesheet" href="page.css"></head>
<body data-compares="{int(compares)}" data-shown="a" data-upload-max="{PROFILE_BYTES_MAX}"
 data-texts="{safe(json.dumps({"a": first.text, "b": (second or first).text}))}">
<header><h1>csdplan: SSDs or drives that compute</h1>
<button type="button" id="mode">Dark / light</button></header>
<p class="short" role="status"><span id="bought">{_WORKING}</span>
<span id="short">{shown["short"]}</span></p>
<main>
<section class="panel answer" aria-labelledby="what"><h2 id="what">What to buy</h2>
<p class="note">From the catalogue of hardware and your own parts, for the workloads and limits of
the scenario, as <code>csdplan plan</code> answers.</p>
<div id="refused" class="fault" role="alert">{safe(refused)}</div>
<p id="working" class="working" role="status">{_WORKING}</p>
<div id="buy" aria-busy="true"></div>
<div class="actions">
<button type="button" id="report">One page to sign</button>
<button type="button" id="compare">Compare with a second scenario</button></div>
<details class="more" open><summary>Save, open, share</summary><div class="actions">
<a class="button" id="link" href="{safe(link)}">Link to this</a>
<button type="button" id="request">Save the scenario</button>
<label class="button">Open a scenario<input type="file" id="open" accept=".toml,.json"></label>
<button type="button" id="parts">Save my parts</button>
<label class="button">Open my parts<input type="file" id="open-parts" accept=".toml"></label>
<button type="button" id="csv">Tables as CSV</button>
<button type="button" id="json">Tables as JSON</button>
</div></details>
</section>
<div class="controls panel">
<div class="tabs" role="group" aria-label="Scenario to change">
<button type="button" id="tab-a" aria-pressed="true">Scenario A</button>
<button type="button" id="tab-b" aria-pressed="false">Scenario B</button></div>
{forms}
</div>
<div class="results">
<section class="panel"><h2>SSDs or drives that compute</h2>
<div id="says">{shown["says"]}</div>
<div id="fault" class="fault" role="alert">{shown["fault"]}</div>
<div id="warnings">{shown["warnings"]}</div>
<details class="explained" open><summary>What is a break-even point?</summary>
<div class="beside">{_PICTURE}<p>{_EXPLAINED}</p></div></details></section>
{sections}
</div>
</main>
<script src="page.js"></script>
</body></html>
"""


def parts(answers: Answers, width: int) -> dict[str, str]:
    """Return the page's parts for one or two scenarios, figures `width` pixels wide."""
    drawn = [figures.throughput(found.curves) for _, found in answers]
    room = screen.room_of(drawn)
    warned = [
        f"<li>{_of(at, answers)}{safe(text)}</li>"
        for at, (_, found) in enumerate(answers)
        for text in found.result.warnings
    ]
    return {
        "short": " · ".join(
            f"{_of(at, answers)}{safe(own.short(found.result, among=len(answers) > 1))}"
            for at, (_, found) in enumerate(answers)
        ),
        "says": "".join(_says(at, answers) for at in range(len(answers))),
        "fault": "",
        "warnings": f'<ul class="note">{"".join(warned)}</ul>' if warned else "",
        "curves": _pair(answers, [screen.figure(one, width, room) for one in drawn]),
        "cost": _pair(
            answers,
            [
                screen.figure(figures.compared(found.costs), width) + table(found.purchases())
                for _, found in answers
            ],
        ),
        "surface": _pair(
            answers,
            [screen.figure(own.surface(found.surface, one), width) for one, found in answers],
        ),
        "points": _pair(
            answers, [table(found.workloads()) + table(found.points()) for _, found in answers]
        ),
        "basis": _pair(answers, [_basis(found) for _, found in answers]) + _badges(),
    }


def blank(fault: str) -> dict[str, str]:
    """Return the parts of a scenario that has no answer, with the reason."""
    empty = dict.fromkeys(("says", "warnings", *PARTS), "")
    return {**empty, "short": "no break-even point: see below", "fault": safe(fault)}


def _basis(found: Answer) -> str:
    said = measure_sentence(found.system, found.widest)
    return (f"<p>{safe(said)}</p>" if said else "") + table(found.basis())


def _of(at: int, answers: Answers) -> str:
    return f"{_NAMES[at]}: " if len(answers) > 1 else ""


def _says(at: int, answers: Answers) -> str:
    first, *more = own.sentences(answers[at][1])
    return f'<p class="says">{_of(at, answers)}{safe(first)}</p><p>{safe(" ".join(more))}</p>'


def _pair(answers: Answers, shown: list[str]) -> str:
    if len(answers) == 1:
        return shown[0]
    both = "".join(
        f"<div><h3>Scenario {_NAMES[at]}: {safe(_named(answers[at][0]))}</h3>{one}</div>"
        for at, one in enumerate(shown)
    )
    return f'<div class="pair">{both}</div>'


def _named(state: State) -> str:
    return f"{state.kernel}, {state.profile}"


def _badges() -> str:
    listed = "".join(
        f'<li><span class="badge {name}">{name}</span> {safe(words)}</li>'
        for name, words in PROVENANCES.items()
    )
    return f'<ul class="note badges">{listed}</ul>'
