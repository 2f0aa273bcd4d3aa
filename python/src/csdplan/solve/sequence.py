"""Purchases year by year: what was bought before is there already, and costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from csdplan.solve.plans import Plan
from csdplan.solve.purchase import Request

#: Finds the cheapest purchase of a request; None if there is none.
Find = Callable[[Request], Plan | None]
#: Returns a request that may use what is there already, by name and number, for nothing.
Have = Callable[[Request, Mapping[str, int]], Request]
#: Relative differences below this are rounding.
_SAME = 1e-6


def added(there: Mapping[str, int], bought: Mapping[str, int], suffix: str) -> dict[str, int]:
    """Return what is there after a purchase; what it keeps was there before."""
    found = dict(there)
    for name, count in bought.items():
        if not name.endswith(suffix):
            found[name] = found.get(name, 0) + count
    return found


@dataclass(frozen=True)
class Step:
    """A purchase in one year.

    Attributes
    ----------
    year : float
        Years after the first purchase.
    bought : dict
        Number of each new part, by name.
    price_usd, value_usd : float
        Price in that year, and its value today [USD].
    """

    year: float
    bought: dict[str, int]
    price_usd: float
    value_usd: float


def steps(
    request_at: Callable[[float, float], Request],
    years: float,
    every: float,
    discount: float,
    find: Find,
    have: Have,
    suffix: str,
) -> tuple[Step, ...] | None:
    """Return the purchases that follow a growing need; None if one of them cannot be made.

    Parameters
    ----------
    request_at : callable
        The request of a purchase, by its year and by the year up to which it must do.
    years, every : float
        Years in all, and between purchases.
    discount : float
        What money brings a year [1].
    find, have : callable
        The solver, and what adds parts that are there.
    suffix : str
        End of the names of parts that are there.
    """
    found: list[Step] = []
    there: dict[str, int] = {}
    year = 0.0
    while year < years - _SAME:
        request = request_at(year, min(years, year + every))
        plan = find(have(request, there) if there else request)
        if plan is None:
            return None
        new = {name: count for name, count in plan.bought.items() if not name.endswith(suffix)}
        there = added(there, plan.bought, suffix)
        found.append(Step(year, new, plan.price_usd, plan.price_usd / (1 + discount) ** year))
        year += every
    return tuple(found)


def at_prices(request: Request, drives: float, hosts: float) -> Request:
    """Return a request whose drives, and whose hosts and network, cost so many times as much."""
    return replace(
        request,
        drives=tuple(replace(one, price_usd=drives * one.price_usd) for one in request.drives),
        cpus=tuple(replace(one, price_usd=hosts * one.price_usd) for one in request.cpus),
        network=tuple(replace(one, price_usd=hosts * one.price_usd) for one in request.network),
    )
