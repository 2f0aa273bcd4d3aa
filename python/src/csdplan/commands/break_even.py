"""Break-even points of one kernel: bep, sweep and surface."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from csdplan.commands.choose import ProfileLike, choose
from csdplan.commands.tables import BepTables, Paths, Tables, draw, plot_files
from csdplan.plot import figures
from csdplan.profile import Profile
from csdplan.result import bep as break_even_points
from csdplan.result import curves, sweeps
from csdplan.result.break_even import core_warnings
from csdplan.result.sheets import flat_sheet
from csdplan.result.sweeps import Setting

#: Multipliers and values that are tried unless the user names others.
MULTIPLIERS = tuple(1 + 0.5 * step for step in range(15))
VALUES = tuple(float(value) for value in range(1, 11))
#: A table of more columns than this is written as rows.
_ACROSS_MAX = 16


def bep(
    profile: ProfileLike | Sequence[ProfileLike],
    kernel: str,
    host_cores: int | Sequence[int] = (1,),
    *,
    k_limit: float | None = None,
    sd_tx: float = 1.0,
    sd_comp: float = 1.0,
    host_part_s: float = 0.0,
    device: str | None = None,
    ssd: str | None = None,
    bytes: int | None = None,
    ssd_profile: ProfileLike | None = None,
    store: bool = False,
    overlap: str = "serial",
    plot: Paths = (),
) -> BepTables:
    """Find the break-even points of one kernel, a row for each Host(n).

    Parameters
    ----------
    profile : Profile, str or Path, or a sequence of them
        A profile, a shipped one's name, or a file; several are compared.
    kernel : str
        The kernel.
    host_cores : int or sequence of int
        The n of each Host(n).
    k_limit : float, optional
        SSDs that use up the host's ingest bandwidth; by default the profile's.
    sd_tx, sd_comp : float
        Slow-down factors of an overloaded host's transfer and compute [1]; at least 1.
    host_part_s : float
        Time that the host adds to a run on drives [s].
    device, ssd, bytes, ssd_profile : optional
        Drives, working set and host where there is a choice, as in `csdplan.commands.choose`.
    store : bool
        True to count the time to write results back.
    overlap : str
        ``serial`` (the paper), ``pipelined``, or ``measured``: as the points were.
    plot : str, Path, or a sequence of them
        Files for a figure of the throughput: ``.svg``, ``.png`` or ``.html``.
    """
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


def sweep(
    profile: ProfileLike,
    kernel: str,
    over: str,
    values: Sequence[float] = VALUES,
    *,
    host_cores: Sequence[int] = (1,),
    target: int | None = None,
    device: str | None = None,
    ssd: str | None = None,
    bytes: int | None = None,
    ssd_profile: ProfileLike | None = None,
    k_limit: float | None = None,
    plot: Paths = (),
) -> Tables:
    """Vary one quantity, and find the break-even point for each of its values.

    Returns the sheet ``sweep`` and, with a target, ``needed``.

    Parameters
    ----------
    profile, kernel, device, ssd, bytes, ssd_profile, k_limit, plot
        As in `bep`.
    over : str
        ``host_cores``, ``k_limit``, ``bandwidth``, ``compute``, ``sd_tx`` or ``sd_comp``.
    values : sequence of float
        Its values.
    host_cores : sequence of int
        The n of each Host(n).
    target : int, optional
        Break-even point for which to say what would have to change.
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


def surface(
    profile: ProfileLike,
    kernel: str,
    bandwidth: Sequence[float] = MULTIPLIERS,
    compute: Sequence[float] = MULTIPLIERS,
    *,
    iso: Sequence[int] = (4,),
    host_cores: int = 1,
    device: str | None = None,
    ssd: str | None = None,
    bytes: int | None = None,
    ssd_profile: ProfileLike | None = None,
    k_limit: float | None = None,
    plot: Paths = (),
) -> Tables:
    """Vary a drive's bandwidth and compute together, with lines of equal break-even point.

    Returns the sheets ``surface`` and ``iso``.

    Parameters
    ----------
    profile, kernel, device, ssd, bytes, ssd_profile, k_limit, plot
        As in `bep`.
    bandwidth, compute : sequence of float
        Multipliers of the drive's internal bandwidth and computational power, ascending [1].
    iso : sequence of int
        Break-even points to find lines for.
    host_cores : int
        Host cores at work.
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
