"""Rent of machines, and of traffic that is priced by the tier."""

from __future__ import annotations

from collections.abc import Sequence

from csdplan.model.cost import HOURS_PER_YEAR

#: Bytes of a GB, and months of a year, as bills have them.
_GB, _MONTHS = 1e9, 12.0


def egress_usd(month_bytes: float, tiers: Sequence[tuple[float, float]]) -> float:
    """Return the price of a month's traffic [USD].

    Parameters
    ----------
    month_bytes : float
        Traffic of a month [bytes].
    tiers : sequence of (float, float)
        Up to so many TB, USD for each GB; ascending, the last without an end.
    """
    total, begin = 0.0, 0.0
    for end_TB, usd in tiers:
        end = 1e12 * end_TB
        total += max(0.0, min(month_bytes, end) - begin) / _GB * usd
        begin = end
    return total


def rent_usd(count: int, hourly_usd: float, hours_a_day: float, years: float) -> float:
    """Return the rent of machines that run for some hours of each day [USD]."""
    return count * hourly_usd * hours_a_day / 24.0 * HOURS_PER_YEAR * years


def hours_even(cost_usd: float, count: int, hourly_usd: float, years: float) -> float:
    """Return the hours a day at which renting costs so much; more than 24 if it always costs less.

    Parameters
    ----------
    cost_usd : float
        Cost over the years, less what does not depend on the hours [USD].
    count, hourly_usd, years
        As in `rent_usd`.
    """
    return max(0.0, cost_usd) / rent_usd(count, hourly_usd, 1.0, years)


def hourly_even_usd(cost_usd: float, count: int, hours_a_day: float, years: float) -> float:
    """Return the price of an hour at which renting costs so much [USD].

    Parameters
    ----------
    cost_usd, count, hours_a_day, years
        As in `hours_even` and `rent_usd`.
    """
    return max(0.0, cost_usd) / rent_usd(count, 1.0, hours_a_day, years)


def egress_years_usd(
    month_bytes: float, tiers: Sequence[tuple[float, float]], years: float
) -> float:
    """Return the price of the same traffic each month, over years [USD]."""
    return egress_usd(month_bytes, tiers) * _MONTHS * years
