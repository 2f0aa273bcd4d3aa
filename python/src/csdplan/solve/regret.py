"""Lists of parts over many draws of what is not certain: costs, which one wins, and regret.

A list that is too slow in a draw is bought that much more often: its cost there is in proportion.
The regret of a list in a draw is what it costs more than the cheapest of all lists.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from csdplan.model.inputs import FloatArray
from csdplan.solve.dominated import without_dominated
from csdplan.solve.draws import Draws
from csdplan.solve.highs import Status, minimize
from csdplan.solve.plans import Plan
from csdplan.solve.purchase import Request
from csdplan.solve.rows import program
from csdplan.solve.spare import COMPUTING, MOVING, utilization

#: Draws for which the best list is looked for, parts taken as divisible, and lists beyond those
#: known at most.
_LOOKS, _MORE = 6, 3
#: Bounds of 90 % of cases.
LOW, HIGH = 0.05, 0.95
_LIMIT_S = 5.0
#: Less of a part than this is rounding.
_SOME = 1e-6


@dataclass(frozen=True)
class Weighed:
    """One list over all draws.

    Attributes
    ----------
    plan : Plan
        The list.
    cost_usd : ndarray
        Its cost in each draw [USD].
    wins, short : float
        Share of draws in which it is the cheapest of all lists, and in which it is too slow.
    regret_usd : float
        Its mean regret [USD].
    over : mapping of str to float
        Share of draws in which it exceeds a limit, by ``budget`` and ``power``.
    """

    plan: Plan
    cost_usd: FloatArray
    wins: float
    short: float
    regret_usd: float
    over: Mapping[str, float]

    def quantile_usd(self, share: float) -> float:
        """Return a quantile of its cost [USD]."""
        return float(np.quantile(self.cost_usd, share))


def weigh(request: Request, plans: Sequence[Plan], draws: Draws) -> tuple[Weighed, ...]:
    """Weigh lists against each other over all draws; the order is kept.

    Parameters
    ----------
    request : Request
        What they are for, with the numbers as stated.
    plans : sequence of Plan
        Lists that do it, at least one.
    draws : Draws
        What varies.
    """
    needs = [_need(request, plan, draws) for plan in plans]
    prices = [_price_usd(request, plan, draws) for plan in plans]
    energies = [_energy_usd(request, plan, draws) for plan in plans]
    costs = [
        (usd + energy) * need for usd, energy, need in zip(prices, energies, needs, strict=True)
    ]
    all_usd = np.array(costs)
    least = all_usd.min(axis=0)
    first = all_usd.argmin(axis=0)
    found = []
    for index, (plan, need) in enumerate(zip(plans, needs, strict=True)):
        over = {}
        limits = request.limits
        if limits.budget_usd is not None:
            spent = prices[index] * need if limits.budget_covers == "purchase" else costs[index]
            over["budget"] = float(np.mean(spent > limits.budget_usd * (1 + 1e-9)))
        if limits.power_W is not None:
            power = _power_W(request, plan, draws) * need
            over["power"] = float(np.mean(power > limits.power_W * (1 + 1e-9)))
        found.append(
            Weighed(
                plan,
                np.asarray(costs[index]),
                float(np.mean(first == index)),
                float(np.mean(need > 1)),
                float(np.mean(all_usd[index] - least)),
                over,
            )
        )
    return tuple(found)


def rivals(
    request: Request, known: Sequence[Plan], draws: Draws, find: Callable[[Request], Plan | None]
) -> list[Plan]:
    """Return the lists that may win: those known, and the cheapest of the kinds that draws favour.

    Kinds are those of the cheapest purchase of a draw, with drives and hosts taken as divisible;
    the list is the cheapest purchase of such kinds, with the numbers as stated, that `find` finds.
    """
    found = list(known)
    seen = {frozenset(plan.bought) for plan in found}
    for draw in range(min(_LOOKS, draws.count)):
        kinds = _divisible_kinds(draws.request(request, draw))
        if kinds is None or kinds in seen or len(found) >= len(known) + _MORE:
            continue
        seen.add(kinds)
        part = replace(
            request,
            cpus=tuple(cpu for cpu in request.cpus if cpu.name in kinds),
            drives=tuple(kind for kind in request.drives if kind.name in kinds),
            network=tuple(one for one in request.network if one.name in kinds),
        )
        plan = find(part)
        if plan is not None and all(plan.bought != other.bought for other in found):
            found.append(plan)
    return found


def _divisible_kinds(request: Request) -> frozenset[str] | None:
    """Return the parts of the cheapest purchase if all are divisible; None if there is none."""
    request = without_dominated(request)
    built = program(request)
    built.require("scale", {built.scale: 1.0}, 1.0, 1.0)
    answer = minimize(built, built.cost_usd, _LIMIT_S, divisible=True)
    if answer.status is not Status.OPTIMAL:
        return None
    parts = built.parts().items()
    kinds = frozenset(name for v, (name, _) in parts if answer.values[v] > _SOME)
    whole = all(any(one.name in kinds for one in of) for of in (request.cpus, request.drives))
    return kinds if whole else None


def _need(request: Request, plan: Plan, draws: Draws) -> FloatArray:
    """Return, for each draw, how many times a list must be bought to do what is required."""
    slow = [draws.slow(share.workload, share.where) for share in plan.shares]
    moved = [1.0 / draws.moved(name) for name in plan.bought if name in draws.doubt.moves]
    need = np.ones(draws.count)
    if slow:
        need = np.maximum(need, np.max(slow, axis=0) * utilization(request, plan, COMPUTING))
    if moved:
        need = np.maximum(need, np.max(moved, axis=0) * utilization(request, plan, MOVING))
    return np.asarray(need)


def _price_usd(request: Request, plan: Plan, draws: Draws) -> FloatArray:
    prices = {cpu.name: cpu.price_usd for cpu in request.cpus}
    prices |= {kind.name: kind.price_usd for kind in request.drives}
    prices |= {part.name: part.price_usd for part in request.network}
    total = np.zeros(draws.count)
    for name, count in plan.bought.items():
        total = total + count * prices[name] * draws.price(name)
    return np.asarray(total)


def _energy_usd(request: Request, plan: Plan, draws: Draws) -> FloatArray:
    limits = request.limits
    if not limits.usd_per_W:
        return np.zeros(draws.count)
    watts: dict[str, float] = {cpu.name: cpu.average_W(limits.busy) for cpu in request.cpus}
    watts |= {kind.name: kind.average_W(limits.busy) for kind in request.drives}
    watts |= {part.name: part.average_W(limits.busy) for part in request.network}
    return limits.usd_per_W * _watts(plan, watts, draws)


def _power_W(request: Request, plan: Plan, draws: Draws) -> FloatArray:
    watts = {cpu.name: cpu.full_W or 0.0 for cpu in request.cpus}
    watts |= {kind.name: kind.active_W or 0.0 for kind in request.drives}
    watts |= {part.name: part.active_W or 0.0 for part in request.network}
    return _watts(plan, watts, draws)


def _watts(plan: Plan, watts: Mapping[str, float], draws: Draws) -> FloatArray:
    total = np.zeros(draws.count)
    for name, count in plan.bought.items():
        total = total + count * watts[name] * draws.watt(name)
    return np.asarray(total)
