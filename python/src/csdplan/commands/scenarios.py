"""Questions with data of their own: erasure coding, cost of ownership, overloaded hosts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from csdplan.commands.choose import choose, profile_of, read_rows
from csdplan.commands.tables import Tables, draw, plot_files
from csdplan.errors import ModelError
from csdplan.options import (
    BytesOption,
    CoresOption,
    DeviceOption,
    KernelOption,
    KLimitOption,
    Option,
    PlotOption,
    ProfileOption,
    SsdOption,
    SsdProfileOption,
    documented,
)
from csdplan.plot import figures
from csdplan.profile import Workload
from csdplan.published import read
from csdplan.request.scenario import load_scenario
from csdplan.result import costs
from csdplan.result.break_even import core_warnings
from csdplan.result.encoding import encode_plan
from csdplan.result.overload import measured, measured_plan, overload_plan
from csdplan.solve.ec_fit import EncodePoint, EncodeTimes, encode_times
from csdplan.solve.overload import LimitedPoint, SlowDown, slow_downs, step_slow_downs
from csdplan.texts import numbers, whole_numbers

_EXAMPLE_FACTORS = "example factors inside published ranges; give --points to measure"
_Factor = Annotated[
    float | None,
    Option(
        "Factor below the working set.",
        doc="Factor below the working set; by default an example's.",
    ),
]


@documented
def ec(
    points: Annotated[
        str | Path | None,
        Option("CSV: blocks,block_MB,ssd_s,csd_s. Default: the published Newport."),
    ] = None,
    *,
    csd_s: Annotated[
        float | None, Option("One measured encoding in a drive, with --ssd-s.", metavar="SECONDS")
    ] = None,
    ssd_s: Annotated[
        float | None, Option("One measured encoding on the host, with --csd-s.", metavar="SECONDS")
    ] = None,
    blocks: Annotated[
        Sequence[int], Option("Blocks after encoding, n + k.", parse=whole_numbers)
    ] = (12, 24, 48),
    block_MB: Annotated[Sequence[float], Option("Block sizes (MB).", parse=numbers)] = (
        16.0,
        64.0,
        128.0,
    ),
    drive_power: Annotated[Sequence[float], Option("Drive's power, multiplied.", parse=numbers)] = (
        1.0,
    ),
    host_power: Annotated[Sequence[float], Option("Host's power, multiplied.", parse=numbers)] = (
        1.0,
    ),
    ssd_tx_s: Annotated[float, Option("T_SSD-tx.", flag="--ssd-tx", metavar="SECONDS")] = 0.0,
    csd_tx_s: Annotated[float, Option("T_CSD-tx.", flag="--csd-tx", metavar="SECONDS")] = 0.0,
    k_limit: KLimitOption = None,
    plot: PlotOption = (),
) -> Tables:
    """Find break-even points of erasure coding over blocks, block size and computational power.

    A size that was measured is answered from its measured times. Other sizes take a model fitted
    to the points, and column ``times_from`` says so. Returns the sheet ``ec``.
    """
    files = plot_files(plot)
    ssd, csd = _encode_times(points, ssd_s, csd_s)
    if files and ssd_s is not None:
        raise ModelError("plot", files[0], "points of several sizes, which a figure can draw")
    found = encode_plan(
        ssd,
        csd,
        blocks=blocks,
        block_MB=block_MB,
        drive_power=drive_power,
        host_power=host_power,
        ssd_tx_s=ssd_tx_s,
        csd_tx_s=csd_tx_s,
        k_limit=k_limit,
    )
    if files:
        draw([figures.encoding(found)], files)
    return Tables({"ec": found})


def _encode_times(
    points: str | Path | None, ssd_s: float | None, csd_s: float | None
) -> tuple[EncodeTimes | float, EncodeTimes | float]:
    """Return the times of the host and of a drive, from points or as given."""
    if ssd_s is not None and csd_s is not None:
        if points is not None:
            raise ModelError("points", points, "either points, or csd_s and ssd_s")
        return ssd_s, csd_s
    if (ssd_s, csd_s) != (None, None):
        missing = "ssd_s" if ssd_s is None else "csd_s"
        raise ModelError(missing, "absent", "both csd_s and ssd_s, or neither")
    given = (
        read("encode.toml")["encode"]
        if points is None
        else read_rows(points, ("blocks", "block_MB", "ssd_s", "csd_s"))
    )
    ssd, csd = (
        encode_times(
            [
                EncodePoint(int(row["blocks"]), row["block_MB"] * 1e6, row[f"{side}_s"])
                for row in given
            ]
        )
        for side in ("ssd", "csd")
    )
    return ssd, csd


@documented
def tco(
    scenario: Annotated[
        str | Path | None,
        Option("TOML with systems, kernel and service. Default: the published one."),
    ] = None,
    *,
    prices_usd: Annotated[
        Sequence[float], Option("Drive prices to try (USD).", flag="--prices", parse=numbers)
    ] = costs.DRIVE_USD,
    plot: PlotOption = (),
) -> Tables:
    """Compare cost of ownership: as configured, at equal throughput, and as prices change.

    Returns the sheets ``as_configured``, ``equal_throughput`` and ``prices``.
    """
    files = plot_files(plot)
    found = costs.tco(*load_scenario(scenario), prices_usd)
    names = ("as_configured", "equal_throughput", "prices")
    sheets = dict(zip(names, found.sheets(), strict=True))
    draw(figures.purchases(found), files)
    return Tables(sheets, found.warnings)


@documented
def overload(
    profile: ProfileOption,
    kernel: KernelOption,
    *,
    points: Annotated[
        str | Path | None, Option("CSV: memory_GB,load_s,comp_s, as measured on the host.")
    ] = None,
    memory_GB: Annotated[
        Sequence[float] | None, Option("Memory to plan for (GB).", parse=numbers)
    ] = None,
    sd_tx: _Factor = None,
    sd_comp: _Factor = None,
    host_cores: CoresOption = 1,
    device: DeviceOption = None,
    ssd: SsdOption = None,
    bytes: BytesOption = None,
    ssd_profile: SsdProfileOption = None,
    k_limit: KLimitOption = None,
    plot: PlotOption = (),
) -> Tables:
    """Find the break-even point of an overloaded host.

    A profile that was measured under overload has slow-down factors of its own. They are used
    unless points, memory or factors are given; then the host's memory varies. Returns the sheet
    ``overload``.
    """
    files = plot_files(plot)
    workload = choose(profile, kernel, device=device, ssd=ssd, bytes=bytes, ssd_profile=ssd_profile)
    name, host_side = profile_of(ssd_profile or profile)
    own = measured(host_side, workload, name=name, cores=host_cores)
    beyond = tuple(core_warnings(workload, [host_cores]))
    if own and (points, memory_GB, sd_tx, sd_comp) == (None,) * 4:
        found = measured_plan(workload, own, cores=host_cores, k_limit=k_limit)
        draw([figures.overload(found)], files)
        return Tables({"overload": found}, (*workload.warnings, *beyond))
    warnings = beyond
    if points is not None:
        factors = _measured_factors(workload, points, host_cores)
    else:
        factors = _step_factors(workload, memory_GB, sd_tx, sd_comp)
        warnings += (_EXAMPLE_FACTORS,) if None in (sd_tx, sd_comp) else ()
    found = overload_plan(workload, factors, cores=host_cores, k_limit=k_limit)
    draw([figures.memory(found)], files)
    return Tables({"overload": found}, warnings)


def _measured_factors(workload: Workload, points: str | Path, cores: int) -> Sequence[SlowDown]:
    host = workload.host(cores)
    limited = [
        LimitedPoint(row["memory_GB"] * 1e9, row["load_s"], row["comp_s"])
        for row in read_rows(points, ("memory_GB", "load_s", "comp_s"))
    ]
    return slow_downs(limited, load_s=host.tx_s, comp_s=host.comp_s / host.divisor)


def _step_factors(
    workload: Workload,
    memory_GB: Sequence[float] | None,
    sd_tx: float | None,
    sd_comp: float | None,
) -> Sequence[SlowDown]:
    example = read("overload.toml")
    known = example["kernel"].get(workload.kernel, {})
    places = example["memory_GB"] if memory_GB is None else memory_GB
    return step_slow_downs(
        [place * 1e9 for place in places],
        workload.bytes,
        sd_tx=known.get("sd_tx", 1.0) if sd_tx is None else sd_tx,
        sd_comp=known.get("sd_comp", 1.0) if sd_comp is None else sd_comp,
    )
