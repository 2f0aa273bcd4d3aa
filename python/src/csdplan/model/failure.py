"""Loss and unavailability of coded data: drives, hosts and racks that fail and are repaired.

Failures and repairs are memoryless, so an array is a Markov chain over how many drives, hosts and
racks are lost at once. Data is lost once the pieces that they held exceed the code's parity. Any
losses are taken to meet in some stripe, which is so where there are many stripes.

References
----------
- D. A. Patterson, G. Gibson, R. H. Katz, "A case for redundant arrays of inexpensive disks (RAID)",
  SIGMOD 1988; P. M. Chen et al., "RAID: high-performance, reliable secondary storage", ACM
  Computing Surveys 26(2), 1994: `mttdl_closed_form` for one and for two losses survived.
- K. S. Trivedi, "Probability and Statistics with Reliability, Queuing, and Computer Science
  Applications", 2nd edition, 2001, chapter 8: chains with an absorbing state.
- W. K. Grassmann, M. I. Taksar, D. P. Heyman, "Regenerative analysis and steady state distributions
  for Markov chains", Operations Research 33(5), 1985: elimination without subtraction, so that
  rates that lie many powers of ten apart lose no digits.
- J. L. Hafner, K. Rao, "Notes on reliability models for non-MDS erasure codes", IBM Research Report
  RJ10391, 2006: sectors that cannot be read while the last redundancy is gone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import exp, expm1, factorial, lgamma, log, log1p, prod

import numpy as np

#: Bits of a byte.
_BITS = 8


@dataclass(frozen=True)
class Domain:
    """Things of one kind that fail apart from each other: drives, hosts, or racks.

    Attributes
    ----------
    count : int
        How many there are.
    losses : float
        Losses of one a year, with all its data [1/year].
    repairs : tuple of float
        Repairs a year of all that are lost, while one, two and so on are [1/year].
    pieces : int
        Pieces of one stripe that one holds at most.
    covered : tuple of int
        For each domain, how many of these one lost thing of it covers, so that their loss adds no
        lost piece: a host covers its drives. By default each covers itself.
    """

    count: int
    losses: float
    repairs: tuple[float, ...]
    pieces: int = 1
    covered: tuple[int, ...] = ()

    def left(self, lost: tuple[int, ...], itself: int) -> int:
        """Return how many are left whose loss adds lost pieces."""
        covered = sum(one * number for one, number in zip(self.covered, lost, strict=False))
        return max(0, self.count - (covered if self.covered else lost[itself]))


def mttdl_years(
    domains: Sequence[Domain],
    parity: int,
    unreadable: Callable[[tuple[int, ...]], float] | None = None,
) -> float:
    """Return the mean time to data loss of an array that begins whole [years].

    Parameters
    ----------
    domains : sequence of Domain
        What fails.
    parity : int
        Pieces of a stripe that may be lost; at least 1.
    unreadable : callable, optional
        Probability that a piece cannot be read while a state without redundancy is repaired, by the
        numbers lost; data is lost then. By default all can be read.
    """
    states = list(_states(domains, parity))
    index = {state: i for i, state in enumerate(states)}
    rates = np.zeros((len(states), len(states)))
    lost = np.zeros(len(states))
    for state, here in index.items():
        for d, domain in enumerate(domains):
            fails = domain.left(state, d) * domain.losses
            more = _step(state, d, 1)
            if fails and more not in index:
                lost[here] += fails
            elif fails:
                bare = _pieces(domains, more) == parity
                share = unreadable(more) if bare and unreadable is not None else 0.0
                lost[here] += fails * share
                rates[here, index[more]] += fails * (1.0 - share)
            if state[d]:
                rates[here, index[_step(state, d, -1)]] += domain.repairs[state[d] - 1]
    return _absorbed_after(rates, lost)


def _states(domains: Sequence[Domain], parity: int) -> Iterator[tuple[int, ...]]:
    """Yield how many of each may be lost with no data lost, the whole array first."""
    most = [min(domain.count, parity // domain.pieces) for domain in domains]
    for state in product(*(range(number + 1) for number in most)):
        if _pieces(domains, state) <= parity:
            yield state


def _pieces(domains: Sequence[Domain], state: tuple[int, ...]) -> int:
    return sum(domain.pieces * number for domain, number in zip(domains, state, strict=True))


def _step(state: tuple[int, ...], place: int, by: int) -> tuple[int, ...]:
    return tuple(number + by * (place == i) for i, number in enumerate(state))


def _absorbed_after(rates: np.ndarray, lost: np.ndarray) -> float:
    """Return the mean time from the first state to absorption, states eliminated from the last."""
    times = np.ones(len(lost))
    for k in range(len(lost) - 1, 0, -1):
        out = rates[k, :k].sum() + lost[k]
        share = rates[:k, k] / out
        rates[:k, :k] += np.outer(share, rates[k, :k])
        lost[:k] += share * lost[k]
        times[:k] += share * times[k]
        np.fill_diagonal(rates[:k, :k], 0.0)
    return float(times[0] / lost[0]) if lost[0] > 0 else float("inf")


def mttdl_closed_form(count: int, losses: float, repair_years: float, parity: int) -> float:
    """Return the mean time to data loss where repairs are far shorter than lives [years].

    Parameters
    ----------
    count : int
        Drives.
    losses : float
        Losses of one a year [1/year].
    repair_years : float
        Time of a repair; lost drives are repaired at once [years].
    parity : int
        Losses survived.

    Notes
    -----
    MTTF^(K+1) K! / (n (n-1) ... (n-K) MTTR^K): Patterson et al. for K = 1. The published form for
    K = 2 repairs one drive after another, and lacks the factor K!.
    """
    ways = prod(count - lost for lost in range(parity + 1))
    return factorial(parity) / (losses ** (parity + 1) * ways * repair_years**parity)


def loss_probability(mttdl: float, years: float) -> float:
    """Return the probability of data loss within some years [1]: times to it are exponential."""
    return -expm1(-years / mttdl)


def unreadable_probability(read_bytes: float, errors_per_bit: float) -> float:
    """Return the probability that some of what is read cannot be read [1]."""
    return -expm1(-read_bytes * _BITS * errors_per_bit)


def share_down(a_year: float, hours: float, hours_per_year: float) -> float:
    """Return the share of time that something is down: MTTR / (MTTF + MTTR) [1].

    Parameters
    ----------
    a_year : float
        Outages of one a year [1/year].
    hours, hours_per_year : float
        Length of an outage, and of a year [h].
    """
    down = a_year * hours / hours_per_year
    return down / (1.0 + down)


def unavailable_share(domains: Sequence[tuple[int, float, int]], parity: int) -> float:
    """Return the share of time in which some data cannot be read [1].

    Parameters
    ----------
    domains : sequence of (int, float, int)
        Number of things, share of time that each is down, and pieces of a stripe on one at most.
        They fail independently, so the numbers that are down are binomial.
    parity : int
        Pieces of a stripe that may be missing.

    Notes
    -----
    Only terms of the tail are added up: no small number is the difference of two large ones.
    """
    if parity < 0:
        return 1.0
    if not domains:
        return 0.0
    (count, down, pieces), rest = domains[0], domains[1:]
    found = 0.0
    # Of the last, fewer than so many leave all data readable.
    for number in range(0 if rest else parity // pieces + 1, count + 1):
        chance = _binomial(number, count, down)
        left = parity - pieces * number
        found += chance * (unavailable_share(rest, left) if rest else 1.0)
        if number > count * down and chance < found * _NOTHING:
            break
    return found


#: A term this much smaller than the sum does not change it.
_NOTHING = 1e-18


def _binomial(number: int, count: int, share: float) -> float:
    """Return the probability that `number` of `count` are down."""
    if not 0.0 < share < 1.0:
        return float(number == (count if share > 0.0 else 0))
    ways = lgamma(count + 1) - lgamma(number + 1) - lgamma(count - number + 1)
    return exp(ways + number * log(share) + (count - number) * log1p(-share))


def spares_needed(expected: float, risk: float) -> int:
    """Return the least number of spares with which few failures find none.

    Parameters
    ----------
    expected : float
        Mean failures until a delivery; their number is Poisson (G. J. Feeney, C. C. Sherbrooke,
        "The (S-1, S) inventory policy under compound Poisson demand", Management Science 12(5),
        1966).
    risk : float
        Share of failures that may find all spares used [1].
    """
    fewer, spares = float(expected == 0.0), 0
    while 1.0 - fewer > risk:
        # The logarithm, because the first terms of a large mean are smaller than any float.
        fewer += exp(spares * log(expected) - expected - lgamma(spares + 1))
        spares += 1
    return spares
