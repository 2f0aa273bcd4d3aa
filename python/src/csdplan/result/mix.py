"""Hosts with some SSDs and some drives that compute, under one or several workloads at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from csdplan.errors import ModelError, ProfileIncomplete
from csdplan.model.inputs import positive
from csdplan.model.overlap import Overlap
from csdplan.profile.workload import Workload
from csdplan.result.sheet import Sheet, Value, sheet
from csdplan.solve.mix import Placement, Split, split
from csdplan.solve.purchase import Cpu, Demand, DriveKind

#: What a drive holds where only even placement is asked about, and capacity does not matter.
_ANY_CAPACITY = 1.0

COLUMNS = ("ssds", "csds", "throughput_Bps", "host_busy", "drives_busy", "together")


def mix(
    loads: Sequence[Workload],
    shares: Mapping[str, float],
    *,
    drives: int,
    csds: Sequence[int],
    cores: int = 1,
    k_limit: int | None = None,
    placement: Placement | str = Placement.EVEN,
    overlap: Overlap | str = Overlap.SERIAL,
) -> tuple[Sheet, Sheet]:
    """Replace SSDs by drives that compute, one number after another.

    Parameters
    ----------
    loads : sequence of Workload
        The workloads, all on the same two devices.
    shares : mapping
        Share of each kernel in the input, to each other.
    drives : int
        Devices in all.
    csds : sequence of int
        Numbers of them that compute.
    cores : int
        Host cores at work.
    k_limit : int, optional
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
    if not loads:
        raise ModelError("loads", "none", "at least one workload")
    effective = k_limit if k_limit is not None else loads[0].k_limit
    if effective is None:
        raise ProfileIncomplete(f"{loads[0].profile}: k_limit is unknown; give --k-limit")
    if len({(load.device, load.ssd) for load in loads}) > 1:
        raise ModelError("loads", "several", "workloads on the same device and SSD")
    if Placement(placement) is Placement.CAPACITY:
        raise ModelError("placement", "capacity", "even or free: capacities are not given here")
    demands = [_demand(load, shares, cores) for load in loads]
    # One SSD's speed as a host reads it is a device's, not a kernel's: the slowest is safe.
    port_Bps = min(load.bytes / load.host(cores).tx_s for load in loads)
    cpu = Cpu("host", max(1, cores), 0.0, effective * port_Bps, max(1, drives))
    ssd = DriveKind("ssd", 0.0, _ANY_CAPACITY, port_Bps)
    csd = DriveKind("csd", 0.0, _ANY_CAPACITY, port_Bps)
    rows: list[tuple[Value, ...]] = []
    parts: list[tuple[Value, ...]] = []
    for count in csds:
        if not 0 <= count <= drives:
            raise ModelError("csds", count, f"from 0 to the {drives} devices there are")
        held = [(ssd, drives - count), (csd, count)]
        found = split(cpu, held, demands, placement=placement, overlap=overlap)
        rows.append(_row(drives - count, count, found))
        parts += [
            (count, name, found.by_host[name], found.by_drives[name]) for name in found.by_host
        ]
    kernels = ", ".join(load.kernel for load in loads)
    title = f"{kernels} on {drives} devices, some of them {loads[0].device} that compute"
    note = f"Host({cores}), k_limit {effective}, data placed: {Placement(placement).value}"
    return (
        sheet(title, COLUMNS, rows, note),
        sheet("Who computes", ("csds", "workload", "by_host", "by_drives"), parts),
    )


def _row(ssds: int, csds: int, found: Split) -> tuple[Value, ...]:
    busy = found.drive_busy.get("csd")
    return (ssds, csds, found.throughput_Bps, found.host_busy, busy, found.together)


def _demand(load: Workload, shares: Mapping[str, float], cores: int) -> Demand:
    if load.kernel not in shares:
        raise ModelError("shares", ", ".join(shares), f"a share of {load.kernel}")
    positive(f"share of {load.kernel}", shares[load.kernel])
    host = load.host(cores)
    # `Cpu` divides by its cores, which is what the time of n cores has already undergone.
    core_s = host.comp_s / host.divisor * max(1, cores) / load.bytes
    inside = (load.csd_tx_s + load.csd_comp_s) / load.bytes
    return Demand(load.kernel, shares[load.kernel], {"host": core_s}, {"csd": inside})
