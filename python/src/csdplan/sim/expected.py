"""Closed forms for a simulated system.

For an even job the two agree up to the size of a task; where they part, the simulation shows an
effect that the closed forms do not have.
"""

from __future__ import annotations

from csdplan.model.overlap import Overlap
from csdplan.sim.system import Job, Layout, Node, System


def host_Bps(
    node: Node, overlap: Overlap = Overlap.SERIAL, layout: Layout = Layout.SPREAD
) -> float:
    """Return the bytes per second that a host's cores get through; equation 5 as a rate.

    The transfer term is sd_tx / min(m port, intake): equation 6 without rounding k_limit down. A
    core that reads whole tasks reads from one drive, so n cores see no more than n drives.
    """
    if not node.cores:
        return 0.0
    whole = layout is Layout.WHOLE
    lanes = min(node.cores, node.drives) if whole else node.drives
    transfer = node.sd_tx / min(lanes * node.port_Bps, node.intake_Bps)
    compute = node.sd_comp / (node.cores * node.core_Bps)
    if overlap is Overlap.PIPELINED:
        return 1.0 / max(transfer, compute)
    if whole and node.cores > node.drives and node.cores % node.drives:
        # Some drives have a reader more than others: the cores get out of step, and load while
        # others compute. Each still waits for a load of its own.
        alone = node.sd_tx / min(node.port_Bps, node.intake_Bps) + node.sd_comp / node.core_Bps
        return min(node.cores / alone, 1.0 / transfer)
    return 1.0 / (transfer + compute)


def drive_Bps(node: Node, overlap: Overlap = Overlap.SERIAL) -> float:
    """Return the bytes per second that one computing drive gets through; equation 3 as a rate."""
    load, compute = 1.0 / node.drive_read_Bps, 1.0 / node.drive_comp_Bps
    return 1.0 / (load + compute if overlap is Overlap.SERIAL else max(load, compute))


def expected_time_s(system: System, job: Job) -> float:
    """Return the time of the job by equations 5 and 7, host and drives finishing together [s].

    With no drive enabled this is equation 5, with no cores equation 7; with both, the two rates
    add: each pulls work until there is none. All media together deliver every byte once. Skew,
    stragglers, results sent back, dispatch and
    the size of a task do not appear.
    """
    node = system.node
    rate = host_Bps(node, job.overlap) + node.enabled * drive_Bps(node, job.overlap)
    rate = min(rate, node.drives * node.all_readers_Bps)
    return job.total_bytes / (system.hosts * rate)
