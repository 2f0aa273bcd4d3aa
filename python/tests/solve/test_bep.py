"""The break-even solver against its definition: brute force, ties, monotony, exactness."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from csdplan import ModelError
from csdplan.solve import Verdict, break_even, break_even_by_ratios, exact
from csdplan.solve.bep import Difference, Solution

# Few digits make ties and equal terms frequent; hundredths are no binary fractions.
times = st.integers(1, 500).map(lambda n: n / 100)
parts = st.one_of(st.just(0.0), st.integers(0, 60).map(lambda n: n / 100))
tenths = st.integers(10, 200).map(lambda n: Fraction(n, 10))
limits = st.one_of(st.none(), st.integers(1, 20).map(Fraction), tenths)
cores = st.integers(1, 24)
factors = st.integers(100, 400).map(lambda n: n / 100)


def scan(t: exact.Terms, last: int) -> int | None:
    """Return the smallest m from which on all m up to `last` win, straight from the definition."""
    answer = None
    for devices in range(last, 0, -1):
        lanes = Fraction(devices) if t.k_limit is None else min(Fraction(devices), t.k_limit)
        ssd = t.ssd_tx / lanes + t.ssd_comp
        if not ssd > t.csd / devices + t.host_part:
            break
        answer = devices
    return answer


def one(solution: Solution) -> tuple[Verdict, int]:
    return solution.verdict(), int(solution.devices)


@given(times, times, times, times, limits, cores, factors, factors, parts)
def test_solver_equals_a_scan(
    ssd_tx: float,
    ssd_comp: float,
    csd_tx: float,
    csd_comp: float,
    k_limit: Fraction | None,
    n: int,
    sd_tx: float,
    sd_comp: float,
    host_part: float,
) -> None:
    t = exact.Terms(
        ssd_tx=Fraction(round(ssd_tx * 100) * round(sd_tx * 100), 10_000),
        ssd_comp=Fraction(round(ssd_comp * 100) * round(sd_comp * 100), 10_000 * n),
        csd=Fraction(round(csd_tx * 100) + round(csd_comp * 100), 100),
        host_part=Fraction(round(host_part * 100), 100),
        k_limit=k_limit,
    )
    verdict, devices = one(
        break_even(
            ssd_tx,
            ssd_comp,
            csd_tx,
            csd_comp,
            k_limit=None if k_limit is None else float(k_limit),
            host_cores=n,
            sd_tx=sd_tx,
            sd_comp=sd_comp,
            host_part_s=host_part,
        )
    )
    last = 300
    scanned = scan(t, last)
    if verdict is Verdict.BREAKS_EVEN and devices <= last:
        assert scanned == devices
    elif verdict is Verdict.BREAKS_EVEN:
        assert scanned is None
        assert exact.beats(t, devices)
        assert not exact.beats(t, devices - 1)
    else:
        # With these numbers nothing lies near 2**53, so "never" must be the truth in the limit:
        # the drives' time stays at or above what the SSDs' time comes down to.
        assert verdict is Verdict.NEVER
        lanes_limit = 0 if k_limit is None else t.ssd_tx / k_limit
        assert t.host_part >= lanes_limit + t.ssd_comp


@given(st.data(), st.integers(1, 40))
def test_vectorized_equals_scalar(data: st.DataObject, count: int) -> None:
    def column(strategy: st.SearchStrategy[Any]) -> list[Any]:
        return data.draw(st.lists(strategy, min_size=count, max_size=count))

    ssd_tx, ssd_comp, csd_tx, csd_comp = (column(times) for _ in range(4))
    k_limit = column(st.integers(10, 200).map(lambda n: n / 10))
    n, host_part = column(cores), column(parts)
    many = break_even(
        ssd_tx, ssd_comp, csd_tx, csd_comp, k_limit=k_limit, host_cores=n, host_part_s=host_part
    )
    for row in range(count):
        single = break_even(
            ssd_tx[row],
            ssd_comp[row],
            csd_tx[row],
            csd_comp[row],
            k_limit=k_limit[row],
            host_cores=n[row],
            host_part_s=host_part[row],
        )
        assert single.devices == many.devices[row]
        assert single.closed_form == many.closed_form[row]
        assert single.verdict() is many.verdict(row)
        assert single.difference() is many.difference(row)
        assert single.ssd_limit_s == many.ssd_limit_s[row]


def test_the_float_pass_agrees_with_exact_arithmetic() -> None:
    """Over wide random magnitudes the fast path must never differ from the definition."""
    rng = np.random.default_rng(20261121)
    count = 4000
    ssd_tx, ssd_comp, csd_tx, csd_comp = 10.0 ** rng.uniform(-4, 4, (4, count))
    # A third of the rows are made to cross at a whole number, up to rounding: the hard case.
    third = count // 3
    crossing = rng.integers(1, 200, third)
    csd_comp[:third] = np.abs(ssd_tx[:third] + crossing * ssd_comp[:third] - csd_tx[:third]) + 1e-9
    k_limit = np.where(
        rng.random(count) < 0.5, rng.integers(1, 64, count), rng.uniform(1, 64, count)
    )
    solution = break_even(ssd_tx, ssd_comp, csd_tx, csd_comp, k_limit=k_limit)
    for row in range(count):
        inputs = (ssd_tx[row], ssd_comp[row], csd_tx[row], csd_comp[row], 1.0)
        t = exact.terms(*inputs, float(k_limit[row]), 1.0, 1.0, 0.0)
        assert exact.smallest(t) == solution.devices[row]
        assert exact.closed_form(t) == solution.closed_form[row]


@given(times, times, times, times, st.integers(1, 20), cores)
def test_bep_moves_the_way_each_quantity_pushes(
    ssd_tx: float, ssd_comp: float, csd_tx: float, csd_comp: float, k_limit: int, n: int
) -> None:
    def bep(**change: float) -> int:
        base: dict[str, Any] = {"ssd_tx_s": ssd_tx, "ssd_comp_s": ssd_comp, "csd_tx_s": csd_tx}
        base |= {"csd_comp_s": csd_comp, "k_limit": k_limit, "host_cores": n}
        return int(break_even(**{**base, **change}).devices)

    base = bep()
    # Better SSD systems need more drives.
    assert bep(host_cores=n + 1) >= base
    assert bep(k_limit=k_limit + 1) >= base
    assert bep(ssd_tx_s=ssd_tx * 2) <= base
    assert bep(ssd_comp_s=ssd_comp * 2) <= base
    # Slower drives are needed in greater number.
    assert bep(csd_tx_s=csd_tx * 2) >= base
    assert bep(csd_comp_s=csd_comp * 2) >= base
    # An overloaded host falls behind sooner.
    assert bep(sd_tx=2.0) <= base
    assert bep(sd_comp=2.0) <= base


@given(times, times, times, times, st.integers(1, 20), cores)
def test_closed_form_is_the_general_answer_up_to_k_limit_but_for_ties(
    ssd_tx: float, ssd_comp: float, csd_tx: float, csd_comp: float, k_limit: int, n: int
) -> None:
    solution = break_even(ssd_tx, ssd_comp, csd_tx, csd_comp, k_limit=k_limit, host_cores=n)
    hundredths = [round(100 * time) for time in (ssd_tx, ssd_comp, csd_tx, csd_comp)]
    crossing = Fraction(hundredths[2] + hundredths[3] - hundredths[0], 1) / (
        Fraction(hundredths[1], n)
    )
    general, closed = int(solution.devices), int(solution.closed_form)
    tie = crossing >= 1 and crossing.denominator == 1
    if crossing > k_limit:
        # Beyond k_limit the SSDs have stopped gaining, so fewer drives do, or as many.
        assert general <= closed
        expected = Difference.NONE if general == closed else Difference.K_LIMIT
    elif tie or crossing == 0:
        assert general == max(1, crossing + 1)
        expected = Difference.TIE if tie else Difference.NONE
    else:
        assert general == closed
        expected = Difference.NONE
    assert solution.difference() is expected


@given(times, times, times, times, factors, factors)
def test_equation_13_is_equation_8_divided_through(
    ssd_tx: float, ssd_comp: float, csd_tx: float, csd_comp: float, sd_tx: float, sd_comp: float
) -> None:
    crossing = (csd_tx + csd_comp - sd_tx * ssd_tx) / (sd_comp * ssd_comp)
    assume(abs(crossing - round(crossing)) > 1e-6)
    by_ratios = break_even_by_ratios(
        ssd_tx / csd_tx, ssd_comp / csd_comp, ssd_tx / ssd_comp, sd_tx=sd_tx, sd_comp=sd_comp
    )
    solution = break_even(
        ssd_tx, ssd_comp, csd_tx, csd_comp, k_limit=None, sd_tx=sd_tx, sd_comp=sd_comp
    )
    assert by_ratios == solution.closed_form == solution.devices


def test_a_tie_in_decimals_is_a_tie() -> None:
    """0.1 + 2 x 0.1 against 0.3: equal to the user, though not in binary floating point."""
    assert 0.1 + 2 * 0.1 > 0.3
    solution = break_even(0.1, 0.1, 0.2, 0.1, k_limit=8)
    assert solution.devices == 3
    assert solution.closed_form == 2
    assert solution.difference() is Difference.TIE


def test_a_tie_through_equation_2_is_a_tie() -> None:
    """1/11 rounds upwards in binary; on 11 cores 11 drives only draw level."""
    assert break_even(1.0, 1.0, 1.0, 1.0, k_limit=None, host_cores=11).devices == 12


def test_never_says_so_and_what_it_approaches() -> None:
    solution = break_even(8.0, 1.0, 1.0, 1.0, k_limit=4, host_part_s=3.0)
    assert solution.verdict() is Verdict.NEVER
    assert solution.devices == 0
    assert solution.ssd_limit_s == 3.0
    assert solution.csd_limit_s == 3.0
    assert solution.difference() is Difference.HOST_PART


def test_equal_compute_leaves_the_decision_to_transfer() -> None:
    """C = H and no k_limit: the inequality is S > D for every m, and S = D is a tie for ever."""
    more = break_even(2.25, 1.0, 1.0, 1.0, k_limit=None, host_part_s=1.0)
    level = break_even(2.0, 1.0, 1.0, 1.0, k_limit=None, host_part_s=1.0)
    assert one(more) == (Verdict.BREAKS_EVEN, 1)
    assert one(level) == (Verdict.NEVER, 0)


def test_a_lead_that_is_lost_again_does_not_count() -> None:
    # One drive wins by far, but the host's part keeps large arrays slower for good.
    assert break_even(10.0, 1.0, 1.0, 1.0, k_limit=None, host_part_s=2.0).verdict() == "never"
    # With a bus limit of 2 the same lead lasts: 10/2 + 1 > 2/m + 2 for every m.
    assert break_even(10.0, 1.0, 1.0, 1.0, k_limit=2, host_part_s=2.0).devices == 1
    # Ahead at 1 (16.5 s against 16 s), behind from 2, level at 24 (4.5 s), ahead for good from 25.
    t = exact.Terms(Fraction(16), Fraction(1, 2), Fraction(12), Fraction(4), Fraction(4))
    leads = [devices for devices in range(1, 28) if exact.beats(t, devices)]
    assert leads == [1, 25, 26, 27]
    solution = break_even(16.0, 0.5, 11.0, 1.0, k_limit=4, host_part_s=4.0)
    assert solution.devices == 25


def test_more_drives_than_can_be_counted_are_out_of_range_not_a_number() -> None:
    solution = break_even(1.0, 1e-90, 1e90, 1.0, k_limit=None)
    assert solution.verdict() is Verdict.OUT_OF_RANGE
    assert solution.devices == 0
    assert solution.closed_form == 0


@pytest.mark.parametrize("argument", ["ssd_tx_s", "ssd_comp_s", "csd_tx_s", "csd_comp_s"])
@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_times_are_refused_by_name(argument: str, value: float) -> None:
    good: dict[str, Any] = dict.fromkeys(("ssd_tx_s", "ssd_comp_s", "csd_tx_s", "csd_comp_s"), 1.0)
    with pytest.raises(ModelError) as caught:
        break_even(**{**good, argument: value}, k_limit=8)
    assert caught.value.argument == argument


def test_a_limit_between_two_whole_numbers() -> None:
    """32 GB/s over SSDs of 6.5 GB/s is a bandwidth: SSDs reach all of it, not four of them."""
    exact_limit = break_even(1.0, 0.1, 9.0, 1.0, k_limit=32 / 6.5)
    floored = break_even(1.0, 0.1, 9.0, 1.0, k_limit=4)
    assert int(floored.devices) == 29  # 10 / (1 / 4 + 0.1) = 28.57
    assert int(exact_limit.devices) == 33  # 10 / (6.5 / 32 + 0.1) = 32.99
    # Behind at K = 1.5 itself, but ahead at 1 and from 2 on: at every whole number.
    ahead = break_even(10.0, 1.0, 5.0, 4.9, k_limit=1.5, host_part_s=1.0)
    assert int(ahead.devices) == 1


@given(times, times, times, times, st.integers(101, 400), st.integers(0, 900))
def test_equal_answers_at_every_fraction_of_a_limit(
    ssd_tx: float, ssd_comp: float, csd_tx: float, csd_comp: float, hundredths: int, part: int
) -> None:
    """The corner that only hosts with a part of their own reach, scanned from the definition."""
    limit, host_part = hundredths / 100, part / 100
    found = break_even(ssd_tx, ssd_comp, csd_tx, csd_comp, k_limit=limit, host_part_s=host_part)
    t = exact.terms(ssd_tx, ssd_comp, csd_tx, csd_comp, 1, limit, 1, 1, host_part)
    if found.verdict() is Verdict.BREAKS_EVEN and found.devices <= 400:
        assert scan(t, 400) == found.devices
    elif found.verdict() is Verdict.NEVER:
        assert scan(t, 400) is None
