"""Time of a rebuild, and what an array reads while drives are lost, from its bandwidths.

Each lost byte is computed from N others (any maximum distance separable code). Where the pieces of
a lost drive lie with those of all others, all drives help (M. Holland, G. A. Gibson, "Parity
declustering for continuous operation in redundant disk arrays", ASPLOS 1992).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Array:
    """Drives in hosts, with the data on them.

    Attributes
    ----------
    drives, hosts : int
        How many there are, the drives spread over the hosts evenly.
    used_bytes : float
        Bytes of one drive that hold data and parity.
    read_Bps, write_Bps : float
        Bytes per second that one drive delivers and stores.
    link_Bps : float
        Bytes per second that the network carries to a host, and from it.
    decode_Bps : float
        Bytes per second that a host decodes, counted in bytes that it decodes from.
    """

    drives: int
    hosts: int
    used_bytes: float
    read_Bps: float
    write_Bps: float
    link_Bps: float
    decode_Bps: float


@dataclass(frozen=True)
class Rebuild:
    """Rate of a rebuild.

    Attributes
    ----------
    each_Bps : float
        Most that one lost drive is rebuilt at, whatever the others do.
    together_Bps : float
        Most that all lost drives are rebuilt at together.
    binds : str
        What limits the rebuild of one.
    """

    each_Bps: float
    together_Bps: float
    binds: str

    def rate_Bps(self, lost: int) -> float:
        """Return bytes per second rebuilt, of all lost drives together."""
        return min(lost * self.each_Bps, self.together_Bps)


def rebuild(array: Array, data: int, *, share: float, to_spare: bool) -> Rebuild:
    """Return how fast lost drives are rebuilt.

    Parameters
    ----------
    array : Array
        The array.
    data : int
        N of ``rs:N+K``: pieces that each lost one is computed from.
    share : float
        Share of every bandwidth that rebuilds may take [1].
    to_spare : bool
        True if a drive that replaces the lost one fetches all pieces and computes, as
        ``csd repair`` does; false if every host rebuilds a part into free space of all drives.
    """
    left = array.drives - 1
    if to_spare:
        each = {
            "writes of the new drive": share * array.write_Bps,
            "link of its host": share * array.link_Bps / data,
            "decoding in its host": array.decode_Bps / data,
        }
        together = {"reads of the drives": share * left * array.read_Bps / data}
    else:
        each = {}
        media_s = data / array.read_Bps + 1.0 / array.write_Bps
        together = {"media of the drives": share * left / media_s}
        together["decoding"] = array.hosts * array.decode_Bps / data
    if array.hosts > 1:
        # Of the pieces read, those of a host's own drives do not cross its link.
        crossing = data * (array.hosts - 1) / array.hosts
        together["links of all hosts"] = share * array.hosts * array.link_Bps / crossing
        if to_spare:
            each["link of its host"] *= array.hosts / (array.hosts - 1)
    elif to_spare:
        del each["link of its host"]
    limits = {**each, **together}
    binds = min(limits, key=lambda name: limits[name])
    most = min(each.values(), default=min(together.values()))
    return Rebuild(most, min(together.values()), binds)


def rebuild_hours(array: Array, found: Rebuild, lost: int, wait_hours: float) -> float:
    """Return the time until the last of some drives that were lost at once is rebuilt [h]."""
    return wait_hours + lost * array.used_bytes / found.rate_Bps(lost) / 3600.0


def read_Bps(array: Array, data: int, lost: int, rebuilding_Bps: float = 0.0) -> float:
    """Return what clients read with some drives lost, data spread evenly [bytes/s].

    Parameters
    ----------
    array, data
        As in `rebuild`.
    lost : int
        Drives lost; at least 0.
    rebuilding_Bps : float
        Bytes per second that a rebuild makes at the same time, each from `data` others.

    Notes
    -----
    The share lost / drives of reads is computed from N others: a client's byte costs
    1 + share (N - 1) bytes of the drives and of their hosts' links. In front of healthy data the
    drives or the links bind.
    """
    share = lost / array.drives
    each = 1.0 + share * (data - 1)
    media = (array.drives - lost) * array.read_Bps - data * rebuilding_Bps
    links = array.hosts * array.link_Bps - data * rebuilding_Bps
    return max(0.0, min(media, links)) / each
