"""Durability against failures simulated drive by drive, and against closed forms."""

import random
from collections import Counter
from dataclasses import replace
from itertools import combinations
from math import comb, exp, inf

import pytest

from csdplan.errors import ModelError
from csdplan.model.failure import (
    Domain,
    mttdl_closed_form,
    mttdl_years,
    spares_needed,
    unavailable_share,
)
from csdplan.model.rebuild import Array, read_Bps, rebuild, rebuild_hours
from csdplan.solve.durability import Failing, Goals, Part, candidates, durability, first_cause

YEAR_H = 8766.0
ARRAY = Array(24, 12, 10e12, 6e9, 4e9, 12.5e9, inf)
FAILING = Failing(
    array=ARRAY,
    afr=0.01,
    hosts=Part(12),
    racks=Part(0),
    domain="drive",
    unreadable_per_bit=0.0,
    share=0.3,
    to_spare=True,
    wait_hours=0.25,
    replace_hours=72.0,
    decodes=(),
)


# Simulated failures: each drive has its own state, and stripes are placed one by one.


def stripes_of(drives: int, hosts: int, width: int, *, by_host: bool) -> list[int]:
    """Every placement there is as a set of bits, so that whatever can meet in a stripe does."""
    host_of = [drive % hosts for drive in range(drives)]
    most = -(-width // hosts)
    return [
        sum(1 << one for one in chosen)
        for chosen in combinations(range(drives), width)
        if not by_host or max(Counter(host_of[one] for one in chosen).values()) <= most
    ]


def simulated_years(
    dice: random.Random,
    stripes: list[int],
    parity: int,
    shape: tuple[int, int],
    rates: tuple[float, float],
    repair: tuple[float, float],
    bad: float,
    seen: dict[int, int],
) -> float:
    """Return the time until a stripe has lost too much.

    `shape`: drives and hosts; `rates`: losses of a drive and of a host a year; `repair`: years to
    rebuild one drive alone, and the least that drives rebuilt together take for each; `bad`: chance
    that the last redundancy cannot be read; `seen`: pieces lost of the worst stripe, by drives.
    """
    drives, hosts = shape
    alone, together = repair
    clock, single, whole = 0.0, set[int](), set[int]()
    while True:
        pace = 0.0 if not single else min(len(single) / alone, 1.0 / together)
        per_host = drives // hosts
        host_pace = len(whole) / max(alone, len(whole) * per_host * together) if whole else 0.0
        events = [
            ((drives - len(single)) * rates[0], "drive"),
            ((hosts - len(whole)) * rates[1], "host"),
            (pace, "drive back"),
            (host_pace, "host back"),
        ]
        total = sum(rate for rate, _ in events)
        clock += dice.expovariate(total)
        (what,) = dice.choices([name for _, name in events], [rate for rate, _ in events])
        if what == "drive back":
            single.remove(dice.choice(sorted(single)))
            continue
        if what == "host back":
            whole.remove(dice.choice(sorted(whole)))
            continue
        if what == "drive":
            single.add(dice.choice([one for one in range(drives) if one not in single]))
        else:
            whole.add(dice.choice([one for one in range(hosts) if one not in whole]))
        gone = sum(1 << one for one in range(drives) if one in single or one % hosts in whole)
        if gone not in seen:
            seen[gone] = max((stripe & gone).bit_count() for stripe in stripes)
        worst = seen[gone]
        if worst > parity or (worst == parity and bad and dice.random() < bad):
            return clock


def mean(
    runs: int,
    seed: int,
    stripes: list[int],
    parity: int,
    shape: tuple[int, int],
    rates: tuple[float, float],
    repair: tuple[float, float],
    bad: float = 0.0,
) -> float:
    dice, seen = random.Random(seed), dict[int, int]()
    found = [
        simulated_years(dice, stripes, parity, shape, rates, repair, bad, seen) for _ in range(runs)
    ]
    return sum(found) / runs


def repairs(alone: float, together: float, most: int, drives: int = 1) -> tuple[float, ...]:
    return tuple(n / max(alone, n * drives * together) for n in range(1, most + 1))


#: 2,000 runs: the mean of an exponential time is off by 2.2 % (one standard deviation).
RUNS, FOUR_SIGMA = 2000, 0.09


@pytest.mark.parametrize("parity", [1, 2, 3])
@pytest.mark.parametrize("together", [0.0001, 0.02], ids=["each alone", "shared"])
def test_drives_against_simulated_failures(parity: int, together: float) -> None:
    drives, losses, alone = 8, 0.9, 0.02 if parity < 3 else 0.12
    stripes = stripes_of(drives, drives, 5, by_host=False)
    seen = mean(RUNS, parity, stripes, parity, (drives, drives), (losses, 0.0), (alone, together))
    chain = mttdl_years([Domain(drives, losses, repairs(alone, together, parity))], parity)
    assert seen == pytest.approx(chain, rel=FOUR_SIGMA)


def test_unreadable_sectors_against_simulated_failures() -> None:
    stripes = stripes_of(7, 7, 5, by_host=False)
    seen = mean(RUNS, 5, stripes, 2, (7, 7), (1.0, 0.0), (0.02, 0.0001), bad=0.3)
    chain = mttdl_years([Domain(7, 1.0, repairs(0.02, 0.0001, 2))], 2, lambda lost: 0.3)
    assert seen == pytest.approx(chain, rel=FOUR_SIGMA)
    # Most data is lost to sectors here: without them it lasts much longer.
    assert chain < 0.5 * mttdl_years([Domain(7, 1.0, repairs(0.02, 0.0001, 2))], 2)


@pytest.mark.parametrize("by_host", [True, False])
def test_hosts_against_simulated_failures(by_host: bool) -> None:
    drives, hosts, data, parity, alone, together = 12, 6, 3, 2, 0.03, 0.001
    stripes = stripes_of(drives, hosts, data + parity, by_host=by_host)
    seen = mean(RUNS, 9, stripes, parity, (drives, hosts), (0.3, 0.2), (alone, together))
    # Bandwidths that make a rebuild take as long, in the units of the whole answer.
    second = 1e12 / (YEAR_H * 3600)
    array = Array(drives, hosts, 1e12, second / together * data / 11, second / alone, 1e30, 1e30)
    whole = Failing(
        array, 0.3, Part(hosts, 0.2, 1.0, 1.0), Part(0), "host" if by_host else "drive",
        unreadable_per_bit=0.0, share=1.0, to_spare=True, wait_hours=0.0, replace_hours=1.0,
        decodes=(),
    )  # fmt: skip
    chain = durability(whole, data, parity).mttdl
    # Without regard to hosts the chain is on the safe side: a host whose drive was lost before
    # takes one piece more, not two.
    assert chain <= seen * (1 + FOUR_SIGMA)
    assert chain >= seen * (1 - FOUR_SIGMA - (0.0 if by_host else 0.1))


@pytest.mark.parametrize("parity", range(1, 7))
@pytest.mark.parametrize("drives", [8, 24, 400])
def test_closed_form_within_5_percent(parity: int, drives: int) -> None:
    # Repairs are short, and each drive is rebuilt at its own rate.
    hours = 6.0
    rates = tuple(n * YEAR_H / hours for n in range(1, parity + 1))
    chain = mttdl_years([Domain(drives, 0.01, rates)], parity)
    closed = mttdl_closed_form(drives, 0.01, hours / YEAR_H, parity)
    assert chain == pytest.approx(closed, rel=0.05)


def test_published_forms() -> None:
    # Chen et al. 1994: MTTF^2 / (n (n-1) MTTR), and MTTF^3 / (n (n-1) (n-2) MTTR^2) where drives
    # are rebuilt one after another.
    rate, n, hours = 0.004, 20, 12.0
    mttf, mttr = 1 / rate, hours / YEAR_H
    first = mttdl_years([Domain(n, rate, (1 / mttr,))], 1)
    assert first == pytest.approx(mttf**2 / (n * (n - 1) * mttr), rel=0.05)
    second = mttdl_years([Domain(n, rate, (1 / mttr, 1 / mttr))], 2)
    assert second == pytest.approx(mttf**3 / (n * (n - 1) * (n - 2) * mttr**2), rel=0.05)


def test_the_whole_answer_is_the_closed_form_where_that_holds() -> None:
    for parity in (1, 2, 4):
        found = durability(FAILING, 8, parity)
        assert found.rebuild.binds == "link of its host"
        assert found.mttdl == pytest.approx(found.closed_form, rel=0.05)


def test_many_nines_lose_no_digits() -> None:
    rates = tuple(n * YEAR_H / 0.01 for n in range(1, 13))
    chain = mttdl_years([Domain(30, 1e-3, rates)], 12)
    assert chain == pytest.approx(mttdl_closed_form(30, 1e-3, 0.01 / YEAR_H, 12), rel=1e-3)
    assert chain > 1e80


# Availability, spares, rebuilds and reads.


def test_unavailability_against_every_case() -> None:
    domains = [(4, 0.1, 2), (9, 0.05, 1)]
    exact = 0.0
    for hosts in range(5):
        for drives in range(10):
            if 2 * hosts + drives > 3:
                exact += (
                    comb(4, hosts) * 0.1**hosts * 0.9 ** (4 - hosts)
                    * comb(9, drives) * 0.05**drives * 0.95 ** (9 - drives)
                )  # fmt: skip
    assert unavailable_share(domains, 3) == pytest.approx(exact, rel=1e-12)
    assert unavailable_share(domains[::-1], 3) == pytest.approx(exact, rel=1e-12)
    # Three of twelve, each down for a millionth of the time.
    assert unavailable_share([(12, 1e-6, 1)], 2) == pytest.approx(220e-18, rel=1e-4)


def test_spares() -> None:
    assert spares_needed(0.002, 0.01) == 1
    mean_failures, spares = 3.0, spares_needed(3.0, 0.01)
    chances = [exp(-mean_failures) * mean_failures**n / _factorial(n) for n in range(spares)]
    assert 1 - sum(chances) <= 0.01 < 1 - sum(chances[:-1])
    assert 8000 < spares_needed(8200.0, 0.01) < 8600


def _factorial(n: int) -> int:
    return 1 if n < 2 else n * _factorial(n - 1)


def test_rebuilds_by_hand() -> None:
    # Onto one drive: 30 % of 12.5 GB/s bring 8 pieces, of which a twelfth lies in the host itself.
    spare = rebuild(ARRAY, 8, share=0.3, to_spare=True)
    assert spare.rate_Bps(1) == pytest.approx(0.3 * 12.5e9 / 8 * 12 / 11)
    assert rebuild_hours(ARRAY, spare, 1, 0.25) == pytest.approx(
        0.25 + 10e12 / spare.each_Bps / 3600
    )
    assert spare.rate_Bps(2) == pytest.approx(2 * spare.each_Bps)
    # Into all: each byte takes 8 reads and a write of 23 drives.
    every = rebuild(ARRAY, 8, share=0.3, to_spare=False)
    assert every.binds in {"media of the drives", "links of all hosts"}
    media = 0.3 * 23 / (8 / 6e9 + 1 / 4e9)
    links = 0.3 * 12 * 12.5e9 / (8 * 11 / 12)
    assert every.rate_Bps(1) == pytest.approx(min(media, links))
    slow = replace(ARRAY, write_Bps=1e8)
    assert rebuild(slow, 8, share=0.5, to_spare=True).rate_Bps(1) == pytest.approx(5e7)
    assert rebuild(slow, 8, share=0.5, to_spare=True).binds == "writes of the new drive"
    alone = replace(ARRAY, hosts=1, link_Bps=1.0)
    assert rebuild(alone, 8, share=1.0, to_spare=True).rate_Bps(1) == pytest.approx(4e9)


def test_degraded_reads_against_counted_reads() -> None:
    # Every placement of 4+2 on 9 drives, all pieces read once, the lost ones from 4 random others.
    drives, data, width = 9, 4, 6
    dice = random.Random(3)
    loads, pieces = Counter[int](), 0
    for chosen in combinations(range(drives), width):
        for first in range(width):
            order = [*chosen[first:], *chosen[:first]]
            for one in order[:data]:
                pieces += 1
                others = [drive for drive in order if drive != 0]
                loads.update([one] if one else dice.sample(others, data))
    load = sum(loads.values()) / len(loads)
    assert max(loads.values()) < 1.05 * load
    array = replace(ARRAY, drives=drives, hosts=drives, link_Bps=1e12)
    expected = pieces / load * array.read_Bps
    assert read_Bps(array, data, 1) == pytest.approx(expected, rel=1e-3)
    # A rebuild of 1 GB/s reads 4 GB/s.
    each = 1 + (data - 1) / drives
    less = read_Bps(array, data, 1) - read_Bps(array, data, 1, 1e9)
    assert less == pytest.approx(4e9 / each)


def test_pieces_on_hosts_and_racks() -> None:
    # 24 drives, 12 hosts, 4 racks; a stripe of 10.
    racked = replace(FAILING, racks=Part(4, 0.5, 1.0, 0.1))
    assert racked.pieces(10) == (1, 2, 6)
    assert replace(racked, domain="host").pieces(10) == (1, 1, 3)
    assert replace(racked, domain="rack").pieces(10) == (1, 1, 3)
    assert replace(racked, domain="rack").pieces(14) == (1, 2, 4)
    assert replace(FAILING, domain="host").pieces(14) == (1, 2, 4 * 3 + 2)


def test_hosts_and_sectors_shorten_the_time() -> None:
    plain = durability(FAILING, 8, 2)
    sectors = durability(replace(FAILING, unreadable_per_bit=1e-16), 8, 2)
    lossy = replace(FAILING, hosts=Part(12, 0.5, 4.0, 0.01))
    apart = durability(replace(lossy, domain="host"), 8, 2)
    assert plain.mttdl > sectors.mttdl
    assert plain.mttdl > apart.mttdl > durability(lossy, 8, 2).mttdl
    assert plain.unavailable < apart.unavailable < durability(lossy, 8, 2).unavailable


def test_the_code_found_needs_the_least_flash_that_will_do() -> None:
    goals = Goals(nines=9.0, unavailable=1.0, hours=24.0, reads=0.6)
    found = list(candidates(FAILING, goals))
    assert found
    for one in found:
        assert not goals.missed(one)
        if one.data + one.parity < ARRAY.drives and one.data < 32:
            assert goals.missed(durability(FAILING, one.data + 1, one.parity))
    best = min(found, key=lambda one: one.overhead)
    for parity in range(1, 9):
        for data in range(1, 24 - parity + 1):
            other = durability(FAILING, data, parity)
            assert goals.missed(other) or other.overhead >= best.overhead


def test_the_cause_of_most_losses() -> None:
    lossy = Part(12, 0.5, 4.0, 0.01)
    assert first_cause(FAILING, 8, 2) == "drives"
    assert first_cause(replace(FAILING, unreadable_per_bit=1e-16), 8, 2) == "unreadable sectors"
    assert first_cause(replace(FAILING, hosts=lossy), 8, 1) == "hosts"
    racked = replace(FAILING, hosts=lossy, racks=Part(4, 0.5, 1.0, 0.1), domain="host")
    assert first_cause(racked, 8, 2) == "racks"


def test_a_stripe_wider_than_the_array_is_refused() -> None:
    with pytest.raises(ModelError, match="at most 24 pieces"):
        durability(FAILING, 23, 2)
