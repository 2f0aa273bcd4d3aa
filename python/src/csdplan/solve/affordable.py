"""The cheapest purchase, sought among the parts that one no dearer than a known one can have.

With divisible parts a purchase costs L at least, and L + d if it has one piece of a part whose
reduced cost is d (G. B. Dantzig, "Linear Programming and Extensions", 1963, chapter 5). So where
some purchase costs U, parts with d > U - L are in none that costs less, and need not be looked at.
U is the cheapest purchase of the parts that the divisible one has.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from csdplan.solve.dominated import without_dominated
from csdplan.solve.highs import Answer, Status, shadow_prices
from csdplan.solve.place import Prepare, solve
from csdplan.solve.program import Program
from csdplan.solve.purchase import Request
from csdplan.solve.rows import program

#: With so few whole numbers a program is solved as it is.
FEW = 24
#: Less of a part than this is rounding, as is less than this share of a cost.
_SOME, _ROUNDING = 1e-6, 1e-9


def cheapest(request: Request, prepare: Prepare, time_limit_s: float) -> tuple[Program, Answer]:
    """Return what `solve` does, by way of fewer parts."""
    request = without_dominated(request)
    built = program(request)
    if sum(built.whole) <= FEW:
        return solve(request, prepare, time_limit_s, every_part=True)
    prices = shadow_prices(built, prepare(built))
    parts = {v: name for v, (name, _) in built.parts().items()}
    used = {
        name for v, name in parts.items() if v < len(prices.values) and prices.values[v] > _SOME
    }
    some = _only(request, used)
    if some is None or some == request:
        return solve(request, prepare, time_limit_s, every_part=True)
    known = solve(some, prepare, time_limit_s, every_part=True)
    if known[1].status is Status.INFEASIBLE:
        return solve(request, prepare, time_limit_s, every_part=True)
    spare = known[1].value * (1 + _ROUNDING) - prices.value
    near = {name for v, name in parts.items() if prices.excess.get(v, 0.0) <= spare}
    kept = _only(request, used | near)
    if kept is None or kept == some:
        return known
    found = solve(kept, prepare, time_limit_s, every_part=True)
    return found if found[1].value <= known[1].value else _bounded(known, found[1].bound)


def _only(request: Request, names: Collection[str]) -> Request | None:
    """Return a request with these parts alone; None if hosts, drives or a network are missing."""
    cpus = tuple(cpu for cpu in request.cpus if cpu.name in names)
    drives = tuple(kind for kind in request.drives if kind.name in names)
    network = tuple(part for part in request.network if part.name in names)
    if not (cpus and drives) or (request.clients is not None and not network):
        return None
    return replace(request, cpus=cpus, drives=drives, network=network)


def _bounded(known: tuple[Program, Answer], bound: float) -> tuple[Program, Answer]:
    """Return a purchase that is better than any found of more parts, with their bound."""
    built, answer = known
    least = min(bound, answer.value)
    return built, replace(answer, status=Status.STOPPED, bound=least)
