"""``csdplan report``: one HTML file for a decision meeting."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from csdplan import commands
from csdplan.cli.common import reported
from csdplan.cli.options import (
    BytesOption,
    DeviceOption,
    KernelOption,
    KLimitOption,
    ProfileOption,
    SsdOption,
    whole_numbers,
)


def report_command(
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write, as .html.")],
    profile: ProfileOption = "newport",
    kernel: KernelOption = "count",
    host_cores: Annotated[
        str, typer.Option(metavar="N,N,...", help="Host cores at work; costs are about the last.")
    ] = "1,4,16",
    k_limit: KLimitOption = None,
    sd_tx: Annotated[float, typer.Option(help="Slow-down of the host's transfer.")] = 1.0,
    sd_comp: Annotated[float, typer.Option(help="Slow-down of the host's compute.")] = 1.0,
    target: Annotated[
        int, typer.Option(min=1, help="Say what would have to change for this break-even point.")
    ] = 4,
    scenario: Annotated[
        Path | None,
        typer.Option(help="TOML of systems to cost. Default: SSDs and drives for the kernel."),
    ] = None,
    request: Annotated[
        str | None, typer.Option(help="Also find a purchase: a request, such as epyc.")
    ] = None,
    ask: Annotated[
        Path | None, typer.Option(help="Also plan a purchase: a request of csdplan plan.")
    ] = None,
    device: DeviceOption = None,
    ssd: SsdOption = None,
    bytes: BytesOption = None,
) -> None:
    """Write one self-contained HTML file: the answer in a sentence, the bill, then pictures.

    Try: csdplan report -o report.html --kernel count --host-cores 4,16
    """
    cores = whole_numbers(host_cores)
    with reported():
        commands.report(
            out,
            profile,
            kernel,
            host_cores=cores,
            k_limit=k_limit,
            sd_tx=sd_tx,
            sd_comp=sd_comp,
            target=target,
            scenario=scenario,
            request=request,
            ask=ask,
            device=device,
            ssd=ssd,
            bytes=bytes,
        )
    typer.echo(f"wrote {out}", err=True)
