"""Hosts with some SSDs and some drives that compute, under one or several workloads at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from csdplan.errors import ModelError, ProfileIncomplete
from csdplan.model.inputs import positive
from csdplan.model.overlap import Overlap
from csdplan.profile.workload import Workload
from csdplan.result.sheet import Sheet, Value, sheet_of
from csdplan.solve.mix import Placement, Split, split
from csdplan.solve.purchase import Cpu, Demand, DriveKind

#: Capacity of a drive for questions of even placement, which do not depend on it.
_ANY_CAPACITY = 1.0

#: Shares of work that differ by no more than this are the same.
_SAME = 1e-6
COLUMNS = ("ssds", "csds", "throughput_Bps", "host_busy", "drives_busy", "together")


def mix(
    workloads: Sequence[Workload],
    shares: Mapping[str, float],
    *,
    drives: int,
    csds: Sequence[int],
    cores: int = 1,
    k_limit: float | None = None,
    placement: Placement | str = Placement.EVEN,
    overlap: Overlap | str = Overlap.SERIAL,
) -> tuple[Sheet, Sheet]:
    """Replace SSDs by drives that compute, one number after another.

    Parameters
    ----------
    workloads : sequence of Workload
        The workloads, all on the same two devices.
    shares : mapping
        Share of each kernel in the input, to each other.
    drives : int
        Devices in all.
    csds : sequence of int
        Numbers of them that compute.
    cores : int
        Host cores at work.
    k_limit : float, optional
        SSDs that use up the host's ingest bandwidth; by default the profile's.
    placement, overlap
        As in `csdplan.solve.mix.split`.

    Returns
    -------
    tuple of Sheet
        Throughput and busy shares for each number; and, for each number and workload, the share
        that the host computes.

    Raises
    ------
    ModelError
        If devices differ between workloads, a share is missing, or a number is out of range.
    """
    if not workloads:
        raise ModelError("loads", "none", "at least one workload")
    effective = k_limit if k_limit is not None else workloads[0].k_limit
    if effective is None:
        raise ProfileIncomplete(f"{workloads[0].profile}: k_limit is unknown; give --k-limit")
    if len({(workload.device, workload.ssd) for workload in workloads}) > 1:
        raise ModelError("loads", "several", "workloads on the same device and SSD")
    if Placement(placement) is Placement.CAPACITY:
        raise ModelError("placement", "capacity", "even or free: capacities are not given here")
    demands = [_demand(workload, shares, cores) for workload in workloads]
    # One SSD's speed as a host reads it is a device's, not a kernel's: the slowest is safe.
    port_Bps = min(workload.bytes / workload.host(cores).tx_s for workload in workloads)
    cpu = Cpu("host", max(1, cores), 0.0, effective * port_Bps, max(1, drives))
    ssd = DriveKind("ssd", 0.0, _ANY_CAPACITY, port_Bps)
    media_Bps = max([port_Bps, *(workload.media_Bps for workload in workloads)])
    csd = DriveKind("csd", 0.0, _ANY_CAPACITY, port_Bps, media_Bps=media_Bps)
    rows: list[tuple[Value, ...]] = []
    parts: list[tuple[Value, ...]] = []
    several: list[int] = []
    for count in csds:
        if not 0 <= count <= drives:
            raise ModelError("csds", count, f"from 0 to the {drives} devices there are")
        devices = [(ssd, drives - count), (csd, count)]
        found = split(cpu, devices, demands, placement=placement, overlap=overlap)
        rows.append(_row(drives - count, count, found))
        if _by_drives(found, shares) > found.drives_least + _SAME:
            several.append(count)
        parts += [
            (count, name, found.by_host[name], found.by_drives[name]) for name in found.by_host
        ]
    kernels = ", ".join(workload.kernel for workload in workloads)
    title = f"{kernels} on {drives} devices, some of them {workloads[0].device} that compute"
    note = f"Host({cores}), k_limit {effective:.4g}, data placed: {Placement(placement).value}"
    return (
        sheet_of(title, COLUMNS, rows, note),
        sheet_of(
            "Who computes", ("csds", "workload", "by_host", "by_drives"), parts, _many(several)
        ),
    )


def _by_drives(found: Split, shares: Mapping[str, float]) -> float:
    """Return the share of all input that drives do."""
    total = sum(shares[name] for name in found.by_drives)
    return sum(shares[name] / total * part for name, part in found.by_drives.items())


def _many(several: Sequence[int]) -> str:
    """Say where other splits are as fast."""
    if not several:
        return ""
    listed = ", ".join(str(count) for count in several)
    return (
        f"with {listed} csds media or ports are the limit: the split shown, in which drives do "
        "the most, is one of many that are as fast"
    )


def _row(ssds: int, csds: int, found: Split) -> tuple[Value, ...]:
    busy = found.drive_busy.get("csd")
    return (ssds, csds, found.throughput_Bps, found.host_busy, busy, found.together)


def _demand(workload: Workload, shares: Mapping[str, float], cores: int) -> Demand:
    if workload.kernel not in shares:
        raise ModelError("shares", ", ".join(shares), f"a share of {workload.kernel}")
    positive(f"share of {workload.kernel}", shares[workload.kernel])
    host = workload.host(cores)
    # `Cpu` divides by its cores, which is what the time of n cores has already undergone.
    core_s = host.comp_s / host.divisor * max(1, cores) / workload.bytes
    inside = (workload.csd_tx_s + workload.csd_comp_s) / workload.bytes
    return Demand(workload.kernel, shares[workload.kernel], {"host": core_s}, {"csd": inside})
