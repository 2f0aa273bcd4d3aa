"""Draws of what is not certain about a purchase: prices, times, speeds and power.

A draw multiplies each by a lognormal factor of its own; what several parts share, such as the one
source of their prices, has one factor for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from csdplan.errors import ModelError
from csdplan.model.inputs import FloatArray
from csdplan.solve.purchase import Request


@dataclass(frozen=True)
class Doubt:
    """Standard deviations of logarithms, of all that is not certain [1].

    Attributes
    ----------
    prices : mapping of str to float
        Of each part's price, apart from what it shares.
    shared : mapping of str to tuple of (str, float)
        Name of what several prices share, such as their source, and its deviation, by part.
    times : mapping of (str, str) to float
        Of the compute time of a workload on a part, apart from what it shares.
    works : mapping of str to float
        Of the times of a workload everywhere.
    speeds : mapping of str to float
        Of a part's speed for all workloads, such as that of its cores.
    moves : mapping of str to float
        Of what a part reads or takes in a second.
    watts : mapping of str to float
        Of the power of a part.
    """

    prices: Mapping[str, float] = field(default_factory=dict)
    shared: Mapping[str, tuple[str, float]] = field(default_factory=dict)
    times: Mapping[tuple[str, str], float] = field(default_factory=dict)
    works: Mapping[str, float] = field(default_factory=dict)
    speeds: Mapping[str, float] = field(default_factory=dict)
    moves: Mapping[str, float] = field(default_factory=dict)
    watts: Mapping[str, float] = field(default_factory=dict)


class Draws:
    """Factors of many draws; equal seeds give equal ones.

    Parameters
    ----------
    doubt : Doubt
        What varies, and how much.
    count : int
        Draws.
    seed : int
        Seed of the draws.
    """

    def __init__(self, doubt: Doubt, count: int, seed: int = 1) -> None:
        if count < 1:
            raise ModelError("draws", count, "at least 1")
        self.doubt, self.count, self._seed = doubt, count, seed
        self._known: dict[tuple[str, str], FloatArray] = {}

    def _factor(self, kind: str, name: str, sigma: float) -> FloatArray:
        """Return lognormal factors of a stream of its own, that of the name."""
        if (kind, name) not in self._known:
            stream = np.random.default_rng([self._seed, *f"{kind} {name}".encode()])
            normal = stream.standard_normal(self.count) if sigma else np.zeros(self.count)
            self._known[kind, name] = np.exp(sigma * normal)
        return self._known[kind, name]

    def price(self, part: str) -> FloatArray:
        """Return factors of a part's price."""
        own = self._factor("price", part, self.doubt.prices.get(part, 0.0))
        source, sigma = self.doubt.shared.get(part, ("", 0.0))
        return np.asarray(own * self._factor("shared", source, sigma))

    def slow(self, work: str, part: str) -> FloatArray:
        """Return factors of the time of a workload on a part."""
        factor = self._factor("work", work, self.doubt.works.get(work, 0.0))
        factor = factor * self._factor("speed", part, self.doubt.speeds.get(part, 0.0))
        each = self.doubt.times.get((work, part), 0.0)
        return np.asarray(factor * self._factor("time", f"{work} {part}", each))

    def moved(self, part: str) -> FloatArray:
        """Return factors of what a part moves in a second."""
        return self._factor("move", part, self.doubt.moves.get(part, 0.0))

    def watt(self, part: str) -> FloatArray:
        """Return factors of a part's power."""
        return self._factor("watt", part, self.doubt.watts.get(part, 0.0))

    def request(self, request: Request, draw: int) -> Request:
        """Return the request with the numbers of one draw; watts and what is moved as stated."""

        def times(work: str, table: Mapping[str, float]) -> dict[str, float]:
            return {part: float(s * self.slow(work, part)[draw]) for part, s in table.items()}

        demands = tuple(
            replace(
                demand,
                core_s_per_byte=times(demand.name, demand.core_s_per_byte),
                drive_s_per_byte=times(demand.name, demand.drive_s_per_byte),
            )
            for demand in request.demands
        )

        def priced(usd: float, part: str) -> float:
            return float(usd * self.price(part)[draw])

        return replace(
            request,
            demands=demands,
            cpus=tuple(replace(c, price_usd=priced(c.price_usd, c.name)) for c in request.cpus),
            drives=tuple(replace(k, price_usd=priced(k.price_usd, k.name)) for k in request.drives),
            network=tuple(
                replace(p, price_usd=priced(p.price_usd, p.name)) for p in request.network
            ),
        )
