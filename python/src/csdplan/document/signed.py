"""A purchase on one page of paper, to sign: bill, hosts, risk, and the source of each figure.

It prints on one side of A4 and needs no other file. Figures of the bill and of the parts have the
number of their source behind them, and say if they were measured, given, inferred or assumed.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping, Sequence
from datetime import date

import csdplan
from csdplan.document.html import items, paragraph
from csdplan.document.table import STYLE, heading
from csdplan.plot import screen, topology
from csdplan.result.decided import price_text, risks, sentences
from csdplan.result.planned import Planned
from csdplan.result.sheet import Value, rows_of
from csdplan.units import bytes_text

_STYLE = """
@page { size: A4; margin: 9mm 11mm; }
:root { color-scheme: light; }
body { font: 10.5px/1.3 system-ui, sans-serif; max-width: 50rem; margin: 1rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.5em; margin: 0; } h2 { font-size: 1.1em; margin: .55em 0 .1em; }
p { margin: .2em 0; } ul, ol { margin: .1em 0; padding-left: 1.5em; }
.answer { font-weight: 600; border-left: 4px solid var(--s0); padding: .15em .7em; }
.note { color: var(--soft); }
.two { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 0 1.4em; }
table { font-size: .95em; width: 100%; margin: .2em 0; }
th, td { padding: .06em .5em .06em 0; }
.plot { margin: 0; } .plot > svg { max-height: 58mm; width: 100%; }
.tall .plot > svg { max-height: 88mm; }
.plot .key { font-size: .9em; margin: 0; }
ol { columns: 2; padding-left: 2.2em; font-size: .86em; line-height: 1.2; }
li { break-inside: avoid; overflow-wrap: anywhere; }
sup { color: var(--soft); font-size: .75em; line-height: 1; margin-right: .3em; }
.sign { display: flex; gap: 2em; margin-top: 3em; } .sign span { flex: 1; border-top: 1px solid; }
@media (max-width: 40rem) { .two { grid-template-columns: minmax(0, 1fr); } }
@media print { body { margin: 0; padding: 0; max-width: none; } }
"""
#: Width of the drawing next to the bill, and of one below it, for many different hosts [px].
_BESIDE, _BELOW = 420, 760
#: Heights of the drawing at most, as the style has them [px].
_MOST_PX = {"two": 220.0, "tall": 333.0}
#: Different hosts from which on they stand below the bill.
_HOSTS = 3
#: Height of the paper that is printed on, and of a line with its gap; what stands there once [px].
_PAPER, _LINE, _ONCE = 1054.0, 14.5, 190.0
#: Letters of a line, in the whole width and in half of it.
_LETTERS, _HALF = 118, 54
#: Letters of the figures would be no larger than those of a footnote below this share.
_SMALLEST = 0.55
#: Numbers above this are read without decimals.
_DIGITS = 100
#: Rows of what may change, which the page has room for.
_ROWS = 4
_MARKS = (
    "The number of its source stands behind each figure, with m: measured, g: given by its source, "
    "i: inferred, a: assumed."
)
Row = Mapping[str, Value]


class _Sources:
    """Sources in the order in which they are named first."""

    def __init__(self) -> None:
        self.known: dict[str, int] = {}

    def mark(self, row: Row) -> str:
        """Return the mark of a row's source: its number, and how far it can be trusted."""
        text = f"{row['source']}, {row['date']}"
        number = self.known.setdefault(text, len(self.known) + 1)
        return f"<sup>{number}{_safe(str(row['prov'])[:1])}</sup>"


def render(asked: Mapping[str, object], planned: Planned, today: date) -> str:
    """Return the page for a question, its values by the names of ``plan``'s options."""
    first, _ = sentences(planned)
    question = "; ".join(f"{key}: {_said(value)}" for key, value in asked.items() if value != "")
    sources = _Sources()
    parts = [
        paragraph(f"Asked: {question}", "note"),
        paragraph(first, "answer"),
    ]
    if "bill" in planned.sheets:
        parts += _purchase(planned, sources)
    title = f"Purchase: {price_text(planned) or 'nothing can be bought'}"
    under = f"{today.isoformat()}, csdplan {csdplan.__version__}"
    return (
        '<!doctype html>\n<html lang="en" data-mode="light">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_safe(title)}</title>\n<style>{screen.STYLE}{STYLE}{_STYLE}"
        f"@media print {{ body {{ zoom: {_fitting(parts):.2f}; }} }}</style>\n</head>\n"
        f'<body>\n<h1>{_safe(title)}</h1>\n<p class="note">{under}</p>\n'
        + "\n".join(parts)
        + '\n<p class="sign"><span>name</span><span>date</span><span>signature</span></p>\n'
        "</body>\n</html>\n"
    )


def _purchase(planned: Planned, sources: _Sources) -> list[str]:
    sheets = planned.sheets
    bill = _bill(planned, sources)
    numbers = _numbers(planned, sources)
    tall = len(set(sheets["topology"].column("host"))) >= _HOSTS
    drawn = topology.figure(sheets["topology"], planned.titles, _BELOW if tall else _BESIDE)
    work = "; ".join(
        f"{planned.titles.get(str(row['by']), row['by'])} does {row['share']:.1%} of "
        f"{row['workload']} {row['where']}"
        for row in rows_of(sheets.get("work"))
    )
    binds = "; ".join(
        f"{row['requirement']} {_number(row['required'])} {row['unit']} binds, 10 % less saves "
        f"${_number(row['saving_usd'])}"
        for row in rows_of(sheets["requirements"])
        if row["binds"]
    )
    listed = "".join(f"<li>{_safe(text)}</li>" for text in sources.known)
    return [
        f'<div class="{"tall" if tall else "two"}"><div><h2>Bill</h2>{bill}</div>'
        "<div><h2>What is in which host</h2>"
        f"{drawn}</div></div>",
        *([f"<h2>Who does what</h2>{paragraph(f'{work}.')}"] if work else []),
        *([paragraph(f"{binds}.")] if binds else []),
        f"<h2>Risk</h2>{items(risks(planned))}",
        f"<h2>What would change it</h2>{items(_changes(planned))}",
        paragraph("; ".join(planned.warnings[:_ROWS]), "note"),
        f"<h2>Numbers of these parts</h2>{numbers}",
        f"<h2>Sources</h2>{paragraph(_MARKS, 'note')}<ol>{listed}</ol>",
    ]


def _fitting(parts: Sequence[str]) -> float:
    """Return the share of its size at which all of this is sure to fit on the paper [1].

    A smaller page also has longer lines, so that the height falls faster than the size.
    """
    height = _ONCE
    for part in parts:
        drawn = re.search(r'<svg viewBox="0 0 (\d+) (\d+)"', part)
        beside = part.startswith('<div class="two"')
        rows = re.split(r"</tr>|</li>|</p>|</h2>", re.sub(r"<svg.*</svg>", "", part))
        texts = [re.sub(r"<[^>]*>", "", row) for row in rows]
        halves = 2 if "<ol>" in part else 1
        letters = _HALF if beside or halves > 1 else _LETTERS
        text = sum(-(-len(one) // letters) for one in texts) * _LINE / halves
        if drawn is not None:
            across, down = float(drawn[1]), float(drawn[2])
            figure = min(_MOST_PX["two" if beside else "tall"], down * min(1.0, 700 / across))
            text = max(text, figure) if beside else text + figure
        height += text
    return float(max(_SMALLEST, min(1.0, (_PAPER / height) ** 0.75)))


def _bill(planned: Planned, sources: _Sources) -> str:
    prices = {row["part"]: row for row in rows_of(planned.sheets["prices"])}
    chassis = [name for name in prices if name not in planned.sheets["bill"].column("name")]
    rows = []
    for row in rows_of(planned.sheets["bill"]):
        name = row["name"]
        title = planned.titles.get(str(name), str(name or row["what"]))
        price = "" if row["price_usd"] is None else _number(row["price_usd"])
        marks = sources.mark(prices[name]) if name in prices else ""
        if row["what"] == "host":
            marks += "".join(sources.mark(prices[one]) for one in chassis)
            title += ", with chassis"
        count = "" if row["count"] is None else str(row["count"])
        cost = _number(row["cost_usd"])
        rows.append((_safe(title), count, price + marks, cost))
    note = paragraph(planned.sheets["bill"].note, "note")
    return _table(("part", "count", "price [USD]", "cost [USD]"), rows) + note


def _numbers(planned: Planned, sources: _Sources) -> str:
    """Return a row for each part, with all its numbers."""
    found: dict[str, list[str]] = {}
    for row in rows_of(planned.sheets.get("sources")):
        name = str(row["number"])
        said = f"{_safe(_named(name))} {_safe(_with_unit(name, row['value']))}"
        found.setdefault(str(row["part"]), []).append(said + sources.mark(row))
    rows = [
        (_safe(planned.titles.get(part, part)), ", ".join(numbers))
        for part, numbers in found.items()
    ]
    return _table(("part", "numbers"), rows)


def _changes(planned: Planned) -> list[str]:
    texts = []
    enters = [row for row in rows_of(planned.sheets.get("enters")) if row["enters_usd"] is not None]
    if enters:
        listed = ", ".join(
            f"{planned.titles.get(str(row['part']), row['part'])} below "
            f"${_number(row['enters_usd'])} (now ${_number(row['price_usd'])})"
            for row in enters[:_ROWS]
        )
        texts.append(f"These parts enter: {listed}.")
    for row in rows_of(planned.sheets.get("alternatives")):
        if row["price_usd"] is None:
            texts.append(f"Without {row['without']} nothing does this.")
        else:
            texts.append(
                f"Without {row['without']}: {row['buy']}, for ${_number(row['price_usd'])}."
            )
    return texts


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of cells that are HTML already."""
    heads = "".join(f'<th scope="col">{_safe(name)}</th>' for name in columns)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def _named(name: str) -> str:
    return heading(name.removesuffix("_bytes")).partition(" [")[0]


def _with_unit(name: str, value: Value) -> str:
    number = float(value or 0)
    if name.endswith("_bytes"):
        return bytes_text(number)
    if name.endswith("_Bps"):
        return f"{number / 1e9:.4g} GB/s"
    return f"{number:.6g}{' W' if name.endswith('_W') else ''}"


def _number(value: Value) -> str:
    number = float(value or 0)
    whole = number == int(number) or number > _DIGITS
    return f"{number:,.0f}" if whole else f"{number:.4g}"


def _said(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(_said(one) for one in value) or "none"
    if isinstance(value, Mapping):
        return " ".join(str(one) for one in value.values())
    return str(value)


def _safe(text: str) -> str:
    return html.escape(text, quote=True)
