"""The cheapest purchase that meets all requirements, and the requirements that set its cost.

`optimize` buys; if nothing can be bought, `shortfalls` says which requirement is to blame and by
how much. `pareto` trades cost for throughput; `fixed_capacity` compares kinds of drives where the
capacity is needed anyway. All are solved to optimality by HiGHS, or say that they were stopped.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from csdplan.errors import ModelError
from csdplan.solve.affordable import cheapest
from csdplan.solve.found import plan_of
from csdplan.solve.highs import Status, shadow_prices
from csdplan.solve.place import solve
from csdplan.solve.plans import Plan, Requirement, Share, Shortfall, Verdict
from csdplan.solve.program import GB, TB, Program, Row
from csdplan.solve.purchase import Request
from csdplan.solve.rows import program

__all__ = [
    "LESS",
    "Plan",
    "Requirement",
    "Share",
    "Shortfall",
    "Verdict",
    "fixed_capacity",
    "least_cost",
    "optimize",
    "pareto",
    "shortfalls",
]

#: Share by which a requirement is less where a saving is quoted.
LESS = 0.1
#: Shadow prices below this share of the cost do not bind.
_BINDS = 1e-6
#: Relative changes below this are rounding.
_CHANGED = 1e-6
#: A part that is worth buying at so small a share less than its price is worth it at its price.
_TIE = 1e-6
#: Hosts that an infeasible request is allowed to want at most, times those it may have.
_HOSTS_MORE = 256
#: Requirements that are limits, and give way upward.
AT_MOST = frozenset({"budget", "power", "rack", "hosts"})


def optimize(request: Request, *, time_limit_s: float = 60.0, explain: bool = True) -> Plan | None:
    """Return the cheapest purchase, or None if the request is infeasible.

    Parameters
    ----------
    request : Request
        The question.
    time_limit_s : float
        After this the best purchase so far is returned as ``stopped`` [s].
    explain : bool
        True to find the binding requirements.

    Raises
    ------
    ModelError
        If the time ran out before any purchase was found.
    """
    built, answer = cheapest(request, least_cost, time_limit_s)
    if answer.status is Status.INFEASIBLE:
        return None
    plan = plan_of(built, answer)
    if not explain:
        return plan
    divisible = program(request)
    prices = shadow_prices(divisible, least_cost(divisible))
    needs = tuple(_requirements(built, plan, prices.rows))
    levels, ties = _enters(divisible, plan, prices.excess)
    return replace(plan, requirements=needs, enters_usd=levels, ties=ties)


def _enters(
    built: Program, plan: Plan, excess: dict[int, float]
) -> tuple[dict[str, float], tuple[str, ...]]:
    """Return the prices at which parts that are not bought are worth buying, if divisible.

    Parts that are so at the price of today are as good as what is bought: they come apart, by name.
    """
    found: dict[str, float] = {}
    ties: dict[str, None] = {}
    for v, (name, times) in built.parts().items():
        if name not in plan.bought:
            today, more = built.price_usd[v] / times, excess.get(v, 0.0) / times
            found[name] = max(today - more, found.get(name, -np.inf))
            if more <= _TIE * today:
                ties[name] = None
    return {name: level for name, level in found.items() if name not in ties}, tuple(ties)


def shortfalls(request: Request, *, time_limit_s: float = 60.0) -> tuple[Shortfall, ...]:
    """Return what an infeasible request lacks, one entry for each requirement at fault.

    Parameters
    ----------
    request : Request
        A request for which `optimize` returned None.
    time_limit_s : float
        Limit of each of the solver's runs [s].

    Returns
    -------
    tuple of Shortfall
        Those that could mend it alone, and those that give way if all may.

    Notes
    -----
    Slots are a matter of hosts: the requirement to give way is ``hosts``.
    """
    names = _elastic_names(request)
    together = _give_way(request, names, time_limit_s)
    if together is None:
        raise ModelError("demands", "infeasible", "a workload that some CPU or drive can run")
    found = []
    for name in names:
        alone = _give_way(request, [name], time_limit_s)
        required = _required(request, name)
        if alone is None and together[name] == 0:
            continue
        sign = 1 if name in AT_MOST else -1
        possible = None if alone is None else required * (1 + sign * alone[name])
        found.append(Shortfall(name, required, possible, required * (1 + sign * together[name])))
    return tuple(found)


def pareto(request: Request, points: int = 8, *, time_limit_s: float = 20.0) -> tuple[Plan, ...]:
    """Return purchases of which none is both cheaper and faster than another, cheapest first.

    Parameters
    ----------
    request : Request
        The question; its budget, power and hosts bound the front.
    points : int
        Throughputs tried, evenly up to the most that can be had; fewer plans may come out.
    time_limit_s : float
        Limit of each of the solver's runs [s].
    """
    if points < 1:
        raise ModelError("points", points, "at least 1")
    most = _most(request, None, time_limit_s)
    found: list[Plan] = []
    for step in range(1, points + 1):
        # A hair below the most, so that rounding does not make the last point infeasible.
        scale = most.scale * step / points * (1 - 1e-7)
        built, answer = solve(request, partial(least_cost, scale=scale), time_limit_s)
        if answer.status is Status.INFEASIBLE:
            continue
        cheapest = plan_of(built, answer)
        # The same money may buy more than was asked for: only then is the plan on the front.
        plan = _most(request, cheapest.cost_usd, time_limit_s)
        if not found or plan.scale > found[-1].scale * (1 + 1e-6):
            found.append(plan)
    return tuple(found)


def fixed_capacity(
    request: Request, *, time_limit_s: float = 20.0
) -> tuple[tuple[str, Plan | None], ...]:
    """Return the cheapest purchase with each kind of drive alone, and with any mix, by name.

    The question behind it: so many TB are needed anyway, which drives should they be?
    """
    if request.limits.capacity_bytes <= 0:
        raise ModelError("capacity_bytes", 0, "the capacity that is needed anyway")
    found: list[tuple[str, Plan | None]] = []
    for kind in request.drives:
        alone = replace(request, drives=(kind,))
        found.append((kind.name, optimize(alone, time_limit_s=time_limit_s, explain=False)))
    mix = optimize(request, time_limit_s=time_limit_s, explain=False)
    return (*found, ("any mix", mix))


def least_cost(built: Program, scale: float = 1.0) -> dict[int, float]:
    """Fix the throughput, and return the cost."""
    built.upper[built.scale] = np.inf
    built.require("scale", {built.scale: 1.0}, scale, scale)
    return built.cost_usd


def _most(request: Request, budget_usd: float | None, time_limit_s: float) -> Plan:
    """Return the purchase with most throughput, for at most `budget_usd`."""

    def fastest(built: Program) -> dict[int, float]:
        built.upper[built.scale] = np.inf
        if budget_usd is not None:
            # A hair more than the cost found, which is a rounded sum.
            built.at_most("cost", built.cost_usd, budget_usd * (1 + 1e-9) + 1e-6)
        # Among equally fast purchases the cheapest: its weight is too small to cost throughput.
        scaled = {v: 1e-9 * cost for v, cost in built.cost_usd.items()}
        return {**scaled, built.scale: -1.0}

    built, answer = solve(request, fastest, time_limit_s)
    if answer.status is Status.INFEASIBLE:
        raise ModelError("request", "infeasible", "limits within which anything can be bought")
    return plan_of(built, answer)


def _requirements(built: Program, plan: Plan, prices: dict[str, float]) -> list[Requirement]:
    request, limits = built.request, built.request.limits
    cold = sum(k.capacity_bytes * plan.drives.get(k.name, 0) for k in request.drives if k.disk)
    reached = {"capacity": plan.capacity_bytes - cold, "cold capacity": cold}
    reached["budget"] = plan.spent_usd(limits)
    reached["hosts"] = float(sum(plan.hosts.values()))
    heights = {cpu.name: cpu.rack_units for cpu in request.cpus}
    heights |= {kind.name: kind.rack_units for kind in request.drives}
    heights |= {part.name: part.rack_units for part in request.network}
    reached["rack"] = sum(heights[name] * count for name, count in plan.bought.items())
    reached["writes"] = limits.write_Bps
    if plan.power_W is not None:
        reached["power"] = plan.power_W
    for demand in request.demands:
        shares = [share for share in plan.shares if share.workload == demand.name]
        reached[f"throughput of {demand.name}"] = sum(share.rate_Bps for share in shares)
    units = {
        "capacity": TB,
        "cold capacity": TB,
        "budget": 1.0,
        "power": 1.0,
        "hosts": 1.0,
        "rack": 1.0,
    }
    found = []
    for name in _elastic_names(request):
        required = _required(request, name)
        # Shadow prices are per unit of the row; a throughput's row has its share on the right.
        saving = abs(prices.get(name, 0.0)) * required / units.get(name, GB) * LESS
        binds = saving > _BINDS * plan.cost_usd
        found.append(Requirement(name, required, reached[name], binds, saving))
    assert (
        limits.budget_usd is None or plan.spent_usd(limits) <= limits.budget_usd * (1 + 1e-6) + 1e-6
    ), "a plan keeps to its budget"
    return found


def _elastic_names(request: Request) -> list[str]:
    limits = request.limits
    names = [f"throughput of {demand.name}" for demand in request.demands]
    if limits.capacity_bytes > 0:
        names.append("capacity")
    if limits.cold_bytes:
        names.append("cold capacity")
    if limits.budget_usd is not None:
        names.append("budget")
    if limits.power_W is not None:
        names.append("power")
    if limits.rack_units is not None:
        names.append("rack")
    if limits.write_Bps:
        names.append("writes")
    return [*names, "hosts"]


def _required(request: Request, name: str) -> float:
    limits = request.limits
    values: dict[str, float | None] = {
        "capacity": limits.capacity_bytes,
        "cold capacity": limits.cold_bytes,
        "budget": limits.budget_usd,
        "power": limits.power_W,
        "rack": limits.rack_units,
        "writes": limits.write_Bps or None,
        "hosts": float(limits.hosts_max),
    }
    values |= {f"throughput of {d.name}": d.required_Bps for d in request.demands}
    value = values[name]
    assert value is not None, "only limits that are set are named"
    return value


def _give_way(request: Request, names: list[str], time_limit_s: float) -> dict[str, float] | None:
    """Return the least relative changes of `names` that make the request feasible, if any do."""
    slack: dict[str, int] = {}

    def least(built: Program) -> dict[int, float]:
        least_cost(built)
        for name in names:
            slack[name] = built.variable(1.0 if name not in AT_MOST else np.inf)
        if "hosts" in names:
            _widen(built)
        for index, row in enumerate(built.rows):
            if row.name in slack:
                built.rows[index] = _slackened(request, row, slack[row.name])
        # Cost breaks ties among equally small changes, at a weight too small to alter them.
        cost = sum(built.cost_usd.values()) or 1.0
        objective = {v: 1e-7 * price / cost for v, price in built.cost_usd.items()}
        return objective | dict.fromkeys(slack.values(), 1.0)

    _, answer = solve(request, least, time_limit_s)
    if answer.status is Status.INFEASIBLE:
        return None
    found = {name: float(answer.values[v]) for name, v in slack.items()}
    return {name: change if change > _CHANGED else 0.0 for name, change in found.items()}


def _widen(built: Program) -> None:
    """Let more be bought, where hosts are taken together."""
    if all(group.size for group in built.groups):
        return
    single = {
        v for mode, v in zip(built.modes, built.host, strict=True) if built.groups[mode.group].size
    }
    for table in (built.drive, built.card):
        single |= {v for (_, g), v in table.items() if built.groups[g].size}
    for variable, whole in enumerate(built.whole):
        if whole and variable not in single:
            built.upper[variable] *= _HOSTS_MORE


def _slackened(request: Request, row: Row, slack: int) -> Row:
    """Return a row that gives way by the share `slack` of what it requires."""
    change = _required(request, row.name)
    if row.name.endswith("capacity"):
        change /= TB
    elif row.name.startswith("throughput") or row.name == "writes":
        change /= GB
    sign = -1.0 if row.name in AT_MOST else 1.0
    return Row(row.name, {**row.terms, slack: sign * change}, row.lower, row.upper)
