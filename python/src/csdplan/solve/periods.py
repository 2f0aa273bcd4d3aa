"""One purchase for several requests that are never made at once.

Each request has rates of its own, and all share what is bought: one program, whose rows about rates
stand there once for each request.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from csdplan.errors import ModelError
from csdplan.model.overlap import Overlap
from csdplan.solve.found import plan_of
from csdplan.solve.highs import Status
from csdplan.solve.optimize import least_cost, optimize
from csdplan.solve.place import solve
from csdplan.solve.plans import Plan
from csdplan.solve.program import Program
from csdplan.solve.purchase import Request
from csdplan.solve.rows import program


@dataclass(frozen=True)
class Shared:
    """A purchase that meets each of several requests, one at a time.

    Attributes
    ----------
    plan : Plan
        The purchase, with the work of the first request.
    alone : tuple of Plan
        The cheapest purchase for each request by itself.
    """

    plan: Plan
    alone: tuple[Plan, ...]


def shared(requests: Sequence[Request], *, time_limit_s: float = 60.0) -> Shared | None:
    """Return the cheapest purchase that meets each request; None if there is none.

    Parameters
    ----------
    requests : sequence of Request
        At least one, with parts at the same prices. A part that one of them does not offer, because
        its cores were never measured, is offered to none. Hosts load and compute at once.
    time_limit_s : float
        Limit of each of the solver's runs [s].

    Raises
    ------
    ModelError
        If hosts load and compute one after the other: how often each does is one number for all.
    """
    first, *others = _alike(requests)
    if first.overlap is Overlap.SERIAL:
        raise ModelError("overlap", "serial", "pipelined")
    alone = []
    for request in (first, *others):
        plan = optimize(request, time_limit_s=time_limit_s, explain=False)
        if plan is None:
            return None
        alone.append(plan)
    if not others:
        return Shared(alone[0], tuple(alone))

    def prepare(built: Program) -> dict[int, float]:
        cost = least_cost(built)
        for other in others:
            _add(built, other)
        return cost

    # A part that one request can do without may be what another one needs.
    built, answer = solve(first, prepare, time_limit_s, every_part=True)
    if answer.status is Status.INFEASIBLE:
        return None
    return Shared(plan_of(built, answer), tuple(alone))


def _alike(requests: Sequence[Request]) -> list[Request]:
    """Return the requests with the parts that all of them offer."""
    parts_of = (
        [part.name for part in request.cpus]
        + [part.name for part in request.drives]
        + [part.name for part in request.network]
        for request in requests
    )
    common = set.intersection(*(set(names) for names in parts_of))
    return [
        replace(
            request,
            cpus=tuple(cpu for cpu in request.cpus if cpu.name in common),
            drives=tuple(kind for kind in request.drives if kind.name in common),
            network=tuple(part for part in request.network if part.name in common),
        )
        for request in requests
    ]


def _add(built: Program, request: Request) -> None:
    """Add the rates and rows of a further request about the same purchase."""
    other = program(request, built.groups)
    least_cost(other)
    assert other.scale == built.scale, "the same parts are on offer, and stand first"
    new = {v: v for v in range(other.scale)}
    for v in range(other.scale, len(other.upper)):
        new[v] = built.variable(other.upper[v])
    for row in other.rows:
        terms = {new[v]: factor for v, factor in row.terms.items()}
        built.require(row.name, terms, row.lower, row.upper)
