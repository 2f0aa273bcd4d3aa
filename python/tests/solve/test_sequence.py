"""One purchase for several requests, and purchases year by year, against all that there are."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from math import ceil, inf

import pytest

from csdplan.model.overlap import Overlap
from csdplan.request.stock import HAVE, with_stock
from csdplan.solve.optimize import optimize
from csdplan.solve.periods import shared
from csdplan.solve.plans import Verdict
from csdplan.solve.purchase import Cpu, Demand, DriveKind, Limits, Request
from csdplan.solve.sequence import at_prices, steps

FIND = partial(optimize, explain=False)


def have(request: Request, there: Mapping[str, int]) -> Request:
    return with_stock(request, there, 0.0)


def request_of(dice: random.Random) -> Request:
    cpus = tuple(
        Cpu(name, dice.randint(2, 16), float(dice.randint(500, 3000)), 1e12, dice.randint(1, 4))
        for name in "ab"
    )
    drives = tuple(
        DriveKind(name, float(dice.randint(100, 900)), dice.randint(2, 9) * 1e12, 1e11)
        for name in "xy"
    )
    demand = Demand("w", 1e9, {"a": 1e-9, "b": 1e-9}, {})
    limits = Limits(capacity_bytes=1e12, hosts_max=5)
    return Request(cpus, drives, (demand,), limits, Overlap.PIPELINED)


def asked(request: Request, capacity: float, rate: float) -> Request:
    return replace(
        request,
        demands=(replace(request.demands[0], required_Bps=rate),),
        limits=replace(request.limits, capacity_bytes=capacity),
    )


def serves(request: Request, hosts: Sequence[int], drives: Sequence[int]) -> bool:
    """Drives are so fast that one in a host feeds all of its cores."""
    slots = sum(n * cpu.slots for n, cpu in zip(hosts, request.cpus, strict=True))
    room = sum(n * kind.capacity_bytes for n, kind in zip(drives, request.drives, strict=True))
    by_cores = sorted(
        (cpu.cores for n, cpu in zip(hosts, request.cpus, strict=True) for _ in range(n)),
        reverse=True,
    )
    rate = 1e9 * sum(by_cores[: sum(drives)])
    enough = room >= request.limits.capacity_bytes and rate >= request.demands[0].required_Bps
    return sum(drives) <= slots and enough


def cheapest_of(requests: list[Request]) -> float:
    first, best = requests[0], inf
    prices = [cpu.price_usd for cpu in first.cpus] + [kind.price_usd for kind in first.drives]
    for hosts in product(range(6), repeat=2):
        if not 1 <= sum(hosts) <= 5:
            continue
        slots = sum(n * cpu.slots for n, cpu in zip(hosts, first.cpus, strict=True))
        for drives in product(range(slots + 1), repeat=2):
            if all(serves(one, hosts, drives) for one in requests):
                numbers = (*hosts, *drives)
                best = min(best, sum(n * usd for n, usd in zip(numbers, prices, strict=True)))
    return best


@pytest.mark.parametrize("seed", range(20))
def test_a_purchase_serves_every_request(seed: int) -> None:
    dice = random.Random(seed)
    base = request_of(dice)
    requests = [
        asked(base, dice.randint(1, 20) * 1e12, dice.randint(1, 30) * 1e9) for _ in range(3)
    ]
    found = shared(requests)
    best = cheapest_of(requests)
    if found is None:
        assert best == inf
        return
    bought = found.plan.bought
    numbers = [bought.get(name, 0) for name in "abxy"]
    assert all(serves(one, numbers[:2], numbers[2:]) for one in requests)
    assert found.plan.bound_usd - 0.5 <= best <= found.plan.price_usd + 0.5
    if found.plan.verdict is Verdict.OPTIMAL:
        assert found.plan.price_usd == pytest.approx(best, abs=0.5)
    assert max(plan.price_usd for plan in found.alone) <= best + 0.5


def test_growth_in_steps_by_hand() -> None:
    # 10 TB that grow by 50 % a year for three years, drives of 4 TB at $100, hosts of 100 bays.
    request = Request(
        (Cpu("a", 8, 1000.0, 1e12, 100),),
        (DriveKind("x", 100.0, 4e12, 1e11),),
        (Demand("w", 1e6, {"a": 1e-12}, {}),),
        Limits(capacity_bytes=1.0, hosts_max=5),
    )

    def request_at(year: float, until: float) -> Request:
        return at_prices(asked(request, 10e12 * 1.5**until, 1e6), 0.8**year, 1.0)

    found = steps(request_at, 3.0, 1.0, 0.1, FIND, have, HAVE)
    assert found is not None
    ends = [ceil(10 * 1.5**year / 4) for year in (1, 2, 3)]
    counts = [ends[0], ends[1] - ends[0], ends[2] - ends[1]]
    assert [step.bought.get("x", 0) for step in found] == counts
    prices = [1000 + 100 * counts[0], 80 * counts[1], 64 * counts[2]]
    assert [step.price_usd for step in found] == pytest.approx(prices)
    values = [price / 1.1**year for year, price in enumerate(prices)]
    assert [step.value_usd for step in found] == pytest.approx(values)
    once = steps(request_at, 3.0, 3.0, 0.1, FIND, have, HAVE)
    assert once is not None
    assert [step.price_usd for step in once] == pytest.approx([1000 + 100 * ends[2]])
