"""Share of its cores, or of its links, that a purchase must use to do what is required."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from csdplan.solve.highs import Status, minimize
from csdplan.solve.plans import Plan
from csdplan.solve.program import Group
from csdplan.solve.purchase import Request
from csdplan.solve.rows import program

#: Rows of a program that computing takes up, and those that moving bytes does.
COMPUTING = ("cores of ", "time of ")
MOVING = ("ports of ", "media of ", "reads", "intake of ", "lanes", "bandwidth of cards")
_LIMIT_S = 5.0


def utilization(request: Request, plan: Plan, rows: Sequence[str]) -> float:
    """Return the least share of what rows of these names allow that a list must use [1].

    A list whose cores must be used to 0.8 is enough with cores that are 1.25 times slower.
    """
    kept = replace(
        request,
        cpus=tuple(cpu for cpu in request.cpus if cpu.name in plan.hosts),
        drives=tuple(kind for kind in request.drives if kind.name in plan.drives),
        network=tuple(part for part in request.network if part.name in plan.network),
    )
    order = {cpu.name: index for index, cpu in enumerate(kept.cpus)}
    hosts = [one for one in plan.placed if one.hosts]
    built = program(kept, [Group(order[one.name], one.hosts) for one in hosts])
    fixed: dict[int, float] = {}
    for g, one in enumerate(hosts):
        counts = {held.name: held.count for held in one.drives} | one.cards
        fixed |= {
            v: counts.get(kept.drives[k].name, 0) for (k, n), v in built.drive.items() if n == g
        }
        fixed |= {
            v: counts.get(kept.network[p].name, 0) for (p, n), v in built.card.items() if n == g
        }
    fixed |= {v: plan.drives[kept.drives[k].name] for k, v in built.box.items()}
    fixed |= {v: plan.network[kept.network[p].name] for p, v in built.switch.items()}
    for v, value in fixed.items():
        built.upper[v] = max(value, built.upper[v])
        built.require("bought", {v: 1.0}, value, value)
    used = built.variable(np.inf)
    hosted = set(built.host)
    for index, row in enumerate(built.rows):
        if row.name.startswith(tuple(rows)) and row.upper == 0.0:
            free = {v: a for v, a in row.terms.items() if v not in fixed and v not in hosted}
            given = {v: a for v, a in row.terms.items() if v not in free}
            # Hosts of a group are there once, in one mode or another.
            allowed = sum(a * fixed[v] for v, a in given.items() if v in fixed)
            allowed += min((a for v, a in given.items() if v in hosted), default=0.0)
            if allowed < 0:
                built.rows[index] = replace(row, terms={**free, used: allowed})
    built.require("scale", {built.scale: 1.0}, 1.0, 1.0)
    answer = minimize(built, {used: 1.0}, _LIMIT_S, divisible=True)
    return float(answer.values[used]) if answer.status is Status.OPTIMAL else 1.0
