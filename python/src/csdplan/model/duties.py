"""Cores of a drive with two duties: requests of hosts, and the background tasks that they cause.

Requests are Poisson arrivals, spread over cores evenly; each core serves its queue first come first
served. A request that has been served puts its background task at the end of a queue.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Duties:
    """Work of a drive.

    Attributes
    ----------
    cores : int
        Cores of the drive.
    request_s, task_s : float
        Time of a core for a request, and for its background task [s].
    """

    cores: int
    request_s: float
    task_s: float

    def most_per_s(self, apart: int) -> float:
        """Return the requests a second that are served at most.

        Parameters
        ----------
        apart : int
            Cores that do background tasks alone; 0 if each does both.
        """
        if not apart:
            return self.cores / (self.request_s + self.task_s)
        return min((self.cores - apart) / self.request_s, apart / self.task_s)

    def response_s(self, per_s: float, apart: int) -> float:
        """Return the mean time of a request: its wait and its service [s].

        Parameters
        ----------
        per_s : float
            Requests a second; fewer than `most_per_s`.
        apart : int
            As in `most_per_s`.

        Notes
        -----
        A core by itself is a queue with constant service times (Pollaczek and Khinchine; L.
        Kleinrock, "Queueing Systems", volume 1, 1975, chapter 5). With both duties, the work V that
        an arrival finds is that of services of both times together; of it, the tasks of requests
        that are still in the system come after the arrival, and these are rate times response (J.
        D. C. Little, 1961): W = V - task rate (W + request).
        """
        each = per_s / (self.cores - apart)
        task_s = 0.0 if apart else self.task_s
        both = self.request_s + task_s
        work_s = each * both**2 / (2.0 * (1.0 - each * both))
        wait_s = (work_s - each * task_s * self.request_s) / (1.0 + each * task_s)
        return wait_s + self.request_s

    def best_apart(self, per_s: float) -> int | None:
        """Return the cores apart at which requests are answered soonest; None if none carries them.

        Zero means that each core does both.
        """
        able = [n for n in range(self.cores) if per_s < self.most_per_s(n)]
        return min(able, key=lambda n: self.response_s(per_s, n), default=None)
