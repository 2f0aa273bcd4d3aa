"""Costs of the network in a plan: the share of a link, and the time of a core, as measured.

Reads and writes of clients are NVMe/TCP. The time of a core is a line through the measured reads of
`published/network.toml`; of writes only short ones were measured, which take as long.
"""

from __future__ import annotations

from csdplan import published
from csdplan.model.wire import CoreTime, share_of_link
from csdplan.solve.clients import Clients

#: Bytes of a request of clients, and of a frame's payload, that plans take.
BLOCK, MTU = 128 * 1024, 9000


def core_time() -> CoreTime:
    """Return the time of a core for a read, through short and long reads in a deep queue."""
    deep = sorted(
        (float(one["block"]), one["cpu_us"] / 1e6)
        for one in published.read("network.toml")["point"]
        if one["op"] == "read" and one["depth"] > 1
    )
    return CoreTime.through(deep[0], deep[-1])


def clients() -> Clients:
    """Return what hosts do for clients."""
    return Clients(core_time().seconds(BLOCK) / BLOCK)


def carried_Bps(link_Bps: float) -> float:
    """Return the data that a link of so many bits, as bytes per second, carries."""
    return link_Bps * share_of_link(BLOCK, MTU)
