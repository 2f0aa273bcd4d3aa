"""Random jobs against a simulation of its own: ``python tests/independent/simulations.py 200``.

It is written after the rules in the guide, and shares no code with csdplan's: transfers, timers and
workers in plain lists, and the speeds of all transfers found again at every event. Half of the jobs
are kernels of the shipped profiles, the others have speeds drawn at random; one to three hosts,
both layouts, skewed data, stragglers, uneven tasks, drives that fetch and results as long as the
parity of a code. Random numbers of csdplan's seed are drawn again here from the same seed.

No rule orders what happens at the same instant, and with few tasks another order gives another
time. A time that is far away is compared with those of other orders, drawn at random.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from csdplan.commands.choose import choose
from csdplan.model.overlap import Overlap
from csdplan.profile import load, shipped_names
from csdplan.result.simulated import node_of
from csdplan.sim import Job, Layout, Node, System, simulate

#: Every kernel of a shipped profile that a host and a drive have run.
WORKLOADS = [
    (name, kernel)
    for name in shipped_names()
    for kernel in load(name).kernels()
    if load(name).points(kernel, "drive") and load(name).points(kernel, "host")
]

Step = Callable[[], None]
#: Times further apart than this are of different models [1].
FAR = 0.01
#: Orders of what happens at once that are tried.
ORDERS_MAX = 50
#: Codes rs:N+K whose encoders return K bytes for every N.
CODES = ((2, 1), (4, 2), (8, 2), (8, 3), (16, 4))


@dataclass(eq=False)
class Flow:
    """A transfer: bytes left, the share of each link that it takes, and what comes after it."""

    left: float
    size: float
    shares: dict[str, float]
    then: Step
    speed: float = 0.0


@dataclass
class World:
    """Hosts, their drives, and what is going on; drives are numbered over all hosts."""

    system: System
    job: Job
    slow: list[float]
    waiting: list[list[float]]
    now: float = 0.0
    flows: list[Flow] = field(default_factory=list)
    timers: list[tuple[float, int, Step]] = field(default_factory=list)
    order: int = 0
    orders: np.random.Generator | None = None

    @property
    def node(self) -> Node:
        """The hosts, which are equal."""
        return self.system.node

    def after(self, seconds: float, then: Step) -> None:
        """Have something happen later."""
        self.order += 1
        self.timers.append((self.now + seconds, self.order, then))

    def send(self, size: float, shares: dict[str, float], then: Step) -> None:
        """Begin a transfer."""
        self.flows.append(Flow(size, size, shares, then))

    def capacity(self, link: str) -> float:
        """Return the bytes per second of a link."""
        node, (kind, _, number) = self.node, link.partition(" ")
        if kind == "memory":
            return (node.memory_Bps or np.inf) / 2
        if kind == "inside":
            return node.drive_read_Bps / self.slow[int(number)]
        return {
            "port": node.port_Bps,
            "switch": node.uplink_Bps,
            "nic": node.nic_Bps,
            "network": self.system.network_Bps or np.inf,
            "media": node.media_Bps or max(node.drive_read_Bps, node.port_Bps),
        }[kind]

    def set_speeds(self) -> None:
        """Let all speeds grow together; a transfer stops growing when one of its links is full."""
        growing = list(self.flows)
        left = {link: self.capacity(link) for flow in growing for link in flow.shares}
        level = 0.0
        while growing:
            used: dict[str, float] = {}
            for flow in growing:
                for link, share in flow.shares.items():
                    used[link] = used.get(link, 0.0) + share
            step = min(max(left[link], 0.0) / share for link, share in used.items())
            level += step
            for link, share in used.items():
                left[link] -= step * share
            full = {link for link in used if left[link] <= 1e-9 * self.capacity(link)}
            for flow in growing:
                flow.speed = level
            growing = [flow for flow in growing if not full & set(flow.shares)]

    def run(self) -> float:
        """Return when nothing is left to happen."""
        while self.flows or self.timers:
            self.set_speeds()
            ends = [flow.left / flow.speed for flow in self.flows]
            due = [at - self.now for at, _, _ in self.timers]
            passed = min([*ends, *due])
            self.now += passed
            for flow in self.flows:
                flow.left -= flow.speed * passed
            done = [flow for flow in self.flows if flow.left <= 1e-9 * flow.size]
            self.flows = [flow for flow in self.flows if flow not in done]
            rung = sorted(timer for timer in self.timers if timer[0] <= self.now * (1 + 1e-12))
            self.timers = [timer for timer in self.timers if timer not in rung]
            steps = [*(flow.then for flow in done), *(timer[2] for timer in rung)]
            if self.orders is not None:
                self.orders.shuffle(steps)
            for step in steps:
                step()
        return self.now

    def take(self, drives: range) -> tuple[int, float] | None:
        """Take a task from the drive with most of them; None if there is none."""
        fullest = max(drives, key=lambda drive: len(self.waiting[drive]))
        return (fullest, self.waiting[fullest].pop()) if self.waiting[fullest] else None

    def drives_of(self, host: int) -> range:
        """Return the drives of a host."""
        return range(host * self.node.drives, (host + 1) * self.node.drives)

    def out_of(self, host: int) -> dict[str, float]:
        """Return what everything crosses that leaves the drives of a host."""
        memory = {} if self.node.memory_Bps is None else {f"memory {host}": 1.0}
        return {f"switch {host}": 1.0, **memory}

    def read(self, drive: int, slower: float = 1.0) -> dict[str, float]:
        """Return what a read of a task crosses, up to the memory of its drive's host.

        A transfer that is slowed down holds its links for longer, and no medium.
        """
        node, home = self.node, drive // self.node.drives
        shares = self.out_of(home)
        lying = [drive] if self.job.layout is Layout.WHOLE else self.drives_of(home)
        for one in lying:
            shares[f"port {one}"] = 1.0 / len(lying)
            if one % node.drives < node.enabled:
                shares[f"media {one}"] = 1.0 / len(lying) / slower
        return shares


def core(world: World, host: int) -> None:
    """Start a core: it loads a task and computes it, or loads the next one meanwhile."""
    node, job = world.node, world.job
    ahead = job.overlap is Overlap.PIPELINED
    every = range(world.system.hosts * node.drives)
    hand: dict[str, float | None] = {"loaded": None, "computing": None}

    def load(*, idle: bool) -> bool:
        task = world.take(world.drives_of(host))
        if task is None and job.remote:
            task = world.take(every)
        if task is None:
            return False
        drive, factor = task
        home = drive // node.drives
        shares = world.read(drive, node.sd_tx)
        if home != host:
            shares |= {f"nic {home}": 1.0, f"nic {host}": 1.0}
            shares |= {} if node.memory_Bps is None else {f"memory {host}": 1.0}
            shares |= {} if world.system.network_Bps is None else {"network": 1.0}

        def begin() -> None:
            world.send(job.task_bytes * node.sd_tx, shares, lambda: arrived(factor))

        world.after(job.dispatch_s, begin) if idle and job.dispatch_s else begin()
        return True

    def arrived(factor: float) -> None:
        hand["loaded"] = factor
        compute()

    def compute() -> None:
        if hand["loaded"] is None or hand["computing"] is not None:
            return
        factor = hand["computing"] = hand["loaded"]
        hand["loaded"] = None
        # A pull takes its time from the core, which computes meanwhile if it loads ahead.
        pulls = job.dispatch_s if ahead and load(idle=False) else 0.0
        world.after(node.sd_comp * factor * job.task_bytes / node.core_Bps + pulls, computed)

    def computed() -> None:
        hand["computing"] = None
        if ahead:
            compute()
        else:
            load(idle=True)

    load(idle=True)


def drive_that_computes(world: World, drive: int) -> None:
    """Start a drive: it loads its tasks from its media, then others', and sends the results."""
    node, job = world.node, world.job
    host = drive // node.drives

    def pull() -> None:
        task = world.take(range(drive, drive + 1))
        if task is None and job.steal:
            task = world.take(world.drives_of(host))
        if task is not None:
            lies, factor = task
            world.after(job.dispatch_s, lambda: load(lies, factor)) if job.dispatch_s else load(
                lies, factor
            )

    def load(lies: int, factor: float) -> None:
        begun = world.now
        if lies == drive:
            shares = {f"inside {drive}": 1.0, f"media {drive}": 1.0}
        else:
            shares = world.read(lies)
            shares[f"port {drive}"] = shares.get(f"port {drive}", 0.0) + 1.0
        world.send(job.task_bytes, shares, lambda: compute(begun, factor))

    def compute(begun: float, factor: float) -> None:
        seconds = world.slow[drive] * factor * job.task_bytes / node.drive_comp_Bps
        if job.overlap is Overlap.PIPELINED:
            seconds = max(0.0, begun + seconds - world.now)
        world.after(seconds, send)

    def send() -> None:
        if not job.result_ratio:
            pull()
            return
        shares = {f"port {drive}": 1.0, **world.out_of(host)}
        world.send(job.result_ratio * job.task_bytes, shares, pull)

    pull()


def dealt(job: Job, drives: int) -> list[list[float]]:
    """Return the tasks of each drive: how much longer than the mean each of them computes.

    Shares in proportion to powers of the drives' numbers, in an order drawn; whole tasks, the
    largest remainders first.
    """
    weights = [(one + 1.0) ** -job.skew for one in range(drives)]
    if job.skew:
        weights = list(np.random.default_rng([job.seed, 0]).permutation(weights))
    exact = [job.tasks * weight / sum(weights) for weight in weights]
    counts = [int(one) for one in exact]
    order = sorted(range(drives), key=lambda one: counts[one] - exact[one])
    for one in order[: job.tasks - sum(counts)]:
        counts[one] += 1
    drawn = np.random.default_rng([job.seed, 2]).standard_normal(job.tasks)
    factors = [float(np.exp(job.task_spread * one - job.task_spread**2 / 2)) for one in drawn]
    ends = np.cumsum(counts)
    return [factors[end - count : end] for end, count in zip(ends, counts, strict=True)]


def simulated_s(system: System, job: Job, orders: np.random.Generator | None = None) -> float:
    """Return the time of a job; with `orders` what happens at once is in an order of its own."""
    node, drives = system.node, system.hosts * system.node.drives
    slow = [1.0] * drives
    for one in np.random.default_rng([job.seed, 1]).permutation(drives)[: job.stragglers]:
        slow[one] = job.straggler_factor
    world = World(system, job, slow, dealt(job, drives), orders=orders)
    for host in range(system.hosts):
        for _ in range(node.cores):
            core(world, host)
        for drive in world.drives_of(host)[: node.enabled]:
            drive_that_computes(world, drive)
    return world.run()


def random_node(rng: np.random.Generator) -> tuple[Node, float]:
    """Draw a host, and the bytes of a workload: of a shipped profile, or with random speeds."""
    drives = int(rng.integers(1, 7))
    cores = int(rng.integers(0, 7))
    enabled = drives if not cores else int(rng.integers(0, drives + 1))
    if rng.random() < 0.5:
        profile, kernel = WORKLOADS[int(rng.integers(len(WORKLOADS)))]
        work = choose(profile, kernel)
        limit = float(rng.uniform(1, 6))
        return node_of(work, cores=cores, drives=drives, enabled=enabled, k_limit=limit), work.bytes
    port, inside = (float(rng.uniform(0.5, 4)) * 1e9 for _ in range(2))
    node = Node(
        cores=cores,
        drives=drives,
        enabled=enabled,
        core_Bps=float(rng.uniform(0.3, 6)) * 1e9,
        drive_read_Bps=inside,
        drive_comp_Bps=float(rng.uniform(0.3, 6)) * 1e9,
        port_Bps=port,
        uplink_Bps=port * float(rng.uniform(1, 6)),
        media_Bps=max(port, inside) * float(rng.choice([1.0, 1.3])),
    )
    return node, 6.4e9


def random_case(rng: np.random.Generator) -> tuple[System, Job]:
    """Draw hosts and a job that somebody can finish."""
    node, size = random_node(rng)
    port = node.port_Bps
    node = replace(
        node,
        nic_Bps=port * float(rng.uniform(0.2, 3)),
        memory_Bps=port * float(rng.uniform(2, 12)) if rng.random() < 0.5 else None,
        sd_tx=float(rng.choice([1.0, 1.0, 1.7])),
        sd_comp=float(rng.choice([1.0, 1.0, 2.5])),
    )
    hosts = int(rng.integers(1, 4))
    network = port * float(rng.uniform(0.3, 3)) if rng.random() < 0.3 else None
    tasks = hosts * int(rng.integers(60, 150))
    data, parity = CODES[int(rng.integers(len(CODES)))]
    job = Job(
        tasks=tasks,
        task_bytes=hosts * size / tasks,
        layout=Layout.WHOLE if rng.random() < 0.5 else Layout.SPREAD,
        overlap=Overlap.PIPELINED if rng.random() < 0.5 else Overlap.SERIAL,
        skew=float(rng.choice([0.0, 0.0, 0.5, 1.0])),
        task_spread=float(rng.choice([0.0, 0.3, 0.8])),
        stragglers=int(rng.integers(0, 2)),
        straggler_factor=float(rng.uniform(1, 4)),
        result_ratio=float(rng.choice([0.0, 0.3, 1.0, parity / data])),
        dispatch_s=float(rng.choice([0.0, 0.0, 0.1])) * size / tasks / node.core_Bps,
        steal=bool(rng.random() < 0.4),
        remote=bool(rng.random() < 0.7),
        seed=int(rng.integers(1, 1000)),
    )
    return System(node, hosts, network), job


def difference(system: System, job: Job) -> tuple[float, int]:
    """Return how far csdplan's time is from here, as a share, and the other orders looked at."""
    time_s = simulate(system, job).time_s
    nearest, tried = time_s / simulated_s(system, job) - 1, 0
    orders = np.random.default_rng(0)
    while abs(nearest) > FAR and tried < ORDERS_MAX:
        tried += 1
        nearest = min(nearest, time_s / simulated_s(system, job, orders) - 1, key=abs)
    return nearest, tried


def differences(count: int, seed: int = 1) -> list[tuple[float, int]]:
    """Return the differences of so many random jobs."""
    rng = np.random.default_rng(seed)
    return [difference(*random_case(rng)) for _ in range(count)]


def main() -> None:
    """Print how near the times are; fail if one of them is further than 1 % away."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    begun = time.process_time()
    both = differences(count, seed)
    found = np.abs([one for one, _ in both])
    for share in (0.001, FAR):
        print(f"{int(np.sum(found <= share)):6} of {count} within {share:.1%}")
    print(f"{sum(tried > 0 for _, tried in both):6} of them in another order of what is at once")
    print(f"furthest {found.max():.2%}; {time.process_time() - begun:.0f} s of CPU")
    sys.exit(bool(found.max() > FAR))


if __name__ == "__main__":
    main()
