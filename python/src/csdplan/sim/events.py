"""Discrete-event simulation of a job whose tasks are pulled by host cores and drives.

Each worker takes a task, finishes it, and takes the next, until there is none. There is no plan, so
fast workers do more. A drive takes tasks that lie on itself and then, if the job permits it, those
of the fullest other drive of its host. A host core takes from the fullest drive of its own host,
then from the fullest of all hosts. Each task is done once, by the worker that took it, so the job
waits for a straggler's last task.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import simpy

from csdplan.errors import ModelError
from csdplan.model.overlap import Overlap
from csdplan.sim.links import FairLinks, Link, Parts, Path
from csdplan.sim.outcome import Outcome, drive_active_s, net_energy_J, total_energy_J
from csdplan.sim.system import Job, Layout, System, slowness, tasks_per_drive

Steps = Generator[simpy.Event, Any, None]


@dataclass(frozen=True)
class _Task:
    """A task taken: where it lies, and how its compute time differs from the mean."""

    drive: int
    factor: float


@dataclass
class _Books:
    """Work done so far."""

    end_s: float = 0.0
    core_busy_s: float = 0.0
    drive_busy_s: float = 0.0
    host_bytes: float = 0.0
    read_bytes: float = 0.0
    drive_bytes: float = 0.0
    last_drive_s: float = 0.0
    last_core_s: float = 0.0


@dataclass
class _Run:
    """State of one simulation; drives are numbered over all hosts."""

    env: simpy.Environment
    system: System
    job: Job
    links: FairLinks
    waiting: list[list[float]]
    slow: list[float]
    left: int
    contended: bool
    ports: bool
    books: _Books = field(default_factory=_Books)
    parts: list[Parts] = field(default_factory=list)
    fetched: list[Parts] = field(default_factory=list)

    def host_of(self, drive: int) -> int:
        return drive // self.system.node.drives

    def take(self, drive: int) -> _Task:
        self.left -= 1
        return _Task(drive, self.waiting[drive].pop())

    def take_fullest(self, host: int | None) -> _Task | None:
        """Take from the drive with most tasks waiting, on `host` or anywhere."""
        each = self.system.node.drives
        first = 0 if host is None else host * each
        last = len(self.waiting) if host is None else first + each
        if not self.left:
            return None
        fullest = max(range(first, last), key=lambda drive: len(self.waiting[drive]))
        return self.take(fullest) if self.waiting[fullest] else None


def simulate(system: System, job: Job) -> Outcome:
    """Run a job on a system.

    Parameters
    ----------
    system : System
        Hosts, drives, switch and network. On every host the first `enabled` drives compute.
    job : Job
        Tasks, and what makes them uneven.

    Returns
    -------
    Outcome
        Time, throughput, utilization, energy.

    Notes
    -----
    A task lies whole on one drive's books. With the ``spread`` layout the same number of bytes
    lies in chunks over all drives of the host, so a host reads a task from all of them at once;
    taking it off the fullest drive's books comes to the same over as many pulls as drives.
    """
    run = _begin(system, job)
    node = system.node
    for host in range(system.hosts):
        for _ in range(node.cores):
            run.env.process(_core(run, host))
        for index in range(node.enabled):
            run.env.process(_drive(run, host * node.drives + index))
    run.env.run()
    assert run.left == 0, "workers stop only when no task is left"
    return _outcome(run)


def _can_finish(system: System, job: Job) -> bool:
    node = system.node
    return node.cores > 0 or node.enabled == node.drives or job.steal


def _begin(system: System, job: Job) -> _Run:
    node = system.node
    drives = system.hosts * node.drives
    if not _can_finish(system, job):
        raise ModelError(
            "enabled", node.enabled, f"all {node.drives} drives, a host core, or steal"
        )
    rng = np.random.default_rng([job.seed, 2])
    # A lognormal factor with mean 1: the sum of work does not depend on the spread.
    spread = job.task_spread
    factors = np.exp(spread * rng.standard_normal(job.tasks) - spread**2 / 2).tolist()
    waiting, first = [], 0
    for count in tasks_per_drive(job, drives):
        waiting.append(factors[first : first + count])
        first += count
    env = simpy.Environment()
    slow = slowness(drives, job.stragglers, job.straggler_factor, job.seed).tolist()
    contended = node.contended(job.layout, job.steal)
    links = FairLinks(env, _capacities(system, slow, contended=contended))
    # Results, and what drives fetch, take their part of a port from the reads of hosts.
    ports = job.steal or job.result_ratio > 0
    run = _Run(env, system, job, links, waiting, slow, job.tasks, contended, ports)
    run.parts = _parts_of(run, node.sd_tx)
    run.fetched = _parts_of(run, 1.0)
    return run


def _capacities(system: System, slow: list[float], *, contended: bool) -> dict[Link, float]:
    node = system.node
    capacity: dict[Link, float] = {}
    for host in range(system.hosts):
        capacity["array", host] = node.drives * node.port_Bps
        capacity["uplink", host] = node.uplink_Bps
        capacity["nic", host] = node.nic_Bps
        if node.memory_Bps is not None:
            capacity["memory", host] = node.through_memory_Bps
        for index in range(node.drives):
            drive = host * node.drives + index
            capacity["port", drive] = node.port_Bps
            if contended and index < node.enabled:
                capacity["media", drive] = node.all_readers_Bps
                capacity["inside", drive] = node.drive_read_Bps / slow[drive]
    if system.network_Bps is not None:
        capacity["network",] = system.network_Bps
    return capacity


def _path(run: _Run, drive: int, to_host: int) -> Path:
    """Return the links between a task's drive and the host that reads it, without the ports.

    Ports that carry nothing but even reads are as good as one link for all of them.
    """
    home = run.host_of(drive)
    path: Path = (("uplink", home), *_memory(run, home))
    if run.job.layout is Layout.WHOLE:
        path = (("port", drive), *path)
    elif not run.ports:
        path = (("array", home), *path)
    if home == to_host:
        return path
    path += (("nic", home), ("nic", to_host), *_memory(run, to_host))
    return path if run.system.network_Bps is None else (*path, ("network",))


def _memory(run: _Run, host: int) -> Path:
    """Return the memory of a host as a link; nothing where it never limits."""
    return () if run.system.node.memory_Bps is None else (("memory", host),)


def _parts(run: _Run, drive: int, known: list[Parts]) -> Parts:
    """Return the shares of a read that the ports of drives carry, and their media deliver."""
    return known[drive if run.job.layout is Layout.WHOLE else run.host_of(drive)]


def _parts_of(run: _Run, slower: float) -> list[Parts]:
    """Return the parts of reads: by drive, or by host where data is spread."""
    each = run.system.node.drives
    if run.job.layout is Layout.WHOLE:
        return [_media(run, drive, slower) for drive in range(len(run.waiting))]
    found = []
    for first in range(0, len(run.waiting), each):
        ports = tuple((("port", first + index), 1.0 / each) for index in range(each))
        found.append((*(ports if run.ports else ()), *_media(run, first, slower)))
    return found


def _media(run: _Run, drive: int, slower: float) -> Parts:
    """Return the shares of a read that the media of computing drives deliver.

    Media without a second reader never hold up a port, and are left out. The transfer takes
    `slower` times as long as its bytes do, the reading of the media does not.
    """
    node = run.system.node
    if not run.contended:
        return ()
    if run.job.layout is Layout.WHOLE:
        computes = drive % node.drives < node.enabled
        return ((("media", drive), 1.0 / slower),) if computes else ()
    first = run.host_of(drive) * node.drives
    share = 1.0 / (node.drives * slower)
    return tuple((("media", first + index), share) for index in range(node.enabled))


def _core(run: _Run, host: int) -> Steps:
    """One host core."""
    node, job = run.system.node, run.job

    def load(task: _Task) -> simpy.Event:
        run.books.read_bytes += job.task_bytes
        path, parts = _path(run, task.drive, host), _parts(run, task.drive, run.parts)
        return run.links.transfer(path, job.task_bytes * node.sd_tx, parts)

    def take() -> _Task | None:
        task = run.take_fullest(host)
        return run.take_fullest(None) if task is None and job.remote else task

    task = take()
    pending: simpy.Event | None = None
    while task is not None:
        begun_s = run.env.now
        if pending is None:
            if job.dispatch_s:
                yield run.env.timeout(job.dispatch_s)
            pending = load(task)
        yield pending
        pending = None
        following: _Task | None = None
        if job.overlap is Overlap.PIPELINED:
            following = take()
            pending = load(following) if following is not None else None
        yield run.env.timeout(
            node.sd_comp * task.factor * job.task_bytes / node.core_Bps
            + (job.dispatch_s if pending is not None else 0.0)
        )
        run.books.core_busy_s += run.env.now - begun_s
        run.books.host_bytes += job.task_bytes
        run.books.end_s = run.books.last_core_s = run.env.now
        task = following if job.overlap is Overlap.PIPELINED else take()


def _drive(run: _Run, drive: int) -> Steps:
    """One drive that computes."""
    job = run.job
    host = run.host_of(drive)
    while True:
        if run.waiting[drive]:
            task = run.take(drive)
        else:
            stolen = run.take_fullest(host) if job.steal else None
            if stolen is None:
                return
            task = stolen
        begun_s = run.env.now
        if job.dispatch_s:
            yield run.env.timeout(job.dispatch_s)
        yield from _process(run, drive, task)
        if job.result_ratio:
            path = (("port", drive), ("uplink", host), *_memory(run, host))
            yield run.links.transfer(path, job.result_ratio * job.task_bytes)
        run.books.drive_busy_s += run.env.now - begun_s
        run.books.drive_bytes += job.task_bytes
        run.books.end_s = run.books.last_drive_s = run.env.now


def _process(run: _Run, drive: int, task: _Task) -> Steps:
    """Load a task into a drive, from its own media or another's, and compute it."""
    node, job, slow = run.system.node, run.job, run.slow[drive]
    compute_s = slow * task.factor * job.task_bytes / node.drive_comp_Bps
    pipelined, begun_s = job.overlap is Overlap.PIPELINED, run.env.now
    if task.drive != drive:
        path = (*_path(run, task.drive, run.host_of(drive)), ("port", drive))
        run.books.read_bytes += job.task_bytes
        yield run.links.transfer(path, job.task_bytes, _parts(run, task.drive, run.fetched))
    elif run.contended:
        yield run.links.transfer((("inside", drive), ("media", drive)), job.task_bytes)
    else:
        yield run.env.timeout(slow * job.task_bytes / node.drive_read_Bps)
    overlapped_s = run.env.now - begun_s if pipelined else 0.0
    yield run.env.timeout(max(0.0, compute_s - overlapped_s))


def _outcome(run: _Run) -> Outcome:
    node, hosts, books = run.system.node, run.system.hosts, run.books
    time_s = books.end_s
    cores, computing = hosts * node.cores, hosts * node.enabled
    crossed = sum(run.links.carried_bytes["uplink", host] for host in range(hosts))
    active_s = drive_active_s(node, hosts, time_s, books.drive_busy_s, books.read_bytes)
    net_J = net_energy_J(node, books.core_busy_s, active_s)
    return Outcome(
        time_s=time_s,
        throughput_Bps=run.job.total_bytes / time_s,
        host_bytes=books.host_bytes,
        drive_bytes=books.drive_bytes,
        core_busy_s=books.core_busy_s,
        drive_busy_s=books.drive_busy_s,
        core_utilization=books.core_busy_s / (cores * time_s) if cores else 0.0,
        drive_utilization=books.drive_busy_s / (computing * time_s) if computing else 0.0,
        uplink_utilization=crossed / (hosts * node.uplink_Bps * time_s),
        last_drive_s=books.last_drive_s,
        last_core_s=books.last_core_s,
        net_energy_J=net_J,
        energy_J=total_energy_J(node, hosts, time_s, net_J),
    )
