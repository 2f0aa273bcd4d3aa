"""Drives behind a network card, and the cards and switches of a front end."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor

from csdplan.errors import ModelError
from csdplan.model.queues import Station
from csdplan.model.wire import CoreTime, share_of_link


@dataclass(frozen=True)
class Behind:
    """Reads of one length that a host with drives serves over its network card.

    Attributes
    ----------
    block : int
        Bytes of a read.
    link_share : float
        Share of the link that carries data [1].
    link_Bps, cores_Bps, drive_Bps : float
        Bytes per second that the link carries, the cores handle, and one drive delivers.
    cores_to_fill : float
        Cores that fill the link.
    """

    block: int
    link_share: float
    link_Bps: float
    cores_Bps: float
    drive_Bps: float
    cores_to_fill: float

    @property
    def host_Bps(self) -> float:
        """Bytes per second that leave the host, with drives enough."""
        return min(self.link_Bps, self.cores_Bps)

    @property
    def at_full_speed(self) -> int:
        """Drives that are all read at full speed."""
        return floor(self.host_Bps / self.drive_Bps * (1 + 1e-9))

    @property
    def to_fill(self) -> int:
        """Drives that are enough to fill what leaves the host."""
        return ceil(self.host_Bps / self.drive_Bps * (1 - 1e-9))

    @property
    def binds(self) -> str:
        """Name of the limit of the host."""
        return "link" if self.link_Bps <= self.cores_Bps else "cores"


def behind(
    block: int,
    *,
    link_Bps: float,
    mtu: int,
    cores: int,
    core: CoreTime,
    drive_Bps: float,
    drive_per_s: float | None,
) -> Behind:
    """Return what leaves a host in reads of one length.

    Parameters
    ----------
    block : int
        Bytes of a read.
    link_Bps : float
        Bits of the link, as bytes per second.
    mtu : int
        Bytes of a frame's payload.
    cores : int
        Cores that serve the network.
    core : CoreTime
        What a read takes of one.
    drive_Bps : float
        Bytes per second that one drive delivers at most.
    drive_per_s : float or None
        Reads a second that one drive answers at most; None if only its bandwidth is known.
    """
    share = share_of_link(block, mtu)
    one_core = block / core.seconds(block)
    rate = drive_Bps if drive_per_s is None else min(drive_Bps, drive_per_s * block)
    filled = share * link_Bps
    return Behind(block, share, filled, cores * one_core, rate, filled / one_core)


def stations(
    found: Behind,
    *,
    cores: int,
    drives: int,
    media_s: float,
) -> tuple[Station, ...]:
    """Return what a read passes: a core, the link, and one of the drives.

    A drive answers as many reads at once as its rate times its latency (J. D. C. Little, "A proof
    for the queuing formula L = lambda W", Operations Research 9(3), 1961). Reads fall on all drives
    alike; they are taken as one station, which is so where each has many reads at once. A core's
    service varies exponentially, that of the link and of flash is constant.
    """
    reads_at_once = max(1, round(found.drive_Bps / found.block * media_s)) * drives
    return (
        Station("cores", cores, cores * found.block / found.cores_Bps, 1.0),
        Station("link", 1, found.block / found.link_Bps, 0.0),
        Station("drives", reads_at_once, media_s, 0.0),
    )


@dataclass(frozen=True)
class FrontEnd:
    """Cards and switches of a front end.

    Attributes
    ----------
    cards : int
        Cards in all hosts.
    leaves, spines : int
        Switches with hosts, and switches between them (0: one switch does).
    """

    cards: int
    leaves: int
    spines: int


def front_end(hosts: int, cards: int, ports: int, oversubscription: float) -> FrontEnd:
    """Return the switches that join cards, each with a port.

    Parameters
    ----------
    hosts, cards : int
        Hosts, and cards of each.
    ports : int
        Ports of a switch, all equally fast.
    oversubscription : float
        Bandwidth toward hosts over that between switches [1]; at least 1.

    Notes
    -----
    Two layers, a folded Clos network (M. Al-Fares, A. Loukissas, A. Vahdat, "A scalable, commodity
    data center network architecture", SIGCOMM 2008). Every leaf has a link to every spine, so there
    are at most as many leaves as a spine has ports.
    """
    every = hosts * cards
    if every <= ports:
        return FrontEnd(every, 1, 0)
    down = floor(ports * oversubscription / (1.0 + oversubscription))
    up = min(ports - down, ceil(down / oversubscription))
    leaves = ceil(every / down)
    if leaves > ports:
        most = down * ports
        raise ModelError("hosts", f"{every} ports", f"at most {most} in two layers of this switch")
    return FrontEnd(every, leaves, ceil(leaves * up / ports))
