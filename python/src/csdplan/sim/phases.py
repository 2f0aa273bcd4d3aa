"""Discrete-event simulation of a job in phases: maps that are pulled, then reduces that fetch.

Maps are pulled one by one. A drive takes a block that it holds while there is one, and then, like
host cores always, one of the drive with most blocks waiting. Reduces begin when the last map has
ended; places take them in turn, the host first. A reduce fetches its part of every map's output,
computes, and writes its output with all copies.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import simpy

from csdplan.errors import ModelError
from csdplan.sim.links import FairLinks, Link
from csdplan.sim.phased import Cluster, Phased, Phases

Steps = Generator[simpy.Event, Any, None]
#: Bytes that each link carries for each byte moved.
Weights = dict[Link, float]

#: The host, where drives are numbers from 0.
HOST = -1


@dataclass
class _Books:
    """Work done so far."""

    done: dict[tuple[int, int], int] = field(default_factory=dict)
    local: int = 0
    stolen: int = 0
    on_host: int = 0
    host_cpu_s: float = 0.0
    drive_cpu_s: float = 0.0
    tunnel_bytes: float = 0.0
    fetched_s: float = 0.0
    mapped_bytes: dict[int, float] = field(default_factory=dict)


@dataclass
class Run:
    """State of one simulation.

    Attributes
    ----------
    links : FairLinks
        Every link that limits, and the CPUs; those of the host count in bytes routed.
    capacity : dict
        Capacity of each.
    holders : list of tuple
        Drives that hold each block.
    queues : list of deque
        Blocks that lie on each drive, taken ones among them.
    waiting : list of int
        Blocks of each that are not taken.
    """

    env: simpy.Environment
    cluster: Cluster
    job: Phases
    links: FairLinks
    capacity: dict[Link, float]
    holders: list[tuple[int, ...]]
    queues: list[deque[int]]
    waiting: list[int]
    taken: list[bool]
    books: _Books = field(default_factory=_Books)
    outcome: Phased | None = None

    def take(self, place: int) -> tuple[int, int] | None:
        """Take a block for a place; return it and the drive that gives it."""
        source = place
        if place == HOST or not self.waiting[place]:
            source = max(range(self.cluster.drives), key=lambda drive: self.waiting[drive])
            if not self.waiting[source]:
                return None
        queue = self.queues[source]
        while self.taken[queue[0]]:
            queue.popleft()
        block = queue.popleft()
        self.taken[block] = True
        for drive in self.holders[block]:
            self.waiting[drive] -= 1
        return block, source

    def move(self, weights: Mapping[Link, float], bytes: float) -> simpy.Event:
        """Begin to move bytes over links, each of which carries its share of them."""
        limits = [(link, share) for link, share in weights.items() if link in self.capacity]
        limits = [(link, share) for link, share in limits if share > 0]
        if not limits or not bytes:
            return self.env.timeout(0.0)
        (first, most), *rest = limits
        parts = tuple((link, share / most) for link, share in rest)
        return self.links.transfer((first,), bytes * most, parts)

    def compute(self, place: int, slot: int, cpu_s: float) -> simpy.Event:
        """Begin to compute on a core of the host, or within a drive's share of its slots."""
        if place != HOST:
            self.books.drive_cpu_s += cpu_s
            return self.move({("cores", place): 1.0, ("slot", place, slot): 1.0}, cpu_s)
        self.books.host_cpu_s += cpu_s
        routing = self.cluster.routing_byte_s
        if not routing:
            return self.env.timeout(cpu_s)
        return self.move({("core", slot): 1.0, ("cpu",): 1.0}, cpu_s / routing)


def simulate_phases(cluster: Cluster, job: Phases) -> Phased:
    """Run a job on a host and its drives; the first `enabled` drives take tasks.

    Raises
    ------
    ModelError
        If nothing takes tasks.
    """
    run = begun(cluster, job)
    run.env.run()
    assert run.outcome is not None, "the last phase ends the job"
    return run.outcome


def begun(cluster: Cluster, job: Phases) -> Run:
    """Return a simulation that is about to run."""
    if job.replication > cluster.drives:
        raise ModelError("replication", job.replication, f"at most the {cluster.drives} drives")
    env = simpy.Environment()
    holders = _placed(cluster, job)
    queues: list[deque[int]] = [deque() for _ in range(cluster.drives)]
    for block, drives in enumerate(holders):
        for drive in drives:
            queues[drive].append(block)
    capacity = _capacity(cluster)
    links = FairLinks(env, capacity)
    waiting = [len(queue) for queue in queues]
    run = Run(env, cluster, job, links, capacity, holders, queues, waiting, [False] * job.maps)
    env.process(_phases(run))
    return run


def _placed(cluster: Cluster, job: Phases) -> list[tuple[int, ...]]:
    """Deal blocks to drives in turn, and their copies to others at random."""
    rng = np.random.default_rng([job.seed, 3])
    drives, found = cluster.drives, []
    for block in range(job.maps):
        first = block % drives
        away = rng.permutation(drives - 1)[: job.replication - 1] if job.replication > 1 else ()
        found.append((first, *((first + 1 + int(one)) % drives for one in away)))
    return found


def _capacity(cluster: Cluster) -> dict[Link, float]:
    """Return the capacity of all that limits."""
    found: dict[Link, float | None] = {("uplink",): cluster.uplink_Bps}
    if cluster.memory_Bps is not None:
        found["memory",] = cluster.memory_Bps / 2
    if cluster.routing_byte_s:
        # A host that takes no tasks has a core to route with.
        found["cpu",] = max(1, cluster.cores) / cluster.routing_byte_s
        for core in range(cluster.cores):
            found["core", core] = 1.0 / cluster.routing_byte_s
    for drive in range(cluster.drives):
        found["port", drive] = cluster.port_Bps
        found["media", drive] = cluster.media_Bps
        found["inside", drive] = cluster.read_Bps
        found["cores", drive] = cluster.drive_cores
        if cluster.drive_cores > 1:
            found |= {("slot", drive, slot): 1.0 for slot in range(cluster.slots)}
    return {link: speed for link, speed in found.items() if speed is not None}


def _across(sent: Mapping[int, float], to: Mapping[int, float]) -> Weights:
    """Return the weights of bytes that drives send, and that drives or the host receive.

    The two are shares by place. Bytes that a place sends to itself must not be among them.
    """
    found: Weights = {}
    ends = 0.0
    for shares in (to, sent):
        for place, share in shares.items():
            if place != HOST:
                found["port", place] = found.get(("port", place), 0.0) + share
                ends += share
    crossed = sum(sent.values())
    found["uplink",] = found["memory",] = crossed
    found["cpu",] = ends
    return found


def _count(run: Run, weights: Weights, bytes: float) -> None:
    """Note what crosses tunnels."""
    run.books.tunnel_bytes += weights[("cpu",)] * bytes


def _phases(run: Run) -> Steps:
    """Run all phases, one after the other."""
    env, cluster, job = run.env, run.cluster, run.job
    places = [(HOST, core) for core in range(cluster.cores)]
    places += [(drive, slot) for slot in range(cluster.slots) for drive in range(cluster.enabled)]
    yield env.timeout(job.begin_s)
    yield env.all_of([env.process(_maps(run, *place)) for place in places])
    mapped_s = run.books.fetched_s = env.now
    if job.reduces:
        turns = deque(range(job.reduces))
        yield env.all_of([env.process(_reduces(run, *place, turns)) for place in places])
    books = run.books
    run.outcome = Phased(
        time_s=env.now,
        map_s=mapped_s - job.begin_s,
        shuffle_s=books.fetched_s - mapped_s,
        reduce_s=env.now - books.fetched_s,
        waves=max(books.done.values()),
        local_maps=books.local,
        stolen_maps=books.stolen,
        host_maps=books.on_host,
        host_cpu_s=books.host_cpu_s,
        drive_cpu_s=books.drive_cpu_s,
        tunnel_bytes=books.tunnel_bytes,
    )


def _maps(run: Run, place: int, slot: int) -> Steps:
    """One slot, while there are maps."""
    job, books = run.job, run.books
    while (found := run.take(place)) is not None:
        block, source = found
        bytes = job.map_bytes(block)
        yield run.compute(place, slot, job.map.start_s)
        yield _read(run, place, source, bytes)
        yield run.compute(place, slot, job.map.byte_s * bytes)
        if not job.reduces:
            yield _write(run, place, job.output_ratio * bytes)
        books.done[place, slot] = books.done.get((place, slot), 0) + 1
        books.mapped_bytes[place] = books.mapped_bytes.get(place, 0.0) + bytes
        if place == HOST:
            books.on_host += 1
        elif place == source:
            books.local += 1
        else:
            books.stolen += 1


def _read(run: Run, place: int, source: int, bytes: float) -> simpy.Event:
    """Begin to read a block."""
    if place == source:
        return run.move({("inside", place): 1.0, ("media", place): 1.0}, bytes)
    weights = _across({source: 1.0}, {place: 1.0})
    _count(run, weights, bytes)
    return run.move(weights | {("media", source): 1.0}, bytes)


def _write(run: Run, place: int, bytes: float) -> simpy.Event:
    """Begin to write output: one copy on the drive that has it, the others on other drives."""
    drives, copies = run.cluster.drives, run.job.replication
    media: Weights = {}
    if place != HOST:
        copies -= 1
        media["media", place] = 1.0
    others = [drive for drive in range(drives) if drive != place] if copies else []
    to = {drive: copies / len(others) for drive in others}
    weights = _across({place: float(copies)}, to)
    _count(run, weights, bytes)
    media |= {("media", drive): share for drive, share in to.items()}
    return run.move(weights | media, bytes)


def _reduces(run: Run, place: int, slot: int, turns: deque[int]) -> Steps:
    """One slot, while there are reduces."""
    job, books = run.job, run.books
    while turns:
        turns.popleft()
        yield run.compute(place, slot, job.reduce.start_s)
        yield _fetch(run, place)
        books.fetched_s = max(books.fetched_s, run.env.now)
        yield run.compute(place, slot, job.reduce.byte_s * job.reduce_bytes)
        yield _write(run, place, job.output_ratio * job.input_bytes / job.reduces)


def _fetch(run: Run, place: int) -> simpy.Event:
    """Begin to fetch a reduce's part of the output of all maps, from where they ran."""
    mapped, total = run.books.mapped_bytes, run.job.input_bytes
    shares = {source: bytes / total for source, bytes in sorted(mapped.items())}
    remote = {source: share for source, share in shares.items() if source != place}
    weights = _across(remote, {place: sum(remote.values())})
    _count(run, weights, run.job.reduce_bytes)
    media = {("media", source): share for source, share in shares.items() if source != HOST}
    return run.move(weights | media, run.job.reduce_bytes)
