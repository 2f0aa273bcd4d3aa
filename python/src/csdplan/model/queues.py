"""Time that a request spends in queues one after another, each fed by independent arrivals.

Arrivals are Poisson, and each station is taken by itself; the times in all of them add up.

References
----------
- A. K. Erlang (1917): probability of waiting, ``erlang_c``.
- A. M. Lee, P. A. Longton, "Queueing processes associated with airline passenger check-in",
  Operational Research Quarterly 10, 1959: the wait where service times vary less or more than
  exponentially, as the share (1 + c^2) / 2 of the exponential one. For one server it is the formula
  of Pollaczek and Khinchine, which is exact.
- L. Kleinrock, "Queueing Systems", volume 2, 1976, chapter 2: those who wait do so for times that
  are near to exponential.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

#: Points of the grid on which waits are added up, and how many mean waits it reaches.
_POINTS, _REACH = 1 << 13, 24.0


@dataclass(frozen=True)
class Station:
    """Servers with one queue.

    Attributes
    ----------
    name : str
        Its name.
    servers : int
        Requests served at once.
    service_s : float
        Mean time of a service [s].
    variation : float
        Squared coefficient of variation of service times [1]: 0 if constant, 1 if exponential.
    """

    name: str
    servers: int
    service_s: float
    variation: float

    @property
    def most_per_s(self) -> float:
        """Requests a second that are served at most."""
        return self.servers / self.service_s

    def waits(self, per_s: float) -> tuple[float, float]:
        """Return the probability to wait, and the mean wait of those who do [s]."""
        offered = per_s * self.service_s
        chance = erlang_c(self.servers, offered)
        wait = self.service_s / (self.servers - offered)
        return chance, wait * (1.0 + self.variation) / 2.0


def erlang_c(servers: int, offered: float) -> float:
    """Return the probability that all servers are at work.

    Parameters
    ----------
    servers : int
        Servers.
    offered : float
        Arrivals in the time of a service; less than `servers`.
    """
    # Erlang's B by its recursion, which overflows nowhere.
    blocked = 1.0
    for number in range(1, servers + 1):
        blocked = offered * blocked / (number + offered * blocked)
    busy = offered / servers
    return blocked / (1.0 - busy * (1.0 - blocked))


def latency_s(
    stations: Sequence[Station], per_s: float, fixed_s: float, share: float
) -> tuple[float, float]:
    """Return the mean latency, and the one that a share of requests does not exceed [s].

    Parameters
    ----------
    stations : sequence of Station
        Stations that each request passes.
    per_s : float
        Requests a second; less than each station serves.
    fixed_s : float
        Time that each request takes beyond its waits [s].
    share : float
        Share of requests, such as 0.99.
    """
    waits = [station.waits(per_s) for station in stations]
    mean = fixed_s + sum(chance * wait for chance, wait in waits)
    longest = max(wait for _, wait in waits)
    step = _REACH * longest / _POINTS
    total = np.zeros(_POINTS)
    total[0] = 1.0
    for chance, wait in waits:
        total = _with_wait(total, chance, wait, step)
    place = int(np.searchsorted(np.cumsum(total), share))
    return mean, fixed_s + min(place, _POINTS) * step


def _with_wait(total: np.ndarray, chance: float, wait: float, step: float) -> np.ndarray:
    """Return the distribution of a sum, after a wait that is exponential with some chance."""
    edges = np.exp(-np.arange(_POINTS) * step / wait)
    each = np.empty(_POINTS)
    each[0] = 1.0 - chance
    each[1:] = chance * -np.diff(edges)
    size = 2 * _POINTS
    both = np.fft.irfft(np.fft.rfft(total, size) * np.fft.rfft(each, size), size)
    return np.asarray(both[:_POINTS])
