"""Numbers behind an answer, with where they are from."""

from __future__ import annotations

from collections.abc import Mapping

from csdplan.result.sheet import Sheet, sheet_of

#: Value, provenance, source and date.
Sourced = tuple[float, str, str, str | None]


def numbers(used: Mapping[str, Sourced]) -> Sheet:
    """Return the numbers behind an answer: value, provenance, source and date of each."""
    columns = ("number", "value", "prov", "source", "date")
    return sheet_of("Numbers behind it", columns, [(name, *one) for name, one in used.items()])
