"""Prices of parts with date, age and source, and what a reader must know of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date

from csdplan.hardware import Price
from csdplan.result.sheet import Sheet, sheet_of

_DAYS_PER_MONTH = 30.4


def prices(title: str, found: Mapping[str, Sequence[Price]], today: date) -> Sheet:
    """Return prices of parts, each with its age and source."""
    rows = [
        (name, one.usd, one.date, one.age_days(today), one.prov, one.source, one.until)
        for name, listed in found.items()
        for one in listed
    ]
    columns = ("part", "price_usd", "date", "age_days", "prov", "source", "until")
    return sheet_of(title, columns, rows)


def prices_text(found: Mapping[str, Price], today: date) -> str:
    """Say how far the prices of a bill can be trusted."""
    guessed = sum(one.prov == "assumed" for one in found.values())
    oldest = max(found.values(), key=lambda one: one.age_days(today))
    months = round(oldest.age_days(today) / _DAYS_PER_MONTH)
    old = f", {months} months ago" if months > 1 else ""
    return f"{guessed} of {len(found)} prices are assumed, and the oldest is of {oldest.date}{old}."


def expired(found: Mapping[str, Price], today: date) -> tuple[str, ...]:
    """Return a warning for each price that is no longer promised."""
    return tuple(
        f"price of {name}: its source promised it until {one.until}"
        for name, one in found.items()
        if one.has_expired(today)
    )
