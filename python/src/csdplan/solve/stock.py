"""Hosts, drives, cards and switches that are there already: no more of them than there are."""

from __future__ import annotations

from csdplan.solve.program import Program
from csdplan.solve.purchase import Cpu, DriveKind, NetworkPart


def stock_rows(built: Program) -> None:
    """Use no more of each part than there are of it."""
    request = built.request
    for index, cpu in enumerate(request.cpus):
        hosts: dict[int, float] = {}
        for g, group in enumerate(built.groups):
            if group.cpu == index:
                hosts |= built.hosts_of(g)
        _at_most(built, cpu, hosts)
    for k, kind in enumerate(request.drives):
        drives = {v: built.times(g) for (n, g), v in built.drive.items() if n == k}
        _at_most(built, kind, drives | ({built.box[k]: 1.0} if k in built.box else {}))
    for p, part in enumerate(request.network):
        parts = {v: built.times(g) for (n, g), v in built.card.items() if n == p}
        _at_most(built, part, parts | ({built.switch[p]: 1.0} if p in built.switch else {}))


def _at_most(built: Program, part: Cpu | DriveKind | NetworkPart, used: dict[int, float]) -> None:
    """Bound the uses of a part of which there are only so many."""
    if part.most is not None and used:
        built.at_most(f"stock of {part.name}", used, float(part.most))
