"""Profiles from bandwidths: measured by another tool (`csdplan.profile.fio`), or of a data sheet.

Neither a measured bandwidth nor a stated one has kernels. The caller therefore gives the kernels'
compute times, on the host and in the drive if it computes. Transfer times follow from bandwidth and
working set. An unknown bandwidth is left out, not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from csdplan.errors import ModelError, ProfileIncomplete
from csdplan.profile.read import parse
from csdplan.profile.schema import Profile
from csdplan.profile.write import tables

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


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


def check_name(name: str) -> None:
    """Check the name of a device, before anything is read for it.

    Raises
    ------
    ModelError
        If a profile cannot hold it.
    """
    if not _NAME.fullmatch(name):
        raise ModelError("name", name, "lowercase letters, digits, - and _, such as my-ssd")


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
