"""Ratios, erasure coding, scaling and cost: values worked by hand, and the ranges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from csdplan import ModelError
from csdplan.model import combined_s, cost, csd_time_s, erasure, ratios, scaling, ssd_time_s

times = st.floats(0.01, 100.0)


def test_store_and_overlap_by_hand() -> None:
    assert csd_time_s(3.0, 9.0, store_s=2.0) == 14.0
    assert csd_time_s(3.0, 9.0, store_s=2.0, overlap="pipelined") == 9.0
    assert ssd_time_s(2.0, 6.0, cores=4, store_s=1.0, sd_tx=2.0) == 7.5
    assert ssd_time_s(2.0, 6.0, cores=4, store_s=1.0, sd_tx=2.0, overlap="pipelined") == 6.0
    with pytest.raises(ModelError, match=r"^overlap = none"):
        combined_s(1.0, 1.0, "none")


def test_the_two_transfer_ratios_are_two_things() -> None:
    # The paper's Newport: 2.28 times as fast outward, but the host reads another drive.
    assert ratios.transfer_ratio_own(1.0, 2.28) == pytest.approx(0.4386, abs=1e-4)
    assert ratios.transfer_ratio_host(1.5, 9.0) == pytest.approx(1 / 6)


@given(times, times, times, times, st.integers(1, 64), st.floats(1, 5), st.floats(1, 5))
def test_equation_13_is_equation_8_divided_through(
    ssd_tx: float, ssd_comp: float, csd_tx: float, csd_comp: float, n: int, tx: float, comp: float
) -> None:
    by_times = ratios.crossing_by_times(
        ssd_tx, ssd_comp, csd_tx, csd_comp, cores=n, sd_tx=tx, sd_comp=comp
    )
    by_ratios = ratios.crossing_by_ratios(
        ratios.transfer_ratio_host(ssd_tx, csd_tx),
        ratios.compute_ratio(ssd_comp, csd_comp, n),
        ratios.ssd_ratio(ssd_tx, ssd_comp, n),
        sd_tx=tx,
        sd_comp=comp,
    )
    scale = (csd_tx + csd_comp + tx * ssd_tx) * n / (comp * ssd_comp)
    assert abs(by_times - by_ratios) <= 1e-12 * scale


def test_compute_time_ratio_by_hand() -> None:
    assert ratios.compute_time_ratio([3.0, 1.0], [1.0, 3.0]).tolist() == [0.25, 0.75]


def test_erasure_by_hand() -> None:
    # 8 / min(M, 2) + 3 M, and 5 + 7 whatever M.
    assert erasure.ssd_encode_array_time_s([1, 2, 4], 8.0, 3.0, k_limit=2).tolist() == [11, 10, 16]
    assert erasure.csd_encode_array_time_s(5.0, 7.0) == 12.0
    assert erasure.encode_crossing(22.3, 4.8) == pytest.approx(4.646, abs=1e-3)
    # 2 + 0.01 x 24^2 x (128 / 64)
    assert erasure.encode_time_s(24, 128e6, 2.0, 0.01) == pytest.approx(13.52)


def test_scaling_by_hand() -> None:
    # One unit takes 10 s, of which 2 s transfer; four units make it 2 + 8 / 4 = 4 s: gain 2.5.
    assert scaling.compute_speed_up(2.0, 2.0, 2.5) == pytest.approx(4.0)
    assert scaling.serial_share(4, 4.0) == 0.0
    assert scaling.serial_share(4, 1.0) == 1.0
    assert scaling.augmented_speed_up(16, 0.25, 0.01) == pytest.approx(0.84 + 4.0)
    assert scaling.augmented_speed_up(0, 0.25) == 1.0
    assert scaling.augmented_energy_ratio(10, 3.0, 0.05) == pytest.approx(2.0)


def test_cost_by_hand() -> None:
    assert cost.purchase_usd(1828.0, 12, 100.0) == 3028.0
    assert cost.per_usd(39999.0, 3028.0) == pytest.approx(13.21, abs=0.005)
    # 100 W host + half of 50 W + 4 drives at 3 W and 9 W half of the time
    assert cost.average_power_W(100.0, 50.0, 0.5, 4, 3.0, 9.0, 0.5) == 149.0
    # 1 kW for a year of 8766 hours at 10 cents, 1.5 watts drawn for each
    assert cost.energy_usd(1000.0, 1.0, 0.1, 1.5) == pytest.approx(1314.9)
    assert cost.annuity_usd(900.0, 3.0) == 300.0
    assert cost.annuity_usd(1000.0, 2.0, 0.1) == pytest.approx(576.19, abs=0.005)
    assert cost.price_level_usd(3028.0, 1399.0, 12) == pytest.approx(135.75)


@given(st.floats(1, 1e6), st.integers(1, 30), st.floats(1e-9, 0.5))
def test_instalments_pay_off_what_was_lent(price: float, years: int, interest: float) -> None:
    instalment = float(cost.annuity_usd(price, years, interest))
    worth = sum(instalment / (1 + interest) ** year for year in range(1, years + 1))
    assert worth == pytest.approx(price, rel=1e-6)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_numbers_are_refused_by_name(value: float) -> None:
    with pytest.raises(ModelError, match=r"^internal_Bps"):
        ratios.transfer_ratio_own(value, 1.0)
    with pytest.raises(ModelError, match=r"^encode_s"):
        erasure.ssd_encode_array_time_s(1, 0.0, value)
    with pytest.raises(ModelError, match=r"^total_usd"):
        cost.per_usd(1.0, value)
    with pytest.raises(ModelError, match=r"^gain"):
        scaling.serial_share(4, value)


def test_functions_broadcast() -> None:
    grid = ratios.crossing_by_times(1.5, 0.7, np.array([9.0, 4.5])[:, None], [1.2, 0.6, 0.3])
    assert grid.shape == (2, 3)
    assert grid[1, 2] == ratios.crossing_by_times(1.5, 0.7, 4.5, 0.3)
