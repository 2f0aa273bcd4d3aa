"""Every host of a purchase can do what it is said to: none computes what it has no path to.

Both checks are written down here, from the placement in the answer and the numbers of the request;
they share no code with the optimizer. With ``CSDPLAN_PURCHASES=2000`` in the environment they try
two thousand purchases; without it some dozens.
"""

import os
from dataclasses import replace
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from csdplan.model.overlap import Overlap
from csdplan.solve.clients import Clients
from csdplan.solve.optimize import Verdict, optimize
from csdplan.solve.plans import Placed, Plan
from csdplan.solve.purchase import Cpu, Demand, DriveKind, Limits, NetworkPart, Request

GB, TB = 1e9, 1e12
PURCHASES = int(os.environ.get("CSDPLAN_PURCHASES", "40"))
#: HiGHS accepts rows that are broken by no more than this, relatively.
MORE = 1 + 1e-5
#: And what is next to nothing by no more than this [bytes/s].
NEXT = 1e3


def random_request(rng: np.random.Generator) -> Request:
    """Draw a request of several hosts, with results, writes, boxes and cards in some."""
    cpus = tuple(
        Cpu(f"c{i}", int(rng.integers(4, 33)), float(rng.integers(10, 60) * 50), intake, 4)
        for i, intake in enumerate(rng.choice([8e9, 16e9, 32e9], rng.integers(1, 3)))
    )
    cpus = tuple(
        replace(
            cpu,
            bay_Bps=float(rng.choice([3.9e9, 1e10])),
            memory_Bps=float(rng.choice([np.inf, 9e9, 25e9])),
        )
        for cpu in cpus
    )
    kinds = []
    for i in range(int(rng.integers(1, 4))):
        read = float(rng.uniform(0.5, 7)) * GB
        price = float(rng.integers(80, 900))
        write = float(rng.uniform(0.5, 3)) * GB if rng.random() < 0.5 else None
        lanes = int(rng.choice([2, 4]))
        kinds.append(DriveKind(f"k{i}", price, 4 * TB, read, write_Bps=write, lanes=lanes))
    network: tuple[NetworkPart, ...] = ()
    clients = Clients(float(rng.choice([0.0, 0.3])) / GB) if rng.random() < 0.4 else None
    boxed = rng.random() < 0.5
    if boxed:
        kinds.append(DriveKind("box", float(rng.integers(80, 900)), 4 * TB, 4 * GB, slots=0))
    if boxed or clients is not None:
        network = (
            NetworkPart("card", float(rng.integers(50, 300)), float(rng.uniform(2, 9)) * GB),
            NetworkPart("fast", float(rng.integers(50, 500)), 20 * GB),
            NetworkPart("switch", float(rng.integers(50, 300)), 25 * GB, 8),
            NetworkPart("narrow", float(rng.integers(20, 200)), float(rng.uniform(3, 9)) * GB, 4),
        )
    demands = tuple(
        Demand(
            f"w{i}",
            float(rng.uniform(2, 20)) * GB,
            {cpu.name: float(np.exp(rng.uniform(0, 1.5))) / GB for cpu in cpus},
            {k.name: float(np.exp(rng.uniform(-1, 2))) / GB for k in kinds if rng.random() < 0.4},
            returns=float(rng.choice([0.0, 0.5])),
        )
        for i in range(int(rng.integers(1, 3)))
    )
    writable = any(kind.write_Bps for kind in kinds)
    write_Bps = float(rng.uniform(0.5, 4)) * GB if writable and rng.random() < 0.4 else 0.0
    overlap = Overlap.SERIAL if rng.random() < 0.3 else Overlap.PIPELINED
    limits = Limits(hosts_max=6, write_Bps=write_Bps)
    return Request(cpus, tuple(kinds), demands, limits, overlap, network, clients)


def port_Bps(asked: Request, name: str, cpu: Cpu) -> float:
    """Return what a drive's port carries: as much as it reads, and as its lanes do in this bay."""
    (kind,) = [kind for kind in asked.drives if kind.name == name]
    return min(kind.read_Bps, cpu.bay_Bps * kind.lanes / 4)


def check_host(asked: Request, one: Placed) -> float:
    """Hold one host to what it holds itself; return what crosses its cards [bytes/s]."""
    (cpu,) = [cpu for cpu in asked.cpus if cpu.name == one.name]
    kinds = {kind.name: kind for kind in asked.drives}
    demands = {demand.name: demand for demand in asked.demands}
    assert sum(held.count for held in one.drives) <= cpu.slots
    assert sum(one.cards.values()) <= 1
    on_cores = [share for share in one.shares if not share.in_drive]
    computed = sum(share.rate_Bps for share in on_cores)
    read = sum(held.count * held.read_Bps for held in one.drives)
    assert computed <= (read + one.network_Bps) * MORE + NEXT, "no host computes what it never gets"
    links = {part.name: part.link_Bps for part in asked.network}
    carried = sum(links[name] * n for name, n in one.cards.items())
    assert one.network_Bps + one.given_Bps + one.taken_Bps <= carried * MORE
    crossing = 0.0
    for held in one.drives:
        port = held.read_Bps + held.returned_Bps + held.written_Bps
        assert port <= port_Bps(asked, held.name, cpu) * MORE + NEXT
        crossing += held.count * port
        inside = [s for s in one.shares if s.in_drive and s.where == held.name]
        seconds = sum(s.rate_Bps * demands[s.workload].drive_s_per_byte[held.name] for s in inside)
        assert seconds <= held.count * MORE + 1e-5
        back = sum(s.rate_Bps * demands[s.workload].returns for s in inside)
        assert back <= held.count * held.returned_Bps * MORE + NEXT
        rates = [
            1 / d.drive_s_per_byte[held.name]
            for d in asked.demands
            if held.name in d.drive_s_per_byte
        ]
        media = max([kinds[held.name].read_Bps, *rates])
        busy = (held.read_Bps + held.inside_Bps) / media
        write_Bps = kinds[held.name].write_Bps
        busy += held.written_Bps / write_Bps if write_Bps else 0.0
        assert busy <= MORE
    assert crossing + one.network_Bps <= cpu.ingest_Bps * MORE + NEXT
    twice = 2 * (crossing + one.network_Bps)
    assert twice <= cpu.memory_Bps * MORE + NEXT, "in, and read again"
    core_s = sum(s.rate_Bps * demands[s.workload].core_s_per_byte[cpu.name] for s in on_cores)
    if asked.clients is not None:
        assert sum(one.cards.values()) == 1, "clients reach every host"
        taken = sum(held.count * held.written_Bps for held in one.drives)
        given = sum(s.rate_Bps * demands[s.workload].returns for s in one.shares)
        assert one.taken_Bps >= taken / MORE - NEXT
        assert one.given_Bps >= given / MORE - NEXT
        core_s += (one.taken_Bps + one.given_Bps) * asked.clients.core_s_per_byte
    if asked.overlap is Overlap.SERIAL:
        local = sum(n.count * port_Bps(asked, n.name, cpu) for n in one.drives)
        if any(not kind.slots for kind in asked.drives):
            local += sum(links[name] * n for name, n in one.cards.items())
        fastest = min(local, cpu.ingest_Bps, cpu.memory_Bps / 2)
        assert computed / max(fastest, 1.0) + core_s / cpu.cores <= MORE
    assert core_s <= cpu.cores * MORE
    return one.network_Bps


def check(asked: Request, plan: Plan) -> None:
    hosts = [one for one in plan.placed if one.hosts]
    boxes = [held for one in plan.placed if not one.hosts for held in one.drives]
    over = sum(one.hosts * check_host(asked, one) for one in hosts)
    sent = sum(b.count * (b.read_Bps + b.returned_Bps + b.written_Bps) for b in boxes)
    assert over == pytest.approx(sent, rel=1e-5, abs=NEXT), "what boxes send arrives at some host"
    for held in boxes:
        assert held.read_Bps + held.returned_Bps + held.written_Bps <= 4 * GB * MORE
    for demand in asked.demands:
        rates = [
            share.rate_Bps * max(1, one.hosts)
            for one in plan.placed
            for share in one.shares
            if share.workload == demand.name
        ]
        assert sum(rates) >= demand.required_Bps / MORE
    links = {part.name: part.link_Bps for part in asked.network}
    ports = sorted(
        part.link_Bps
        for part in asked.network
        for _ in range(part.ports * plan.network.get(part.name, 0))
    )
    needs = sorted(
        [4 * GB] * sum(held.count for held in boxes)
        + [links[c] for one in hosts for c, n in one.cards.items() for _ in range(n * one.hosts)]
    )
    assert len(needs) <= len(ports), "each has a port of a switch"
    each = zip(reversed(needs), reversed(ports), strict=False)
    assert all(need <= port for need, port in each), "that is no slower"
    if asked.clients is not None:
        results = {demand.name: demand.returns for demand in asked.demands}
        every = sum(
            share.rate_Bps * max(1, one.hosts) * results[share.workload]
            for one in plan.placed
            for share in one.shares
        )
        given = sum(one.hosts * one.given_Bps for one in hosts)
        assert given == pytest.approx(every, rel=1e-5, abs=NEXT), "every result is given out"
    stored = sum(held.count * held.written_Bps * one.hosts for one in hosts for held in one.drives)
    stored += sum(held.count * held.written_Bps for held in boxes)
    assert stored >= asked.limits.write_Bps / MORE
    counts: dict[str, int] = {}
    for one in plan.placed:
        for held in one.drives:
            counts[held.name] = counts.get(held.name, 0) + held.count * max(1, one.hosts)
    assert counts == plan.drives
    assert sum(one.hosts for one in hosts) == sum(plan.hosts.values())


def test_every_host_of_a_purchase_can_do_what_it_is_said_to() -> None:
    rng = np.random.default_rng(20261128)
    bought = several = served = 0
    while bought < PURCHASES:
        asked = random_request(rng)
        plan = optimize(asked, explain=False)
        if plan is None:
            continue
        check(asked, plan)
        bought += 1
        several += sum(plan.hosts.values()) > 1
        served += any(one.given_Bps or one.taken_Bps for one in plan.placed)
    assert several > PURCHASES / 8, "the requests need several hosts"
    assert served > PURCHASES / 10, "clients write, or get results"


def cheapest(asked: Request) -> float | None:
    """Try every set of hosts, each with drives of its own; overlapped, one workload, SSDs."""
    (demand,) = asked.demands
    hosts: list[tuple[float, float]] = []
    for cpu in asked.cpus:
        for counts in product(range(cpu.slots + 1), repeat=len(asked.drives)):
            if sum(counts) > cpu.slots:
                continue
            kinds = list(zip(counts, asked.drives, strict=True))
            read = sum(n * min(kind.read_Bps, cpu.bay_Bps) for n, kind in kinds)
            taken = min(read, cpu.ingest_Bps, cpu.memory_Bps / 2)
            rate = min(taken, cpu.cores / demand.core_s_per_byte[cpu.name])
            hosts.append((cpu.price_usd + sum(n * kind.price_usd for n, kind in kinds), rate))
    # A host that costs no less and does no more than another is never needed.
    useful = [
        one
        for one in sorted(set(hosts))
        if not any(o != one and o[0] <= one[0] and o[1] >= one[1] for o in hosts)
    ]
    best = None
    for number in range(1, asked.limits.hosts_max + 1):
        for chosen in combinations_with_replacement(useful, number):
            if sum(rate for _, rate in chosen) >= demand.required_Bps * (1 - 1e-9):
                price = sum(usd for usd, _ in chosen)
                best = price if best is None else min(best, price)
    return best


def test_no_purchase_whose_hosts_work_is_cheaper() -> None:
    rng = np.random.default_rng(11)
    uneven = 0
    for _ in range(PURCHASES):
        cpus = tuple(
            Cpu(f"c{i}", 8, float(rng.integers(5, 40) * 50), float(rng.choice([8e9, 16e9])), 3)
            for i in range(2)
        )
        cpus = tuple(replace(cpu, memory_Bps=float(rng.choice([np.inf, 1e10]))) for cpu in cpus)
        kinds = tuple(
            DriveKind(f"k{i}", float(rng.integers(80, 900)), TB, float(rng.uniform(1, 6)) * GB)
            for i in range(2)
        )
        core_s = {cpu.name: float(rng.uniform(0.8, 4)) / GB for cpu in cpus}
        demand = Demand("w", float(rng.uniform(2, 25)) * GB, core_s, {})
        limits = Limits(hosts_max=3)
        asked = Request(cpus, kinds, (demand,), limits, Overlap.PIPELINED)
        plan, best = optimize(asked, explain=False), cheapest(asked)
        if best is None:
            assert plan is None
            continue
        assert plan is not None
        if plan.verdict is Verdict.OPTIMAL:
            assert plan.cost_usd == pytest.approx(best)
        assert plan.bound_usd * (1 - 1e-5) <= best <= plan.cost_usd * (1 + 1e-9)
        uneven += len(plan.placed) > 1
    assert uneven > PURCHASES / 20, "some hosts differ"


def test_hosts_without_a_path_are_not_sold() -> None:
    """Two hosts of 10 GB/s, drives of 6.5 and 13.7: the sum is 20.2, what they do is 16.5."""
    cpu = Cpu("cpu", 10, 1000.0, 60 * GB, 24)
    kinds = (DriveKind("slow", 100.0, TB, 6.5 * GB), DriveKind("fast", 120.0, TB, 13.7 * GB))
    demand = Demand("w", 20 * GB, {"cpu": 1 / GB}, {})
    asked = Request((cpu,), kinds, (demand,), Limits(hosts_max=8), Overlap.PIPELINED)
    plan = optimize(asked)
    assert plan is not None
    check(asked, plan)
    assert plan.verdict is Verdict.OPTIMAL
    assert plan.drives == {"fast": 2}
