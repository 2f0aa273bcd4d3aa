"""Inverse answers give the requested break-even point when the solver checks them."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from csdplan import ModelError
from csdplan.solve import break_even
from csdplan.solve.inverse import (
    bandwidth_multiplier,
    compute_multiplier,
    drive_time_limit_s,
    host_compute_slow_down,
    host_transfer_slow_down,
)

times = st.integers(10, 400).map(lambda n: n / 100)
limits = st.one_of(st.none(), st.integers(1, 20))
wanted = st.integers(1, 30)
overlaps = st.sampled_from(["serial", "pipelined"])
ABOVE, BELOW = 1 + 1e-9, 1 - 1e-9


@given(times, times, times, times, limits, wanted, overlaps, overlaps, st.floats(0.5, 8.0))
def test_a_little_more_than_the_compute_threshold_is_enough_and_a_little_less_is_not(
    ssd_tx: float,
    ssd_comp: float,
    csd_tx: float,
    csd_comp: float,
    k_limit: int | None,
    devices: int,
    ssd_overlap: str,
    csd_overlap: str,
    bandwidth: float,
) -> None:
    def bep(compute: float) -> int:
        solution = break_even(
            ssd_tx,
            ssd_comp,
            csd_tx / bandwidth,
            csd_comp / compute,
            k_limit=k_limit,
            ssd_overlap=ssd_overlap,
            csd_overlap=csd_overlap,
        )
        return int(solution.devices)

    limit = drive_time_limit_s(devices, ssd_tx, ssd_comp, k_limit=k_limit, ssd_overlap=ssd_overlap)
    found = compute_multiplier(
        limit, csd_tx, csd_comp, bandwidth=bandwidth, csd_overlap=csd_overlap
    )
    if not found.attainable:
        assert bep(1e9) > devices or csd_tx / bandwidth >= limit * BELOW
        return
    value = float(found.value)
    if value < 1e6:  # beyond, the threshold itself is lost in rounding
        assert bep(value * ABOVE) <= devices
        assert bep(value * BELOW) > devices


@given(times, times, times, times, limits, wanted)
def test_bandwidth_and_compute_thresholds_are_two_readings_of_one_curve(
    ssd_tx: float,
    ssd_comp: float,
    csd_tx: float,
    csd_comp: float,
    k_limit: int | None,
    devices: int,
) -> None:
    limit = drive_time_limit_s(devices, ssd_tx, ssd_comp, k_limit=k_limit)
    bandwidth = bandwidth_multiplier(limit, csd_tx, csd_comp, compute=3.0)
    if bandwidth.attainable and float(bandwidth.value) < 1e6:
        back = compute_multiplier(limit, csd_tx, csd_comp, bandwidth=bandwidth.value)
        assert back.value == pytest.approx(3.0, rel=1e-6)


@given(times, times, times, limits, wanted)
def test_host_slow_downs(
    ssd_tx: float, ssd_comp: float, csd: float, k_limit: int | None, devices: int
) -> None:
    tx = csd / 2
    by_comp = host_compute_slow_down(devices, csd, ssd_tx, ssd_comp, k_limit=k_limit)
    by_tx = host_transfer_slow_down(devices, csd, ssd_tx, ssd_comp, k_limit=k_limit)
    assert by_comp.attainable
    assert by_tx.attainable
    for name, value in (("sd_comp", float(by_comp.value)), ("sd_tx", float(by_tx.value))):
        enough = {name: max(1.0, value * ABOVE)}
        found = break_even(
            ssd_tx,
            ssd_comp,
            tx,
            tx,
            k_limit=k_limit,
            **enough,  # type: ignore[arg-type]
        )
        assert found.devices <= devices
        if value * BELOW > 1:
            less = {name: value * BELOW}
            found = break_even(
                ssd_tx,
                ssd_comp,
                tx,
                tx,
                k_limit=k_limit,
                **less,  # type: ignore[arg-type]
            )
            assert found.devices > devices


def test_bandwidth_alone_can_be_too_little_and_the_answer_says_so() -> None:
    # 4 SSDs: 1.5 / 4 + 0.75 s, so a drive may take 4.5 s; its transfer alone takes 9 s.
    limit = drive_time_limit_s(4, 1.5, 0.75, k_limit=8)
    assert limit == 4.5
    found = compute_multiplier(limit, 9.0, 5.0, bandwidth=[1, 2, 3, 4])
    assert found.attainable.tolist() == [False, False, True, True]
    assert np.isnan(found.value[:2]).all()
    assert found.value[2] == pytest.approx(5.0 / 1.5)
    assert found.value[3] == pytest.approx(5.0 / 2.25)


def test_thresholds_are_strict() -> None:
    """At the threshold itself both arrays take the same time, which is no win."""
    limit = drive_time_limit_s(3, 1.0, 1.0, k_limit=None)
    assert limit == pytest.approx(4.0)
    assert Fraction(str(float(compute_multiplier(limit, 2.0, 6.0).value))) == 3
    assert break_even(1.0, 1.0, 2.0, 2.0, k_limit=None).devices == 4


def test_bad_input_is_refused_by_name() -> None:
    with pytest.raises(ModelError, match=r"^devices = 0"):
        drive_time_limit_s(0, 1.0, 1.0, k_limit=8)
    with pytest.raises(ModelError, match=r"^bandwidth = 0"):
        compute_multiplier(1.0, 1.0, 1.0, bandwidth=0.0)
