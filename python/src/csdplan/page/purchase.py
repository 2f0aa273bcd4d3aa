"""The purchase that the page opens on: bill, hosts drawn, risk, and what would change it."""

from __future__ import annotations

from collections.abc import Sequence

from csdplan.document.table import table
from csdplan.plot import topology
from csdplan.plot.svg import safe
from csdplan.result.decided import bill, changes, price_text, risks, sentences
from csdplan.result.planned import Planned

#: Tables that stand open, in their order; the rest opens at a touch.
_OPEN = ("bill", "topology", "work")


def short(planned: Planned, *, among: bool = False) -> str:
    """Say what is paid in a line of a phone, or in half of it `among` others."""
    text = price_text(planned) or "nothing does this"
    return text.partition(" (")[0] if among else text


def shown(planned: Planned, width: int) -> str:
    """Return a purchase as HTML, its figure `width` pixels wide."""
    first, rest = sentences(planned)
    notes = _items(planned.warnings, "note")
    if "bill" not in planned.sheets:
        listed = "".join(table(sheet) for sheet in planned.sheets.values())
        return f'<p class="says">{safe(first)}</p><p>{safe(rest)}</p>{listed}{notes}'
    sheets = planned.sheets
    drawn = topology.figure(sheets["topology"], planned.titles, width)
    work = table(sheets["work"]) if "work" in sheets else ""
    nearest = "".join(table(sheet) for sheet in changes(planned))
    others = "".join(table(sheet) for name, sheet in sheets.items() if name not in _OPEN)
    return (
        f'<p class="says">{safe(first)}</p>{table(bill(planned))}'
        f"<h3>What is in which host</h3>{drawn}{work}"
        f"<h3>Risk</h3>{_items(risks(planned), 'risk')}"
        f"<h3>What would change it</h3>{nearest}"
        f'<details class="all"><summary>All of the answer, and where its numbers come from'
        f"</summary><p>{safe(rest)}</p>{table(sheets['topology'])}{others}{notes}</details>"
    )


def _items(texts: Sequence[str], kind: str) -> str:
    listed = "".join(f"<li>{safe(text)}</li>" for text in texts)
    return f'<ul class="{kind}">{listed}</ul>' if listed else ""
