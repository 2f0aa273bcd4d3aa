"""Bandwidth that transfers share: max-min fair over all links that each of them crosses.

Transfers over the same links run at the same speed, so they form one class, and a class needs one
number: how many bytes each of its transfers has received so far. Speeds change only when a
transfer begins or ends; between those instants nothing is computed.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from itertools import count

import simpy

Link = Hashable
Path = tuple[Link, ...]

#: Transfers that end within this share of their size of each other end together.
_TOGETHER = 1e-9


@dataclass
class _Class:
    """Transfers over one path: bytes served to each since the class was last empty."""

    path: Path
    served: float = 0.0
    speed_Bps: float = 0.0
    ends: list[tuple[float, int, float, simpy.Event]] = field(default_factory=list)


class FairLinks:
    """Links of a simulation, and the transfers on them.

    Parameters
    ----------
    env : simpy.Environment
        The simulation.
    capacity_Bps : mapping
        Capacity of each link [bytes/s]; greater than 0.

    Attributes
    ----------
    carried_bytes : dict
        Bytes that each link has been asked to carry.
    """

    def __init__(self, env: simpy.Environment, capacity_Bps: Mapping[Link, float]) -> None:
        self._env = env
        self._capacity_Bps = dict(capacity_Bps)
        self._classes: dict[Path, _Class] = {}
        self._order = count()
        self._updated_s = 0.0
        self._alarm: simpy.Event | None = None
        self.carried_bytes: dict[Link, float] = dict.fromkeys(self._capacity_Bps, 0.0)

    def transfer(self, path: Path, bytes: float) -> simpy.Event:
        """Begin a transfer; the event returned occurs when its last byte has arrived."""
        done = self._env.event()
        self._advance()
        flows = self._classes.setdefault(path, _Class(path))
        entry = (flows.served + bytes, next(self._order), bytes, done)
        heappush(flows.ends, entry)
        for link in path:
            self.carried_bytes[link] += bytes
        self._share()
        return done

    def _advance(self) -> None:
        """Serve every class up to now."""
        passed_s = self._env.now - self._updated_s
        self._updated_s = self._env.now
        if passed_s > 0:
            for flows in self._classes.values():
                flows.served += flows.speed_Bps * passed_s

    def _share(self) -> None:
        """Give every class its fair speed, and wake when the first transfer will end."""
        classes = list(self._classes.values())
        left = dict(self._capacity_Bps)
        while classes:
            users: dict[Link, int] = {}
            for flows in classes:
                for link in flows.path:
                    users[link] = users.get(link, 0) + len(flows.ends)
            tightest = min(users, key=lambda link: left[link] / users[link])
            speed_Bps = left[tightest] / users[tightest]
            rest = []
            for flows in classes:
                if tightest not in flows.path:
                    rest.append(flows)
                    continue
                flows.speed_Bps = speed_Bps
                for link in flows.path:
                    # Rounding may take a hair more than there is; a class behind it gets the
                    # smallest speed that still ends, never none.
                    floor = 1e-12 * self._capacity_Bps[link]
                    left[link] = max(left[link] - speed_Bps * len(flows.ends), floor)
            classes = rest
        self._wake()

    def _wake(self) -> None:
        waits = [
            max(0.0, (flows.ends[0][0] - flows.served) / flows.speed_Bps)
            for flows in self._classes.values()
        ]
        if not waits:
            return
        alarm = self._env.timeout(min(waits))
        self._alarm = alarm
        assert alarm.callbacks is not None, "a new event takes callbacks"
        alarm.callbacks.append(self._ring)

    def _ring(self, alarm: simpy.Event) -> None:
        if alarm is not self._alarm:
            return  # speeds have changed since it was set
        self._advance()
        for path, flows in list(self._classes.items()):
            while flows.ends:
                end, _, bytes, done = flows.ends[0]
                if end - flows.served > _TOGETHER * bytes:
                    break
                heappop(flows.ends)
                done.succeed()
            if not flows.ends:
                del self._classes[path]
        self._share()
