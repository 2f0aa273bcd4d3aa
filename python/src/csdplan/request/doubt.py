"""Spreads of the numbers behind a plan, by where they are from.

The deviations below are assumptions, but for those of core speeds that public figures give: over
the ten programs of the suite that the figures are of, the logarithm of the quotient of two CPUs
varies by 0.08 to 0.25. Assumed numbers are the least certain, and none of them is exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from math import hypot

from csdplan.hardware import Catalogue, Part, Price
from csdplan.profile import Profile
from csdplan.request.ask import Ask
from csdplan.request.offer import Asked
from csdplan.solve.draws import Doubt
from csdplan.solve.uncertainty import SPREADS

#: Of a price, by provenance, and for each year since it was stated.
PRICES = {"measured": 0.05, "given": 0.05, "inferred": 0.15, "assumed": 0.3}
A_YEAR = 0.2
#: Of the speed of a part's cores, beyond the spread of the workload.
CORES = {"measured": 0.02, "given": 0.1, "inferred": 0.2, "assumed": 0.5}
#: Of what a part moves in a second, and of its power.
MOVES = {"measured": 0.02, "given": 0.02, "inferred": 0.05, "assumed": 0.15}
WATTS = {"measured": 0.02, "given": 0.05, "inferred": 0.1, "assumed": 0.25}
#: Of the share of its peak that a host's memory reaches, which is assumed.
_MEMORY = 0.1
_DAYS_PER_YEAR = 365.25


def doubt_of(
    ask: Ask,
    asked: Asked,
    catalogue: Catalogue,
    inside: Mapping[str, tuple[Profile, str]],
    today: date,
) -> Doubt:
    """Return the deviations of everything that a request was made from.

    Parameters
    ----------
    ask, asked : Ask, Asked
        The question, and the request that it became.
    catalogue : Catalogue
        Where its numbers are from.
    inside : mapping of str to (Profile, str)
        Profile and device with the times inside a part.
    today : date
        Day from which the age of prices counts.
    """
    request = asked.request
    names = [cpu.name for cpu in request.cpus] + [kind.name for kind in request.drives]
    names += [one.name for one in request.network]
    parts = [catalogue.parts[name] for name in names]
    prices: dict[str, float] = {}
    shared: dict[str, tuple[str, float]] = {}
    for part in parts:
        price = catalogue.prices[part.name]
        sigma = _price(price, today)
        if part.kind == "cpu":
            # A host is a CPU and a chassis, which have prices of their own.
            chassis = catalogue.prices[asked.chassis]
            both = price.usd + chassis.usd or 1.0
            sigma = hypot(sigma * price.usd, _price(chassis, today) * chassis.usd) / both
        # Half of the variance is the source's, which is wrong about all of its prices at once.
        prices[part.name] = sigma / 2**0.5
        shared[part.name] = (f"{price.source} {price.date}", sigma / 2**0.5)
    speeds: dict[tuple[str, str], float] = {}
    for work in ask.works:
        for part in parts:
            prov = asked.core_prov.get((work.name, part.name))
            own = inside.get(part.name)
            if prov is not None:
                speeds[work.name, part.name] = CORES[prov]
            elif own is not None:
                speeds[work.name, part.name] = _inside(own, work.name)
    return Doubt(
        prices=prices,
        shared=shared,
        times=speeds,
        works={work.name: work.spread for work in ask.works},
        moves={part.name: _moves(part) for part in parts},
        watts={part.name: _watts(part) for part in parts},
    )


def _price(price: Price, today: date) -> float:
    return hypot(PRICES[price.prov], A_YEAR * price.age_days(today) / _DAYS_PER_YEAR)


def _inside(own: tuple[Profile, str], kernel: str) -> float:
    """Return the spread of times inside a drive: that of the least certain of them."""
    profile, device = own
    points = [p for p in profile.points(kernel, "drive") if p.device == device]
    provs = {point.prov_of(one) for point in points for one in (point.load_s, point.comp_s)}
    return max((SPREADS[prov] for prov in provs), default=0.0)


def _moves(part: Part) -> float:
    if part.kind == "cpu":
        return _MEMORY
    number = part.numbers().get("read_Bps") or part.numbers().get("link_Bps")
    return MOVES["assumed" if number is None else number.prov]


def _watts(part: Part) -> float:
    number = part.numbers().get("tdp_W" if part.kind == "cpu" else "active_W")
    return WATTS["assumed" if number is None else number.prov]
