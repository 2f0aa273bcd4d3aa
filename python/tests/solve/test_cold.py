"""Hard drives for cold data: next to an enumeration of every purchase of both tiers, by hand."""

from dataclasses import replace
from itertools import product
from math import ceil

import numpy as np
import pytest

from csdplan.model.overlap import Overlap
from csdplan.solve.optimize import optimize, shortfalls
from csdplan.solve.purchase import Cpu, Demand, DriveKind, Limits, Request

GB, TB = 1e9, 1e12
CASES = 40


def random_request(rng: np.random.Generator) -> Request:
    """Draw a request of one workload on flash, and of reads of cold data."""
    cpus = (
        Cpu("cpu", 8, float(rng.integers(10, 60) * 50), 20 * GB, 4),
        Cpu("server", 4, float(rng.integers(5, 30) * 50), 2 * GB, 6, disks=True),
    )
    kinds = (
        DriveKind("flash", float(rng.integers(300, 900)), 8 * TB, float(rng.uniform(2, 6)) * GB),
        DriveKind("small", float(rng.integers(40, 90)), 6 * TB, 0.2 * GB, disk=True),
        DriveKind("large", float(rng.integers(60, 120)), 10 * TB, 0.25 * GB, disk=True),
    )
    demands = (
        Demand("w", float(rng.uniform(2, 20)) * GB, {"cpu": 0.5 / GB}, {}),
        Demand("cold", float(rng.uniform(0.1, 3)) * GB, {"server": 1e-15}, {}),
    )
    limits = Limits(
        capacity_bytes=float(rng.integers(5, 60)) * TB,
        cold_bytes=float(rng.integers(20, 200)) * TB,
        drives_min=int(rng.choice([0, 5])),
        hosts_max=20,
    )
    overlap = Overlap.SERIAL if rng.random() < 0.3 else Overlap.PIPELINED
    return Request(cpus, kinds, demands, limits, overlap)


def cheapest_disks(asked: Request) -> float:
    """Return the price of the cheapest servers and hard drives, each tried; evenly dealt out."""
    server, limits, cold = asked.cpus[1], asked.limits, asked.demands[1]
    small, large = asked.drives[1:]
    prices = []
    for a, b in product(range(60), repeat=2):
        enough = a * small.capacity_bytes + b * large.capacity_bytes >= limits.cold_bytes
        if not enough or a + b < limits.drives_min:
            continue
        fed = a * small.read_Bps + b * large.read_Bps
        least = max(ceil((a + b) / server.slots), 1)
        for hosts in range(least, 21):
            if min(fed, hosts * server.ingest_Bps) < cold.required_Bps * (1 - 1e-9):
                continue
            prices.append(a * small.price_usd + b * large.price_usd + hosts * server.price_usd)
            break
    return min(prices)


def cheapest_flash(asked: Request) -> float:
    """Return the price of the cheapest hosts and SSDs, each tried; evenly dealt out."""
    cpu, limits, work = asked.cpus[0], asked.limits, asked.demands[0]
    flash = asked.drives[0]
    prices = []
    for drives, hosts in product(range(1, 81), range(1, 21)):
        if drives > hosts * cpu.slots or drives < limits.drives_min:
            continue
        if drives * flash.capacity_bytes < limits.capacity_bytes:
            continue
        rate = 0.0
        for held in (drives // hosts + (one < drives % hosts) for one in range(hosts)):
            fed = min(held * flash.read_Bps, cpu.ingest_Bps)
            cores = cpu.cores / work.core_s_per_byte["cpu"]
            rate += min(fed, cores)
        if rate >= work.required_Bps * (1 - 1e-9):
            prices.append(drives * flash.price_usd + hosts * cpu.price_usd)
    return min(prices)


def test_both_tiers_are_those_of_an_enumeration() -> None:
    rng = np.random.default_rng(43)
    for _ in range(CASES):
        asked = replace(random_request(rng), overlap=Overlap.PIPELINED)
        plan = optimize(asked, explain=False)
        assert plan is not None
        assert plan.price_usd == pytest.approx(cheapest_flash(asked) + cheapest_disks(asked))


def test_hard_drives_sit_in_their_servers_and_do_nothing_else() -> None:
    rng = np.random.default_rng(7)
    for _ in range(CASES):
        asked = random_request(rng)
        plan = optimize(asked, explain=False)
        assert plan is not None
        capacity = {kind.name: kind.capacity_bytes for kind in asked.drives}
        rates = {kind.name: kind.read_Bps for kind in asked.drives}
        cold = 0.0
        for one in plan.placed:
            names = {held.name for held in one.drives}
            assert names <= ({"small", "large"} if one.name == "server" else {"flash"})
            assert {share.workload for share in one.shares} <= (
                {"cold"} if one.name == "server" else {"w"}
            )
            read = sum(held.count * held.read_Bps for held in one.drives)
            done = sum(share.rate_Bps for share in one.shares)
            assert done <= read * (1 + 1e-5) + 1
            assert all(held.read_Bps <= rates[held.name] * (1 + 1e-5) for held in one.drives)
            if one.name == "server":
                cold += one.hosts * sum(h.count * capacity[h.name] for h in one.drives)
        assert cold >= asked.limits.cold_bytes
        assert plan.capacity_bytes - cold >= asked.limits.capacity_bytes


def test_cold_data_that_no_budget_pays_for_is_named() -> None:
    asked = random_request(np.random.default_rng(1))
    limits = Limits(capacity_bytes=TB, cold_bytes=100 * TB, budget_usd=3000.0, hosts_max=20)
    poor = Request(asked.cpus, asked.drives, asked.demands[:1], limits, Overlap.PIPELINED)
    assert optimize(poor) is None
    lacking = {one.name: one for one in shortfalls(poor)}
    assert lacking["cold capacity"].required == 100 * TB
    assert lacking["cold capacity"].possible_alone is None or lacking["budget"].possible_alone
