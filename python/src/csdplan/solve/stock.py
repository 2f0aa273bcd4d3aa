"""Hosts, drives, cards and switches that are there already: no more of them than there are."""

from __future__ import annotations

from csdplan.solve.program import Program


def stock_rows(built: Program) -> None:
    """Use no more of each part than there are of it."""
    request = built.request
    for index, cpu in enumerate(request.cpus):
        if cpu.most is None:
            continue
        hosts: dict[int, float] = {}
        for g, group in enumerate(built.groups):
            if group.cpu == index:
                hosts |= built.hosts_of(g)
        if hosts:
            built.at_most(f"stock of {cpu.name}", hosts, float(cpu.most))
    for k, kind in enumerate(request.drives):
        if kind.most is None:
            continue
        drives = {v: built.times(g) for (n, g), v in built.drive.items() if n == k}
        drives |= {built.box[k]: 1.0} if k in built.box else {}
        if drives:
            built.at_most(f"stock of {kind.name}", drives, float(kind.most))
    for p, part in enumerate(request.network):
        if part.most is None:
            continue
        parts = {v: built.times(g) for (n, g), v in built.card.items() if n == p}
        parts |= {built.switch[p]: 1.0} if p in built.switch else {}
        if parts:
            built.at_most(f"stock of {part.name}", parts, float(part.most))
