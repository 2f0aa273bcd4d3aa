"""Throughput against the number of devices, from a break-even result.

Throughput is working set over time, in bytes per second. The curves use equations 5 to 7 with
the very numbers that the result states, so a figure can never disagree with its table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from csdplan.model.array import csd_array_time_s, ssd_array_time_s
from csdplan.result.break_even import BepResult, HostResult, SystemResult

#: A curve has at most this many points; beyond, they are spread evenly in the logarithm.
POINTS_MAX = 400
#: Up to this many devices a linear axis can be read; beyond, the span asks for a logarithmic one.
LINEAR_MAX = 100


@dataclass(frozen=True)
class Curve:
    """One system's throughput.

    Attributes
    ----------
    host_cores : int or None
        The n of Host(n); None for the drives.
    throughput_Bps : tuple of float
        One value for each number of devices [bytes/s].
    break_even_devices : int or None
        Devices from which on the drives are faster; None for the drives, or if there is no point.
    break_even_Bps : float or None
        The drives' throughput there [bytes/s].
    """

    host_cores: int | None
    throughput_Bps: tuple[float, ...]
    break_even_devices: int | None
    break_even_Bps: float | None


@dataclass(frozen=True)
class SystemCurves:
    """All curves of one system.

    Attributes
    ----------
    title : str
        Kernel and device.
    devices : tuple of int
        Numbers of devices, ascending, from 1.
    k_limit : float
        Devices that use up the host's ingest bandwidth.
    logarithmic : bool
        True if the span needs logarithmic axes.
    drives : Curve
        The array of computational drives.
    hosts : tuple of Curve
        The arrays of SSDs, one for each Host(n).
    """

    title: str
    devices: tuple[int, ...]
    k_limit: float
    logarithmic: bool
    drives: Curve
    hosts: tuple[Curve, ...]


def curves(result: BepResult) -> tuple[SystemCurves, ...]:
    """Return the curves of every system, each far enough to show its break-even points."""
    return tuple(_system(result, system) for system in result.systems)


def drives_Bps(
    result: BepResult, system: SystemResult, devices: Sequence[int]
) -> tuple[float, ...]:
    """Return the throughput of arrays of computational drives, one for each of `devices`."""
    times = csd_array_time_s(
        devices,
        system.csd_tx_s,
        system.csd_comp_s,
        host_part_s=result.host_part_s,
        store_s=system.csd_store_s,
        overlap=system.csd_overlap,
    )
    return tuple(system.bytes / float(time) for time in times)


def host_Bps(
    result: BepResult, system: SystemResult, host: HostResult, devices: Sequence[int]
) -> tuple[float, ...]:
    """Return the throughput of Host(n) with arrays of SSDs, one for each of `devices`."""
    times = ssd_array_time_s(
        devices,
        host.ssd_tx_s,
        host.ssd_comp_s,
        k_limit=system.k_limit,
        sd_tx=result.sd_tx,
        sd_comp=result.sd_comp,
        store_s=host.ssd_store_s,
        overlap=system.ssd_overlap,
    )
    return tuple(system.bytes / float(time) for time in times)


def _system(result: BepResult, system: SystemResult) -> SystemCurves:
    # A point that lies further out than any axis can show is left to the table.
    found = [host.devices for host in system.hosts if host.devices is not None]
    far = [devices for devices in found if devices <= 10**6]
    furthest = max([*far, 1.5 * min(system.k_limit, 10**6), 4])
    # Room to the right of the last crossing, in the measure of the axis it will be drawn on.
    last = int(np.ceil(furthest * (1.15 if 1.15 * furthest <= LINEAR_MAX else 1.6)))
    devices = _axis(last)

    hosts = []
    for host in system.hosts:
        shown = host.devices if host.devices is not None and host.devices <= last else None
        hosts.append(
            Curve(
                host_cores=host.host_cores,
                throughput_Bps=host_Bps(result, system, host, devices),
                break_even_devices=shown,
                break_even_Bps=None if shown is None else drives_Bps(result, system, [shown])[0],
            )
        )
    return SystemCurves(
        title=f"{result.kernel}: {system.device} drives against {system.ssd} as SSDs",
        devices=tuple(devices),
        k_limit=system.k_limit,
        logarithmic=last > LINEAR_MAX,
        drives=Curve(None, drives_Bps(result, system, devices), None, None),
        hosts=tuple(hosts),
    )


def _axis(last: int) -> list[int]:
    if last <= POINTS_MAX:
        return list(range(1, last + 1))
    spread = np.unique(np.rint(np.geomspace(1, last, POINTS_MAX)).astype(np.int64))
    return [int(count) for count in spread]
