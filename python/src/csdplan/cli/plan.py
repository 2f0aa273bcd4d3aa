"""Commands that vary a plan: sweep, surface, ec, tco."""

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
    whole_numbers,
)


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("sweep")(sweep_command)
    app.command("surface")(surface_command)
    app.command("ec")(ec_command)
    app.command("tco")(tco_command)


def sweep_command(
    profile: ProfileOption,
    kernel: KernelOption,
    over: Annotated[
        str, typer.Option(help="host_cores, k_limit, bandwidth, compute, sd_tx or sd_comp.")
    ],
    values: Annotated[str, typer.Option(help="A list 1,2,4 or a range 1:8:0.5.")] = "1:10:1",
    host_cores: Annotated[str, typer.Option(metavar="N,N,...", help="Host cores at work.")] = "1",
    target: Annotated[
        int | None, typer.Option(min=1, help="Also say what must change for this break-even point.")
    ] = None,
    device: DeviceOption = None,
    ssd: SsdOption = None,
    bytes: BytesOption = None,
    ssd_profile: SsdProfileOption = None,
    k_limit: KLimitOption = None,
    plot: PlotOption = None,
    json: JsonOption = False,
    csv: CsvOption = False,
) -> None:
    """Vary one quantity, and find the break-even point for each of its values."""
    places, cores = numbers(values), whole_numbers(host_cores)
    with reported():
        found = commands.sweep(
            profile,
            kernel,
            over.replace("-", "_"),
            places,
            host_cores=cores,
            target=target,
            device=device,
            ssd=ssd,
            bytes=bytes,
            ssd_profile=ssd_profile,
            k_limit=k_limit,
            plot=plot or (),
        )
    show("sweep", found, json=json, csv=csv)


def surface_command(
    profile: ProfileOption,
    kernel: KernelOption,
    bandwidth: Annotated[str, typer.Option(help="Multipliers of internal bandwidth.")] = "1:8:0.5",
    compute: Annotated[str, typer.Option(help="Multipliers of computational power.")] = "1:8:0.5",
    iso: Annotated[str, typer.Option(help="Break-even points to draw lines for.")] = "4",
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
    """Vary a drive's bandwidth and compute together, with lines of equal break-even point."""
    across, up, wanted = numbers(bandwidth), numbers(compute), whole_numbers(iso)
    with reported():
        found = commands.surface(
            profile,
            kernel,
            across,
            up,
            iso=wanted,
            host_cores=host_cores if cores is None else cores,
            device=device,
            ssd=ssd,
            bytes=bytes,
            ssd_profile=ssd_profile,
            k_limit=k_limit,
            plot=plot or (),
        )
    show("surface", found, json=json, csv=csv)


def ec_command(
    points: Annotated[
        Path | None,
        typer.Option(help="CSV: blocks,block_MB,ssd_s,csd_s. Default: the published Newport."),
    ] = None,
    csd_s: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="One measured encoding in a drive, with --ssd-s."),
    ] = None,
    ssd_s: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="One measured encoding on the host, with --csd-s."),
    ] = None,
    blocks: Annotated[str, typer.Option(help="Blocks after encoding, n + k.")] = "12,24,48",
    block_mb: Annotated[str, typer.Option(help="Block sizes (MB).")] = "16,64,128",
    drive_power: Annotated[str, typer.Option(help="Drive's power, multiplied.")] = "1",
    host_power: Annotated[str, typer.Option(help="Host's power, multiplied.")] = "1",
    ssd_tx: Annotated[float, typer.Option(metavar="SECONDS", help="T_SSD-tx.")] = 0.0,
    csd_tx: Annotated[float, typer.Option(metavar="SECONDS", help="T_CSD-tx.")] = 0.0,
    k_limit: KLimitOption = None,
    plot: PlotOption = None,
    json: JsonOption = False,
    csv: CsvOption = False,
) -> None:
    """Find break-even points of erasure coding over blocks, block size and computational power.

    Measured sizes are answered from their measured times, other sizes from a model fitted to them.
    """
    counts, sizes = whole_numbers(blocks), numbers(block_mb)
    drives, hosts = numbers(drive_power), numbers(host_power)
    with reported():
        found = commands.ec(
            points,
            csd_s=csd_s,
            ssd_s=ssd_s,
            blocks=counts,
            block_MB=sizes,
            drive_power=drives,
            host_power=hosts,
            ssd_tx_s=ssd_tx,
            csd_tx_s=csd_tx,
            k_limit=k_limit,
            plot=plot or (),
        )
    show("ec", found, json=json, csv=csv)


def tco_command(
    scenario: Annotated[
        Path | None,
        typer.Option(help="TOML with systems, kernel and service. Default: the published one."),
    ] = None,
    prices: Annotated[str, typer.Option(help="Drive prices to try (USD).")] = "80,110,150,200,300",
    plot: PlotOption = None,
    json: JsonOption = False,
    csv: CsvOption = False,
) -> None:
    """Compare cost of ownership: as configured, at equal throughput, and as prices change."""
    tried = numbers(prices)
    with reported():
        found = commands.tco(scenario, prices_usd=tried, plot=plot or ())
    show("tco", found, json=json, csv=csv)
