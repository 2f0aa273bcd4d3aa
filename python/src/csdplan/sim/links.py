"""Bandwidth that transfers share: max-min fair over all links that each of them crosses.

Transfers over the same links run at the same speed, so they form one class, and a class needs one
number: how many bytes each of its transfers has received so far. Speeds change only when a
transfer begins or ends; between those instants nothing is computed. Links that no transfer
connects, such as those of two hosts, do not affect each other, and are computed apart.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from heapq import heappop, heappush
from itertools import count

import simpy

Link = Hashable
Path = tuple[Link, ...]
#: Links that each carry a share of a transfer, with that share.
Parts = tuple[tuple[Link, float], ...]

#: Transfers that end within this share of their size of each other end together.
_TOGETHER = 1e-9
#: What is left of a transfer, and of the time to its end, that rounding alone may leave.
_ROUNDING = 1e-14


@dataclass
class _Class:
    """Transfers over one path: bytes served to each since the class was last empty."""

    path: Path
    parts: Parts = ()
    served: float = 0.0
    speed_Bps: float = 0.0
    ends: list[tuple[float, int, float, simpy.Event]] = field(default_factory=list)

    @cached_property
    def weights(self) -> tuple[tuple[Link, float], ...]:
        """Every link once, and the bytes that it carries for each byte transferred."""
        found: dict[Link, float] = dict.fromkeys(self.path, 1.0)
        for link, share in self.parts:
            found[link] = found.get(link, 0.0) + share
        return tuple(found.items())


@dataclass(eq=False)
class _Group:
    """Links that transfers connect, and the classes of transfers over them."""

    links: set[Link]
    classes: dict[tuple[Path, Parts], _Class] = field(default_factory=dict)
    updated_s: float = 0.0
    alarm: simpy.Event | None = None


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
        self._groups: dict[Link, _Group] = {}
        self._connected: set[tuple[Path, Parts]] = set()
        self._order = count()
        self.carried_bytes: dict[Link, float] = dict.fromkeys(self._capacity_Bps, 0.0)

    def transfer(self, path: Path, bytes: float, parts: Parts = ()) -> simpy.Event:
        """Begin a transfer; the event returned occurs when its last byte has arrived.

        Every link of `path` carries all of it, those of `parts` the share that stands with them.
        """
        done = self._env.event()
        group = self._group(path, parts)
        self._advance(group)
        flows = group.classes.get((path, parts))
        if flows is None:
            flows = group.classes[path, parts] = _Class(path, parts)
        heappush(flows.ends, (flows.served + bytes, next(self._order), bytes, done))
        for link, weight in flows.weights:
            self.carried_bytes[link] += weight * bytes
        self._share(group)
        return done

    def _group(self, path: Path, parts: Parts) -> _Group:
        """Return the group of these links, which are one from now on."""
        if (path, parts) in self._connected:
            return self._groups[path[0]]
        self._connected.add((path, parts))
        links = {*path, *(link for link, _ in parts)}
        merged = _Group(set(links), updated_s=self._env.now)
        for group in {id(g): g for g in map(self._groups.get, links) if g is not None}.values():
            self._advance(group)
            group.alarm = None
            merged.links |= group.links
            merged.classes |= group.classes
        self._groups |= dict.fromkeys(merged.links, merged)
        return merged

    def _advance(self, group: _Group) -> None:
        """Serve every class up to now."""
        passed_s = self._env.now - group.updated_s
        group.updated_s = self._env.now
        if passed_s > 0:
            for flows in group.classes.values():
                flows.served += flows.speed_Bps * passed_s

    def _share(self, group: _Group) -> None:
        """Give every class its fair speed, and wake when the first transfer will end."""
        capacity = self._capacity_Bps
        if len(group.classes) == 1:
            (flows,) = group.classes.values()
            transfers = len(flows.ends)
            flows.speed_Bps = min(
                capacity[link] / (weight * transfers) for link, weight in flows.weights
            )
            self._wake(group)
            return
        classes = [(flows, flows.weights) for flows in group.classes.values()]
        users: dict[Link, float] = {}
        for flows, weights in classes:
            for link, weight in weights:
                users[link] = users.get(link, 0.0) + weight * len(flows.ends)
        left = {link: capacity[link] for link in users}
        while classes:
            speed_Bps = min(left[link] / used for link, used in users.items())
            # Equally tight links, such as those of equal drives, are settled in one turn.
            limit_Bps = speed_Bps * (1 + 1e-12)
            tightest = {link for link, used in users.items() if left[link] / used <= limit_Bps}
            rest = []
            for flows, weights in classes:
                if tightest.isdisjoint(link for link, _ in weights):
                    rest.append((flows, weights))
                    continue
                flows.speed_Bps = speed_Bps
                for link, weight in weights:
                    # Rounding may take a hair more than there is; a class behind it gets the
                    # smallest speed that still ends, never none.
                    floor = 1e-12 * capacity[link]
                    taken = weight * len(flows.ends)
                    left[link] = max(left[link] - speed_Bps * taken, floor)
                    users[link] -= taken
            classes = rest
            wanted = {link for _, weights in classes for link, _ in weights}
            users = {link: used for link, used in users.items() if link in wanted}
        self._wake(group)

    def _wake(self, group: _Group) -> None:
        waits = [
            max(0.0, (flows.ends[0][0] - flows.served) / flows.speed_Bps)
            for flows in group.classes.values()
        ]
        if not waits:
            return
        alarm = self._env.timeout(min(waits))
        group.alarm = alarm
        assert alarm.callbacks is not None, "a new event takes callbacks"
        alarm.callbacks.append(partial(self._ring, group))

    def _ring(self, group: _Group, alarm: simpy.Event) -> None:
        if alarm is not group.alarm:
            return  # speeds have changed since it was set
        self._advance(group)
        for key, flows in list(group.classes.items()):
            # A small transfer may end so soon that the clock does not move, and would ring forever.
            rounding = _ROUNDING * max(flows.served, flows.speed_Bps * self._env.now)
            while flows.ends:
                end, _, bytes, done = flows.ends[0]
                if end - flows.served > max(_TOGETHER * bytes, rounding):
                    break
                heappop(flows.ends)
                done.succeed()
            if not flows.ends:
                del group.classes[key]
        self._share(group)
