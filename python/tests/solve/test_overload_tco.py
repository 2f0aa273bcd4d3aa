"""Slow-down factors from measurements, and cost of ownership at equal throughput."""

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csdplan import ModelError
from csdplan.solve import break_even
from csdplan.solve.overload import LimitedPoint, slow_downs, step_slow_downs
from csdplan.solve.tco import (
    Kernel,
    Service,
    System,
    cost_of,
    drives_for,
    equal_throughput,
    level_drive_price_usd,
    system_time_s,
)

SSD = System("ssd", "fast", "host", 1000.0, 100.0, 8, 2e12, mark=40000.0)
CSD = System("csd", "slow", "drives", 400.0, 110.0, 4, 2e12, mark=20000.0)
KERNEL = Kernel(4_800_000_000, 1.5, 0.75, 9.0, 3.0, 8)


def test_factors_are_ratios_and_noise_is_named() -> None:
    points = [LimitedPoint(8e9, 1.4, 0.8), LimitedPoint(2e9, 4.5, 0.8)]
    low, high = slow_downs(points, load_s=1.5, comp_s=0.8)
    assert (low.memory_bytes, low.sd_tx, low.sd_comp, low.clipped) == (2e9, 3.0, 1.0, False)
    assert (high.sd_tx, high.clipped) == (1.0, True)


def test_a_step_at_the_working_set() -> None:
    factors = step_slow_downs([2e9, 4.8e9, 6e9], 4.8e9, sd_tx=3.0, sd_comp=2.0)
    assert [(f.sd_tx, f.sd_comp) for f in factors] == [(3.0, 2.0), (1.0, 1.0), (1.0, 1.0)]


def test_more_memory_never_lowers_the_break_even_point() -> None:
    factors = step_slow_downs([1e9 * n for n in range(1, 9)], 4.8e9, sd_tx=3.0, sd_comp=2.0)
    devices = break_even(
        1.5,
        0.75,
        9.0,
        3.0,
        k_limit=8,
        sd_tx=[f.sd_tx for f in factors],
        sd_comp=[f.sd_comp for f in factors],
    ).devices.tolist()
    assert devices == sorted(devices)
    assert devices[0] < devices[-1]


@pytest.mark.parametrize("bad", [[], [LimitedPoint(1e9, 1, 1), LimitedPoint(1e9, 2, 1)]])
def test_bad_points_are_refused(bad: list[LimitedPoint]) -> None:
    with pytest.raises(ModelError, match=r"^points"):
        slow_downs(bad, load_s=1.0, comp_s=1.0)


def test_cost_by_hand() -> None:
    found = cost_of(SSD, KERNEL, Service())
    assert found.purchase_usd == 1800.0
    assert found.mark_per_usd == pytest.approx(22.22, abs=0.01)
    assert found.bytes_per_usd == pytest.approx(16e12 / 1800)
    assert found.time_s == pytest.approx(1.5 / 8 + 0.75)
    assert found.energy_usd is None
    assert found.total_usd is None


def test_energy_and_instalments_by_hand() -> None:
    powered = replace(
        SSD, host_idle_W=100.0, host_active_W=60.0, drive_idle_W=2.0, drive_active_W=7.0
    )
    service = Service(years=4.0, usd_per_kWh=0.1, pue=1.0, busy=0.5)
    found = cost_of(powered, None, service)
    watts = 100 + 30 + 8 * 4.5
    assert found.energy_usd == pytest.approx(watts / 1000 * 8766 * 4 * 0.1)
    assert found.yearly_usd == pytest.approx(1800 / 4 + watts / 1000 * 8766 * 0.1)
    # The same system with drives that compute: the host rests.
    resting = cost_of(replace(powered, computes="drives"), None, service)
    assert resting.energy_usd == pytest.approx((100 + 36) / 1000 * 8766 * 4 * 0.1)


def test_equal_throughput_is_equal_throughput() -> None:
    slower = replace(SSD, name="slower", slow_down=2.0)
    base, drives, hopeless = equal_throughput([SSD, CSD, slower], KERNEL, Service())
    assert base.system.drives == 8
    # 12 s of one drive within 0.9375 s: 12.8 drives.
    assert drives.system.drives == 13
    assert drives.time_s is not None
    assert base.time_s is not None
    assert drives.time_s <= base.time_s
    # 1.5 s of compute alone exceeds 0.9375 s.
    assert not hopeless.feasible
    first, level, last = level_drive_price_usd([base, drives, hopeless])
    assert (first, last) == (None, None)
    assert level == pytest.approx(1400 / 13)


@given(
    st.integers(1, 400), st.integers(1, 400), st.integers(1, 400), st.integers(1, 30),
    st.one_of(st.none(), st.integers(1, 12)), st.booleans(),
)  # fmt: skip
def test_drives_for_is_the_fewest(
    tx: int, comp: int, target: int, cores: int, k_limit: int | None, drives: bool
) -> None:
    kernel = Kernel(10**9, tx / 100, comp / 100 / cores, tx / 50, comp / 20, k_limit)
    system = replace(CSD if drives else SSD, drives=1)
    goal = Fraction(target, 100)
    found = drives_for(system, kernel, goal)
    if found is None:
        many = replace(system, drives=10**6)
        assert system_time_s(many, kernel) >= float(goal) * (1 - 1e-12)
        return
    assert system_time_s(replace(system, drives=found), kernel) <= float(goal) * (1 + 1e-12)
    if found > 1:
        fewer = replace(system, drives=found - 1)
        assert system_time_s(fewer, kernel) > float(goal) * (1 - 1e-12)


def test_bad_input_is_refused_by_name() -> None:
    with pytest.raises(ModelError, match="computes = both"):
        cost_of(replace(SSD, computes="both"), None, Service())
    with pytest.raises(ModelError, match=r"^busy = 2"):
        cost_of(SSD, None, Service(busy=2.0))
    with pytest.raises(ModelError, match=r"^years"):
        cost_of(SSD, None, Service(years=0.0))
    with pytest.raises(ModelError, match=r"^drive_usd"):
        cost_of(replace(SSD, drive_usd=float("nan")), None, Service())
    with pytest.raises(ModelError, match=r"^systems"):
        equal_throughput([], KERNEL, Service())
