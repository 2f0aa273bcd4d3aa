"""Cold data on hard drives: the drives, and servers with bays for them alone.

Workloads and clients' writes stay on flash. Clients read cold data at a rate of its own: a hard
drive holds much, and reads little of it in a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

from csdplan.errors import ModelError
from csdplan.hardware import Catalogue, Part
from csdplan.request.ask import Ask
from csdplan.request.coding import protection
from csdplan.solve.purchase import Cpu, Demand, DriveKind

#: Kinds of parts that hold cold data.
DRIVE, SERVER = "hdd", "disk-server"
#: Numbers that a plan needs of each; with power, `WATTS` of a server and `active_W` of a drive.
DRIVE_NEEDS = ("capacity_bytes", "read_Bps")
SERVER_NEEDS = ("cores", "slots", "link_Bps", "pcie_generation")
WATTS = ("tdp_W", "idle_W")
#: Name of what is read of cold data, among the workloads.
READ = "reads of cold data"
#: Time of a core to hand a byte on, in addition to the time that the network takes of it [s].
_NEXT_TO_NOTHING = 1e-15


def _server(part: Part, catalogue: Catalogue, card_Bps: float) -> Cpu:
    """Return a server for hard drives; its link is that of its bays to its memory."""
    cores = int(part.value("cores") or 1)
    return Cpu(
        name=part.name,
        cores=cores,
        price_usd=catalogue.price_usd(part.name) or 0.0,
        ingest_Bps=part.value("link_Bps") or 0.0,
        slots=int(part.value("slots") or 1),
        idle_W=part.value("idle_W"),
        core_W=(part.value("tdp_W") or 0.0) / cores,
        rack_units=part.value("rack_units") or 0.0,
        card_Bps=card_Bps,
        memory_Bps=part.value("memory_bw_Bps") or inf,
        disks=True,
    )


def _drive(part: Part, catalogue: Catalogue, ask: Ask) -> DriveKind:
    """Return a hard drive; no drive holds more than its share of a stripe."""
    _, width = protection(ask.protect)
    most = ask.raw_cold_bytes / width if width > 1 else inf
    return DriveKind(
        name=part.name,
        price_usd=catalogue.price_usd(part.name) or 0.0,
        capacity_bytes=min(part.value("capacity_bytes") or 0.0, most),
        read_Bps=part.value("read_Bps") or 0.0,
        active_W=part.value("active_W"),
        idle_W=part.value("idle_W"),
        disk=True,
    )


def demand_of(ask: Ask, servers: Sequence[Cpu]) -> Demand:
    """Return what is read of cold data."""
    core_s = {server.name: _NEXT_TO_NOTHING for server in servers}
    return Demand(READ, ask.cold_read_Bps * ask.grown, core_s, {}, returns=1.0)


def tier(
    ask: Ask,
    catalogue: Catalogue,
    drives: Sequence[Part],
    servers: Sequence[Part],
    cards_Bps: Mapping[int, float],
) -> tuple[list[DriveKind], list[Cpu]]:
    """Return hard drives and servers for cold data.

    Parameters
    ----------
    ask : Ask
        The question.
    catalogue : Catalogue
        Prices.
    drives, servers : sequence of Part
        Parts on offer, of which all that is needed is known.
    cards_Bps : mapping of int to float
        Bytes per second of a card's slot, by PCIe generation.

    Raises
    ------
    ModelError
        If there is nothing to keep cold data on.
    """
    for what, offered in (("hard drive", drives), ("server for hard drives", servers)):
        if not offered:
            raise ModelError("part", f"no {what}", "one whose numbers are known, for cold data")
    hosts = [
        _server(part, catalogue, cards_Bps[int(part.value("pcie_generation") or 0)])
        for part in servers
    ]
    return [_drive(part, catalogue, ask) for part in drives], hosts
