"""Break-even points of one kernel: bep, sweep and surface."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from csdplan.commands.choose import choose
from csdplan.commands.tables import BepTables, Tables, draw, plot_files
from csdplan.options import (
    TARGET_MAX,
    BytesOption,
    CoresOption,
    DeviceOption,
    KernelOption,
    KLimitOption,
    ListOfCoresOption,
    Option,
    Paths,
    PlotOption,
    ProfileLike,
    ProfileOption,
    SsdOption,
    SsdProfileOption,
    documented,
)
from csdplan.plot import figures
from csdplan.profile import Profile
from csdplan.result import bep as break_even_points
from csdplan.result import curves, sweeps
from csdplan.result.break_even import core_warnings
from csdplan.result.sheets import flat_sheet
from csdplan.result.sweeps import Setting
from csdplan.texts import numbers, underscored, whole_numbers

#: Multipliers and values that are tried unless the user names others.
MULTIPLIERS = tuple(1 + 0.5 * step for step in range(15))
VALUES = tuple(float(value) for value in range(1, 11))
#: A table of more columns than this is written as rows.
_ACROSS_MAX = 16


@documented
def bep(
    profile: Annotated[
        ProfileLike | Sequence[ProfileLike],
        Option(
            "A shipped profile's name, or a TOML file. Repeat it to compare.",
            doc="A shipped profile's name, or a TOML file; several are compared.",
            type=list[str],
        ),
    ],
    kernel: KernelOption,
    host_cores: Annotated[
        int | Sequence[int],
        Option("Host cores at work on the SSD side.", metavar="N,N,...", parse=whole_numbers),
    ] = (1,),
    *,
    k_limit: KLimitOption = None,
    sd_tx: Annotated[
        float, Option("Slow-down of transfer on an overloaded host, at least 1.")
    ] = 1.0,
    sd_comp: Annotated[
        float, Option("Slow-down of compute on an overloaded host, at least 1.")
    ] = 1.0,
    host_part_s: Annotated[
        float,
        Option(
            "Time that the host adds to a run on drives.", flag="--host-part", metavar="SECONDS"
        ),
    ] = 0.0,
    device: DeviceOption = None,
    ssd: SsdOption = None,
    bytes: BytesOption = None,
    ssd_profile: SsdProfileOption = None,
    store: Annotated[bool, Option("Count the time to write results back.")] = False,
    overlap: Annotated[
        str, Option("serial (the paper), pipelined, or measured: as the points were.")
    ] = "serial",
    plot: Annotated[
        Paths,
        Option(
            "Write the throughput curves as .svg, .png or .html. Repeat it for several.",
            type=list[Path],
        ),
    ] = (),
) -> BepTables:
    """Find the break-even points of one kernel, a row for each Host(n)."""
    files = plot_files(plot)
    sources = [profile] if isinstance(profile, Profile | str | Path) else list(profile)
    workloads = [
        choose(source, kernel, device=device, ssd=ssd, bytes=bytes, ssd_profile=ssd_profile)
        for source in sources
    ]
    result = break_even_points(
        workloads,
        [host_cores] if isinstance(host_cores, int) else list(host_cores),
        k_limit=k_limit,
        sd_tx=sd_tx,
        sd_comp=sd_comp,
        host_part_s=host_part_s,
        store=store,
        overlap=overlap,
    )
    draw((figures.throughput(each) for each in curves(result, workloads)), files)
    return BepTables({"bep": flat_sheet(result)}, result.warnings, result=result)


@documented
def sweep(
    profile: ProfileOption,
    kernel: KernelOption,
    over: Annotated[
        str, Option("host_cores, k_limit, bandwidth, compute, sd_tx or sd_comp.", parse=underscored)
    ],
    values: Annotated[
        Sequence[float],
        Option(
            "A list 1,2,4 or a range 1:8:0.5.",
            doc="Values of that quantity.",
            parse=numbers,
            default="1:10:1",
        ),
    ] = VALUES,
    *,
    host_cores: ListOfCoresOption = (1,),
    target: Annotated[
        int | None,
        Option("Also say what must change for this break-even point.", min=1, max=TARGET_MAX),
    ] = None,
    device: DeviceOption = None,
    ssd: SsdOption = None,
    bytes: BytesOption = None,
    ssd_profile: SsdProfileOption = None,
    k_limit: KLimitOption = None,
    plot: PlotOption = (),
) -> Tables:
    """Vary one quantity, and find the break-even point for each of its values.

    Returns the sheet ``sweep`` and, with a target, ``needed``.
    """
    files = plot_files(plot)
    workload = choose(profile, kernel, device=device, ssd=ssd, bytes=bytes, ssd_profile=ssd_profile)
    base = Setting(k_limit=k_limit)
    found = sweeps.sweep(workload, over, values, host_cores=host_cores, base=base)
    sheets = {"sweep": found}
    if target is not None:
        sheets["needed"] = sweeps.needed(workload, target, host_cores=host_cores, base=base)
    draw([figures.sweep(found, over)], files)
    cores = [int(value) for value in values] if over == "host_cores" else list(host_cores)
    return Tables(sheets, tuple(core_warnings(workload, cores)))


@documented
def surface(
    profile: ProfileOption,
    kernel: KernelOption,
    bandwidth: Annotated[
        Sequence[float],
        Option(
            "Multipliers of internal bandwidth.",
            doc="Multipliers, ascending [1].",
            parse=numbers,
            default="1:8:0.5",
        ),
    ] = MULTIPLIERS,
    compute: Annotated[
        Sequence[float],
        Option(
            "Multipliers of computational power.",
            doc="Multipliers, ascending [1].",
            parse=numbers,
            default="1:8:0.5",
        ),
    ] = MULTIPLIERS,
    *,
    iso: Annotated[
        Sequence[int], Option("Break-even points to draw lines for.", parse=whole_numbers)
    ] = (4,),
    host_cores: CoresOption = 1,
    device: DeviceOption = None,
    ssd: SsdOption = None,
    bytes: BytesOption = None,
    ssd_profile: SsdProfileOption = None,
    k_limit: KLimitOption = None,
    plot: PlotOption = (),
) -> Tables:
    """Vary a drive's bandwidth and compute together, with lines of equal break-even point.

    Returns the sheets ``surface`` and ``iso``.
    """
    files = plot_files(plot)
    workload = choose(profile, kernel, device=device, ssd=ssd, bytes=bytes, ssd_profile=ssd_profile)
    base = Setting(host_cores=host_cores, k_limit=k_limit)
    found = sweeps.surface(workload, bandwidth, compute, iso=iso, base=base)
    draw([figures.surface(found)], files)
    rows, lines = found.sheet(), found.iso_sheet()
    # People read a table of two sides, if it fits; programs read rows.
    crossed = len(bandwidth) <= _ACROSS_MAX
    terminal = (found.cross_sheet(), lines) if crossed else None
    warnings = tuple(core_warnings(workload, [host_cores]))
    return Tables({"surface": rows, "iso": lines}, warnings, terminal=terminal)
