"""Windows of a day, in which a site writes and works: what is asked for at every time of it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from csdplan.errors import ModelError
from csdplan.request.ask import Ask, Work, read_work
from csdplan.solve.purchase import Request
from csdplan.units import quantity

HOURS = 24.0
_TIMES = re.compile(r"([0-9]{1,2})(?::([0-9]{2}))?-([0-9]{1,2})(?::([0-9]{2}))?")
_EXPECTED = "FROM-TO,NAME=RATE,... such as 8:30-10,write=30GB/s or 22-6,count=20GB/s"


@dataclass(frozen=True)
class Window:
    """A time of the day, and what is asked for in it.

    Attributes
    ----------
    begin, end : float
        Hours of the day; `end` is after `begin`, and at most 24.
    write_Bps : float
        Client data written per second.
    works : tuple of Work
        The workloads.
    """

    begin: float
    end: float
    write_Bps: float
    works: tuple[Work, ...]

    @property
    def hours(self) -> float:
        """Length [h]."""
        return self.end - self.begin

    @property
    def name(self) -> str:
        """Return the time as people write it."""
        return f"{_clock(self.begin)}-{_clock(self.end)}"


def windows_of(texts: Sequence[str], folder: Path | None = None) -> tuple[Window, ...]:
    """Return the times of the day between which nothing changes, those with work alone.

    Windows that overlap are asked for at once. A window may go past midnight.

    Raises
    ------
    ModelError
        If a text is no window.
    """
    given = [part for text in texts for part in _parts(text, folder)]
    edges = sorted({edge for one in given for edge in (one.begin, one.end)})
    found = []
    for begin, end in pairwise(edges):
        here = [one for one in given if one.begin <= begin and one.end >= end]
        if here:
            write_Bps = sum(one.write_Bps for one in here)
            found.append(
                Window(begin, end, write_Bps, _added(work for w in here for work in w.works))
            )
    return tuple(found)


def _added(works: Iterable[Work]) -> tuple[Work, ...]:
    """Return workloads of the same name as one."""
    found: dict[str, Work] = {}
    for work in works:
        before = found[work.name].required_Bps if work.name in found else 0.0
        found[work.name] = replace(work, required_Bps=before + work.required_Bps)
    return tuple(found.values())


def peaks(windows: Sequence[Window]) -> Window:
    """Return the greatest rate of everything as one window of the whole day."""
    most: dict[str, Work] = {}
    for work in (work for one in windows for work in one.works):
        if work.name not in most or most[work.name].required_Bps < work.required_Bps:
            most[work.name] = work
    return Window(0.0, HOURS, max(one.write_Bps for one in windows), tuple(most.values()))


def _parts(text: str, folder: Path | None) -> list[Window]:
    times, *rest = text.split(",")
    found = _TIMES.fullmatch(times.strip())
    if found is None or not rest:
        raise ModelError("window", text, _EXPECTED)
    hour, minute, hour_end, minute_end = (int(one or 0) for one in found.groups())
    begin, end = hour + minute / 60, hour_end + minute_end / 60
    if max(minute, minute_end) >= 60 or max(begin, end) > HOURS or begin == end:  # noqa: PLR2004
        raise ModelError("window", text, "hours from 0 to 24 that differ, minutes below 60")
    write_Bps, works = 0.0, []
    for one in rest:
        name, _, rate = one.strip().partition("=")
        if name == "write":
            write_Bps += quantity("write", rate, "Bps")
        else:
            works.append(read_work(one.strip(), folder))
    if not (write_Bps or works):
        raise ModelError("window", text, "more than 0 to write, or a workload")
    if begin < end:
        return [Window(begin, end, write_Bps, tuple(works))]
    parts = [(begin, HOURS), (0.0, end)]
    return [Window(a, b, write_Bps, tuple(works)) for a, b in parts if a < b]


def ask_in(ask: Ask, window: Window) -> Ask:
    """Return the question at one time of the day."""
    return replace(ask, write_Bps=window.write_Bps, works=window.works)


def with_daily_writes(request: Request, window: Window, windows: Sequence[Window]) -> Request:
    """Return the request of one window, with drives whose endurance counts by the day.

    A drive may be written faster in a window than its endurance permits all day. Of the writes of a
    day this window makes the share r h / sum(r h); a kind that takes at most its endurance times
    24 r / sum(r h) in each window with the rate r takes no more than its endurance over the day.
    """
    daily = sum(one.write_Bps * one.hours for one in windows)
    if not daily or not window.write_Bps:
        return request
    factor = HOURS * window.write_Bps / daily
    kinds = tuple(
        replace(kind, endurance_Bps=kind.endurance_Bps * factor) for kind in request.drives
    )
    return replace(request, drives=kinds)


def _clock(hours: float) -> str:
    minutes = round(hours * 60)
    return f"{minutes // 60:02}:{minutes % 60:02}"
