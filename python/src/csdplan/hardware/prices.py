"""Prices with date, source and validity; a part may have several, of different dates."""

from __future__ import annotations

import calendar
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date as day
from typing import Annotated, Literal

from pydantic import Field, model_validator

from csdplan.errors import Problem, ProfileInvalid
from csdplan.hardware.source import Date, Key, Source
from csdplan.profile.schema import Provenance, Table, Text

_Usd = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]


@dataclass(frozen=True)
class Price:
    """Price of a part.

    Attributes
    ----------
    usd : float
        Price [USD].
    date : str
        Day, month or year of the price.
    prov : str
        ``given`` (a quote, a published price), ``inferred`` or ``assumed``.
    source : str
        Document or person that states it.
    until : str or None
        Last day on which it holds; None if that is unknown.
    """

    usd: float
    date: str
    prov: str
    source: str
    until: str | None = None

    def age_days(self, today: day) -> int:
        """Return the days since the price was stated, from the last that its date can mean."""
        return max(0, (today - last_day(self.date)).days)

    def has_expired(self, today: day) -> bool:
        """Return True if the price was promised until a day that is over."""
        return self.until is not None and last_day(self.until) < today


def last_day(date: str) -> day:
    """Return the last day that a year, a month or a day can mean."""
    year, *rest = (int(one) for one in date.split("-"))
    month = rest[0] if rest else 12
    number = rest[1] if len(rest) > 1 else calendar.monthrange(year, month)[1]
    return day(year, month, number)


class PriceList(Table):
    """Prices of one date and source."""

    date: Date
    prov: Provenance
    source: Text | None = None
    until: Date | None = None
    note: Text | None = None
    usd: dict[str, _Usd]


class PricesFile(Table):
    """A file of prices: one list on top, several as ``[[price]]``, or both."""

    version: Literal[1] = Field(alias="schema")
    source: dict[Key, Source] | Text | None = None
    date: Date | None = None
    prov: Provenance | None = None
    until: Date | None = None
    note: Text | None = None
    usd: dict[str, _Usd] | None = None
    price: list[PriceList] = Field(default_factory=list)

    @model_validator(mode="after")
    def _has_prices(self) -> PricesFile:
        if self.usd is None and not self.price:
            raise ValueError("a table usd, or lists [[price]] with one each")
        if self.usd is not None and (self.date is None or self.prov is None):
            raise ValueError("date and prov with usd")
        return self

    def lists(self) -> list[PriceList]:
        """Return the lists, the one on top first."""
        if self.usd is None or self.date is None or self.prov is None:
            return self.price
        source = self.source if isinstance(self.source, str) else None
        top = PriceList(
            date=self.date, prov=self.prov, source=source, until=self.until, usd=self.usd
        )
        return [top, *self.price]


def prices_of(
    lists: Iterable[PriceList], sources: Mapping[str, Source], file: str, parts: Iterable[str]
) -> dict[str, list[Price]]:
    """Return the prices of each part.

    Raises
    ------
    ProfileInvalid
        If a list has a price of what is no part.
    """
    known, problems = set(parts), []
    found: dict[str, list[Price]] = {}
    for one in lists:
        source = sources.get(one.source or "", one.source)
        for name, usd in one.usd.items():
            if name not in known:
                expected = "a part of the catalogue (csdplan catalogue lists them)"
                problems.append(Problem(f"usd.{name}", name, expected))
            price = Price(usd, one.date, one.prov, str(source or file), one.until)
            found.setdefault(name, []).append(price)
    if problems:
        raise ProfileInvalid(file, problems)
    return found


def newest(prices: Iterable[Price], latest: day | None) -> Price:
    """Return the newest of a part's prices, none later than `latest` unless all are."""
    ordered = sorted(prices, key=lambda one: last_day(one.date))
    known = [one for one in ordered if latest is None or last_day(one.date) <= latest]
    return known[-1] if known else ordered[0]
