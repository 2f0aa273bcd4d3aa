"""The cheapest purchase: optimize."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from csdplan.commands.tables import Tables, draw, plot_files
from csdplan.errors import ModelError
from csdplan.options import Option, PlotOption, TimeLimitOption, check_time_limit, documented
from csdplan.plot import figures
from csdplan.request import load_request
from csdplan.result import purchase
from csdplan.solve import optimize as solver
from csdplan.solve.purchase import Request


@documented
def optimize(
    request: Annotated[
        Request | str | Path,
        Option(
            "A request as a TOML file, or a shipped one's name, such as epyc.",
            type=str,
            argument=True,
        ),
    ],
    *,
    front: Annotated[int, Option("Also trade cost for throughput, in steps.", min=0, max=200)] = 0,
    by_kind: Annotated[
        bool, Option("Also compare kinds of drives for the capacity asked.")
    ] = False,
    time_limit_s: TimeLimitOption = 60.0,
    plot: PlotOption = (),
) -> Tables:
    """Find the cheapest purchase that does what a request asks.

    Returns the sheets ``bill``, ``work``, ``topology``, ``requirements`` and, if asked for,
    ``front`` and ``by_kind``; or ``shortfalls`` in place of the first five if no purchase does it.
    The figure is that of the front.

    Raises
    ------
    ModelError
        If the request contradicts itself, or a figure is asked for without a front.
    """
    files = plot_files(plot)
    check_time_limit(time_limit_s)
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
            "topology": purchase.topology(asked, plan),
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
