"""A job in phases, and the host and drives that run it: map, shuffle, reduce, output.

::

    block --media--> map --> its output stays where the map ran
      `--port, switch, host's memory and CPU--> map elsewhere
    map output --port, switch, host, port--> reduce --> output, and its copies on other drives

Work is CPU time of one host core. A drive gives its tasks `drive_cores` of such cores, shared by
those at work; one task takes a whole core at most. Bytes between drives, and between drives and
the host, cross the tunnels, which the host routes: each end of a tunnel that a byte passes costs
`routing_byte_s` of the host's CPU, which its own tasks then lack.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from csdplan.errors import ModelError
from csdplan.model.inputs import not_negative, positive
from csdplan.model.overlap import Overlap
from csdplan.sim.expected import drive_Bps, host_Bps
from csdplan.sim.system import TASKS_MAX, Layout, Node

#: Stands for a link that never limits, where a speed is asked for [bytes/s].
_ENDLESS_Bps = 1e18


@dataclass(frozen=True)
class Cost:
    """CPU time of a task on one core.

    Attributes
    ----------
    start_s : float
        Time of every task [s].
    byte_s : float
        Time of each byte of its input [s].
    """

    start_s: float
    byte_s: float

    def __post_init__(self) -> None:
        not_negative("start_s", self.start_s)
        not_negative("byte_s", self.byte_s)

    def of(self, bytes: float) -> float:
        """Return the CPU time of a task with this input [s]."""
        return self.start_s + self.byte_s * bytes


@dataclass(frozen=True)
class Phases:
    """A job.

    Attributes
    ----------
    input_bytes, block_bytes : float
        Input, and what one map takes of it; the last one takes the rest [bytes].
    map : Cost
        Cost of a map.
    begin_s : float
        Time from the job's start to its first task [s].
    reduces : int
        Reduce tasks; 0 for a job of maps alone.
    reduce : Cost
        Cost of a reduce, its input being what it fetches of maps' output.
    shuffle_ratio : float
        Bytes that all reduces fetch for each byte of input [1].
    output_ratio : float
        Bytes of output, one copy, for each byte of input [1].
    replication : int
        Copies of every block of input and output, on different drives.
    seed : int
        Seed of the drives that hold copies.
    """

    input_bytes: float
    block_bytes: float
    map: Cost
    begin_s: float = 0.0
    reduces: int = 0
    reduce: Cost = Cost(0.0, 0.0)
    shuffle_ratio: float = 0.0
    output_ratio: float = 0.0
    replication: int = 1
    seed: int = 1

    def __post_init__(self) -> None:
        positive("input", self.input_bytes)
        positive("block", self.block_bytes)
        positive("CPU time of a map", self.map.of(min(self.input_bytes, self.block_bytes)))
        for name in ("begin_s", "shuffle_ratio", "output_ratio"):
            not_negative(name, getattr(self, name))
        if self.maps > TASKS_MAX:
            raise ModelError("block", self.block_bytes, f"at most {TASKS_MAX} maps")
        if not 0 <= self.reduces <= TASKS_MAX:
            raise ModelError("reduces", self.reduces, f"0 to {TASKS_MAX}")
        if self.replication < 1:
            raise ModelError("replication", self.replication, "at least 1")
        if not self.reduces and self.shuffle_ratio:
            raise ModelError("reduces", 0, "at least 1: the job has a shuffle")

    @property
    def maps(self) -> int:
        """Number of map tasks."""
        # A rest that is due to rounding is no block.
        return max(1, ceil(self.input_bytes / self.block_bytes - 1e-9))

    def map_bytes(self, index: int) -> float:
        """Return the input of a map [bytes]."""
        return min(self.block_bytes, self.input_bytes - index * self.block_bytes)

    @property
    def reduce_bytes(self) -> float:
        """Input of one reduce [bytes]."""
        return self.shuffle_ratio * self.input_bytes / self.reduces if self.reduces else 0.0

    @property
    def cpu_s(self) -> float:
        """CPU time of all tasks [s]."""
        maps = self.map.start_s * self.maps + self.map.byte_s * self.input_bytes
        return maps + self.reduces * self.reduce.of(self.reduce_bytes)


@dataclass(frozen=True)
class Cluster:
    """One host and its drives; links that are None never limit.

    Attributes
    ----------
    cores : int
        Host cores that take tasks, one each; 0 for drives alone.
    drives, enabled : int
        Drives that hold the data, and those of them that take tasks.
    drive_cores : float
        CPU that a drive gives its tasks, in host cores.
    slots : int
        Tasks that a drive runs at once.
    read_Bps, media_Bps : float or None
        Bytes per second that a drive reads of its media, and that they deliver and take in all.
    port_Bps, uplink_Bps, memory_Bps : float or None
        As in `Node`.
    routing_byte_s : float
        CPU time of the host for a byte at one end of a tunnel [s].
    """

    cores: int
    drives: int
    enabled: int
    drive_cores: float
    slots: int = 2
    read_Bps: float | None = None
    media_Bps: float | None = None
    port_Bps: float | None = None
    uplink_Bps: float | None = None
    memory_Bps: float | None = None
    routing_byte_s: float = 0.0

    def __post_init__(self) -> None:
        positive("drive_cores", self.drive_cores)
        not_negative("routing_byte_s", self.routing_byte_s)
        if self.slots < 1:
            raise ModelError("slots", self.slots, "at least 1")
        self.node(1.0)

    def node(self, byte_s: float) -> Node:
        """Return the node whose tasks take this CPU time of one core for a byte."""
        read, port = self.read_Bps or _ENDLESS_Bps, self.port_Bps or _ENDLESS_Bps
        return Node(
            cores=self.cores,
            drives=self.drives,
            enabled=self.enabled,
            core_Bps=1.0 / byte_s,
            drive_read_Bps=read,
            drive_comp_Bps=min(self.drive_cores, self.slots) / byte_s,
            port_Bps=port,
            uplink_Bps=self.uplink_Bps or _ENDLESS_Bps,
            media_Bps=max(self.media_Bps or _ENDLESS_Bps, read, port),
            memory_Bps=self.memory_Bps,
        )


@dataclass(frozen=True)
class Phased:
    """One run.

    Attributes
    ----------
    time_s : float
        From the job's start to its end [s].
    map_s, shuffle_s, reduce_s : float
        From the first map to the last one's end, from there to the last byte fetched, and from
        there to the end [s].
    waves : int
        Maps that the busiest slot ran, one after the other.
    local_maps, stolen_maps, host_maps : int
        Maps on drives that held the block, on others, and on the host.
    host_cpu_s, drive_cpu_s : float
        CPU time of tasks on the host and on drives [s].
    tunnel_bytes : float
        Bytes at the ends of tunnels; a byte from drive to drive counts twice [bytes].
    """

    time_s: float
    map_s: float
    shuffle_s: float
    reduce_s: float
    waves: int
    local_maps: int
    stolen_maps: int
    host_maps: int
    host_cpu_s: float
    drive_cpu_s: float
    tunnel_bytes: float


def closed_form_s(cluster: Cluster, job: Phases) -> float:
    """Return the time of a job whose work divides evenly over all that compute [s].

    Maps take what equations 5 and 7 say, host and drives finishing together. Reduces take their
    CPU time; shuffle, output and routing do not appear.
    """
    reduce_s = job.reduces * job.reduce.of(job.reduce_bytes)
    node = cluster.node((job.cpu_s - reduce_s) / job.input_bytes)
    rate = host_Bps(node, Overlap.SERIAL, Layout.WHOLE) + node.enabled * drive_Bps(node)
    rate = min(rate, node.drives * node.all_readers_Bps)
    cores = cluster.cores + cluster.enabled * min(cluster.drive_cores, cluster.slots)
    return job.begin_s + job.input_bytes / rate + reduce_s / cores
