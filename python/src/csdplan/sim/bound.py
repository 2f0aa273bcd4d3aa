"""A bound on a job's throughput that knows where the data lies.

The closed forms let every drive work on any data. In a run a drive computes only its own data,
unless it steals, and shares its media with the hosts that read it: a system can be far below the
closed forms without any worker being slow.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from csdplan.model.overlap import Overlap
from csdplan.sim.expected import host_Bps
from csdplan.sim.fleet import fleet_of
from csdplan.sim.fluid import run_fluid
from csdplan.sim.system import Job, System, slowness, tasks_per_drive


def bound_Bps(system: System, job: Job) -> float:
    """Return a throughput that no run of the job exceeds [bytes/s].

    The tasks are those dealt to each drive, but divisible. Several host cores that have got out of
    step overlap the loads of some with the computing of others, which the bound allows them to do
    entirely. Unequal tasks (`task_spread`) are taken at their mean.
    """
    node, hosts = system.node, system.hosts
    shape = (hosts, node.drives)
    drives = hosts * node.drives
    dealt = np.array(tasks_per_drive(job, drives), dtype=np.float64).reshape(shape)
    host = Overlap.PIPELINED if node.cores > 1 else job.overlap
    over_network = replace(node, uplink_Bps=min(node.uplink_Bps, node.nic_Bps))
    slow = slowness(drives, job.stragglers, job.straggler_factor, job.seed).reshape(shape)
    fleet = fleet_of(system, job)
    fetched = np.minimum(node.port_Bps, node.drive_comp_Bps / slow)
    eased = replace(
        fleet,
        work_bytes=dealt * job.task_bytes,
        host_Bps=np.full(hosts, host_Bps(node, host, job.layout)),
        remote_Bps=np.full(hosts, host_Bps(over_network, host, job.layout)),
        stolen_Bps=np.where(fleet.drive_Bps > 0, fetched, 0.0),
    )
    return run_fluid(eased).throughput_Bps
