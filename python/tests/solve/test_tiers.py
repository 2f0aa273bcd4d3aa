"""The three tiers of the break-even solver give one answer: floats, whole numbers, fractions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from csdplan.model.inputs import FloatArray
from csdplan.solve import break_even, crossings, exact, floats, integers

OVERLAPS = [(False, False), (True, False), (False, True), (True, True)]


def _decimal_rows(count: int, seed: int, digits: int) -> list[FloatArray]:
    """Rows of few digits, many ties; a third has no k_limit, a half a host part, a half stores."""
    rng = np.random.default_rng(seed)
    times = [rng.integers(1, 40, count) / 10**digits for _ in range(4)]
    cores = rng.integers(1, 9, count).astype(float)
    k_limit = np.where(rng.random(count) < 0.3, np.inf, rng.integers(1, 12, count))
    factors = [1 + rng.integers(0, 4, count) / 4 for _ in range(2)]
    rest = [
        np.where(rng.random(count) < 0.5, 0.0, rng.integers(1, 9, count) / 10**digits)
        for _ in range(3)
    ]
    return [*times, cores, k_limit, *factors, *rest]


def _long_rows(count: int, seed: int) -> list[FloatArray]:
    """Rows of many digits over six orders of magnitude, in which host parts often win or lose."""
    rng = np.random.default_rng(seed)
    times = list(10.0 ** rng.uniform(-3, 3, (4, count)))
    cores = rng.integers(1, 64, count).astype(float)
    k_limit = np.where(rng.random(count) < 0.3, np.inf, rng.integers(1, 64, count))
    factors = [1 + 10.0 ** rng.uniform(-3, 1, count) for _ in range(2)]
    rest = [
        np.where(rng.random(count) < 0.3, 0.0, 10.0 ** rng.uniform(-3, 3, count)) for _ in range(3)
    ]
    return [*times, cores, k_limit, *factors, *rest]


def _exactly(
    rows: list[FloatArray], row: int, overlaps: tuple[bool, bool] = (False, False)
) -> tuple[int | None, int]:
    given_ = [float(column[row]) for column in rows]
    t = exact.terms(*given_, ssd_pipelined=overlaps[0], csd_pipelined=overlaps[1])
    return exact.smallest(t), exact.closed_form(exact.terms(*given_[:9]))


@pytest.mark.parametrize("overlaps", OVERLAPS)
@pytest.mark.parametrize("digits", [0, 1, 2])
def test_whole_numbers_agree_with_fractions_on_every_row(
    digits: int, overlaps: tuple[bool, bool]
) -> None:
    rows = _decimal_rows(1500, seed=20261121 + digits, digits=digits)
    answers = integers.settle(rows, overlaps)
    for row in range(1500):
        smallest, closed = _exactly(rows, row, overlaps)
        assert answers.never[row] == (smallest is None)
        assert answers.devices[row] == (smallest or 0)
        assert answers.closed_form[row] == closed


@pytest.mark.parametrize("overlaps", OVERLAPS)
@pytest.mark.parametrize("stores", [True, False])
@pytest.mark.parametrize("host_parts", [True, False])
def test_floats_never_answer_a_row_wrongly(
    host_parts: bool, stores: bool, overlaps: tuple[bool, bool]
) -> None:
    count = 1200
    for rows, doubtful_max in (
        (_decimal_rows(count, seed=7, digits=1), count - 200),
        (_long_rows(count, seed=8), 5),
    ):
        if not host_parts:
            rows[8] = np.zeros(1)
        if not stores:
            rows[9:] = [np.zeros(1), np.zeros(1)]
        found = floats.settle(rows, (count,), overlaps)
        doubtful = set(found.doubtful.tolist())
        assert len(doubtful) <= doubtful_max
        full = [np.broadcast_to(column, (count,)) for column in rows]
        for row in set(range(count)) - doubtful:
            smallest, closed = _exactly(full, row, overlaps)
            assert found.never[row] == (smallest is None)
            assert (found.devices[row], found.closed_form[row]) == (smallest or 0, closed)


@given(st.lists(st.floats(1e-300, 1e300), min_size=4, max_size=4), st.booleans(), st.booleans())
def test_numbers_of_any_length_are_decided_as_fractions_are(
    times: list[float], host: bool, drives: bool
) -> None:
    rest = [1.0, 5.0, 1.25, 1.0, 0.1, 0.0, 1e-7]
    rows = [np.array([value]) for value in (*times, *rest)]
    answers = integers.settle(rows, (host, drives))
    smallest, closed = _exactly(rows, 0, (host, drives))
    most = crossings.DEVICES_MAX
    assert answers.never[0] == (smallest is None)
    assert answers.devices[0] == (smallest if smallest is not None and smallest <= most else 0)
    assert answers.closed_form[0] == (closed if closed <= most else 0)


@pytest.mark.parametrize("overlaps", OVERLAPS)
def test_long_and_short_rows_together(overlaps: tuple[bool, bool]) -> None:
    short, long = _decimal_rows(200, seed=1, digits=1), _long_rows(200, seed=2)
    rows = [np.concatenate(pair) for pair in zip(short, long, strict=True)]
    answers = integers.settle(rows, overlaps)
    for row in range(400):
        smallest, closed = _exactly(rows, row, overlaps)
        assert answers.never[row] == (smallest is None)
        assert (answers.devices[row], answers.closed_form[row]) == (smallest or 0, closed)


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
