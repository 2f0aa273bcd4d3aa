"""HiGHS, through SciPy: minimizes a program, and prices its rows.

The only module that runs a solver. SciPy is imported when the first program is solved.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from csdplan.errors import ModelError
from csdplan.model.inputs import FloatArray
from csdplan.solve.program import Program, matrices

#: Relative gap at which a purchase counts as optimal.
GAP = 1e-6
_OPTIMAL, _LIMIT, _INFEASIBLE = 0, 1, 2


class Status(StrEnum):
    """Outcome of a run of the solver."""

    OPTIMAL = "optimal"
    STOPPED = "stopped"
    INFEASIBLE = "infeasible"


@dataclass(frozen=True)
class Answer:
    """Values of all variables; empty if infeasible.

    Attributes
    ----------
    status : Status
        Outcome of the run.
    values : ndarray
        One for each variable.
    bound : float
        No solution has a smaller objective.
    value : float
        The objective.
    nodes : int
        Nodes of the branch-and-bound tree that were solved.
    """

    status: Status
    values: FloatArray
    bound: float
    nodes: int
    value: float = np.inf


def minimize(
    built: Program,
    objective: dict[int, float],
    time_limit_s: float,
    nodes: int | None = None,
    *,
    divisible: bool = False,
) -> Answer:
    """Minimize `objective` over a program, in `nodes` nodes of the tree at most if given.

    With `divisible` parts are not whole.

    Raises
    ------
    ModelError
        If the time ran out before anything feasible was found.
    """
    from scipy.optimize import milp  # noqa: PLC0415 - slow to import

    options: dict[str, float] = {"mip_rel_gap": GAP, "time_limit": time_limit_s}
    if nodes is not None:
        options["node_limit"] = nodes
    with _quiet():
        result = milp(**matrices(built, objective, relaxed=divisible), options=options)
    if result.status == _INFEASIBLE:
        return Answer(Status.INFEASIBLE, np.empty(0), np.inf, 0)
    if result.x is None and nodes is not None:
        return Answer(Status.STOPPED, np.empty(0), -np.inf, nodes)
    if result.x is None:
        raise ModelError("time_limit_s", time_limit_s, "more time: nothing was found in it")
    stopped = nodes is not None or result.status == _LIMIT
    assert stopped or result.status == _OPTIMAL, f"no such program is unbounded: {result.message}"
    status = Status.OPTIMAL if result.status == _OPTIMAL else Status.STOPPED
    values, value = np.asarray(result.x), float(result.fun)
    bound = value if divisible else float(result.mip_dual_bound)
    return Answer(status, values, bound, int(result.mip_node_count or 0), value)


@dataclass(frozen=True)
class Prices:
    """Prices of a program whose drives and hosts are divisible.

    Attributes
    ----------
    rows : dict
        What one unit of each row costs, by row name. Rows of one name add up. A row's unit is
        that of the program: GB/s, TB, W, hosts.
    excess : dict
        What each variable costs more than it is worth, for variables that are not used.
    values : ndarray
        The values of all variables; empty if nothing is feasible.
    value : float
        The objective.
    """

    rows: dict[str, float] = field(default_factory=dict)
    excess: dict[int, float] = field(default_factory=dict)
    values: FloatArray = field(default_factory=lambda: np.empty(0))
    value: float = np.inf


def shadow_prices(built: Program, objective: dict[int, float]) -> Prices:
    """Return the prices of a program whose drives and hosts are divisible."""
    from scipy.optimize import linprog  # noqa: PLC0415
    from scipy.sparse import vstack  # noqa: PLC0415

    parts = matrices(built, objective, relaxed=True)
    rows = parts["constraints"]
    above, below = np.isfinite(rows.ub), np.isfinite(rows.lb)
    matrix = vstack([rows.A[above], -rows.A[below]])
    sides = np.concatenate([rows.ub[above], -rows.lb[below]])
    bounds = np.column_stack([parts["bounds"].lb, parts["bounds"].ub])
    with _quiet():
        result = linprog(parts["c"], A_ub=matrix, b_ub=sides, bounds=bounds, method="highs")
    if result.x is None:
        return Prices()
    names = [row.name for row in built.rows]
    order = [*np.flatnonzero(above), *np.flatnonzero(below)]
    prices: dict[str, float] = {}
    for index, price in zip(order, result.ineqlin.marginals, strict=True):
        prices[names[index]] = prices.get(names[index], 0.0) + abs(float(price))
    excess = enumerate(result.lower.marginals)
    found = {v: float(more) for v, more in excess if more > 0}
    return Prices(prices, found, np.asarray(result.x), float(result.fun))


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep what HiGHS prints by itself out of standard output, which may be carrying JSON."""
    try:
        sys.stdout.flush()
        saved = os.dup(1)
    except (OSError, ValueError, AttributeError):  # no such descriptor: nothing to protect
        yield
        return
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), 1)
        try:
            yield
        finally:
            # Its output waits in the C library's buffer, and must go before the way is restored.
            ctypes.CDLL(None).fflush(None)
            os.dup2(saved, 1)
            os.close(saved)
