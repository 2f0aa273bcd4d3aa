"""Finders of a purchase: of any kinds of parts, or of one kind of drive in one kind of host."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import TypeVar

from csdplan.solve import optimize as solver
from csdplan.solve.purchase import Cpu, DriveKind, Request

_PartT = TypeVar("_PartT", Cpu, DriveKind)

#: Finds the cheapest purchase of a request; None if there is none.
Finder = Callable[..., solver.Plan | None]


class AnyKinds:
    """Finds the cheapest purchase."""

    def __init__(self, time_limit_s: float) -> None:
        self._time_limit_s = time_limit_s

    def __call__(self, request: Request, *, explain: bool = True) -> solver.Plan | None:
        """Return the cheapest purchase, with what binds if `explain`."""
        return solver.optimize(request, time_limit_s=self._time_limit_s, explain=explain)


def _one_of_each(parts: Sequence[tuple[_PartT, bool]]) -> list[tuple[_PartT, ...]]:
    """Return every choice of one part for flash, and one for hard drives if there are any."""
    tiers = [[part for part, disk in parts if disk == which] for which in (False, True)]
    return list(product(*(tier for tier in tiers if tier)))


class OneKind:
    """Finds the cheapest purchase with drives of one kind and hosts of one kind.

    Each kind of drive is tried with all kinds of hosts first, which costs no more than with any one
    of them. Kinds follow in the order of that bound until it exceeds the best purchase found.
    """

    def __init__(self, time_limit_s: float) -> None:
        self._any = AnyKinds(time_limit_s)

    def __call__(self, request: Request, *, explain: bool = True) -> solver.Plan | None:
        """Return the cheapest such purchase, with what binds if `explain`."""
        bounds: list[tuple[float, int, Request, solver.Plan]] = []
        for drives in _one_of_each([(kind, kind.disk) for kind in request.drives]):
            part = replace(request, drives=drives)
            if (plan := self._any(part, explain=False)) is not None:
                bounds.append((plan.cost_usd, len(bounds), part, plan))
        best: tuple[Request, solver.Plan] | None = None
        for bound, _, part, plan in sorted(bounds, key=lambda one: one[:2]):
            if best is not None and bound >= best[1].cost_usd:
                break
            tiers = {cpu.disks for cpu in part.cpus}
            choices = _one_of_each([(cpu, cpu.disks) for cpu in part.cpus])
            for cpus in choices if len(plan.hosts) > len(tiers) else ():
                alone = replace(part, cpus=cpus)
                other = self._any(alone, explain=False)
                if other is not None and (best is None or other.cost_usd < best[1].cost_usd):
                    best = alone, other
            if len(plan.hosts) <= len(tiers) and (best is None or plan.cost_usd < best[1].cost_usd):
                best = part, plan
        if best is None:
            return None
        return self._any(best[0]) if explain else best[1]
