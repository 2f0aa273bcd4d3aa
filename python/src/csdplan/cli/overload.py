"""``csdplan overload``: hosts that are short of memory, cores or bandwidth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from csdplan.cli.common import CsvOption, JsonOption, PlotOption, numbers, reported, show
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
from csdplan.plot.charts import Bars, Line, Lines, bars, lines
from csdplan.plot.figure import check_path
from csdplan.profile import load
from csdplan.published import read
from csdplan.result.overload import measured, measured_plan, overload_plan
from csdplan.result.sheet import Sheet
from csdplan.solve.overload import LimitedPoint, slow_downs, step_slow_downs


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
    """Overloaded hosts: slow-down factors, and the break-even point against memory.

    A profile that was measured under overload has factors of its own: without --points,
    --memory-gb and --sd-... they are what is planned with.
    """
    example = read("overload.toml")
    places = example["memory_GB"] if memory_gb is None else numbers(memory_gb)
    warnings = []
    with reported():
        for path in plot or []:
            check_path(path)
        resolved = picked(
            profile,
            kernel,
            device=device,
            ssd=ssd,
            bytes=bytes,
            ssd_profile=ssd_profile,
        )
        named = ssd_profile or profile
        held = measured(load(named), resolved, name=named, cores=cores)
        if held and (points, memory_gb, sd_tx, sd_comp) == (None,) * 4:
            found = measured_plan(resolved, held, cores=cores, k_limit=k_limit)
            for path in plot or []:
                bars([_overload_bars(found)], path)
            show("overload", [found], json=json, csv=csv, warnings=resolved.warnings)
            return
        if points is not None:
            host = resolved.host(cores)
            limited = [
                LimitedPoint(row["memory_GB"] * 1e9, row["load_s"], row["comp_s"])
                for row in csv_rows(points, ("memory_GB", "load_s", "comp_s"))
            ]
            factors = slow_downs(limited, load_s=host.tx_s, comp_s=host.comp_s / host.divisor)
        else:
            known = example["kernel"].get(kernel, {})
            chosen = {
                "sd_tx": known.get("sd_tx", 1.0) if sd_tx is None else sd_tx,
                "sd_comp": known.get("sd_comp", 1.0) if sd_comp is None else sd_comp,
            }
            if None in (sd_tx, sd_comp):
                warnings.append("example factors inside published ranges; give --points to measure")
            factors = step_slow_downs([place * 1e9 for place in places], resolved.bytes, **chosen)
        found = overload_plan(resolved, factors, cores=cores, k_limit=k_limit)
        for path in plot or []:
            lines([_memory_lines(found)], path)
    show("overload", [found], json=json, csv=csv, warnings=warnings)


def _overload_bars(found: Sheet) -> Bars:
    labels = tuple(str(name).replace(", ", "\n") for name in found.column("overload"))
    values = tuple(_number(value) for value in found.column("devices"))
    return Bars(found.title, "break-even point [drives]", labels, values)


def _memory_lines(found: Sheet) -> Lines:
    places = tuple(_number(place) or 0.0 for place in found.column("memory_GB"))
    lines = tuple(
        Line(label, tuple(_number(value) for value in found.column(name)))
        for label, name in (("general", "devices"), ("closed form", "closed_form_devices"))
    )
    return Lines(found.title, "memory [GB]", "break-even point [drives]", places, lines, steps=True)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
