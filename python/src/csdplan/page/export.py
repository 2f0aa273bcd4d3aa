"""Downloads of the page: the tables that it shows, and its state."""

from __future__ import annotations

from dataclasses import asdict

from csdplan.page.answer import answer, purchase
from csdplan.page.state import State
from csdplan.result.envelope import as_json
from csdplan.result.sheet import Sheet, as_csv


def sheets(state: State) -> list[Sheet]:
    """Return every table of a state, the purchase included."""
    first, *rest = answer(state).sheets()
    return [first, purchase(state), *rest]


def to_csv(state: State) -> str:
    """Return the tables as blocks of comma-separated values, an empty line between them."""
    return "\n".join(as_csv(sheet) for sheet in sheets(state))


def to_json(state: State) -> str:
    """Return state and tables as the one JSON object that commands print."""
    body = {"state": asdict(state), "tables": [sheet.as_dict() for sheet in sheets(state)]}
    return as_json("ui", body, answer(state).result.warnings)
