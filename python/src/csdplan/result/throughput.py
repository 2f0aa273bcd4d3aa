"""Throughput against the number of devices, from a break-even result.

Throughput is working set over time, in bytes per second. The curves use equations 5 to 7 with
the very numbers that the result states, so a figure can never disagree with its table.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from types import MappingProxyType

import numpy as np

from csdplan.model.array import csd_array_time_s, ssd_array_time_s
from csdplan.model.inputs import FloatArray
from csdplan.profile.workload import Workload
from csdplan.result.bounds import draws_of
from csdplan.result.break_even import BepResult, HostResult, SystemResult

#: A curve has at most this many points; beyond, they are spread evenly in the logarithm.
POINTS_MAX = 400
#: Up to this many devices a linear axis can be read; beyond, the span asks for a logarithmic one.
LINEAR_MAX = 100
#: Places at which a band is computed; between them it is interpolated.
_BAND_PLACES = 48
_LOW, _HIGH = 0.05, 0.95
#: The inputs themselves, without their spread.
_NO_DRAWS: Mapping[str, FloatArray] = MappingProxyType({})


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
    low_Bps, high_Bps : tuple of float
        Bounds of the throughput in 90 % of cases; empty if no spread is known [bytes/s].
    break_even_low, break_even_high : int or None
        Bounds of the break-even point in 90 % of cases.
    """

    host_cores: int | None
    throughput_Bps: tuple[float, ...]
    break_even_devices: int | None
    break_even_Bps: float | None
    low_Bps: tuple[float, ...] = ()
    high_Bps: tuple[float, ...] = ()
    break_even_low: int | None = None
    break_even_high: int | None = None


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


def curves(result: BepResult, workloads: Sequence[Workload] = ()) -> tuple[SystemCurves, ...]:
    """Return the curves of every system, each far enough to show its break-even points.

    Parameters
    ----------
    result : BepResult
        The break-even points.
    workloads : sequence of Workload
        The workloads of the result's systems, in the same order: with them, curves have bands.
    """
    pairs = zip_longest(result.systems, workloads)
    return tuple(_system(result, system, workload) for system, workload in pairs if system)


def _system(result: BepResult, system: SystemResult, workload: Workload | None) -> SystemCurves:
    # A point that lies further out than any axis can show is left to the table.
    found = [host.devices for host in system.hosts if host.devices is not None]
    far = [devices for devices in found if devices <= 10**6]
    furthest = max([*far, 1.5 * min(system.k_limit, 10**6), 4])
    # Room to the right of the last crossing, in the measure of the axis it will be drawn on.
    last = int(np.ceil(furthest * (1.15 if 1.15 * furthest <= LINEAR_MAX else 1.6)))
    devices = _axis(last)
    draws = {} if workload is None else draws_of(workload)
    of_drives = drives_Bps(result, system, devices)
    places = _places(devices, system.k_limit)
    low, high = _band(devices, places, draws, partial(drives_Bps, result, system, draws=draws))
    hosts = []
    for host in system.hosts:
        throughput = host_Bps(result, system, host, devices)
        shown = host.devices if host.devices is not None and host.devices <= last else None
        one_low, one_high = _band(
            devices, places, draws, partial(host_Bps, result, system, host, draws=draws)
        )
        hosts.append(
            Curve(
                host_cores=host.host_cores,
                throughput_Bps=_floats(throughput),
                break_even_devices=shown,
                break_even_Bps=None
                if shown is None
                else float(drives_Bps(result, system, [shown])[0, 0]),
                low_Bps=one_low,
                high_Bps=one_high,
                break_even_low=host.devices_low,
                break_even_high=host.devices_high,
            )
        )
    return SystemCurves(
        title=(
            f"{result.kernel}: throughput of {system.device} drives that compute, and of "
            f"{system.ssd} drives as SSDs"
        ),
        devices=tuple(devices),
        k_limit=system.k_limit,
        logarithmic=last > LINEAR_MAX,
        drives=Curve(None, _floats(of_drives), None, None, low, high),
        hosts=tuple(hosts),
    )


def drives_Bps(
    result: BepResult,
    system: SystemResult,
    devices: Sequence[int],
    draws: Mapping[str, FloatArray] = _NO_DRAWS,
) -> FloatArray:
    """Return the drives' throughput, a row for each number of devices, a column for each draw."""
    times = csd_array_time_s(
        np.reshape(devices, (-1, 1)),
        system.csd_tx_s * draws.get("csd_tx_s", np.ones(1)),
        system.csd_comp_s * draws.get("csd_comp_s", np.ones(1)),
        host_part_s=result.host_part_s,
        store_s=system.csd_store_s,
        overlap=system.csd_overlap,
    )
    return np.asarray(system.bytes / times)


def host_Bps(
    result: BepResult,
    system: SystemResult,
    host: HostResult,
    devices: Sequence[int],
    draws: Mapping[str, FloatArray] = _NO_DRAWS,
) -> FloatArray:
    """Return the SSDs' throughput, a row for each number of devices, a column for each draw."""
    times = ssd_array_time_s(
        np.reshape(devices, (-1, 1)),
        host.ssd_tx_s * draws.get("ssd_tx_s", np.ones(1)),
        host.ssd_comp_s * draws.get("ssd_comp_s", np.ones(1)),
        k_limit=system.k_limit,
        sd_tx=result.sd_tx,
        sd_comp=result.sd_comp,
        store_s=host.ssd_store_s,
        overlap=system.ssd_overlap,
    )
    return np.asarray(system.bytes / times)


def _places(devices: list[int], k_limit: float) -> list[int]:
    """Return the places at which bands are computed: a few, and where the curves bend."""
    step = -(-len(devices) // _BAND_PLACES)
    bend = [devices[bisect(devices, k_limit) - 1], *devices[bisect(devices, k_limit) :][:1]]
    return sorted({*devices[::step], *bend, devices[-1]})


def _band(
    devices: list[int],
    at: list[int],
    draws: dict[str, FloatArray],
    drawn: Callable[[list[int]], FloatArray],
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the 5th and the 95th percentile of the throughput over the draws."""
    if not draws:
        return (), ()
    values = np.sort(drawn(at), axis=1)
    last = values.shape[1] - 1
    low, high = (values[:, round(share * last)] for share in (_LOW, _HIGH))
    return _floats(np.interp(devices, at, low)), _floats(np.interp(devices, at, high))


def _floats(values: FloatArray) -> tuple[float, ...]:
    return tuple(float(value) for value in np.ravel(values))


def _axis(last: int) -> list[int]:
    if last <= POINTS_MAX:
        return list(range(1, last + 1))
    spread = np.unique(np.rint(np.geomspace(1, last, POINTS_MAX)).astype(np.int64))
    return [int(count) for count in spread]
