"""Owning compared with renting, as sheets and a paragraph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from csdplan.result.sheet import Sheet, Value, sheet_of

#: More hours than a day has.
_DAY = 24.0


@dataclass(frozen=True)
class Compared:
    """Costs of both ways over the years.

    Attributes
    ----------
    years, hours : float
        Years, and hours of a day in which rented instances run.
    purchase_usd, energy_usd, running_usd : float
        Of owning: parts, energy, and rack, staff and support [USD].
    instance : str
        What is rented.
    count : int
        How many.
    rent_usd, egress_usd : float
        Of renting: instances, and traffic out [USD].
    even_hours : float or None
        Hours a day at which both cost the same; None if the hours are no choice.
    even_hourly_usd : float
        Price of an instance's hour at which both cost the same [USD].
    """

    years: float
    hours: float
    purchase_usd: float
    energy_usd: float
    running_usd: float
    instance: str
    count: int
    rent_usd: float
    egress_usd: float
    even_hours: float | None
    even_hourly_usd: float

    @property
    def own_usd(self) -> float:
        """All that owning costs [USD]."""
        return self.purchase_usd + self.energy_usd + self.running_usd

    @property
    def cloud_usd(self) -> float:
        """All that renting costs [USD]."""
        return self.rent_usd + self.egress_usd


def costs(one: Compared) -> Sheet:
    """Return what both ways cost."""
    rows: list[tuple[Value, ...]] = [
        ("own", "purchase", one.purchase_usd),
        ("own", "energy", one.energy_usd),
        ("own", "rack, staff and support", one.running_usd),
        ("own", "all", one.own_usd),
        ("cloud", f"{one.count} x {one.instance}", one.rent_usd),
        ("cloud", "traffic out", one.egress_usd),
        ("cloud", "all", one.cloud_usd),
    ]
    note = (
        f"over {one.years:g} years, {one.hours:g} hours a day in the cloud; the traffic of own "
        "machines, and copies that instances are filled from, are left out"
    )
    return sheet_of("Own or rent", ("way", "what", "cost_usd"), rows, note)


def instances(found: Mapping[str, int]) -> Sheet:
    """Return the instances that each requirement needs."""
    rows = [(name, count, count == max(found.values())) for name, count in found.items()]
    return sheet_of("Instances", ("requirement", "instances", "binds"), rows)


def paragraph(one: Compared) -> str:
    """Say which way costs less, and from how many hours a day on owning does."""
    cheaper, other = ("Own", "renting") if one.own_usd <= one.cloud_usd else ("Rent", "owning")
    low, high = sorted((one.own_usd, one.cloud_usd))
    text = (
        f"{cheaper}: ${low:,.0f} over {one.years:g} years, and {other} costs ${high:,.0f} "
        f"({one.count} x {one.instance}, {one.hours:g} hours a day)."
    )
    text += f" Both cost the same at ${one.even_hourly_usd:.3g} an hour"
    if one.even_hours is None:
        return f"{text}."
    if one.even_hours >= _DAY:
        return f"{text}; at this price renting costs less at any number of hours."
    return f"{text}, or at {one.even_hours:.3g} hours a day."
