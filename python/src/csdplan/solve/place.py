"""Purchases that hosts can carry out: from hosts taken together to each host by itself.

All hosts of a CPU taken together read and compute at least as much as they would one by one, so a
program over them bounds the cost of every purchase. `solve` finds its optimum, deals the drives and
cards out to hosts as evenly as they go, and has each host keep to what it then holds. Where that
does not reach what is required, hosts are planned one by one, as many as were found, and only more
of them are taken together; and so on, until what is found can be dealt out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from csdplan.solve.dominated import without_dominated
from csdplan.solve.highs import GAP, Answer, Status, minimize
from csdplan.solve.program import Group, Program, together
from csdplan.solve.purchase import Request
from csdplan.solve.rows import program

#: Hosts that are planned one by one at most, and times that more of them are.
_ALONE_MAX, _ROUNDS = 12, 5
#: Nodes of the solver's tree for each search beyond the first, which has no such limit.
_NODES = 100
#: Hosts of a CPU beyond those found that are tried by themselves.
_MORE = 2
#: Differences below this are rounding, of changes next to 0.
_NOTHING = 1e-9

#: Contents of a host: drives and cards, by kind.
_Content = dict[tuple[str, int], int]
#: Adds rows to a program, and returns what it minimizes.
Prepare = Callable[[Program], dict[int, float]]


def solve(
    request: Request, prepare: Prepare, time_limit_s: float, *, every_part: bool = False
) -> tuple[Program, Answer]:
    """Return the program of hosts by themselves that is best, and its answer.

    Parameters
    ----------
    request : Request
        The question.
    prepare : callable
        Adds rows to a program, and returns what it minimizes. Called for every program tried.
    time_limit_s : float
        Limit of each run of the solver [s].
    every_part : bool
        Keep parts that others can stand for in this request.

    Returns
    -------
    tuple of Program and Answer
        The answer is ``infeasible``, ``optimal``, or ``stopped``: the best found. Its bound holds
        for every purchase.
    """
    request = request if every_part else without_dominated(request)
    groups = list(together(request))
    best: tuple[Program, Answer] | None = None
    nodes, bound = 0, -np.inf
    for turn in range(_ROUNDS):
        built = program(request, groups)
        limit = _NODES if turn else None
        relaxed = minimize(built, prepare(built), time_limit_s, limit)
        nodes, bound = nodes + relaxed.nodes, max(bound, relaxed.bound)
        if relaxed.status is Status.INFEASIBLE:
            return built, replace(relaxed, nodes=nodes)
        if request.limits.hosts_max == 1:
            return built, relaxed  # there is no other host to take anything together with
        if not relaxed.values.size:
            break
        near = _hosts_near(built, relaxed)
        best = _better(best, _dealt(request, built, relaxed, prepare, time_limit_s))
        more = _one_by_one(built, relaxed)
        found = best is not None and _reaches(best[1].value, bound)
        if found or not more or relaxed.status is Status.STOPPED:
            break
        if len(groups) + len(more) > len(request.cpus) + _ALONE_MAX:
            break
        groups += more
    if best is None or not _reaches(best[1].value, bound):
        built = program(request, near)
        limit = None if best is None else _NODES
        best = _better(best, (built, minimize(built, prepare(built), time_limit_s, limit)))
    if best is None:
        return built, Answer(Status.INFEASIBLE, np.empty(0), np.inf, nodes)
    answer = best[1]
    status = Status.OPTIMAL if _reaches(answer.value, bound) else Status.STOPPED
    return best[0], replace(answer, status=status, bound=min(bound, answer.value), nodes=nodes)


def _better(
    best: tuple[Program, Answer] | None, other: tuple[Program, Answer]
) -> tuple[Program, Answer] | None:
    if not other[1].values.size:
        return best
    return other if best is None or other[1].value < best[1].value else best


def _one_by_one(built: Program, answer: Answer) -> list[Group]:
    """Return as many single hosts as were taken together, so that they cannot be any more."""
    found: list[Group] = []
    for group, hosts in zip(built.groups, _hosts(built, answer), strict=True):
        if not group.size and hosts > 1:
            found += [Group(group.cpu, 1)] * hosts
    return found


def _reaches(value: float, bound: float) -> bool:
    return value <= bound + 10 * GAP * abs(bound) + _NOTHING


def _dealt(
    request: Request, built: Program, answer: Answer, prepare: Prepare, time_limit_s: float
) -> tuple[Program, Answer]:
    """Deal what was found out to hosts, and let each do its best."""
    groups: list[Group] = []
    held: list[_Content] = []
    for g, hosts in enumerate(_hosts(built, answer)):
        each = _dealt_to(built, answer, g, hosts)
        for content in {tuple(sorted(one.items())): one for one in each}.values():
            groups.append(Group(built.groups[g].cpu, each.count(content)))
            held.append(content)
    placed = program(request, groups)
    for what, table in (("drive", placed.drive), ("card", placed.card)):
        for (one, g), v in table.items():
            _fix(placed, {v: 1.0}, held[g].get((what, one), 0))
    for g in range(len(groups)):
        modes = zip(placed.modes, placed.host, strict=True)
        _fix(placed, {v: 1.0 for mode, v in modes if mode.group == g}, 1.0)
    for now, before in ((placed.box, built.box), (placed.switch, built.switch)):
        for one, v in now.items():
            _fix(placed, {v: 1.0}, round(answer.values[before[one]]))
    return placed, minimize(placed, prepare(placed), time_limit_s)


def _dealt_to(built: Program, answer: Answer, g: int, hosts: int) -> list[_Content]:
    """Return what each host of a group gets, if drives and cards are dealt one at a time."""
    each: list[_Content] = [{} for _ in range(hosts)]
    turn = 0
    for what, table in (("drive", built.drive), ("card", built.card)):
        for (one, n), v in table.items():
            for _ in range(round(answer.values[v]) if n == g and hosts else 0):
                content = each[turn % hosts]
                content[what, one] = content.get((what, one), 0) + 1
                turn += 1
    return each


def _fix(built: Program, terms: dict[int, float], value: float) -> None:
    for variable in terms:
        built.upper[variable] = max(value, built.upper[variable])
    built.require("bought", terms, value, value)


def _hosts(built: Program, answer: Answer) -> list[int]:
    found = [0] * len(built.groups)
    for mode, v in zip(built.modes, built.host, strict=True):
        found[mode.group] += round(answer.values[v])
    return found


def _hosts_near(built: Program, answer: Answer) -> list[Group]:
    """Return groups of equal hosts like those found, and single hosts next to them."""
    groups = []
    for g, hosts in enumerate(_hosts(built, answer)):
        cpu = built.groups[g].cpu
        sizes = {size for size in (hosts - 1, hosts, hosts + 1) if size > 1}
        if built.groups[g].size:
            groups.append(built.groups[g])
            continue
        groups += [Group(cpu, size) for size in sorted(sizes)]
        groups += [Group(cpu, 1)] * (1 if not hosts else _MORE)
    return groups
