"""Store time and overlap: the general answer against its definition and the papers' case."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from csdplan import ModelError
from csdplan.model import csd_array_time_s, ssd_array_time_s
from csdplan.solve import Verdict, break_even, exact
from csdplan.solve.bep import Difference

times = st.integers(1, 400).map(lambda n: n / 100)
parts = st.one_of(st.just(0.0), st.integers(0, 60).map(lambda n: n / 100))
tenths = st.integers(10, 200).map(lambda n: Fraction(n, 10))
limits = st.one_of(st.none(), st.integers(1, 20).map(Fraction), tenths)
overlaps = st.sampled_from(["serial", "pipelined"])


def scan(t: exact.Terms, last: int) -> int | None:
    """Return the smallest m from which on all m up to `last` win, straight from the definition."""
    answer = None
    for devices in range(last, 0, -1):
        lanes = Fraction(devices) if t.k_limit is None else min(Fraction(devices), t.k_limit)
        transfer, drives = t.ssd_tx / lanes, t.csd / devices + t.host_part
        ssd = max(transfer, t.ssd_comp) if t.pipelined else transfer + t.ssd_comp
        if not ssd > drives:
            break
        answer = devices
    return answer


def hundredths(value: float) -> Fraction:
    return Fraction(round(100 * value), 100)


@given(times, times, times, times, limits, parts, parts, parts, overlaps, overlaps)
def test_solver_equals_a_scan(
    ssd_tx: float,
    ssd_comp: float,
    csd_tx: float,
    csd_comp: float,
    k_limit: Fraction | None,
    host_part: float,
    ssd_store: float,
    csd_store: float,
    ssd_overlap: str,
    csd_overlap: str,
) -> None:
    drive = (hundredths(csd_tx) + hundredths(csd_store), hundredths(csd_comp))
    t = exact.Terms(
        ssd_tx=hundredths(ssd_tx) + hundredths(ssd_store),
        ssd_comp=hundredths(ssd_comp),
        csd=max(drive) if csd_overlap == "pipelined" else drive[0] + drive[1],
        host_part=hundredths(host_part),
        k_limit=k_limit,
        pipelined=ssd_overlap == "pipelined",
    )
    solution = break_even(
        ssd_tx,
        ssd_comp,
        csd_tx,
        csd_comp,
        k_limit=None if k_limit is None else float(k_limit),
        host_part_s=host_part,
        ssd_store_s=ssd_store,
        csd_store_s=csd_store,
        ssd_overlap=ssd_overlap,
        csd_overlap=csd_overlap,
    )
    last = 500
    scanned = scan(t, last)
    if solution.verdict() is Verdict.NEVER:
        lane = 0 if k_limit is None else t.ssd_tx / k_limit
        limit = max(lane, t.ssd_comp) if t.pipelined else lane + t.ssd_comp
        assert t.host_part >= limit
    elif solution.devices <= last:
        assert scanned == solution.devices
    else:
        assert scanned is None
        assert exact.beats(t, int(solution.devices))
        assert not exact.beats(t, int(solution.devices) - 1)


@pytest.mark.parametrize("ssd_overlap", ["serial", "pipelined"])
@pytest.mark.parametrize("csd_overlap", ["serial", "pipelined"])
def test_the_float_pass_agrees_with_exact_arithmetic(ssd_overlap: str, csd_overlap: str) -> None:
    rng = np.random.default_rng(20261121)
    count = 1500
    ssd_tx, ssd_comp, csd_tx, csd_comp, store = 10.0 ** rng.uniform(-3, 3, (5, count))
    k_limit = np.where(
        rng.random(count) < 0.5, rng.integers(1, 64, count), rng.uniform(1, 64, count)
    )
    solution = break_even(
        ssd_tx,
        ssd_comp,
        csd_tx,
        csd_comp,
        k_limit=k_limit,
        csd_store_s=store,
        ssd_store_s=store / 3,
        ssd_overlap=ssd_overlap,
        csd_overlap=csd_overlap,
    )
    for row in range(count):
        t = exact.terms(
            ssd_tx[row],
            ssd_comp[row],
            csd_tx[row],
            csd_comp[row],
            1.0,
            float(k_limit[row]),
            1.0,
            1.0,
            0.0,
            store[row] / 3,
            store[row],
            ssd_pipelined=ssd_overlap == "pipelined",
            csd_pipelined=csd_overlap == "pipelined",
        )
        assert exact.smallest(t) == solution.devices[row]


@given(times, times, times, times, st.integers(1, 20), overlaps, parts)
def test_the_answer_is_where_the_models_curves_cross(
    ssd_tx: float,
    ssd_comp: float,
    csd_tx: float,
    csd_comp: float,
    k_limit: int,
    overlap: str,
    store: float,
) -> None:
    """The solver and ``model.array`` must speak of the same system."""
    solution = break_even(
        ssd_tx,
        ssd_comp,
        csd_tx,
        csd_comp,
        k_limit=k_limit,
        csd_store_s=store,
        ssd_overlap=overlap,
        csd_overlap=overlap,
    )
    devices = np.array([int(solution.devices), int(solution.devices) + 7])
    ssd = ssd_array_time_s(devices, ssd_tx, ssd_comp, k_limit=k_limit, overlap=overlap)
    csd = csd_array_time_s(devices, csd_tx, csd_comp, store_s=store, overlap=overlap)
    assert (ssd > csd * (1 - 1e-12)).all()
    if solution.devices > 1:
        before = int(solution.devices) - 1
        ssd = ssd_array_time_s(before, ssd_tx, ssd_comp, k_limit=k_limit, overlap=overlap)
        csd = csd_array_time_s(before, csd_tx, csd_comp, store_s=store, overlap=overlap)
        assert ssd <= csd * (1 + 1e-12)


def test_zero_store_and_serial_are_the_papers_case() -> None:
    plain = break_even(1.5, 0.7, 9.0, 1.2, k_limit=8, host_cores=[1, 4, 16])
    named = break_even(
        1.5, 0.7, 9.0, 1.2, k_limit=8, host_cores=[1, 4, 16], ssd_store_s=0.0, csd_store_s=[0.0]
    )
    assert plain.devices.tolist() == named.devices.tolist()
    assert named.difference(1) is Difference.K_LIMIT


def test_store_and_overlap_are_named_as_what_the_closed_form_misses() -> None:
    stored = break_even(1.5, 0.7, 9.0, 1.2, k_limit=None, csd_store_s=9.0)
    assert (int(stored.devices), int(stored.closed_form)) == (26, 13)
    assert stored.difference() is Difference.STORE
    overlapped = break_even(
        1.5, 0.7, 9.0, 1.2, k_limit=None, ssd_overlap="pipelined", csd_overlap="pipelined"
    )
    assert (int(overlapped.devices), int(overlapped.closed_form)) == (13, 13)
    # A drive alone that overlaps gains against a host that does not.
    drives = break_even(1.5, 0.7, 9.0, 8.0, k_limit=None, csd_overlap="pipelined")
    assert (int(drives.devices), int(drives.closed_form)) == (11, 23)
    assert drives.difference() is Difference.OVERLAP


def test_a_tie_in_decimals_is_a_tie_with_store_too() -> None:
    """0.1 + 0.2 of transfer against 0.3: equal to the user, though not in binary."""
    level = break_even(0.3, 5.0, 0.1, 0.2, k_limit=1, csd_store_s=0.1, ssd_overlap="pipelined")
    assert level.devices == 1
    tie = break_even(0.2, 0.1, 0.2, 0.1, k_limit=None, ssd_store_s=0.1, csd_store_s=0.1)
    assert tie.devices == 2  # 0.3/m + 0.1 against 0.4/m: equal at 1


def test_bad_overlap_and_shapes_are_refused_by_name() -> None:
    with pytest.raises(ModelError, match=r"^ssd_overlap = both: expected serial or pipelined"):
        break_even(1.0, 1.0, 1.0, 1.0, k_limit=8, ssd_overlap="both")
    with pytest.raises(ModelError, match="shapes that broadcast"):
        break_even([1.0, 2.0], [1.0, 2.0, 3.0], 1.0, 1.0, k_limit=8)
    with pytest.raises(ModelError, match=r"^csd_store_s = -1"):
        break_even(1.0, 1.0, 1.0, 1.0, k_limit=8, csd_store_s=-1.0)
