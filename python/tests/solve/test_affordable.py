"""Leaving out what no cheaper purchase can have changes no price; next to a search of all parts."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from csdplan.model.overlap import Overlap
from csdplan.solve import affordable
from csdplan.solve.clients import Clients
from csdplan.solve.highs import Answer, Status
from csdplan.solve.optimize import least_cost
from csdplan.solve.place import solve
from csdplan.solve.program import Program
from csdplan.solve.purchase import Cpu, Demand, DriveKind, Limits, NetworkPart, Request

GB, TB = 1e9, 1e12
CASES = 40


def random_request(rng: np.random.Generator) -> Request:
    """Draw a request with many parts of much the same worth."""
    worth = rng.uniform(0.9, 1.1, 12)
    cpus = tuple(
        Cpu(f"c{i}", cores, 300.0 * cores * worth[i], float(rng.choice([2e10, 6e10])), 8, 100, 5.0)
        for i, cores in enumerate((8, 16, 24, 32))
    )
    kinds = tuple(
        DriveKind(
            f"k{i}", 60.0 * size * worth[4 + i], size * TB, float(rng.uniform(1, 7)) * GB, 10.0
        )
        for i, size in enumerate((2, 4, 8, 8, 16, 30))
    )
    network = (
        NetworkPart("slow", 300 * worth[10], 6 * GB, 0, 10.0),
        NetworkPart("fast", 700 * worth[11], 12 * GB, 0, 15.0),
        NetworkPart("switch", 2000.0, 12 * GB, 16, 100.0),
    )
    clients = Clients(0.1 / GB) if rng.random() < 0.5 else None
    core_s = {cpu.name: float(rng.uniform(0.4, 1.2)) / GB for cpu in cpus}
    inside = {kind.name: 1 / GB for kind in kinds if rng.random() < 0.2}
    work = Demand("w", float(rng.uniform(5, 60)) * GB, core_s, inside, returns=0.1)
    limits = Limits(
        capacity_bytes=float(rng.uniform(20, 300)) * TB,
        power_W=None if rng.random() < 0.5 else float(rng.uniform(500, 4000)),
        hosts_max=12,
        energy_usd_per_kWh=0.2,
        years=float(rng.choice([0, 5])),
        drives_min=int(rng.choice([0, 10])),
    )
    return Request(cpus, kinds, (work,), limits, Overlap.PIPELINED, network, clients)


def test_the_price_is_that_of_a_search_of_all_parts() -> None:
    rng = np.random.default_rng(20261128)
    proven = 0
    for _ in range(CASES):
        asked = random_request(rng)
        _, all_parts = solve(asked, least_cost, 20.0)
        _, fewer = affordable.cheapest(asked, least_cost, 20.0)
        if all_parts.status is Status.INFEASIBLE:
            assert fewer.status is Status.INFEASIBLE
            continue
        assert fewer.value >= all_parts.bound * (1 - 1e-5)
        assert all_parts.value >= fewer.bound * (1 - 1e-5)
        if all_parts.status is Status.OPTIMAL and fewer.status is Status.OPTIMAL:
            assert fewer.value == pytest.approx(all_parts.value, rel=1e-5)
            proven += 1
    assert proven > CASES / 2


def test_a_part_that_is_too_dear_is_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has more bays than any other, so none can stand for it."""
    asked = random_request(np.random.default_rng(5))
    huge = replace(asked.cpus[0], name="huge", slots=60, price_usd=1e6)
    work = asked.demands[0]
    timed = replace(work, core_s_per_byte={**work.core_s_per_byte, "huge": 1 / GB})
    asked = replace(asked, cpus=(*asked.cpus, huge), demands=(timed,))
    seen: set[str] = set()

    def noting(request: Request, *rest: Any, **more: Any) -> tuple[Program, Answer]:
        seen.update(cpu.name for cpu in request.cpus)
        return solve(request, *rest, **more)

    monkeypatch.setattr(affordable, "solve", noting)
    assert affordable.cheapest(asked, least_cost, 20.0)[1].status is Status.OPTIMAL
    assert seen
    assert "huge" not in seen
