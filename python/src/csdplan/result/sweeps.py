"""Break-even points over one quantity, or over two.

A sweep varies one of `AXES` and leaves the rest as a profile has it; a surface varies the drive's
internal bandwidth and computational power together and draws the lines of equal break-even point
from the inverse solver.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from csdplan.errors import ModelError, ProfileIncomplete
from csdplan.model.inputs import positive
from csdplan.profile.workload import Workload
from csdplan.result.sheet import Sheet, Value, sheet_of
from csdplan.solve.bep import Solution, Verdict, break_even
from csdplan.solve.inverse import (
    bandwidth_multiplier,
    compute_multiplier,
    drive_time_limit_s,
    host_compute_slow_down,
    host_transfer_slow_down,
)

#: Names of the axis that varies the host cores at work; the second is deprecated.
HOST_CORES = ("host_cores", "cores")
#: Quantities that can be varied, with their meanings.
AXES = {
    "host_cores": "host cores at work",
    "k_limit": "SSDs that use up the host's ingest bandwidth",
    "bandwidth": "the drive's internal bandwidth, multiplied",
    "compute": "the drive's computational power, multiplied",
    "sd_tx": "slow-down of the host's transfer",
    "sd_comp": "slow-down of the host's compute",
}


@dataclass(frozen=True)
class Setting:
    """Quantities that a break-even point depends on in addition to the profile.

    Attributes
    ----------
    host_cores : int
        Host cores at work.
    k_limit : float or None
        None: the profile's own.
    bandwidth, compute : float
        Multipliers of the drive [1].
    sd_tx, sd_comp : float
        Slow-down factors of the host [1].
    """

    host_cores: int = 1
    k_limit: float | None = None
    bandwidth: float = 1.0
    compute: float = 1.0
    sd_tx: float = 1.0
    sd_comp: float = 1.0


def solved(workload: Workload, settings: Sequence[Setting]) -> Solution:
    """Return the break-even points of a workload under each of `settings`."""
    hosts = [workload.host(setting.host_cores) for setting in settings]
    limits = [setting.k_limit or workload.k_limit for setting in settings]
    known = [limit for limit in limits if limit is not None]
    if len(known) < len(limits):
        raise ProfileIncomplete(f"{workload.profile}: k_limit is unknown; give --k-limit")
    return break_even(
        [host.tx_s for host in hosts],
        [host.comp_s for host in hosts],
        workload.csd_tx_s / positive("bandwidth", [setting.bandwidth for setting in settings]),
        workload.csd_comp_s / positive("compute", [setting.compute for setting in settings]),
        k_limit=known,
        host_cores=[host.divisor for host in hosts],
        sd_tx=[setting.sd_tx for setting in settings],
        sd_comp=[setting.sd_comp for setting in settings],
    )


def sweep(
    workload: Workload,
    axis: str,
    values: Sequence[float],
    *,
    host_cores: Sequence[int] = (1,),
    base: Setting | None = None,
) -> Sheet:
    """Vary one quantity.

    Parameters
    ----------
    workload : Workload
        The workload.
    axis : str
        One of `AXES`.
    values : sequence of float
        Its values; whole numbers for ``host_cores`` and ``k_limit``.
    host_cores : sequence of int
        The n of each Host(n); not used for the axis ``host_cores``.
    base : Setting, optional
        Everything else.

    Returns
    -------
    Sheet
        A row for each value and host.

    Raises
    ------
    ModelError
        If the axis is unknown or a value out of its range.
    """
    field = "host_cores" if axis in HOST_CORES else axis
    if field not in AXES:
        raise ModelError("over", axis, f"one of {', '.join(AXES)}")
    if not values:
        raise ModelError("values", "none", "at least one value")
    start = base or Setting()
    hosts = [start.host_cores] if field == "host_cores" else list(host_cores)
    settings = [
        _set(replace(start, host_cores=cores), field, value) for cores in hosts for value in values
    ]
    solution = solved(workload, settings)
    rows: list[tuple[Value, ...]] = []
    for index, setting in enumerate(settings):
        verdict = solution.verdict(index)
        found = verdict is Verdict.BREAKS_EVEN
        rows.append(
            (
                setting.host_cores,
                getattr(setting, field),
                int(solution.devices[index]) if found else None,
                int(solution.closed_form[index]) or None,
                solution.difference(index).value,
            )
        )
    title = f"{workload.kernel} on {workload.device}: break-even point over {axis}"
    columns: tuple[str, ...] = (
        "host_cores",
        axis,
        "devices",
        "closed_form_devices",
        "closed_form_misses",
    )
    if field == "host_cores":
        rows, columns = [row[1:] for row in rows], columns[1:]
    return sheet_of(title, columns, rows, f"{axis}: {AXES[field]}; SSD {workload.ssd}")


@dataclass(frozen=True)
class SurfaceResult:
    """Break-even points over bandwidth and compute multipliers.

    Attributes
    ----------
    title : str
        Kernel, device and host.
    bandwidth, compute : tuple of float
        Multipliers, ascending [1].
    devices : tuple of tuple of int or None
        A row for each compute multiplier.
    iso : tuple
        For each wanted break-even point C: C, and for each bandwidth the compute multiplier that
        must be exceeded for it (None where no compute is enough).
    curves : tuple
        For each C: C, and the line itself as points of bandwidth and compute, within the surface
        and up to its edges.
    """

    title: str
    bandwidth: tuple[float, ...]
    compute: tuple[float, ...]
    devices: tuple[tuple[int | None, ...], ...]
    iso: tuple[tuple[int, tuple[float | None, ...]], ...]
    curves: tuple[tuple[int, tuple[tuple[float, float], ...]], ...] = ()

    def sheet(self) -> Sheet:
        """Return the surface as rows of bandwidth, compute and break-even point."""
        rows = [
            (bandwidth, compute, self.devices[up][across])
            for up, compute in enumerate(self.compute)
            for across, bandwidth in enumerate(self.bandwidth)
        ]
        return sheet_of(self.title, ("bandwidth", "compute", "devices"), rows)

    def cross_sheet(self) -> Sheet:
        """Return the same for reading: bandwidth across, compute down."""
        rows = [
            (compute, *counts) for compute, counts in zip(self.compute, self.devices, strict=True)
        ]
        columns = ("compute", *(f"{bandwidth:g}x" for bandwidth in self.bandwidth))
        note = "break-even points; across: the drive's bandwidth, multiplied; down: its compute"
        return sheet_of(self.title, columns, rows, note)

    def iso_sheet(self) -> Sheet:
        """Return the lines of equal break-even point."""
        rows = [
            (wanted, bandwidth, threshold)
            for wanted, thresholds in self.iso
            for bandwidth, threshold in zip(self.bandwidth, thresholds, strict=True)
        ]
        note = "compute must exceed compute_above; empty: no compute is enough at that bandwidth"
        return sheet_of("Lines of equal break-even point", _ISO_COLUMNS, rows, note)


#: Points of a curve along each of its two quantities.
_CURVE = 121
_ISO_COLUMNS = ("devices_at_most", "bandwidth", "compute_above")


def surface(
    workload: Workload,
    bandwidth: Sequence[float],
    compute: Sequence[float],
    *,
    iso: Sequence[int] = (),
    base: Setting | None = None,
) -> SurfaceResult:
    """Vary the drive's bandwidth and compute together.

    Parameters
    ----------
    workload : Workload
        The workload.
    bandwidth, compute : sequence of float
        Multipliers [1]; greater than 0, ascending.
    iso : sequence of int
        Break-even points to draw lines for.
    base : Setting, optional
        The host.
    """
    start = base or Setting()
    for name, places in (("bandwidth", bandwidth), ("compute", compute)):
        if list(places) != sorted(set(places)) or not places:
            raise ModelError(name, list(places), "multipliers in ascending order, each once")
    settings = [replace(start, bandwidth=x, compute=y) for y in compute for x in bandwidth]
    solution = solved(workload, settings)
    found = [int(value) or None for value in solution.devices]
    across = len(bandwidth)
    host = workload.host(start.host_cores)
    lines, curved = [], []
    for wanted in iso:
        limit = drive_time_limit_s(
            wanted,
            host.tx_s,
            host.comp_s,
            k_limit=start.k_limit or workload.k_limit,
            host_cores=host.divisor,
            sd_tx=start.sd_tx,
            sd_comp=start.sd_comp,
        )
        threshold = compute_multiplier(
            limit, workload.csd_tx_s, workload.csd_comp_s, bandwidth=list(bandwidth)
        )
        values = [None if np.isnan(value) else float(value) for value in threshold.value]
        lines.append((wanted, tuple(values)))
        curved.append((wanted, _curve(workload, float(limit), bandwidth, compute)))
    return SurfaceResult(
        title=(
            f"{workload.kernel}: break-even point of {workload.device} drives, "
            f"Host({start.host_cores})"
        ),
        bandwidth=tuple(bandwidth),
        compute=tuple(compute),
        devices=tuple(
            tuple(found[row * across : (row + 1) * across]) for row in range(len(compute))
        ),
        iso=tuple(lines),
        curves=tuple(curved),
    )


def _curve(
    workload: Workload, limit_s: float, bandwidth: Sequence[float], compute: Sequence[float]
) -> tuple[tuple[float, float], ...]:
    """Return a line of equal break-even point, between the bounds of both multipliers.

    The line is a hyperbola: points evenly apart in each multiplier show its steep part and its
    flat part, and end at the edges.
    """
    across, up = (np.linspace(places[0], places[-1], _CURVE) for places in (bandwidth, compute))
    times = workload.csd_tx_s, workload.csd_comp_s
    heights = compute_multiplier(limit_s, *times, bandwidth=across).value
    widths = bandwidth_multiplier(limit_s, *times, compute=up).value
    points = [*zip(across, heights, strict=True), *zip(widths, up, strict=True)]
    inside = {
        (float(x), float(y))
        for x, y in points
        if across[0] <= x <= across[-1] and up[0] <= y <= up[-1]
    }
    return tuple(sorted(inside, key=lambda point: (point[0], -point[1])))


def needed(
    workload: Workload,
    target: int,
    *,
    host_cores: Sequence[int] = (1,),
    base: Setting | None = None,
) -> Sheet:
    """Tabulate what each quantity alone must exceed for a break-even point of at most `target`.

    Parameters
    ----------
    workload : Workload
        The workload.
    target : int
        The break-even point wanted; from 1 up.
    host_cores : sequence of int
        The n of each Host(n).
    base : Setting, optional
        Everything else.

    Returns
    -------
    Sheet
        A row for each host and quantity. A multiplier of at most 1 means that the drive is fast
        enough as it is, likewise for a slow-down; empty where no value is enough.
    """
    start = base or Setting()
    tx_s, comp_s = workload.csd_tx_s / start.bandwidth, workload.csd_comp_s / start.compute
    rows: list[tuple[Value, ...]] = []
    for cores in host_cores:
        host = workload.host(cores)
        system: dict[str, Any] = {
            "k_limit": start.k_limit or workload.k_limit,
            "host_cores": host.divisor,
        }
        times = host.tx_s, host.comp_s
        limit = drive_time_limit_s(
            target, *times, **system, sd_tx=start.sd_tx, sd_comp=start.sd_comp
        )
        found = {
            "compute": compute_multiplier(limit, tx_s, comp_s),
            "bandwidth": bandwidth_multiplier(limit, tx_s, comp_s),
            "sd_comp": host_compute_slow_down(
                target, tx_s + comp_s, *times, **system, sd_tx=start.sd_tx
            ),
            "sd_tx": host_transfer_slow_down(
                target, tx_s + comp_s, *times, **system, sd_comp=start.sd_comp
            ),
        }
        for name, threshold in found.items():
            value = float(threshold.value) if threshold.attainable else None
            rows.append((cores, name, value, AXES[name]))
    title = f"{workload.kernel} on {workload.device}: for a break-even point of {target} or less"
    note = "one quantity alone must exceed `above`; empty: no value is enough"
    return sheet_of(title, ("host_cores", "quantity", "above", "meaning"), rows, note)


def _set(setting: Setting, axis: str, value: float) -> Setting:
    if axis in {"host_cores", "k_limit"} and not (value >= 1 and value == value // 1):
        raise ModelError(axis, value, "a whole number from 1 up")
    chosen: dict[str, Any] = {
        axis: int(value) if axis in {"host_cores", "k_limit"} else float(value)
    }
    return replace(setting, **chosen)
