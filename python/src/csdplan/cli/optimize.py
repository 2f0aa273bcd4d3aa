"""``csdplan optimize``: what to buy."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from csdplan.cli.common import CsvOption, JsonOption, PlotOption, reported, show
from csdplan.plot.charts import Line, Lines, lines
from csdplan.plot.figure import check_path
from csdplan.request import load_request
from csdplan.result.purchase import bill, capacity, front, requirements, shortfall_sheet, work
from csdplan.result.sheet import Sheet
from csdplan.solve.optimize import Plan, fixed_capacity, optimize, pareto, shortfalls

#: Exit code of a request that nothing satisfies: the run failed, the use was right.
_INFEASIBLE = 1


def optimize_command(
    request: Annotated[
        str, typer.Argument(help="A request as a TOML file, or a shipped one's name, such as epyc.")
    ],
    front_points: Annotated[
        int,
        typer.Option("--front", min=0, max=200, help="Also trade cost for throughput, in steps."),
    ] = 0,
    by_kind: Annotated[
        bool, typer.Option("--by-kind", help="Also compare kinds of drives for the capacity asked.")
    ] = False,
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", help="Limit of each of the solver's runs.")
    ] = 60.0,
    plot: PlotOption = None,
    json: JsonOption = False,
    csv: CsvOption = False,
) -> None:
    """Find the cheapest CPU, kinds and numbers of drives that do what a request asks.

    If nothing does, says which requirement is in the way and by how much, and exits with 1.
    """
    plans: tuple[Plan, ...] = ()
    with reported():
        for path in plot or []:
            check_path(path)
        if plot and not front_points:
            raise typer.BadParameter("--plot draws the front: give --front STEPS as well")
        asked = load_request(request)
        plan = optimize(asked, time_limit_s=time_limit)
        if plan is None:
            sheets: list[Sheet] = [shortfall_sheet(shortfalls(asked, time_limit_s=time_limit))]
        else:
            sheets = [bill(asked, plan), work(plan), requirements(plan)]
            if front_points:
                plans = pareto(asked, front_points, time_limit_s=time_limit)
                sheets.append(front(plans))
        if by_kind:
            found = fixed_capacity(asked, time_limit_s=time_limit)
            sheets.append(capacity(found, asked.limits.capacity_bytes))
        for path in (plot or []) if plans else []:
            lines([_drawn(plans)], path)
    verdict: Literal["infeasible"] | str = "infeasible" if plan is None else plan.verdict.value
    show("optimize", sheets, json=json, csv=csv, verdict=verdict)
    if plan is None:
        raise typer.Exit(_INFEASIBLE)


def _drawn(plans: tuple[Plan, ...]) -> Lines:
    return Lines(
        title="Cost against throughput",
        across="cost [USD]",
        up="throughput [multiple of what is required]",
        places=tuple(plan.cost_usd for plan in plans),
        lines=(Line("no purchase is above", tuple(plan.scale for plan in plans)),),
        steps=True,
    )
