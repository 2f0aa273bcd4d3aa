"""A fleet of hosts in the limit of many small tasks: work, rates and links, as arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from csdplan.errors import ModelError
from csdplan.model.inputs import FloatArray, not_negative, positive
from csdplan.model.overlap import Overlap
from csdplan.sim.expected import drive_Bps, host_Bps
from csdplan.sim.system import Job, Layout, System, shares, slowness


@dataclass(frozen=True)
class Fleet:
    """Hosts and drives of a fleet; H hosts with D drives each.

    Attributes
    ----------
    work_bytes : ndarray, (H, D)
        Input that lies on each drive [bytes].
    drive_Bps : ndarray, (H, D)
        Rate of each drive on its own data [bytes/s]; 0 if it does not compute.
    stolen_Bps : ndarray, (H, D)
        Rate of each drive on data that it must fetch [bytes/s].
    host_Bps : ndarray, (H,)
        Rate of each host's cores, limited by the switch [bytes/s].
    remote_Bps : ndarray, (H,)
        Rate of each host's cores on data that they fetch from other hosts [bytes/s].
    port_Bps : ndarray, (H,)
        Rate of the port of each of a host's drives, for reads, results and what the drive
        fetches together [bytes/s].
    media_Bps : ndarray, (H,)
        Rate of the media of each of a host's drives, for all readers together [bytes/s].
    uplink_Bps, nic_Bps : ndarray, (H,)
        The switch towards the host, or its memory, and the host's link to the network [bytes/s].
    network_Bps : float
        Bandwidth of the whole network [bytes/s]; may be infinite.
    whole : bool
        True if readers find the data of a drive on that drive alone; else in equal parts on all
        drives of its host.
    result_ratio : float
        Bytes that a drive sends to its host for each byte of input [1].
    steal, remote : bool
        As in `Job`.
    """

    work_bytes: FloatArray
    drive_Bps: FloatArray
    stolen_Bps: FloatArray
    host_Bps: FloatArray
    remote_Bps: FloatArray
    port_Bps: FloatArray
    media_Bps: FloatArray
    uplink_Bps: FloatArray
    nic_Bps: FloatArray
    network_Bps: float
    whole: bool = False
    result_ratio: float = 0.0
    steal: bool = False
    remote: bool = True

    def __post_init__(self) -> None:
        if self.work_bytes.ndim != 2:  # noqa: PLR2004 - hosts by drives
            raise ModelError("work_bytes", self.work_bytes.shape, "an array of hosts by drives")
        hosts = (self.work_bytes.shape[0],)
        for name in ("work_bytes", "drive_Bps", "stolen_Bps", "host_Bps", "remote_Bps"):
            not_negative(name, getattr(self, name))
        for name in ("port_Bps", "media_Bps", "uplink_Bps", "nic_Bps"):
            positive(name, getattr(self, name))
        for name in ("drive_Bps", "stolen_Bps"):
            if getattr(self, name).shape != self.work_bytes.shape:
                raise ModelError(name, getattr(self, name).shape, "the shape of work_bytes")
        for name in (
            "host_Bps",
            "remote_Bps",
            "port_Bps",
            "media_Bps",
            "uplink_Bps",
            "nic_Bps",
        ):
            if getattr(self, name).shape != hosts:
                raise ModelError(name, getattr(self, name).shape, "one value for each host")
        positive("work_bytes in all", float(self.work_bytes.sum()))

    @cached_property
    def host_bytes(self) -> FloatArray:
        """Input that lies on all drives of each host [bytes]."""
        return np.asarray(self.work_bytes.sum(axis=1))

    @cached_property
    def most_work_bytes(self) -> FloatArray:
        """Input on the fullest drive of each host [bytes]."""
        return np.asarray(self.work_bytes.max(axis=1))

    @cached_property
    def fastest_Bps(self) -> FloatArray:
        """Speed of the fastest drive of each host, on its own data [bytes/s]."""
        return np.asarray(self.drive_Bps.max(axis=1))

    @cached_property
    def all_stolen_Bps(self) -> FloatArray:
        """Speed of all computing drives of each host together, on others' data [bytes/s]."""
        return np.asarray(np.where(self.drive_Bps > 0, self.stolen_Bps, 0.0).sum(axis=1))

    @cached_property
    def stolen_for_own(self) -> FloatArray:
        """Speed of each drive on others' data over that on its own [1]; 0 if it computes none."""
        none = np.zeros_like(self.drive_Bps)
        return np.divide(self.stolen_Bps, self.drive_Bps, out=none, where=self.drive_Bps > 0)


def fleet_of(system: System, job: Job) -> Fleet:
    """Return the fleet of a system and a job, with the same shares and stragglers as in events.

    `job.tasks`, `job.task_spread` and `job.dispatch_s` have no meaning in the limit, other than
    through the bytes in all.
    """
    node, hosts = system.node, system.hosts
    shape = (hosts, node.drives)
    drives = hosts * node.drives
    slow = slowness(drives, job.stragglers, job.straggler_factor, job.seed).reshape(shape)
    enabled = np.arange(node.drives) < node.enabled
    results_s = job.result_ratio / node.port_Bps
    own = 1.0 / (slow / drive_Bps(node, job.overlap) + results_s)
    fetch_s, compute_s = 1.0 / node.port_Bps, slow / node.drive_comp_Bps
    serial = job.overlap is Overlap.SERIAL
    fetched_s = fetch_s + compute_s if serial else np.maximum(fetch_s, compute_s)
    fetched = 1.0 / (fetched_s + results_s)
    # Data from other hosts crosses their switch and two links to the network.
    over_network = replace(node, uplink_Bps=min(node.uplink_Bps, node.nic_Bps))
    return Fleet(
        work_bytes=shares(drives, job.skew, job.seed).reshape(shape) * job.total_bytes,
        drive_Bps=np.where(enabled, own, 0.0),
        stolen_Bps=np.where(enabled, fetched, 0.0),
        host_Bps=np.full(hosts, host_Bps(node, job.overlap, job.layout)),
        remote_Bps=np.full(hosts, host_Bps(over_network, job.overlap, job.layout)),
        port_Bps=np.full(hosts, node.port_Bps),
        media_Bps=np.full(hosts, node.all_readers_Bps),
        uplink_Bps=np.full(hosts, node.intake_Bps),
        nic_Bps=np.full(hosts, node.nic_Bps),
        network_Bps=np.inf if system.network_Bps is None else system.network_Bps,
        whole=job.layout is Layout.WHOLE,
        result_ratio=job.result_ratio,
        steal=job.steal,
        remote=job.remote,
    )
