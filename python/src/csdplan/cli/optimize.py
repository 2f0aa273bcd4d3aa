"""``csdplan optimize``: the cheapest purchase."""

from __future__ import annotations

from typing import Annotated

import typer

from csdplan import commands
from csdplan.cli.common import reported, show
from csdplan.cli.options import CsvOption, JsonOption, PlotOption

#: Exit code of a request that nothing satisfies: the run failed, the use was right.
_INFEASIBLE = 1


def optimize_command(
    request: Annotated[
        str, typer.Argument(help="A request as a TOML file, or a shipped one's name, such as epyc.")
    ],
    front: Annotated[
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
    """Find the cheapest CPU, kinds and numbers of drives that meet a request.

    If no purchase does, the command names the requirements in the way and exits with 1.
    """
    if plot and not front:
        raise typer.BadParameter("--plot draws the front: give --front STEPS as well")
    with reported():
        found = commands.optimize(
            request,
            front=front,
            by_kind=by_kind,
            time_limit_s=time_limit,
            plot=plot or (),
        )
    show("optimize", found, json=json, csv=csv)
    if found.facts["verdict"] == "infeasible":
        raise typer.Exit(_INFEASIBLE)
