"""Purchases with parts that are there already, against every purchase there is."""

import random
from dataclasses import replace
from itertools import product
from math import ceil, inf

import pytest

from csdplan.errors import ModelError
from csdplan.request.stock import HAVE, owned, sales_usd, with_stock
from csdplan.solve.optimize import optimize
from csdplan.solve.purchase import Cpu, Demand, DriveKind, Limits, Request


def request_of(dice: random.Random) -> Request:
    cpus = (
        Cpu("a", 8, float(dice.randint(500, 3000)), 50e9, dice.randint(1, 3)),
        Cpu("b", 8, float(dice.randint(500, 3000)), 50e9, dice.randint(1, 4)),
    )
    drives = (
        DriveKind("x", float(dice.randint(100, 900)), dice.randint(2, 5) * 1e12, 5e9),
        DriveKind("y", float(dice.randint(100, 900)), dice.randint(4, 9) * 1e12, 5e9),
    )
    demand = Demand("storage", 1e6, {"a": 1e-12, "b": 1e-12}, {})
    limits = Limits(capacity_bytes=dice.randint(8, 25) * 1e12, hosts_max=6)
    return Request(cpus, drives, (demand,), limits)


def cheapest(request: Request, have: dict[str, int], resale: float) -> float:
    """Return the least that is spent beyond sales, by trying every number of everything."""
    (a, b), (x, y) = request.cpus, request.drives
    need, best = request.limits.capacity_bytes, inf
    prices = {"a": a.price_usd, "b": b.price_usd, "x": x.price_usd, "y": y.price_usd}
    most = ceil(need / min(x.capacity_bytes, y.capacity_bytes)) + 1

    def cost(price: float, there: int, used: int) -> float:
        bought = max(0, used - there)
        sold = max(0, there - used)
        return price * bought - resale * price * sold

    for hosts in product(range(7), repeat=2):
        if not 1 <= sum(hosts) <= 6:
            continue
        slots = hosts[0] * a.slots + hosts[1] * b.slots
        for drives in product(range(min(most, slots) + 1), repeat=2):
            room = drives[0] * x.capacity_bytes + drives[1] * y.capacity_bytes
            if sum(drives) > slots or room < need:
                continue
            used = zip(prices.items(), (*hosts, *drives), strict=True)
            total = sum(cost(price, have.get(name, 0), n) for (name, price), n in used)
            best = min(best, total)
    return best


@pytest.mark.parametrize("seed", range(25))
def test_the_cheapest_use_of_what_is_there(seed: int) -> None:
    dice = random.Random(seed)
    request = request_of(dice)
    names = dice.sample(["a", "b", "x", "y"], dice.randint(1, 4))
    have = {name: dice.randint(1, 4) for name in names}
    resale = dice.choice([0.0, 0.2, 0.6])
    plan = optimize(with_stock(request, have, resale), explain=False)
    assert plan is not None
    for name, count in have.items():
        assert plan.bought.get(name + HAVE, 0) <= count
    spent = plan.price_usd - sales_usd(request, have, resale)
    assert spent == pytest.approx(cheapest(request, have, resale), abs=0.5)


def test_a_budget_is_of_what_is_spent_beyond_sales() -> None:
    request = request_of(random.Random(1))
    have = {"a": 2, "x": 3}
    least = cheapest(request, have, 0.5)
    for budget, possible in ((max(1.0, least + 1), True), (max(0.5, least - 1), False)):
        limits = replace(request.limits, budget_usd=budget)
        asked = with_stock(replace(request, limits=limits), have, 0.5)
        assert (optimize(asked, explain=False) is not None) == possible


def test_owned() -> None:
    assert owned(["epyc-7763=12", "a-b=1"]) == {"epyc-7763": 12, "a-b": 1}
    for wrong in (["x"], ["=3"], ["x=0"], ["x=-1"], ["x=1.5"], ["x=1000000"], ["x=1", "x=2"]):
        with pytest.raises(ModelError):
            owned(wrong)
