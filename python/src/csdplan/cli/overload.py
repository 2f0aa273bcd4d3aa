"""``csdplan overload``: hosts that are short of memory, cores or bandwidth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from csdplan import commands
from csdplan.cli.common import reported, show
from csdplan.cli.options import (
    BytesOption,
    CoresOption,
    CsvOption,
    DeviceOption,
    HostCoresOption,
    JsonOption,
    KernelOption,
    KLimitOption,
    PlotOption,
    ProfileOption,
    SsdOption,
    SsdProfileOption,
    numbers,
)


def overload_command(
    profile: ProfileOption,
    kernel: KernelOption,
    points: Annotated[
        Path | None,
        typer.Option(help="CSV: memory_GB,load_s,comp_s, as measured on the host."),
    ] = None,
    memory_gb: Annotated[str | None, typer.Option(help="Memory to plan for (GB).")] = None,
    sd_tx: Annotated[float | None, typer.Option(help="Factor below the working set.")] = None,
    sd_comp: Annotated[float | None, typer.Option(help="Factor below the working set.")] = None,
    host_cores: HostCoresOption = 1,
    cores: CoresOption = None,
    device: DeviceOption = None,
    ssd: SsdOption = None,
    bytes: BytesOption = None,
    ssd_profile: SsdProfileOption = None,
    k_limit: KLimitOption = None,
    plot: PlotOption = None,
    json: JsonOption = False,
    csv: CsvOption = False,
) -> None:
    """Find the break-even point of an overloaded host, against memory or measured overload.

    A profile that was measured under overload has factors of its own: without --points,
    --memory-gb and --sd-... they are used.
    """
    memory = None if memory_gb is None else numbers(memory_gb)
    with reported():
        found = commands.overload(
            profile,
            kernel,
            points=points,
            memory_GB=memory,
            sd_tx=sd_tx,
            sd_comp=sd_comp,
            host_cores=host_cores if cores is None else cores,
            device=device,
            ssd=ssd,
            bytes=bytes,
            ssd_profile=ssd_profile,
            k_limit=k_limit,
            plot=plot or (),
        )
    show("overload", found, json=json, csv=csv)
