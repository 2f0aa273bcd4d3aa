"""Random purchases against every purchase there is: ``python tests/independent/purchases.py 2000``.

The reference fills each host in every way, works out by hand what such a host does in a second, and
tries every set of hosts. It shares no code with the optimizer. A host does what its own drives give
it: cores read no more than ports, lanes, memory and media leave, and drives that compute keep to
their media. As many of its drives' bytes are computed inside as can be: a byte that a drive leaves
to its host takes as much of its media. Where clients get results, each host has a card that carries
them and a port of a switch, which is no slower than the card, and its cores give them out.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Sequence
from itertools import combinations_with_replacement, product

import numpy as np

from csdplan.model.overlap import Overlap
from csdplan.solve.clients import Clients
from csdplan.solve.optimize import Verdict, optimize
from csdplan.solve.purchase import Cpu, Demand, DriveKind, Limits, NetworkPart, Request

GB, TB = 1e9, 1e12
CLOSE = 1e-6
#: Of each switch on offer: a third host needs another.
SWITCH_PORTS = 2


def random_request(rng: np.random.Generator) -> Request:
    """Draw one workload, and two kinds of hosts and of drives, of which some compute."""
    cpus = tuple(
        Cpu(
            f"c{i}",
            8,
            float(rng.integers(5, 40) * 50),
            float(rng.choice([8e9, 16e9])),
            3,
            bay_Bps=float(rng.choice([3.9e9, 7.9e9])),
            memory_Bps=float(rng.choice([np.inf, 1e10, 2.2e10])),
        )
        for i in range(2)
    )
    kinds = tuple(
        DriveKind(
            f"k{i}",
            float(rng.integers(80, 900)),
            TB,
            float(rng.uniform(1, 6)) * GB,
            lanes=int(rng.choice([2, 4])),
        )
        for i in range(2)
    )
    core_s = {cpu.name: float(rng.uniform(0.8, 4)) / GB for cpu in cpus}
    inside = {kind.name: 1 / (rng.uniform(0.3, 4) * GB) for kind in kinds if rng.random() < 0.4}
    required = float(rng.uniform(2, 25)) * GB
    overlap = Overlap.SERIAL if rng.random() < 0.3 else Overlap.PIPELINED
    limits = Limits(hosts_max=3)
    if rng.random() < 0.7:
        return Request(cpus, kinds, (Demand("w", required, core_s, inside),), limits, overlap)
    prices, links = rng.integers(50, 400, 4).astype(float), np.sort(rng.uniform(0.5, 6, 2)) * GB
    network = (
        NetworkPart("slow", prices[0], float(links[0])),
        NetworkPart("fast", prices[0] + prices[1], float(links[1])),
        NetworkPart("narrow", prices[2], float(rng.uniform(links[0] / GB, 6)) * GB, SWITCH_PORTS),
        NetworkPart("wide", prices[2] + prices[3], 6 * GB, SWITCH_PORTS),
    )
    demand = Demand("w", required, core_s, {}, returns=float(rng.choice([0.2, 1.0])))
    clients = Clients(float(rng.choice([0.0, 0.5])) / GB)
    return Request(cpus, kinds, (demand,), limits, overlap, network, clients)


def rate_Bps(asked: Request, cpu: Cpu, counts: tuple[int, ...], link_Bps: float) -> float:
    """Return what a host with such a card and so many drives of each kind does in a second."""
    (demand,) = asked.demands
    left = ports = inside = 0.0
    for count, kind in zip(counts, asked.drives, strict=True):
        port = min(kind.read_Bps, cpu.bay_Bps * kind.lanes / 4)
        does = 1 / demand.drive_s_per_byte[kind.name] if kind.name in demand.drive_s_per_byte else 0
        media = max(kind.read_Bps, does)
        inside += count * does
        ports += count * port
        left += count * min(port, media - does)
    taken = min(cpu.ingest_Bps, cpu.memory_Bps / 2)
    giving = demand.returns * asked.clients.core_s_per_byte if asked.clients else 0.0
    cores = cpu.cores / (demand.core_s_per_byte[cpu.name] + giving)
    if demand.returns:
        left = min(left, link_Bps / demand.returns)
    if asked.overlap is Overlap.PIPELINED:
        return inside + min(left, taken, cores)
    fed = min(ports, taken)
    return inside + (min(left, 1 / (1 / fed + 1 / cores)) if fed else 0.0)


def cheapest_usd(asked: Request) -> float | None:
    """Return the price of the cheapest purchase; None if none does what is required."""
    cards = [(part.price_usd, part.link_Bps) for part in asked.network if not part.ports]
    hosts = {
        (
            card_usd
            + cpu.price_usd
            + sum(n * k.price_usd for n, k in zip(counts, asked.drives, strict=True)),
            rate_Bps(asked, cpu, counts, link_Bps),
            link_Bps,
        )
        for card_usd, link_Bps in cards or [(0.0, 0.0)]
        for cpu in asked.cpus
        for counts in product(range(cpu.slots + 1), repeat=len(asked.drives))
        if sum(counts) <= cpu.slots
    }
    # A host that costs no less, does no more and needs no slower port is never needed.
    useful = [
        one
        for one in hosts
        if not any(o != one and o[0] <= one[0] and o[1] >= one[1] and o[2] <= one[2] for o in hosts)
    ]
    required = asked.demands[0].required_Bps * (1 - 1e-9)
    prices = [
        sum(usd for usd, _, _ in chosen) + switches_usd(asked, [link for _, _, link in chosen])
        for number in range(1, asked.limits.hosts_max + 1)
        for chosen in combinations_with_replacement(useful, number)
        if sum(rate for _, rate, _ in chosen) >= required
    ]
    return min(prices, default=None)


def switches_usd(asked: Request, links: Sequence[float]) -> float:
    """Return the price of the cheapest switches, each card in a port that is no slower."""
    switches = [part for part in asked.network if part.ports]
    best = np.inf if switches else 0.0
    for number in range(1, len(links) + 1):
        for chosen in combinations_with_replacement(switches, number):
            ports = sorted((one.link_Bps for one in chosen for _ in range(one.ports)), reverse=True)
            # The fastest card into the fastest port, and so on: no other way does more.
            fits = len(ports) >= len(links) and all(
                port >= link for port, link in zip(ports, sorted(links, reverse=True), strict=False)
            )
            if fits:
                best = min(best, sum(one.price_usd for one in chosen))
    return best


def compare(asked: Request) -> str:
    """Return how a purchase compares with the reference, in a word or two."""
    plan, best = optimize(asked, explain=False), cheapest_usd(asked)
    if plan is None or best is None:
        return (
            "nothing, rightly" if plan is None and best is None else "wrong: nothing or something"
        )
    if plan.cost_usd < best * (1 - CLOSE):
        return "wrong: it cannot work"
    if not plan.bound_usd * (1 - 1e-5) <= best:
        return "wrong: its bound"
    exact = plan.cost_usd <= best * (1 + CLOSE)
    if plan.verdict is Verdict.OPTIMAL:
        return "the cheapest, proven" if exact else "wrong: proven, and dearer"
    return "the cheapest, not proven" if exact else "dearer, and said not to be proven"


def run(count: int, seed: int = 1) -> Counter[str]:
    """Compare so many random purchases."""
    rng = np.random.default_rng(seed)
    return Counter(compare(random_request(rng)) for _ in range(count))


def main() -> None:
    """Print how many purchases came out in which way; fail if one is wrong."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    begun = time.process_time()
    found = run(count)
    for way, number in sorted(found.items()):
        print(f"{number:6} {way}")
    print(f"{count} purchases, {time.process_time() - begun:.0f} s of CPU")
    sys.exit(any(way.startswith("wrong") for way in found))


if __name__ == "__main__":
    main()
