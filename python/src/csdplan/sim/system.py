"""The simulated system: hosts with drives behind a switch, a network, and a job of tasks.

::

    media --port--> switch --uplink--> host cores --nic--> network --> other hosts
      `--> drive

Every speed is in bytes of the job's input per second, for one kernel. A drive that computes reads
its media inside, over no link; what it sends back, and all that a host reads, crosses the switch
and the host's memory: once in, and once read again. So do bytes for other drives and hosts.
Media deliver no more than their bandwidth to the drive and to hosts together.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from csdplan.errors import ModelError
from csdplan.model.inputs import FloatArray, not_negative, positive, slow_down
from csdplan.model.memory import through_Bps
from csdplan.model.overlap import Overlap

#: More tasks than this belong to the fluid mode.
TASKS_MAX = 1_000_000


class Layout(StrEnum):
    """Placement of a task's bytes.

    ``spread``: in chunks over all drives of a host, so that a host reads from all at once.
    ``whole``: one block on one drive, as a distributed file system keeps it.
    """

    SPREAD = "spread"
    WHOLE = "whole"


@dataclass(frozen=True)
class Node:
    """One host and its drives.

    Attributes
    ----------
    cores : int
        Host cores that pull tasks; 0 for drives alone.
    drives : int
        Drives that hold the data, at least 1.
    enabled : int
        Drives that also compute; the others serve as SSDs.
    core_Bps : float
        Bytes that one host core computes per second.
    drive_read_Bps, drive_comp_Bps : float
        Bytes that a drive loads from its media, and computes, per second.
    port_Bps : float
        Bytes per second that a host reads from one drive.
    uplink_Bps : float
        Bytes per second of the switch towards the host. `k_limit` of the papers is
        `uplink_Bps` / `port_Bps`, where that is whole.
    nic_Bps : float
        Bytes per second between the host and the network.
    memory_Bps : float or None
        Bytes per second that the host's memory takes and gives together; None: never a limit.
    media_Bps : float or None
        Bytes per second that a drive's media deliver to all readers together; at least
        `drive_read_Bps` and `port_Bps`. None: the faster of the two.
    sd_tx, sd_comp : float
        Slow-down factors of an overloaded host [1]; at least 1.
    idle_W, core_W : float or None
        Power of the idle host without drives, and what one working core adds [W].
    drive_idle_W, drive_active_W : float or None
        Power of a drive at rest and at work [W].
    """

    cores: int
    drives: int
    enabled: int
    core_Bps: float
    drive_read_Bps: float
    drive_comp_Bps: float
    port_Bps: float
    uplink_Bps: float
    nic_Bps: float = 1.25e9
    media_Bps: float | None = None
    memory_Bps: float | None = None
    sd_tx: float = 1.0
    sd_comp: float = 1.0
    idle_W: float | None = None
    core_W: float | None = None
    drive_idle_W: float | None = None
    drive_active_W: float | None = None

    def __post_init__(self) -> None:
        _count("cores", self.cores, 0)
        _count("drives", self.drives, 1)
        _count("enabled", self.enabled, 0)
        if self.enabled > self.drives:
            raise ModelError("enabled", self.enabled, f"at most the {self.drives} drives there are")
        if not self.cores and not self.enabled:
            raise ModelError("enabled", 0, "at least one drive that computes, or a host core")
        for name in ("core_Bps", "drive_read_Bps", "drive_comp_Bps", "port_Bps", "uplink_Bps"):
            positive(name, getattr(self, name))
        positive("nic_Bps", self.nic_Bps)
        if self.memory_Bps is not None:
            positive("memory_Bps", self.memory_Bps)
        fastest = max(self.drive_read_Bps, self.port_Bps)
        if self.media_Bps is not None and not self.media_Bps >= fastest:
            raise ModelError(
                "media_Bps", self.media_Bps, f"at least its fastest reader, {fastest:g}"
            )
        slow_down("sd_tx", self.sd_tx)
        slow_down("sd_comp", self.sd_comp)
        for name in ("idle_W", "core_W", "drive_idle_W", "drive_active_W"):
            if getattr(self, name) is not None:
                not_negative(name, getattr(self, name))

    @property
    def all_readers_Bps(self) -> float:
        """Bytes per second that the media of a drive deliver to all readers together."""
        return self.media_Bps or max(self.drive_read_Bps, self.port_Bps)

    @property
    def through_memory_Bps(self) -> float:
        """Bytes per second that the host can take in and read again, or take in and pass on."""
        return through_Bps(self.memory_Bps or np.inf)

    @property
    def intake_Bps(self) -> float:
        """Bytes per second that leave the host's drives: over the switch, through its memory."""
        return min(self.uplink_Bps, self.through_memory_Bps)

    def contended(self, layout: Layout, steal: bool) -> bool:
        """Return True if a drive and all that read it can want more than its media deliver.

        Whatever leaves a host's drives passes its switch; what is spread comes from all drives
        evenly. So no drive sends more than its part of the switch. The slow-down of a host's
        transfer is none of what drives fetch.
        """
        sent = self.port_Bps
        if layout is Layout.SPREAD:
            sent = min(sent, self.intake_Bps / self.drives)
        sent /= 1.0 if steal else self.sd_tx
        return self.enabled > 0 and self.all_readers_Bps < self.drive_read_Bps + sent


@dataclass(frozen=True)
class System:
    """One to many equal hosts.

    Attributes
    ----------
    node : Node
        Each host.
    hosts : int
        Number of hosts.
    network_Bps : float or None
        Bandwidth of the whole network [bytes/s]; None: only the hosts' own links limit it.
    """

    node: Node
    hosts: int = 1
    network_Bps: float | None = None

    def __post_init__(self) -> None:
        _count("hosts", self.hosts, 1)
        if self.network_Bps is not None:
            positive("network_Bps", self.network_Bps)


@dataclass(frozen=True)
class Job:
    """A job of many tasks, and what makes it uneven.

    Attributes
    ----------
    tasks : int
        Number of tasks, over all hosts.
    task_bytes : float
        Input of each task [bytes].
    layout : Layout
        Placement of the bytes.
    overlap : Overlap
        Overlap: whether cores and drives load the next task while they compute one.
    skew : float
        Drive i of all holds a share of the data in proportion to i to the power of minus `skew`,
        in an order drawn from the seed; 0 spreads evenly, as the papers assume.
    task_spread : float
        Standard deviation of the logarithm of a task's compute time; its mean stays.
    stragglers : int
        Drives that load and compute slower, inside, by `straggler_factor`; hosts read them at
        full speed.
    straggler_factor : float
        At least 1.
    result_ratio : float
        Bytes that a drive sends to its host for each byte of input [1]; 0 in the papers.
    dispatch_s : float
        Time from a pull to the start of the task [s].
    steal : bool
        True if an idle drive fetches tasks of other drives on its host.
    remote : bool
        True if an idle host fetches tasks of other hosts over the network.
    seed : int
        Seed of the order of shares, the stragglers and the tasks' times.
    """

    tasks: int
    task_bytes: float
    layout: Layout = Layout.SPREAD
    overlap: Overlap = Overlap.SERIAL
    skew: float = 0.0
    task_spread: float = 0.0
    stragglers: int = 0
    straggler_factor: float = 1.0
    result_ratio: float = 0.0
    dispatch_s: float = 0.0
    steal: bool = False
    remote: bool = True
    seed: int = 1

    def __post_init__(self) -> None:
        _count("tasks", self.tasks, 1)
        if self.tasks > TASKS_MAX:
            raise ModelError("tasks", self.tasks, f"at most {TASKS_MAX}; the fluid mode has none")
        positive("task_bytes", self.task_bytes)
        _count("stragglers", self.stragglers, 0)
        _count("seed", self.seed, 0)
        slow_down("straggler_factor", self.straggler_factor)
        for name in ("skew", "task_spread", "result_ratio", "dispatch_s"):
            not_negative(name, getattr(self, name))

    @property
    def total_bytes(self) -> float:
        """Input of all tasks [bytes]."""
        return self.tasks * self.task_bytes


def shares(drives: int, skew: float, seed: int) -> FloatArray:
    """Return the share of the data that each drive holds; they sum to 1."""
    weights = np.arange(1, drives + 1, dtype=np.float64) ** -skew
    if skew > 0:
        weights = np.random.default_rng([seed, 0]).permutation(weights)
    return np.asarray(weights / weights.sum())


def slowness(drives: int, stragglers: int, factor: float, seed: int) -> FloatArray:
    """Return each drive's slow-down factor: 1, or `factor` for as many as there are stragglers."""
    slow = np.ones(drives)
    chosen = np.random.default_rng([seed, 1]).permutation(drives)[:stragglers]
    slow[chosen] = factor
    return slow


def tasks_per_drive(job: Job, drives: int) -> list[int]:
    """Deal the job's tasks by `shares`, whole, the largest remainders first."""
    exact = shares(drives, job.skew, job.seed) * job.tasks
    counts = np.floor(exact).astype(np.int64)
    missing = job.tasks - int(counts.sum())
    order = np.argsort(counts - exact, kind="stable")
    counts[order[:missing]] += 1
    return [int(count) for count in counts]


def _count(name: str, value: int, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ModelError(name, value, f"a whole number of at least {least}")
