"""``csdplan report``: one HTML file for a decision meeting."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from csdplan.cli.common import reported, whole_numbers
from csdplan.cli.picked import (
    BytesOption,
    DeviceOption,
    KernelOption,
    KLimitOption,
    ProfileOption,
    SsdOption,
    picked,
)
from csdplan.cli.plan import read_scenario
from csdplan.errors import PlotError
from csdplan.profile import load
from csdplan.request import load_request


def report_command(
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write, as .html.")],
    profile: ProfileOption = "newport",
    kernel: KernelOption = "count",
    host_cores: Annotated[
        str, typer.Option(metavar="N,N,...", help="Host cores at work on the SSD side.")
    ] = "1,4,16",
    k_limit: KLimitOption = None,
    sd_tx: Annotated[float, typer.Option(help="Slow-down of the host's transfer.")] = 1.0,
    sd_comp: Annotated[float, typer.Option(help="Slow-down of the host's compute.")] = 1.0,
    target: Annotated[
        int, typer.Option(min=1, help="Say what would have to change for this break-even point.")
    ] = 4,
    scenario: Annotated[
        Path | None, typer.Option(help="TOML of systems to cost. Default: the published one.")
    ] = None,
    request: Annotated[
        str | None, typer.Option(help="Also find a purchase: a request, such as epyc.")
    ] = None,
    device: DeviceOption = None,
    ssd: SsdOption = None,
    bytes: BytesOption = None,
) -> None:
    """Write one self-contained HTML file: the answer, figures, costs, and what they rest on."""
    from csdplan.document.content import Ask, write  # noqa: PLC0415 - draws figures

    cores = tuple(whole_numbers(host_cores))
    with reported():
        if out.suffix.lower() not in {".html", ".htm"}:
            raise PlotError(f"{out}: a report's name ends in .html")
        held = load(profile)
        ask = Ask(
            name=profile,
            profile=held,
            load=picked(profile, kernel, device=device, ssd=ssd, bytes=bytes),
            host_cores=cores,
            k_limit=k_limit,
            sd_tx=sd_tx,
            sd_comp=sd_comp,
            target=target,
            scenario=read_scenario(scenario),
            is_example=scenario is None,
            request=None if request is None else load_request(request),
        )
        write(out, ask)
    typer.echo(f"wrote {out}", err=True)
