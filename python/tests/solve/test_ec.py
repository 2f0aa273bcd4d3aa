"""Erasure coding: exact answers against a scan, the lost early lead, and the fit."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from csdplan import ModelError
from csdplan.model.erasure import encode_time_s
from csdplan.solve.ec import EncodeTerms, encode_break_even, leads, smallest
from csdplan.solve.ec_fit import EncodePoint, fit_encode_time
from csdplan.solve.exact import decimal

tenths = st.integers(1, 300).map(lambda n: Fraction(n, 10))


@given(
    st.integers(0, 3000).map(lambda n: Fraction(n, 10)),
    tenths,
    tenths,
    st.one_of(st.none(), st.integers(10, 300).map(lambda n: Fraction(n, 10))),
)
def test_exact_answer_equals_a_scan(
    ssd_tx: Fraction, ssd_encode: Fraction, csd: Fraction, k_limit: Fraction | None
) -> None:
    t = EncodeTerms(ssd_tx, ssd_encode, csd, k_limit)
    # Beyond D / E the host alone takes longer, whatever its transfer.
    last = int(csd / ssd_encode) + 2
    flags = [leads(t, devices) for devices in range(1, last + 1)]
    assert flags[-1]
    behind = [devices for devices, flag in enumerate(flags, start=1) if not flag]
    devices, early = smallest(t)
    assert devices == (behind[-1] + 1 if behind else 1)
    assert early == (behind[0] - 1 if behind else 0)


@pytest.mark.parametrize("digits", [1, 17])
def test_many_rows_at_once_are_the_exact_ones(digits: int) -> None:
    rng = np.random.default_rng(20261121)
    ssd_tx, csd_tx = rng.choice([0.0, 1.0], (2, 3000)) * 10.0 ** rng.uniform(-1, 3, (2, 3000))
    csd, ssd = 10.0 ** rng.uniform(-1, 2, (2, 3000))
    columns = [np.maximum(np.round(column, digits), 0.1) for column in (csd, ssd)]
    columns += [np.round(column, digits) for column in (ssd_tx, csd_tx)]
    k_limit = np.where(rng.random(3000) < 0.3, np.inf, rng.integers(10, 400, 3000) / 10)
    solution = encode_break_even(
        columns[0], columns[1], ssd_tx_s=columns[2], csd_tx_s=columns[3], k_limit=k_limit
    )
    assert np.count_nonzero(solution.early_lead) > 50
    for row in range(3000):
        encode, host, load, drive = (decimal(column[row]) for column in columns)
        most = None if np.isinf(k_limit[row]) else decimal(k_limit[row])
        devices, early = smallest(EncodeTerms(load, host, drive + encode, most))
        assert (solution.devices[row], solution.early_lead[row]) == (devices, early)


@given(tenths, tenths)
def test_without_transfer_the_closed_form_is_exact_but_for_ties(
    csd: Fraction, ssd: Fraction
) -> None:
    solution = encode_break_even(float(csd), float(ssd))
    tie = (csd / ssd).denominator == 1
    assert solution.devices - solution.closed_form == (1 if tie else 0)
    assert solution.early_lead == 0


def test_a_lead_at_few_devices_is_lost_and_regained() -> None:
    """8/M + M against 6.5 is 9, 6, 5.67, 6, 6.6: ahead at 1, behind from 2 to 4, then for good."""
    solution = encode_break_even(6.5, 1.0, ssd_tx_s=8.0)
    assert (int(solution.devices), int(solution.early_lead)) == (5, 1)
    assert solution.closed_form == 7


def test_k_limit_keeps_the_host_slow() -> None:
    free = encode_break_even(30.0, 1.0, ssd_tx_s=100.0)
    bound = encode_break_even(30.0, 1.0, ssd_tx_s=100.0, k_limit=5)
    # 100/5 + M > 30 from 11 on; without the limit 100/M + M > 30 from 27 on.
    assert (int(free.devices), int(bound.devices)) == (27, 11)


def test_arguments_broadcast() -> None:
    grid = encode_break_even(np.array([[4.0], [10.0]]), [3.0, 4.0, 5.0])
    assert grid.devices.tolist() == [[2, 2, 1], [4, 3, 3]]
    assert grid.closed_form.tolist() == [[2, 1, 1], [4, 3, 2]]


def test_fit_recovers_the_model_it_was_made_from() -> None:
    points = [
        EncodePoint(blocks, size, float(encode_time_s(blocks, size, 2.5, 0.004)))
        for blocks in (12, 24, 48)
        for size in (16e6, 64e6, 128e6)
    ]
    fit = fit_encode_time(points)
    assert fit.base_s == pytest.approx(2.5)
    assert fit.per_block2_s == pytest.approx(0.004)
    assert fit.relative_error_max < 1e-9
    assert fit.time_s(24, 64e6) == pytest.approx(2.5 + 576 * 0.004)


def test_points_that_the_model_cannot_describe_are_refused() -> None:
    with pytest.raises(ModelError, match="two different sizes"):
        fit_encode_time([EncodePoint(24, 64e6, 3.0), EncodePoint(24, 64e6, 4.0)])
    with pytest.raises(ModelError, match="grow with the work"):
        fit_encode_time([EncodePoint(12, 64e6, 9.0), EncodePoint(48, 64e6, 3.0)])
    with pytest.raises(ModelError, match=r"^time_s"):
        fit_encode_time([EncodePoint(12, 64e6, 0.0), EncodePoint(48, 64e6, 3.0)])
    with pytest.raises(ModelError, match=r"^ssd_encode_s"):
        encode_break_even(1.0, float("nan"))
