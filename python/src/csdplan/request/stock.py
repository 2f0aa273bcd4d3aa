"""A request with hosts and drives that are there already, to be kept or sold.

A part that is there competes with the same part new: it costs what selling it would bring. So the
cheapest purchase keeps it exactly where it is worth more than that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TypeVar

from csdplan.errors import ModelError
from csdplan.solve.purchase import Cpu, Demand, DriveKind, NetworkPart, Request

_PartT = TypeVar("_PartT", Cpu, DriveKind, NetworkPart)

#: What names of parts that are there already end with.
HAVE = " (have)"
_MOST = 100_000


def owned(texts: list[str]) -> dict[str, int]:
    """Return the counts of parts such as ``epyc-7763=12``.

    Raises
    ------
    ModelError
        If a text names no part and count, or a part twice.
    """
    found: dict[str, int] = {}
    for text in texts:
        name, _, count = text.partition("=")
        plain = count.isascii() and count.isdecimal() and len(count) <= len(str(_MOST))
        if not name or not plain or not 1 <= int(count) <= _MOST:
            raise ModelError("have", text, f"PART=COUNT, such as epyc-7763=12, at most {_MOST}")
        if name in found:
            raise ModelError("have", text, "each part once")
        found[name] = int(count)
    return found


def with_stock(request: Request, have: Mapping[str, int], resale: float) -> Request:
    """Return a request that may use what is there, and sells the rest.

    Parameters
    ----------
    request : Request
        The question, of new parts only.
    have : mapping of str to int
        Parts that are there; a CPU is a host with its chassis.
    resale : float
        Share of a new part's price that selling it brings [1].

    Raises
    ------
    ModelError
        If one of them is not on offer.
    """
    for name in have:
        if name not in _prices(request):
            raise ModelError("have", name, "a CPU or drive on offer, with known numbers")

    def there(one: _PartT) -> _PartT:
        usd = resale * one.price_usd
        return replace(one, name=one.name + HAVE, price_usd=usd, most=have[one.name])

    cpus = [there(one) for one in request.cpus if one.name in have]
    drives = [there(one) for one in request.drives if one.name in have]
    network = [there(one) for one in request.network if one.name in have]
    limits = request.limits
    if limits.budget_usd is not None:
        # The budget is of what is spent beyond the sales; the program counts sales not made.
        limits = replace(limits, budget_usd=limits.budget_usd + sales_usd(request, have, resale))
    return replace(
        request,
        cpus=(*request.cpus, *cpus),
        drives=(*request.drives, *drives),
        network=(*request.network, *network),
        demands=tuple(_as_fast(demand, have) for demand in request.demands),
        limits=limits,
    )


def sales_usd(request: Request, have: Mapping[str, int], resale: float) -> float:
    """Return what selling all that is there would bring [USD]."""
    prices = _prices(request)
    return sum(resale * prices[name] * count for name, count in have.items())


def _prices(request: Request) -> dict[str, float]:
    """Return the prices of all parts, by name [USD]."""
    found = {cpu.name: cpu.price_usd for cpu in request.cpus}
    found |= {kind.name: kind.price_usd for kind in request.drives}
    return found | {part.name: part.price_usd for part in request.network}


def _as_fast(demand: Demand, have: Mapping[str, int]) -> Demand:
    """Return a workload that what is there does as fast as the same part new."""
    core_s, drive_s = dict(demand.core_s_per_byte), dict(demand.drive_s_per_byte)
    for times in (core_s, drive_s):
        times |= {name + HAVE: times[name] for name in have if name in times}
    return replace(demand, core_s_per_byte=core_s, drive_s_per_byte=drive_s)
