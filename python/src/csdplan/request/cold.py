"""Cold data on hard drives: the drives, and servers with bays for them alone.

Workloads and clients' writes stay on flash. What is read of cold data goes to clients, at a rate of
its own: a hard drive holds much, and reads little of it in a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from csdplan.errors import ModelError
from csdplan.hardware import Catalogue, Part
from csdplan.request.ask import Ask, protection
from csdplan.solve.purchase import Cpu, Demand, DriveKind

#: Kinds of parts that hold cold data.
DRIVE, SERVER = "hdd", "disk-server"
#: Numbers that a plan needs of each; with power, `WATTS` of a server and `active_W` of a drive.
DRIVE_NEEDS = ("capacity_bytes", "read_Bps")
SERVER_NEEDS = ("cores", "slots", "link_Bps", "pcie_generation")
WATTS = ("tdp_W", "idle_W")
#: Name of what is read of cold data, among the workloads.
READ = "reads of cold data"
#: Time of a core to hand a byte on, beside that of the network.
_NEXT_TO_NOTHING = 1e-15


def server_of(part: Part, catalogue: Catalogue, card_Bps: float) -> Cpu:
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


def drive_of(part: Part, catalogue: Catalogue, ask: Ask) -> DriveKind:
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


def check(servers: Sequence[Cpu], drives: Sequence[DriveKind]) -> None:
    """Check that there is something to keep cold data on.

    Raises
    ------
    ModelError
        If it is not so.
    """
    for what, found in (("hard drive", drives), ("server for hard drives", servers)):
        if not found:
            raise ModelError("part", f"no {what}", "one whose numbers are known, for cold data")
