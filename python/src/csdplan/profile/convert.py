"""Profiles from other tools' measurements: fio's JSON, or a data sheet.

fio measures bandwidth and a data sheet states it; neither has kernels. The caller therefore gives
the kernels' compute times, on the host and in the drive if it computes. Transfer times follow from
bandwidth and working set. An unknown bandwidth is left out, not guessed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from csdplan.errors import Problem, ProfileIncomplete, ProfileInvalid
from csdplan.profile.read import parse
from csdplan.profile.schema import Profile
from csdplan.profile.write import tables

#: Quartiles of a normal distribution, in standard deviations.
_QUARTILE = 0.6744897501960817


@dataclass(frozen=True)
class Bandwidth:
    """A measured or stated bandwidth.

    Attributes
    ----------
    median_Bps : float
        Median, or the stated value [bytes/s].
    p25_Bps, p75_Bps : float or None
        Quartiles [bytes/s]; None if stated.
    samples : int or None
        Number of samples; None if stated.
    """

    median_Bps: float
    p25_Bps: float | None = None
    p75_Bps: float | None = None
    samples: int | None = None


@dataclass(frozen=True)
class KernelTimes:
    """Measured times of a kernel, which neither fio nor a data sheet has.

    Attributes
    ----------
    name : str
        The kernel.
    bytes : int
        Working set [bytes].
    host_comp_s : float
        Compute time on one host core [s].
    drive_comp_s : float or None
        Compute time in the drive [s]; None if it does not compute.
    """

    name: str
    bytes: int
    host_comp_s: float
    drive_comp_s: float | None = None


def read_fio(path: Path) -> dict[str, Bandwidth]:
    """Return the ``read`` and ``write`` bandwidths that a fio JSON file measured.

    Jobs of one direction are taken as repetitions. With one job, fio's own samples give the
    spread, taken as normal; with several, their quartiles do.

    Raises
    ------
    ProfileInvalid
        If the file is not fio's JSON, or no job moved a byte.
    """
    try:
        body = json.loads(path.read_text(encoding="utf-8"))
        jobs = [job for job in body["jobs"] if isinstance(job, dict)]
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        problem = Problem("jobs", str(error) or "absent", "fio's output with --output-format=json")
        raise ProfileInvalid(str(path), [problem]) from error
    found = {}
    for direction in ("read", "write"):
        sides = [job[direction] for job in jobs if isinstance(job.get(direction), dict)]
        rates = [(_rate(side), side) for side in sides]
        moved = [(rate, side) for rate, side in rates if rate > 0]
        if moved:
            found[direction] = _bandwidth(moved)
    if not found:
        problem = Problem("jobs", f"{len(jobs)} jobs", "a job that read or wrote")
        raise ProfileInvalid(str(path), [problem])
    return found


def profile_of(
    name: str,
    bandwidths: dict[str, Bandwidth],
    kernels: Sequence[KernelTimes],
    *,
    meta: dict[str, Any],
    host: dict[str, Any],
    device: dict[str, Any] | None = None,
    prov: str = "measured",
) -> Profile:
    """Build a profile of one device.

    Parameters
    ----------
    name : str
        The device's name.
    bandwidths : dict
        `Bandwidth` by ``ext_read``, ``ext_write``, ``int_read`` and ``int_write``; ``ext_read`` is
        needed, and ``int_read`` for kernels that have a time in the drive.
    kernels : sequence of KernelTimes
        At least one.
    meta, host, device : dict
        Further keys of the tables of those names, as in the schema.
    prov : str
        Provenance of bandwidths: ``measured`` or ``given``.

    Raises
    ------
    ProfileIncomplete
        If a bandwidth is needed and absent, or there is no kernel.
    ProfileInvalid
        If the result breaks the schema; every fault is listed.
    """
    if "ext_read" not in bandwidths:
        raise ProfileIncomplete(f"{name}: the bandwidth at which the host reads is needed")
    if not kernels:
        raise ProfileIncomplete(f"{name}: at least one kernel with its times is needed")
    table: dict[str, Any] = dict(device or {})
    provs = dict.fromkeys(table, "given")
    for key, bandwidth in bandwidths.items():
        table[f"{key}_Bps"] = round(bandwidth.median_Bps)
        provs[f"{key}_Bps"] = prov
    points = []
    for kernel in kernels:
        load = _timing(kernel.bytes, bandwidths["ext_read"], prov)
        points.append(_point(kernel, "host", name, 1, load, kernel.host_comp_s))
        if kernel.drive_comp_s is None:
            continue
        if "int_read" not in bandwidths:
            raise ProfileIncomplete(
                f"{name}, kernel {kernel.name}: it computes in the drive, so the bandwidth inside "
                "is needed"
            )
        load = _timing(kernel.bytes, bandwidths["int_read"], prov)
        units = table.get("cores", 1)
        points.append(_point(kernel, "drive", name, units, load, kernel.drive_comp_s))
    body = {
        "schema": 1,
        "meta": meta,
        "host": {**host, "prov": dict.fromkeys(host, "given")},
        "device": {name: {**table, "prov": provs}},
        "point": points,
    }
    return parse(tables(body), file=name)


def _rate(side: dict[str, Any]) -> float:
    """Return a job's bandwidth [bytes/s]; 0 if it moved nothing or says nothing."""
    value = side.get("bw_bytes")
    if not isinstance(value, int | float):
        value = side.get("bw", 0)  # fio 2 wrote KiB/s only
        value = value * 1024 if isinstance(value, int | float) else 0
    return float(value)


def _bandwidth(moved: list[tuple[float, dict[str, Any]]]) -> Bandwidth:
    rates = [rate for rate, _ in moved]
    if len(rates) > 1:
        low, middle, high = quantiles(rates, n=4, method="inclusive")
        return Bandwidth(middle, low, high, len(rates))
    rate, side = moved[0]
    samples, spread = side.get("bw_samples", 0), side.get("bw_dev", 0.0)
    if not isinstance(samples, int) or samples < 1 or not isinstance(spread, int | float):
        return Bandwidth(median(rates))
    # bw_dev is in KiB/s whatever the rest is in.
    half = min(_QUARTILE * spread * 1024, 0.99 * rate)
    return Bandwidth(rate, rate - half, rate + half, samples)


def _timing(size: int, bandwidth: Bandwidth, prov: str) -> dict[str, Any]:
    timing: dict[str, Any] = {"median": size / bandwidth.median_Bps}
    if bandwidth.p25_Bps and bandwidth.p75_Bps and bandwidth.samples:
        # The slow quartile of bandwidth is the late quartile of time.
        timing |= {"p25": size / bandwidth.p75_Bps, "p75": size / bandwidth.p25_Bps}
        return {**timing, "n": bandwidth.samples, "prov": prov}
    return {**timing, "prov": "inferred"}


def _point(
    kernel: KernelTimes, where: str, device: str, units: int, load: dict[str, Any], comp_s: float
) -> dict[str, Any]:
    return {
        "kernel": kernel.name,
        "where": where,
        "device": device,
        "units": units,
        "bytes": kernel.bytes,
        "overlap": "serial",
        "load_s": load,
        "comp_s": {"median": comp_s},
        "prov": "given",
    }
