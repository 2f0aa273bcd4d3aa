"""Random jobs against a simulation of its own: ``python tests/independent/simulations.py 200``.

It is written after the rules in the guide, and shares no code with csdplan's: transfers, timers and
workers in plain lists, and the speeds of all transfers found again at every event.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from csdplan.model.overlap import Overlap
from csdplan.sim import Job, Layout, Node, System, simulate

Step = Callable[[], None]


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
    """One host, its drives, and what is going on."""

    node: Node
    job: Job
    now: float = 0.0
    flows: list[Flow] = field(default_factory=list)
    timers: list[tuple[float, int, Step]] = field(default_factory=list)
    waiting: list[int] = field(default_factory=list)
    order: int = 0

    def after(self, seconds: float, then: Step) -> None:
        """Have something happen later."""
        self.order += 1
        self.timers.append((self.now + seconds, self.order, then))

    def send(self, size: float, shares: dict[str, float], then: Step) -> None:
        """Begin a transfer."""
        self.flows.append(Flow(size, size, shares, then))

    def capacity(self, link: str) -> float:
        """Return the bytes per second of a link."""
        node = self.node
        kind = link.split(maxsplit=1)[0]
        if kind == "memory":
            return (node.memory_Bps or np.inf) / 2
        media = node.media_Bps or max(node.drive_read_Bps, node.port_Bps)
        known = {"port": node.port_Bps, "switch": node.uplink_Bps, "media": media}
        return known.get(kind, node.drive_read_Bps)

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
            for then in [*(flow.then for flow in done), *(timer[2] for timer in rung)]:
                then()
        return self.now


def take_fullest(world: World) -> int | None:
    """Take a task from the drive with most of them; None if there is none."""
    fullest = max(range(world.node.drives), key=lambda drive: world.waiting[drive])
    if not world.waiting[fullest]:
        return None
    world.waiting[fullest] -= 1
    return fullest


def core(world: World) -> None:
    """Start a core: it loads a task and computes it, or loads the next one meanwhile."""
    node, job = world.node, world.job
    ahead = job.overlap is Overlap.PIPELINED
    hand: dict[str, bool] = {"loaded": False, "computing": False, "loading": False}

    def load() -> None:
        drive = take_fullest(world)
        if drive is None:
            return
        hand["loading"] = True
        shares = {"switch": 1.0}
        if node.memory_Bps is not None:
            shares["memory"] = 1.0
        lying = [drive] if job.layout is Layout.WHOLE else range(node.drives)
        for one in lying:
            shares[f"port {one}"] = 1.0 / len(lying)
            if one < node.enabled:
                shares[f"media {one}"] = 1.0 / len(lying)
        world.send(job.task_bytes, shares, arrived)

    def arrived() -> None:
        hand["loading"], hand["loaded"] = False, True
        begin()

    def begin() -> None:
        if hand["loaded"] and not hand["computing"]:
            hand["loaded"], hand["computing"] = False, True
            if ahead:
                load()
            world.after(job.task_bytes / node.core_Bps, computed)

    def computed() -> None:
        hand["computing"] = False
        if ahead:
            begin()
        else:
            load()

    load()


def drive_that_computes(world: World, drive: int) -> None:
    """Start a drive: it loads a task of its own from its media, computes, and sends the result."""
    node, job = world.node, world.job

    def load() -> None:
        if not world.waiting[drive]:
            return
        world.waiting[drive] -= 1
        begun = world.now
        shares = {f"inside {drive}": 1.0, f"media {drive}": 1.0}
        world.send(job.task_bytes, shares, lambda: compute(begun))

    def compute(begun: float) -> None:
        seconds = job.task_bytes / node.drive_comp_Bps
        if job.overlap is Overlap.PIPELINED:
            seconds = max(0.0, begun + seconds - world.now)
        world.after(seconds, send)

    def send() -> None:
        if not job.result_ratio:
            load()
            return
        shares = {f"port {drive}": 1.0, "switch": 1.0}
        if node.memory_Bps is not None:
            shares["memory"] = 1.0
        world.send(job.result_ratio * job.task_bytes, shares, load)

    load()


def simulated_s(node: Node, job: Job) -> float:
    """Return the time of an even job on one host."""
    world = World(node, job)
    each, more = divmod(job.tasks, node.drives)
    world.waiting = [each + (index < more) for index in range(node.drives)]
    for _ in range(node.cores):
        core(world)
    for drive in range(node.enabled):
        drive_that_computes(world, drive)
    return world.run()


def random_case(rng: np.random.Generator) -> tuple[Node, Job]:
    """Draw a host and an even job that somebody can finish."""
    drives = int(rng.integers(1, 7))
    cores = int(rng.integers(0, 7))
    enabled = drives if not cores else int(rng.integers(0, drives + 1))
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
        memory_Bps=float(rng.uniform(2, 30)) * 1e9 if rng.random() < 0.5 else None,
    )
    job = Job(
        tasks=int(rng.integers(40, 200)),
        task_bytes=64e6,
        layout=Layout.WHOLE if rng.random() < 0.5 else Layout.SPREAD,
        overlap=Overlap.PIPELINED if rng.random() < 0.5 else Overlap.SERIAL,
        result_ratio=float(rng.choice([0.0, 0.3, 1.0])),
    )
    return node, job


def differences(count: int, seed: int = 1) -> list[float]:
    """Return how far csdplan's times are from those of this simulation, as shares."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        node, job = random_case(rng)
        found.append(simulate(System(node), job).time_s / simulated_s(node, job) - 1)
    return found


def main() -> None:
    """Print how near the times are; fail if one of them is further than 3 % away."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    begun = time.process_time()
    found = np.abs(differences(count))
    for share in (0.001, 0.01, 0.03):
        print(f"{int(np.sum(found <= share)):6} of {count} within {share:.1%}")
    print(f"furthest {found.max():.2%}; {time.process_time() - begun:.0f} s of CPU")
    sys.exit(bool(found.max() > 0.03))


if __name__ == "__main__":
    main()
