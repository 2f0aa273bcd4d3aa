"""Lists of parts over draws of what is not certain: what is dominated, who wins, regret, entry."""

from dataclasses import replace

import numpy as np
import pytest

from csdplan import ModelError
from csdplan.model.overlap import Overlap
from csdplan.result.weighed import enters
from csdplan.solve import dominated, place
from csdplan.solve.draws import Doubt, Draws
from csdplan.solve.optimize import optimize
from csdplan.solve.plans import Plan
from csdplan.solve.purchase import Cpu, Demand, DriveKind, Limits, NetworkPart, Request
from csdplan.solve.regret import rivals, weigh
from csdplan.solve.spare import COMPUTING, MOVING, utilization

GB, TB = 1e9, 1e12
CPU = Cpu("cpu", 16, 4000.0, 60 * GB, 8, idle_W=100.0, core_W=5.0)
OTHER = replace(CPU, name="other")
SSD = DriveKind("ssd", 1000.0, 8 * TB, 5 * GB, active_W=20.0)
WORK = Demand("w", 10 * GB, {"cpu": 1 / GB, "other": 1 / GB}, {})


def request(**change: object) -> Request:
    asked = Request((CPU,), (SSD,), (WORK,), Limits(hosts_max=8), Overlap.PIPELINED)
    return replace(asked, **change)  # type: ignore[arg-type]


def bought(asked: Request) -> Plan:
    plan = optimize(asked)
    assert plan is not None
    return plan


def alone(asked: Request, *, cpu: str = "cpu", drive: str = "ssd") -> Plan:
    cpus = tuple(one for one in asked.cpus if one.name == cpu)
    return bought(
        replace(asked, cpus=cpus, drives=tuple(d for d in asked.drives if d.name == drive))
    )


def test_leaving_out_dominated_parts_changes_no_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    fewer = 0
    for _ in range(20):
        cpus = tuple(
            Cpu(
                f"c{i}", int(rng.choice([8, 16])), float(rng.integers(1, 5) * 500), 20 * GB,
                int(rng.choice([4, 6])), idle_W=100.0, core_W=float(rng.integers(1, 4)),
            )
            for i in range(3)
        )  # fmt: skip
        kinds = tuple(
            DriveKind(
                f"k{i}", float(rng.integers(1, 5) * 100), float(rng.choice([2, 4])) * TB,
                float(rng.choice([2, 4])) * GB, active_W=float(rng.integers(5, 15)),
                write_Bps=float(rng.choice([1, 2])) * GB,
            )
            for i in range(4)
        )  # fmt: skip
        cores = {cpu.name: float(rng.choice([1.0, 2.0])) / GB for cpu in cpus}
        inside = {kind.name: 2 / GB for kind in kinds if rng.random() < 0.4}
        limits = Limits(
            12 * TB, hosts_max=4, write_Bps=float(rng.choice([0, 2])) * GB, power_W=2000.0
        )
        asked = Request(cpus, kinds, (Demand("w", 12 * GB, cores, inside),), limits)
        small = dominated.without_dominated(asked)
        fewer += len(small.cpus) + len(small.drives) < 7
        found = optimize(asked, explain=False)
        with monkeypatch.context() as patch:
            patch.setattr(place, "without_dominated", lambda asked: asked)
            full = optimize(asked, explain=False)
        assert (found is None) == (full is None)
        if found is not None and full is not None:
            assert found.cost_usd == pytest.approx(full.cost_usd)
    assert fewer > 12


def test_parts_that_differ_in_what_is_asked_for_are_all_kept() -> None:
    card, switch = NetworkPart("card", 10.0, GB), NetworkPart("switch", 10.0, GB, 8)
    writer = replace(SSD, name="writer", price_usd=1100.0, write_Bps=GB)
    asked = request(drives=(SSD, writer), network=(card, switch))
    assert [kind.name for kind in dominated.without_dominated(asked).drives] == ["ssd"]
    assert len(dominated.without_dominated(asked).network) == 2
    limits = replace(asked.limits, write_Bps=GB)
    assert len(dominated.without_dominated(replace(asked, limits=limits)).drives) == 2


def test_draws_are_lognormal_and_what_is_shared_is_the_same() -> None:
    doubt = Doubt(
        prices={"a": 0.1, "b": 0.1}, shared={"a": ("list", 0.3), "b": ("list", 0.3)},
        works={"w": 0.05}, times={("w", "a"): 0.2},
    )  # fmt: skip
    draws = Draws(doubt, 20_000)
    a, b = np.log(draws.price("a")), np.log(draws.price("b"))
    assert np.std(a) == pytest.approx(np.hypot(0.1, 0.3), rel=0.03)
    assert np.median(a) == pytest.approx(0.0, abs=0.01)
    assert np.corrcoef(a, b)[0, 1] == pytest.approx(0.9, abs=0.02)
    assert np.std(np.log(draws.slow("w", "a"))) == pytest.approx(np.hypot(0.05, 0.2), rel=0.03)
    assert np.array_equal(Draws(doubt, 20_000).price("a"), draws.price("a"))
    assert np.all(draws.moved("a") == 1.0)
    with pytest.raises(ModelError, match="draws"):
        Draws(doubt, 0)


def test_two_lists_that_cost_the_same_each_win_half_of_the_draws() -> None:
    asked = request(cpus=(CPU, OTHER))
    plans = [alone(asked, cpu="cpu"), alone(asked, cpu="other")]
    draws = Draws(Doubt(prices={"cpu": 0.2, "other": 0.2}), 4000)
    first, second = weigh(asked, plans, draws)
    assert first.wins == pytest.approx(0.5, abs=0.03)
    assert first.wins + second.wins == 1
    # By hand: what one costs more than the other, where it does.
    a = 4000 * draws.price("cpu") - 4000 * draws.price("other")
    assert first.regret_usd == pytest.approx(float(np.mean(np.maximum(a, 0))))
    dear = replace(asked, limits=replace(asked.limits, budget_usd=first.plan.cost_usd))
    assert weigh(dear, plans, draws)[0].over["budget"] == pytest.approx(0.5, abs=0.03)


def test_a_list_that_is_too_slow_costs_in_proportion() -> None:
    """Ten of sixteen cores are used: 1.6 times slower is enough, and two times is not."""
    asked = request()
    plan = bought(asked)
    assert utilization(asked, plan, COMPUTING) == pytest.approx(10 / 16)
    draws = Draws(Doubt(works={"w": 0.5}), 4000)
    (found,) = weigh(asked, [plan], draws)
    need = np.maximum(1.0, draws.slow("w", "cpu") * 10 / 16)
    assert found.cost_usd == pytest.approx(plan.cost_usd * need)
    assert found.short == pytest.approx(float(np.mean(need > 1)))
    assert utilization(asked, plan, MOVING) == pytest.approx(1.0)
    spare = replace(asked, demands=(replace(WORK, required_Bps=8 * GB),))
    assert utilization(spare, bought(spare), MOVING) == pytest.approx(0.8)


@pytest.mark.parametrize("overlap", Overlap)
def test_a_purchase_uses_no_more_than_all_of_itself(overlap: Overlap) -> None:
    asked = request(overlap=overlap, demands=(replace(WORK, required_Bps=33 * GB),))
    inside = DriveKind("csd", 1500.0, 8 * TB, 4 * GB, active_W=20.0)
    demand = replace(asked.demands[0], drive_s_per_byte={"csd": 0.5 / GB}, returns=0.2)
    asked = replace(asked, drives=(SSD, inside), demands=(demand,))
    for rows in (COMPUTING, MOVING):
        assert 0.1 < utilization(asked, bought(asked), rows) <= 1 + 1e-6


def test_lists_that_draws_favour_are_found() -> None:
    """Drives of one price: whichever is cheaper in a draw wins, and both lists are weighed."""
    kinds = (SSD, replace(SSD, name="ssd2"), replace(SSD, name="never", price_usd=9000.0))
    asked = request(drives=kinds, demands=(replace(WORK, required_Bps=40 * GB),))
    best = bought(asked)
    draws = Draws(Doubt(prices={kind.name: 0.3 for kind in kinds}), 500)
    found = rivals(asked, [best], draws, lambda one: optimize(one, explain=False))
    assert {name for plan in found for name in plan.drives} == {"ssd", "ssd2"}
    wins = {tuple(one.plan.drives): one.wins for one in weigh(asked, found, draws)}
    assert wins["ssd",] == pytest.approx(0.5, abs=0.1)


def test_a_part_as_good_as_what_is_bought_has_no_price_at_which_it_enters() -> None:
    """Two drives of one price and speed: the one that is left out is worth buying today."""
    twin = replace(SSD, name="twin")
    dear = replace(SSD, name="dear", price_usd=SSD.price_usd * 2)
    work = replace(WORK, required_Bps=40 * GB)
    plan = bought(request(drives=(SSD, twin, dear), demands=(work,)))
    assert len({"ssd", "twin"} & set(plan.drives)) == 1
    assert set(plan.ties) == {"ssd", "twin"} - set(plan.drives)
    assert plan.enters_usd["dear"] == pytest.approx(SSD.price_usd)
    sheet = enters(plan, {"dear": dear.price_usd}, {})
    assert [row[0] for row in sheet.rows] == ["dear"]
    assert f"As good as what is bought, at their prices now: {plan.ties[0]}" in sheet.note


def test_a_part_enters_at_the_price_that_is_named() -> None:
    """Of many drives, so that whole ones are as good as divisible: twice the speed, 1.9 x."""
    fast = replace(SSD, name="fast", price_usd=2600.0, read_Bps=10 * GB)
    work = replace(WORK, required_Bps=300 * GB)
    asked = request(drives=(SSD, fast), demands=(work,), limits=Limits(hosts_max=64))
    plan = bought(asked)
    assert plan.drives == {"ssd": 60}
    level = plan.enters_usd["fast"]
    assert SSD.price_usd < level < fast.price_usd
    for share, buys in ((0.97, True), (1.03, False)):
        priced = replace(fast, price_usd=level * share)
        found = bought(replace(asked, drives=(SSD, priced)))
        assert ("fast" in found.drives) == buys
