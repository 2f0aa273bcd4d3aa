"""Simulated runs of one workload, against the number of drives that compute.

Ties a resolved `Workload` to the simulator: which speeds follow from which times. Every row has
the closed form's throughput next to the simulated one, so that differences show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from csdplan.errors import ModelError, ProfileIncomplete
from csdplan.profile.schema import Profile
from csdplan.profile.workload import Workload
from csdplan.result.sheet import Sheet, Value, sheet_of
from csdplan.sim import (
    Job,
    Node,
    System,
    bound_Bps,
    expected_time_s,
    fleet_of,
    run_fluid,
    simulate,
)
from csdplan.units import bytes_text

COLUMNS = (
    "enabled_drives",
    "time_s",
    "throughput_Bps",
    "closed_form_Bps",
    "of_closed_form",
    "bound_Bps",
    "cores_busy",
    "drives_busy",
    "uplink_busy",
    "drives_share",
    "net_energy_J",
    "energy_J",
)


def node_of(
    workload: Workload,
    *,
    cores: int,
    drives: int,
    enabled: int,
    k_limit: float | None = None,
    profile: Profile | None = None,
) -> Node:
    """Return the node whose speeds are those of a workload.

    Parameters
    ----------
    workload : Workload
        Times of one working set; their quotients with its size are the speeds.
    cores, drives, enabled : int
        As in `Node`.
    k_limit : float, optional
        The switch carries so many times what one SSD reads; by default the profile's.
    profile : Profile, optional
        Source of watts; without it they are unknown.

    Raises
    ------
    ProfileIncomplete
        If k_limit is known neither to the caller nor to the profile.
    """
    effective = k_limit if k_limit is not None else workload.k_limit
    if effective is None:
        raise ProfileIncomplete(f"{workload.profile}: k_limit is unknown; give --k-limit")
    if effective < 1:
        raise ModelError("k_limit", effective, "a number of at least 1")
    host = workload.host(max(1, cores))
    port_Bps = workload.bytes / host.tx_s
    # The compute time of n cores is comp_s / divisor, so one core's share of it is this.
    core_Bps = workload.bytes * host.divisor / host.comp_s / max(1, cores)
    table = None if profile is None else profile.device[workload.device]
    machine = None if profile is None else profile.host
    return Node(
        cores=cores,
        drives=drives,
        enabled=enabled,
        core_Bps=core_Bps,
        drive_read_Bps=workload.bytes / workload.csd_tx_s,
        drive_comp_Bps=workload.bytes / workload.csd_comp_s,
        port_Bps=port_Bps,
        uplink_Bps=effective * port_Bps,
        media_Bps=max(workload.media_Bps, port_Bps, workload.bytes / workload.csd_tx_s),
        idle_W=machine.idle_W if machine else None,
        core_W=machine.core_W if machine else None,
        drive_idle_W=table.idle_W if table else None,
        drive_active_W=table.active_W if table else None,
    )


def simulation(
    workload: Workload, system: System, job: Job, enabled: Sequence[int], *, fluid: bool = False
) -> Sheet:
    """Run a job with each number of drives enabled.

    Parameters
    ----------
    workload : Workload
        For names.
    system : System
        The system; its `enabled` is replaced.
    job : Job
        The job.
    enabled : sequence of int
        Drives that compute, on each host.
    fluid : bool
        The limit of many small tasks, for fleets, in place of events.

    Returns
    -------
    Sheet
        A row for each number. Energy is empty where watts are unknown; the fluid mode has no
        busy time of cores and of the switch.
    """
    if not enabled:
        raise ModelError("enabled", "none", "at least one number of drives")
    rows = [
        _row(replace(system, node=replace(system.node, enabled=n)), job, fluid) for n in enabled
    ]
    node = system.node
    hosts = f"{system.hosts} hosts" if system.hosts > 1 else "one host"
    title = (
        f"{workload.kernel} on {hosts} of {node.cores} cores, {node.drives} drives each "
        f"({workload.device}), some of them computing"
    )
    note = (
        f"{bytes_text(job.total_bytes)} in {job.tasks} tasks, {job.layout.value}, "
        f"{job.overlap.value}; "
        f"{'fluid' if fluid else 'events'}, seed {job.seed}. closed_form_Bps: equations 5 and 7, "
        "host and drives finishing together, on any data. bound_Bps: no run exceeds it, because "
        "drives compute only their own data and share their media with the host. net_energy_J: "
        "active power times busy time, above idle; a drive that a host reads is active"
    )
    return sheet_of(title, COLUMNS, rows, note)


def _row(system: System, job: Job, fluid: bool) -> tuple[Value, ...]:
    closed_Bps = job.total_bytes / expected_time_s(system, job)
    enabled = system.node.enabled
    if fluid:
        flow = run_fluid(fleet_of(system, job), system)
        return (
            enabled,
            flow.time_s,
            flow.throughput_Bps,
            closed_Bps,
            flow.throughput_Bps / closed_Bps,
            bound_Bps(system, job),
            None,
            flow.drive_utilization,
            None,
            flow.drive_bytes / job.total_bytes,
            flow.net_energy_J,
            flow.energy_J,
        )
    run = simulate(system, job)
    return (
        enabled,
        run.time_s,
        run.throughput_Bps,
        closed_Bps,
        run.throughput_Bps / closed_Bps,
        bound_Bps(system, job),
        run.core_utilization,
        run.drive_utilization,
        run.uplink_utilization,
        run.drive_bytes / job.total_bytes,
        run.net_energy_J,
        run.energy_J,
    )
