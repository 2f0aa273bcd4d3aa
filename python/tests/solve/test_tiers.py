"""The three tiers of the break-even solver give one answer: floats, whole numbers, fractions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from csdplan.model.inputs import FloatArray
from csdplan.solve import break_even, exact, floats, integers

COLUMNS = 9


def _decimal_rows(count: int, seed: int, digits: int) -> list[FloatArray]:
    """Rows of few digits, of which many tie; a third has no k_limit, a half a host part."""
    rng = np.random.default_rng(seed)
    times = [rng.integers(1, 40, count) / 10**digits for _ in range(4)]
    cores = rng.integers(1, 9, count).astype(float)
    k_limit = np.where(rng.random(count) < 0.3, np.inf, rng.integers(1, 12, count))
    factors = [1 + rng.integers(0, 4, count) / 4 for _ in range(2)]
    host_part = np.where(rng.random(count) < 0.5, 0.0, rng.integers(1, 9, count) / 10**digits)
    return [*times, cores, k_limit, *factors, host_part]


def _exactly(rows: list[FloatArray], row: int) -> tuple[int | None, int]:
    a, b, c, d, n, k, f, g, h = (float(column[row]) for column in rows)
    t = exact.terms(a, b, c, d, n, k, f, g, h)
    return exact.smallest(t), exact.closed_form(t)


@pytest.mark.parametrize("digits", [0, 1, 2])
def test_whole_numbers_agree_with_fractions_on_every_row(digits: int) -> None:
    rows = _decimal_rows(3000, seed=20261121 + digits, digits=digits)
    answers = integers.settle(rows)
    assert answers.decided.all()
    for row in range(3000):
        smallest, closed = _exactly(rows, row)
        assert answers.never[row] == (smallest is None)
        assert answers.devices[row] == (smallest or 0)
        assert answers.closed_form[row] == closed


def test_floats_never_answer_a_row_wrongly() -> None:
    rows = _decimal_rows(4000, seed=7, digits=1)
    found = floats.settle(rows, (4000,))
    doubtful = set(found.doubtful.tolist())
    assert 400 < len(doubtful) < 3500  # these rows are made to tie often; both tiers have work
    for row in set(range(4000)) - doubtful:
        assert (found.devices[row], found.closed_form[row]) == _exactly(rows, row)


@given(st.lists(st.floats(1e-3, 1e3), min_size=4, max_size=4))
def test_long_decimals_are_left_undecided_or_decided_rightly(times: list[float]) -> None:
    rest = [1.0, 5.0, 1.0, 1.0, 0.0]
    rows = [np.array([value]) for value in (*times, *rest)]
    answers = integers.settle(rows)
    if answers.decided[0]:
        assert (answers.devices[0], answers.closed_form[0]) == _exactly(rows, 0)


def test_blocks_and_broadcasting_do_not_change_answers() -> None:
    """A grid over several blocks, in pieces of odd sizes, equals the same rows one by one."""
    rng = np.random.default_rng(3)
    speed = rng.uniform(1, 9, 7)[:, None, None]
    limit = np.arange(1, 62)[None, :, None]
    cores = np.arange(1, 98)[None, None, :]
    grid = break_even(1.5, 0.5, 9.0, 4.8 / speed, k_limit=limit, host_cores=cores)
    assert grid.devices.size > 4 * floats.BLOCK_ROWS
    for index in zip(*(rng.integers(0, n, 300) for n in grid.devices.shape), strict=True):
        a, b, c = (int(i) for i in index)
        one = break_even(1.5, 0.5, 9.0, 4.8 / speed[a, 0, 0], k_limit=b + 1, host_cores=c + 1)
        assert one.devices == grid.devices[index]
        assert one.closed_form == grid.closed_form[index]
        assert one.ssd_limit_s == grid.ssd_limit_s[index]


def test_no_rows_give_no_answers() -> None:
    solution = break_even(np.empty(0), 1.0, 1.0, 1.0, k_limit=4)
    assert solution.devices.shape == (0,)
