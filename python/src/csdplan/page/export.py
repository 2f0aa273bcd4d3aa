"""Downloads of the page: the tables that it shows, with the scenarios behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from csdplan.errors import ModelError
from csdplan.page.answer import answer
from csdplan.page.state import State
from csdplan.result.envelope import as_json
from csdplan.result.planned import Planned
from csdplan.result.sheet import Sheet, as_csv


def tables(states: Sequence[State], purchases: Sequence[Planned], form: str) -> str:
    """Return the tables of one or two scenarios as ``json`` or ``csv``.

    Raises
    ------
    ModelError
        If the form is neither.
    """
    found = [
        _named(sheet, f"{'AB'[at]}: " if len(states) > 1 else "")
        for at, (state, purchase) in enumerate(zip(states, purchases, strict=True))
        for sheet in (*answer(state).sheets(), *purchase.sheets.values())
    ]
    if form == "csv":
        return "\n".join(as_csv(sheet) for sheet in found)
    if form != "json":
        raise ModelError("form", form, "csv or json")
    body: dict[str, object] = {
        "state": asdict(states[0]),
        "answers": [purchase.answer for purchase in purchases],
        "tables": [sheet.as_dict() for sheet in found],
    }
    if len(states) > 1:
        body["second"] = asdict(states[1])
    return as_json("ui", body, answer(states[0]).result.warnings)


def _named(sheet: Sheet, before: str) -> Sheet:
    return replace(sheet, title=f"{before}{sheet.title}")
