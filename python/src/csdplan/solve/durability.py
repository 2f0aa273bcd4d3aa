"""Durability of an array under a code, and the code that needs the least flash.

Ties failures (`model.failure`) to the rebuilds that the array's bandwidths allow
(`model.rebuild`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import log10

from csdplan.errors import ModelError
from csdplan.model.cost import HOURS_PER_YEAR
from csdplan.model.failure import (
    Domain,
    loss_probability,
    mttdl_closed_form,
    mttdl_years,
    share_down,
    spares_needed,
    unavailable_share,
    unreadable_probability,
)
from csdplan.model.rebuild import Array, Rebuild, read_Bps, rebuild, rebuild_hours

#: Codes that ``csd put --protect`` takes, and the parity up to which one is looked for: more
#: losses than these at once say more of the model's blind spots than of an array.
DATA_MAX, PARITY_MAX, PARITY_SOUGHT = 32, 16, 8
#: Data that lasts this many times as long without a kind of failure is lost to it.
_TWICE = 2.0
#: Share of failures that may find no spare.
RISK = 0.01


@dataclass(frozen=True)
class Part:
    """Failures of one kind of thing.

    Attributes
    ----------
    count : int
        How many there are; 0 if they are not modelled.
    outages : float
        Failures of one a year [1/year].
    hours : float
        Hours until it is back, with its data.
    lost : float
        Share of failures after which its drives' data is gone [1].
    """

    count: int
    outages: float = 0.0
    hours: float = 0.0
    lost: float = 0.0


@dataclass(frozen=True)
class Failing:
    """An array, and how it fails and is rebuilt.

    Attributes
    ----------
    array : Array
        Drives, hosts and bandwidths.
    afr : float
        Failures of one drive a year [1/year].
    hosts, racks : Part
        Failures of hosts and of racks.
    domain : str
        ``drive``, ``host`` or ``rack``: what the pieces of a stripe are spread over evenly.
    unreadable_per_bit : float
        Sectors that cannot be read, for each bit read [1].
    share : float
        Share of every bandwidth that rebuilds may take [1].
    to_spare : bool
        As in `csdplan.model.rebuild.rebuild`.
    wait_hours : float
        Hours until a rebuild begins.
    replace_hours : float
        Hours until a new spare is there.
    decodes : tuple of (int, int, float)
        N, K, and bytes per second that a host decodes from under this code, the narrowest first.
    """

    array: Array
    afr: float
    hosts: Part
    racks: Part
    domain: str
    unreadable_per_bit: float
    share: float
    to_spare: bool
    wait_hours: float
    replace_hours: float
    decodes: tuple[tuple[int, int, float], ...]

    def under(self, data: int, parity: int) -> Array:
        """Return the array as it decodes under a code: as fast as under the next wider one."""
        wider = [Bps for n, k, Bps in self.decodes if data <= n and parity <= k]
        return replace(self.array, decode_Bps=max(wider, default=self.array.decode_Bps))

    def pieces(self, width: int) -> tuple[int, int, int]:
        """Return the pieces of a stripe on one drive, host and rack at most."""
        drives, hosts, racks = self.array.drives, self.hosts.count, max(1, self.racks.count)
        per_host, per_rack = -(-drives // hosts), -(-drives // racks)
        if self.domain == "drive":
            return 1, min(width, per_host), min(width, per_rack)
        if self.domain == "rack":
            on_rack = -(-width // racks)
            return 1, -(-on_rack // max(1, hosts // racks)), on_rack
        on_host = -(-width // hosts)
        return 1, on_host, min(width, on_host * -(-hosts // racks))


@dataclass(frozen=True)
class Durability:
    """Answer for one code.

    Attributes
    ----------
    data, parity : int
        N and K of ``rs:N+K``.
    mttdl : float
        Mean time to data loss [years].
    closed_form : float
        The same by the closed form, of drives alone and with all sectors readable [years].
    rebuild : Rebuild
        Rate of rebuilds.
    hours : float
        Hours until one lost drive is rebuilt.
    host_pieces : int
        Pieces of a stripe that one host holds at most.
    unavailable : float
        Share of time in which some data cannot be read [1].
    healthy_Bps, degraded_Bps, rebuilding_Bps : float
        Client reads: whole, with one drive lost, and while it is rebuilt [bytes/s].
    """

    data: int
    parity: int
    mttdl: float
    closed_form: float
    rebuild: Rebuild
    hours: float
    host_pieces: int
    unavailable: float
    healthy_Bps: float
    degraded_Bps: float
    rebuilding_Bps: float

    @property
    def code(self) -> str:
        """Return the code as ``csd put --protect`` takes it."""
        return f"rs:{self.data}+{self.parity}"

    @property
    def nines(self) -> float:
        """Return the nines of a year's durability."""
        return -log10(loss_probability(self.mttdl, 1.0))

    @property
    def overhead(self) -> float:
        """Return bytes of flash for each byte of data."""
        return (self.data + self.parity) / self.data


@dataclass(frozen=True)
class Goals:
    """Levels that a code must reach.

    Attributes
    ----------
    nines : float
        Nines of a year's durability.
    unavailable : float
        Share of time in which some data cannot be read, at most [1].
    hours : float
        Hours of a rebuild, at most.
    reads : float
        Share of reads that are left while a drive is rebuilt [1].
    """

    nines: float
    unavailable: float
    hours: float
    reads: float

    def missed(self, found: Durability) -> tuple[str, ...]:
        """Return the names of the goals that a code misses."""
        wrong = {
            "durability": found.nines < self.nines,
            "availability": found.unavailable > self.unavailable,
            "rebuild": found.hours > self.hours,
            "reads": found.rebuilding_Bps < self.reads * found.healthy_Bps,
        }
        return tuple(name for name, missed in wrong.items() if missed)


def durability(failing: Failing, data: int, parity: int) -> Durability:
    """Return how durable an array is under ``rs:data+parity``.

    Raises
    ------
    ModelError
        If the array has fewer drives than a stripe has pieces.
    """
    array, width = failing.under(data, parity), data + parity
    if width > array.drives:
        raise ModelError("protect", f"rs:{data}+{parity}", f"at most {array.drives} pieces")
    rate = rebuild(array, data, share=failing.share, to_spare=failing.to_spare)
    one = rebuild_hours(array, rate, 1, failing.wait_hours)
    domains = _domains(failing, rate, data, parity)
    drives, hosts, racks = failing.pieces(width)

    def unreadable(lost: tuple[int, ...]) -> float:
        bytes_read = _critical_bytes(failing, data, width, lost)
        return unreadable_probability(bytes_read, failing.unreadable_per_bit)

    down = [(array.drives, share_down(failing.afr, one, HOURS_PER_YEAR), drives)]
    for part, pieces in ((failing.hosts, hosts), (failing.racks, racks)):
        if part.count:
            share = share_down(part.outages, part.hours, HOURS_PER_YEAR)
            down.append((part.count, share, pieces))
    years = one / HOURS_PER_YEAR
    rebuilding = rate.rate_Bps(1)
    return Durability(
        data=data,
        parity=parity,
        mttdl=mttdl_years(domains, parity, unreadable),
        closed_form=mttdl_closed_form(array.drives, failing.afr, years, parity),
        rebuild=rate,
        hours=one,
        host_pieces=hosts,
        # Drives first: of the last alone the tail is added up, and hosts and racks are few.
        unavailable=unavailable_share(down[::-1], parity),
        healthy_Bps=read_Bps(array, data, 0),
        degraded_Bps=read_Bps(array, data, 1),
        rebuilding_Bps=read_Bps(array, data, 1, rebuilding),
    )


def first_cause(failing: Failing, data: int, parity: int) -> str:
    """Return the kind of failure that most losses of data come from.

    Each kind is left out in turn, racks first; the one without which data lasts twice as long or
    more is it, and drives where there is none.
    """
    whole = durability(failing, data, parity).mttdl
    for name, less in (
        ("racks", replace(failing, racks=Part(0), domain=_without_racks(failing))),
        ("hosts", replace(failing, hosts=replace(failing.hosts, lost=0.0))),
        ("unreadable sectors", replace(failing, unreadable_per_bit=0.0)),
    ):
        if name == "racks" and not failing.racks.count:
            continue
        if durability(less, data, parity).mttdl >= _TWICE * whole:
            return name
    return "drives"


def _without_racks(failing: Failing) -> str:
    return "host" if failing.domain == "rack" else failing.domain


def candidates(failing: Failing, goals: Goals) -> Iterator[Durability]:
    """Yield, for each parity, the widest code that reaches all goals, if there is one."""
    drives = failing.array.drives
    for parity in range(1, min(PARITY_SOUGHT, drives - 1) + 1):
        for data in range(min(DATA_MAX, drives - parity), 0, -1):
            found = durability(failing, data, parity)
            if not goals.missed(found):
                yield found
                break


def spares(failing: Failing) -> int:
    """Return the spare drives of which at most a share `RISK` of failures finds none."""
    a_year = failing.array.drives * failing.afr
    return spares_needed(a_year * failing.replace_hours / HOURS_PER_YEAR, RISK)


def _domains(failing: Failing, rate: Rebuild, data: int, parity: int) -> list[Domain]:
    hosts, racks = failing.hosts, failing.racks
    on_drive, on_host, on_rack = failing.pieces(data + parity)
    parts = [(failing.array.drives, failing.afr, on_drive)]
    parts.append((hosts.count, hosts.outages * hosts.lost, on_host))
    if racks.count:
        parts.append((racks.count, racks.outages * racks.lost, on_rack))
    found = []
    for place, (count, losses, pieces) in enumerate(parts):
        covered = []
        for other in range(len(parts)):
            # A lost host covers its drives. Where a stripe has one piece on a host, so does a lost
            # drive of it: its neighbours, and the host, are in none of the same stripes.
            extent = max(n for n, part in enumerate(parts) if n == other or part[2] == 1)
            covered.append(count // parts[extent][0] if place <= extent else 0)
        repairs = _repairs(failing, rate, -(-failing.array.drives // count), parity)
        found.append(Domain(count, losses, repairs, pieces, tuple(covered)))
    return found


def _repairs(failing: Failing, rate: Rebuild, drives: int, most: int) -> tuple[float, ...]:
    """Return repairs a year of things with some drives each, while 1, 2 ... `most` are lost."""
    hours = (
        rebuild_hours(failing.array, rate, number * drives, failing.wait_hours)
        for number in range(1, most + 1)
    )
    return tuple(n * HOURS_PER_YEAR / one for n, one in enumerate(hours, start=1))


def _critical_bytes(failing: Failing, data: int, width: int, lost: tuple[int, ...]) -> float:
    """Return the bytes read to rebuild the stripes that have lost all their redundancy."""
    array = failing.array
    share = 1.0
    for number in range(lost[0]):
        share *= max(0, width - number) / (array.drives - number)
    counts = [part.count for part in (failing.hosts, failing.racks) if part.count]
    pieces = failing.pieces(width)[1:]
    for count, on_one, gone in zip(counts, pieces, lost[1:], strict=False):
        on = -(-width // on_one)
        for number in range(gone):
            share *= min(1.0, max(0, on - number) / (count - number))
    stripes_bytes = array.drives * array.used_bytes / width
    return stripes_bytes * share * data
