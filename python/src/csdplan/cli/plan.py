"""Commands that vary a plan: sweep, surface, ec, tco."""

from __future__ import annotations

import tomllib
from collections.abc import Set
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import typer

from csdplan import plot as figures
from csdplan.cli.common import (
    CsvOption,
    JsonOption,
    PlotOption,
    numbers,
    reported,
    show,
    whole_numbers,
)
from csdplan.cli.picked import (
    BytesOption,
    DeviceOption,
    KernelOption,
    KLimitOption,
    ProfileOption,
    SsdOption,
    SsdProfileOption,
    csv_rows,
    picked,
)
from csdplan.errors import ModelError
from csdplan.plot.charts import Bars, Line, Lines, Surface
from csdplan.profile import load, workload_of
from csdplan.published import read
from csdplan.result.costs import tco
from csdplan.result.encoding import encode_plan
from csdplan.result.sheet import Sheet
from csdplan.result.sweeps import Setting, needed, surface, sweep
from csdplan.solve.ec_fit import EncodePoint, fit_encode_time
from csdplan.solve.tco import Kernel, Service, System

#: A table with more columns than this is written as rows.
_ACROSS_MAX = 16


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
        str, typer.Option(help="cores, k_limit, bandwidth, compute, sd_tx or sd_comp.")
    ],
    values: Annotated[str, typer.Option(help="A list 1,2,4 or a range 1:8:0.5.")] = "1:10:1",
    host_cores: Annotated[str, typer.Option(metavar="N,N,...", help="Host cores.")] = "1",
    target: Annotated[
        int | None, typer.Option(min=1, help="Also: what must change for this break-even point?")
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
    """Vary one quantity, and see the break-even point follow."""
    places, cores = numbers(values), whole_numbers(host_cores)
    with reported():
        _check(plot)
        resolved = picked(
            profile,
            kernel,
            device=device,
            ssd=ssd,
            bytes=bytes,
            ssd_profile=ssd_profile,
        )
        base = Setting(k_limit=k_limit)
        found = sweep(resolved, over, places, host_cores=cores, base=base)
        sheets = [found]
        if target is not None:
            sheets.append(needed(resolved, target, host_cores=cores, base=base))
        for path in plot or []:
            figures.lines([_sweep_lines(found, over, cores)], path)
    show("sweep", sheets, json=json, csv=csv)


def surface_command(
    profile: ProfileOption,
    kernel: KernelOption,
    bandwidth: Annotated[str, typer.Option(help="Multipliers of internal bandwidth.")] = "1:8:0.5",
    compute: Annotated[str, typer.Option(help="Multipliers of computational power.")] = "1:8:0.5",
    iso: Annotated[str, typer.Option(help="Break-even points to draw lines for.")] = "4",
    cores: Annotated[int, typer.Option(min=1, help="Host cores.")] = 1,
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
        _check(plot)
        found = surface(
            picked(
                profile,
                kernel,
                device=device,
                ssd=ssd,
                bytes=bytes,
                ssd_profile=ssd_profile,
            ),
            across,
            up,
            iso=wanted,
            base=Setting(cores=cores, k_limit=k_limit),
        )
        panel = Surface(
            title=found.title,
            across="internal bandwidth, times",
            up="computational power, times",
            x=found.bandwidth,
            y=found.compute,
            z=tuple(tuple(float(z) if z else float("nan") for z in row) for row in found.devices),
            iso=tuple((f"BEP {c}", found.bandwidth, places) for c, places in found.iso),
        )
        for path in plot or []:
            figures.surface([panel], path)
    # Long rows are for programs; people read a table of two sides, if it fits.
    crossed = not (json or csv) and len(across) <= _ACROSS_MAX
    whole = found.cross_sheet() if crossed else found.sheet()
    show("surface", [whole, found.iso_sheet()], json=json, csv=csv)


def ec_command(
    points: Annotated[
        Path | None,
        typer.Option(help="CSV: blocks,block_MB,ssd_s,csd_s. Default: the published Newport."),
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
    """Erasure coding: break-even point against blocks, block size and computational power."""
    counts, sizes = whole_numbers(blocks), numbers(block_mb)
    drives, hosts = numbers(drive_power), numbers(host_power)
    with reported():
        _check(plot)
        given = (
            read("numbers.toml")["encode"]
            if points is None
            else csv_rows(points, ("blocks", "block_MB", "ssd_s", "csd_s"))
        )
        fits = {
            side: fit_encode_time(
                [
                    EncodePoint(int(row["blocks"]), row["block_MB"] * 1e6, row[f"{side}_s"])
                    for row in given
                ]
            )
            for side in ("ssd", "csd")
        }
        found = encode_plan(
            fits["ssd"],
            fits["csd"],
            blocks=counts,
            block_MB=sizes,
            drive_power=drives,
            host_power=hosts,
            ssd_tx_s=ssd_tx,
            csd_tx_s=csd_tx,
            k_limit=k_limit,
        )
        for path in plot or []:
            figures.lines([_encode_lines(found, counts, sizes)], path)
    show("ec", [found], json=json, csv=csv)


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
    """Cost of ownership: as configured, at equal throughput, and as prices change."""
    tried = numbers(prices)
    with reported():
        _check(plot)
        systems, kernel, service = read_scenario(scenario)
        found = tco(systems, kernel, service, tried)
        sheets = found.sheets()
        panels = [
            Bars(
                title, "purchase [USD]", tuple(each.system.name for each in costs),
                tuple(each.purchase_usd if each.feasible else None for each in costs),
            )
            for title, costs in (
                ("As configured", found.as_is), ("At equal throughput", found.equal)
            )
        ]  # fmt: skip
        for path in plot or []:
            figures.bars(panels, path)
    show("tco", sheets, json=json, csv=csv, warnings=found.warnings)


def read_scenario(path: Path | None) -> tuple[list[System], Kernel, Service]:
    """Return a scenario's systems, kernel and service.

    Raises
    ------
    ModelError
        If the file is no such scenario; the message names what is at fault.
    """
    try:
        body = read("tco.toml") if path is None else tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ModelError(str(path), error, "a TOML file") from error
    keys = {"profile", "kernel", "host_cores", "service", "system"}
    _known(str(path), body, keys, needed={"profile", "kernel", "system"})
    for row in body["system"]:
        names = {field.name for field in fields(System)}
        _known(f"{path}: system", row, names, needed=names - _OPTIONAL)
    _known(f"{path}: service", body.get("service", {}), {f.name for f in fields(Service)})
    resolved = workload_of(load(body["profile"]), body["kernel"], name=body["profile"])
    host = resolved.host(body.get("host_cores", 1))
    kernel = Kernel(
        bytes=resolved.bytes,
        ssd_tx_s=host.tx_s,
        ssd_comp_s=host.comp_s / host.divisor,
        csd_tx_s=resolved.csd_tx_s,
        csd_comp_s=resolved.csd_comp_s,
        k_limit=resolved.k_limit,
    )
    return (
        [System(**row) for row in body["system"]],
        kernel,
        Service(**body.get("service", {})),
    )


_OPTIONAL = {
    "mark",
    "slow_down",
    "host_idle_W",
    "host_active_W",
    "drive_idle_W",
    "drive_active_W",
}


def _known(where: str, table: Any, keys: set[str], needed: Set[str] = frozenset()) -> None:
    if not isinstance(table, dict):
        raise ModelError(where, table, "a table")
    if unknown := sorted(set(table) - keys):
        raise ModelError(where, unknown, f"only {', '.join(sorted(keys))}")
    if missing := sorted(needed - set(table)):
        raise ModelError(where, f"without {', '.join(missing)}", "all of its required keys")


def _check(paths: list[Path] | None) -> None:
    for path in paths or []:
        figures.check_path(path)


def _sweep_lines(found: Sheet, over: str, cores: list[int]) -> Lines:
    hosts = found.column("host_cores") if over != "cores" else [None] * len(found.rows)
    groups = [None] if over == "cores" else cores
    lines = []
    for group in groups:
        values = [
            _number(value)
            for value, host in zip(found.column("devices"), hosts, strict=True)
            if host == group
        ]
        label = "drives" if group is None else f"Host({group})"
        lines.append(Line(label, tuple(values)))
    first = lines[0].values
    places = tuple(_number(place) or 0.0 for place in found.column(over)[: len(first)])
    return Lines(found.title, over, "break-even point [drives]", places, tuple(lines))


def _encode_lines(found: Sheet, counts: list[int], sizes: list[float]) -> Lines:
    lines = []
    keys = list(zip(found.column("blocks"), found.column("block_MB"), strict=True))
    values = found.column("devices")
    for size in sizes:
        at = [keys.index((count, size)) for count in counts]
        lines.append(Line(f"{size:g} MB", tuple(_number(values[place]) for place in at)))
    places = tuple(float(count) for count in counts)
    return Lines(
        found.title, "blocks after encoding", "break-even point [drives]", places, tuple(lines)
    )


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
