"""The cheapest purchase: optimize."""

from __future__ import annotations

from pathlib import Path

from csdplan.commands.tables import Paths, Tables, draw, plot_files
from csdplan.errors import ModelError
from csdplan.plot import figures
from csdplan.request import load_request
from csdplan.result import purchase
from csdplan.solve import optimize as solver
from csdplan.solve.purchase import Request


def optimize(
    request: Request | str | Path,
    *,
    front: int = 0,
    by_kind: bool = False,
    time_limit_s: float = 60.0,
    plot: Paths = (),
) -> Tables:
    """Find the cheapest purchase that does what a request asks.

    Returns the sheets ``bill``, ``work``, ``requirements`` and, if asked for, ``front`` and
    ``by_kind``; or ``shortfalls`` in place of the first four if no purchase does it.

    Parameters
    ----------
    request : Request, str or Path
        A request, a shipped one's name (such as ``epyc``), or a file.
    front : int
        Steps of the front of cost against throughput; 0 for none.
    by_kind : bool
        True to compare kinds of drives for the capacity asked.
    time_limit_s : float
        Limit of each of the solver's runs [s].
    plot : str, Path, or a sequence of them
        Files for a figure of the front, as in `bep`.

    Raises
    ------
    ModelError
        If the request contradicts itself, or a figure is asked for without a front.
    """
    files = plot_files(plot)
    if files and not front:
        raise ModelError("front", front, "at least 1 step, because the figure draws the front")
    asked = request if isinstance(request, Request) else load_request(request)
    plan = solver.optimize(asked, time_limit_s=time_limit_s)
    if plan is None:
        shortfalls = solver.shortfalls(asked, time_limit_s=time_limit_s)
        sheets = {"shortfalls": purchase.shortfall_sheet(shortfalls)}
    else:
        sheets = {
            "bill": purchase.bill(asked, plan),
            "work": purchase.work(plan),
            "requirements": purchase.requirements(plan),
        }
        if front:
            plans = solver.pareto(asked, front, time_limit_s=time_limit_s)
            sheets["front"] = purchase.front(plans)
            draw([figures.front(plans)], files)
    if by_kind:
        found = solver.fixed_capacity(asked, time_limit_s=time_limit_s)
        sheets["by_kind"] = purchase.capacity(found, asked.limits.capacity_bytes)
    verdict = "infeasible" if plan is None else plan.verdict.value
    return Tables(sheets, facts={"verdict": verdict})
