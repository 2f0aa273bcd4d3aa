"""The rows of a purchase's program: what each host and each drive can do, and what is required."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from csdplan.model.overlap import Overlap
from csdplan.solve.clients import Clients
from csdplan.solve.program import ANY, GB, TB, Group, Program, begin, drives_max, together
from csdplan.solve.purchase import Request, media_Bps, port_Bps
from csdplan.solve.stock import stock_rows


def program(request: Request, groups: Sequence[Group] | None = None) -> Program:
    """Write the request down as a program, every requirement a row of its own name.

    Parameters
    ----------
    request : Request
        The question.
    groups : sequence of Group, optional
        The hosts, in groups; by default those of each CPU together.
    """
    built = begin(request, together(request) if groups is None else groups)
    _demand_rows(built)
    for g in range(len(built.groups)):
        _host_rows(built, g)
        for k in range(len(request.drives)):
            if (k, g) in built.drive:
                _drive_rows(built, k, g)
    _order_rows(built)
    for k in built.box:
        _drive_rows(built, k, -1)
    if request.overlap is Overlap.SERIAL:
        _lanes_in_all(built)
    _storage_rows(built)
    _limit_rows(built)
    stock_rows(built)
    _network_rows(built)
    return built


def _demand_rows(built: Program) -> None:
    for i, demand in enumerate(built.request.demands):
        computed = {v: 1.0 for (w, _), v in built.computed.items() if w == i}
        inside = {v: 1.0 for (w, _, _), v in built.inside.items() if w == i}
        required = demand.required_Bps / GB
        reached = {**computed, **inside, built.scale: -required}
        built.require(f"throughput of {demand.name}", reached, 0.0, np.inf)


def _host_rows(built: Program, g: int) -> None:
    """Hold the hosts of a group to their slots, cores and intake, and to what they can read."""
    request, cpu = built.request, built.cpu(g)
    modes = {j: mode for j, mode in enumerate(built.modes) if mode.group == g}
    every = {built.host[j]: 1.0 for j in modes}
    if built.groups[g].size:
        built.at_most(f"hosts of {cpu.name}", every, 1.0)
    taken = {v: float(request.drives[k].slots) for (k, n), v in built.drive.items() if n == g}
    held = dict.fromkeys(every, -float(cpu.slots))
    built.at_most("slots", {**taken, **held})
    for j, mode in modes.items():
        if mode.transfer_Bps:
            _mode_rows(built, j)
    _read_rows(built, g)
    computed = {v: 1.0 for (_, j), v in built.computed.items() if j in modes}
    more = _back(built, g) | {v: 1.0 for (_, n), v in built.written.items() if n == g}
    # Hosts that do one after the other read no faster than their mode says.
    if more or (computed and request.overlap is Overlap.PIPELINED):
        intake = built.hosts_of(g, -cpu.intake_Bps / GB)
        built.at_most(f"intake of {cpu.name}", {**computed, **more, **intake})
    if request.clients is not None and request.clients.core_s_per_byte:
        _client_rows(built, g, request.clients)
    if request.overlap is Overlap.SERIAL:
        lanes = {
            v: -built.times(g) * port_Bps(request.drives[k], cpu) / GB
            for (k, n), v in built.drive.items()
            if n == g
        }
        lanes |= {
            v: -built.times(g) * min(request.network[p].link_Bps, cpu.card_Bps) / GB
            for (p, n), v in built.card.items()
            if n == g and built.box
        }
        fed = {built.host[j]: built.times(g) * mode.transfer_Bps / GB for j, mode in modes.items()}
        built.at_most("lanes", {**lanes, **fed})


def _order_rows(built: Program) -> None:
    """Have hosts of a CPU taken together only beyond those that are planned one by one."""
    most = float(built.request.limits.hosts_max)
    for g, group in enumerate(built.groups):
        single = [n for n, one in enumerate(built.groups) if one == Group(group.cpu, 1)]
        if group.size == 0:
            for n in single:
                built.at_most("order", {**built.hosts_of(g), **built.hosts_of(n, -most)})


def _mode_rows(built: Program, j: int) -> None:
    mode, overlap = built.modes[j], built.request.overlap
    name = "time" if overlap is Overlap.SERIAL else "cores"
    terms = _busy(built, j)
    terms[built.host[j]] = -built.times(mode.group)
    built.at_most(f"{name} of {built.cpu(mode.group).name}", terms)


def _busy(built: Program, j: int) -> dict[int, float]:
    """Return the time that work takes of all cores of a host of a mode, as terms."""
    request, mode = built.request, built.modes[j]
    cpu = built.cpu(mode.group)
    load = GB / mode.transfer_Bps if request.overlap is Overlap.SERIAL and mode.transfer_Bps else 0
    return {
        v: GB * request.demands[i].core_s_per_byte[cpu.name] / cpu.cores + load
        for (i, n), v in built.computed.items()
        if n == j
    }


def _client_rows(built: Program, g: int, clients: Clients) -> None:
    """Have cores find the time for what clients write and get, next to their work."""
    cpu = built.cpu(g)
    terms: dict[int, float] = {}
    for j, mode in enumerate(built.modes):
        if mode.group == g:
            terms |= _busy(built, j)
    each = GB * clients.core_s_per_byte / cpu.cores
    taken, given = client_terms(built, g)
    for v, bytes in (*taken.items(), *given.items()):
        terms[v] = terms.get(v, 0.0) + each * bytes
    built.at_most(f"cores of {cpu.name}", terms | built.hosts_of(g, -1.0))


def client_terms(built: Program, g: int) -> tuple[dict[int, float], dict[int, float]]:
    """Return what clients write to the hosts of a group, and get of them, as terms."""
    if built.request.clients is None:
        return {}, {}
    demands = built.request.demands
    given = _back(built, g)
    for (i, j), v in built.computed.items():
        if built.modes[j].group == g and demands[i].returns:
            given[v] = demands[i].returns
    return {v: 1.0 for (_, n), v in built.written.items() if n == g}, given


def _read_rows(built: Program, g: int) -> None:
    """Have hosts compute what they read, from their own drives and over their own cards."""
    request, cpu = built.request, built.cpu(g)
    for i in {i for i, _, n in built.read if n == g} | {ANY}:
        mine = [
            v
            for (w, j), v in built.computed.items()
            if built.modes[j].group == g
            and (w == i if i != ANY else not request.demands[w].stored_bytes)
        ]
        read = {v: -1.0 for (w, _, n), v in built.read.items() if n == g and w == i}
        plain = {
            v: -built.times(g) * port_Bps(request.drives[k], cpu) / GB
            for (k, n), v in built.drive.items()
            if n == g and i == ANY and built.is_plain[k]
        }
        # Plain drives are read as far as the others leave something to read.
        least = -np.inf if plain else 0.0
        if mine:
            built.require("reads", {**dict.fromkeys(mine, 1.0), **read, **plain}, least, 0.0)
        if read and plain:
            built.require("reads", {**dict.fromkeys(mine, 1.0), **read}, 0.0, np.inf)


def _returns(built: Program, k: int, g: int) -> dict[int, float]:
    """Return the results of drives of kind k as terms."""
    demands = built.request.demands
    found = {(i, v) for (i, n, h), v in built.inside.items() if n == k and h == g}
    return {v: demands[i].returns for i, v in found if demands[i].returns}


def _back(built: Program, g: int) -> dict[int, float]:
    """Return all results that the hosts of a group take in, as terms."""
    back: dict[int, float] = {v: 1.0 for (_, n), v in built.sent.items() if n == g}
    for k in {k for k, n in built.drive if n == g}:
        back |= _returns(built, k, g)
    return back


def _drive_rows(built: Program, k: int, g: int) -> None:
    """Hold the drives of a kind, in a group or in boxes (-1), to port, media, time, endurance."""
    request, kind = built.request, built.request.drives[k]
    if built.is_plain[k]:
        return
    boxed = g < 0
    times = 1.0 if boxed else built.times(g)
    own = built.box[k] if boxed else built.drive[k, g]
    reads = {v: 1.0 for (_, n, h), v in built.read.items() if n == k and (boxed or h == g)}
    written = {v: 1.0 for (n, h), v in built.written.items() if n == k and (boxed or h == g)}
    inside = {i: v for (i, n, h), v in built.inside.items() if n == k and h == g}
    port = kind.read_Bps if boxed else port_Bps(kind, built.cpu(g))
    crossing = {**reads, **_returns(built, k, g), **written}
    built.at_most(f"ports of {kind.name}", {**crossing, own: -times * port / GB})
    media = media_Bps(kind, request.demands) / GB
    both = {**reads, **dict.fromkeys(inside.values(), 1.0)}
    if inside:
        built.at_most(f"media of {kind.name}", {**both, own: -times * media})
        seconds = {
            v: GB * request.demands[i].drive_s_per_byte[kind.name] for i, v in inside.items()
        }
        built.at_most(f"time of {kind.name}", {**seconds, own: -times})
    if written and kind.write_Bps is not None:
        if np.isfinite(kind.endurance_Bps):
            worn = dict.fromkeys(written, request.limits.write_average)
            lasts = {**worn, own: -times * kind.endurance_Bps / GB}
            built.at_most(f"endurance of {kind.name}", lasts)
        busy = dict.fromkeys(both, 1.0 / media) | dict.fromkeys(written, GB / kind.write_Bps)
        built.at_most(f"reads and writes of {kind.name}", {**busy, own: -times})


def _lanes_in_all(built: Program) -> None:
    """Hosts together are fed no faster than all drives are read; boxes feed any of them."""
    request = built.request
    lanes = {
        v: built.times(g) * request.drives[k].read_Bps / GB for (k, g), v in built.drive.items()
    }
    lanes |= {v: request.drives[k].read_Bps / GB for k, v in built.box.items()}
    for mode, v in zip(built.modes, built.host, strict=True):
        lanes[v] = -built.times(mode.group) * mode.transfer_Bps / GB
    built.require("lanes", lanes, 0.0, np.inf)


def _every_drive(built: Program, k: int) -> dict[int, float]:
    """Return the drives of a kind, wherever they are, as terms."""
    if k in built.box:
        return {built.box[k]: 1.0}
    return {v: built.times(g) for (n, g), v in built.drive.items() if n == k}


def _storage_rows(built: Program) -> None:
    """Require the capacity, and room for data where it is worked on."""
    request, limits = built.request, built.request.limits
    capacity: dict[bool, dict[int, float]] = {False: {}, True: {}}
    for k, kind in enumerate(request.drives):
        room = {v: one * kind.capacity_bytes / TB for v, one in _every_drive(built, k).items()}
        capacity[kind.disk] |= room
        stored: dict[int, float] = {}
        for i, demand in enumerate(request.demands):
            if demand.stored_bytes:
                each = demand.stored_bytes / TB / (demand.required_Bps / GB)
                stored |= {v: each for (w, n, _), v in built.read.items() if (w, n) == (i, k)}
                stored |= {v: each for (w, n, _), v in built.inside.items() if (w, n) == (i, k)}
        if stored:
            built.at_most(f"data on {kind.name}", stored | {v: -tb for v, tb in room.items()})
    for disk, name, bytes in (
        (False, "capacity", limits.capacity_bytes),
        (True, "cold capacity", limits.cold_bytes),
    ):
        if disk and not bytes:
            continue
        built.require(name, capacity[disk] or {built.scale: 0.0}, bytes / TB, np.inf)
        if limits.drives_min and (bytes or not limits.cold_bytes):
            every: dict[int, float] = {}
            for k, kind in enumerate(request.drives):
                every |= _every_drive(built, k) if kind.disk == disk else {}
            built.require("drives of a code", every, float(limits.drives_min), np.inf)
    if limits.write_Bps:
        written = dict.fromkeys(built.written.values(), 1.0)
        least = limits.write_Bps / GB
        built.require("writes", written or {built.scale: 0.0}, least, np.inf)


def _limit_rows(built: Program) -> None:
    request, limits = built.request, built.request.limits
    every: dict[int, float] = {}
    for g in range(len(built.groups)):
        every |= built.hosts_of(g)
    built.require("one host", every, 1.0, np.inf)
    built.require("hosts", every, 0.0, float(limits.hosts_max))
    if limits.budget_usd is not None:
        spent = built.price_usd if limits.budget_covers == "purchase" else built.cost_usd
        built.at_most("budget", spent, limits.budget_usd)
    if limits.power_W is not None:
        built.at_most("power", built.power_W, limits.power_W)
    if limits.rack_units is None:
        return
    units: dict[int, float] = {}
    for g in range(len(built.groups)):
        units |= built.hosts_of(g, built.cpu(g).rack_units)
    for k, kind in enumerate(request.drives):
        units |= {v: one * kind.rack_units for v, one in _every_drive(built, k).items()}
    parts = request.network
    units |= {v: built.times(g) * parts[p].rack_units for (p, g), v in built.card.items()}
    units |= {v: parts[p].rack_units for p, v in built.switch.items()}
    units = {v: height for v, height in units.items() if height}
    built.at_most("rack", units or {built.scale: 0.0}, limits.rack_units)


def _network_rows(built: Program) -> None:
    """Give each box a port of a switch, its readers cards, and with clients each host one."""
    request, parts = built.request, built.request.network
    for k in {k for k, _ in built.sent}:
        sent = {v: 1.0 for (n, _), v in built.sent.items() if n == k}
        back = {v: -share for v, share in _returns(built, k, -1).items()}
        built.require("results", {**sent, **back}, 0.0, 0.0)
    if not built.card or not (built.box or request.clients):
        return
    boxes = dict.fromkeys(built.box.values(), 1.0)
    cards = {v: built.times(g) for (_, g), v in built.card.items()}
    if built.box:
        some = {v: -float(drives_max(request)) * one for v, one in cards.items()}
        built.at_most("cards for network drives", {**boxes, **some})
    for g in range(len(built.groups)):
        mine = {p: v for (p, n), v in built.card.items() if n == g}
        one = {v: built.times(g) for v in mine.values()}
        least = 0.0 if request.clients else -np.inf
        built.require("cards in hosts", {**one, **built.hosts_of(g, -1.0)}, least, 0.0)
        link = built.cpu(g).card_Bps
        carried = {v: -built.times(g) * min(parts[p].link_Bps, link) / GB for p, v in mine.items()}
        over = {v: 1.0 for (_, k, n), v in built.read.items() if n == g and k in built.box}
        over |= {v: 1.0 for (_, n), v in built.sent.items() if n == g}
        over |= {v: 1.0 for (k, n), v in built.written.items() if n == g and k in built.box}
        for terms in client_terms(built, g):
            over = {v: over.get(v, 0.0) + terms.get(v, 0.0) for v in over.keys() | terms.keys()}
        if over:
            built.at_most("bandwidth of cards", {**over, **carried})
    _port_rows(built)


def _port_rows(built: Program) -> None:
    """Give each card and box a port that is as fast as it is, or faster.

    That can be done if, for every speed, so many ports are as fast as there are cards and boxes
    (P. Hall, "On representatives of subsets", 1935): what a port carries, a faster one does, too.
    """
    parts = built.request.network
    joined = {v: built.request.drives[k].read_Bps for k, v in built.box.items()}
    joined |= {v: parts[p].link_Bps for (p, _), v in built.card.items()}
    each = {v: built.times(g) for (_, g), v in built.card.items()}
    for speed in sorted(set(joined.values())):
        taken = {v: each.get(v, 1.0) for v, link_Bps in joined.items() if link_Bps >= speed}
        ports = {
            v: -float(parts[p].ports) for p, v in built.switch.items() if parts[p].link_Bps >= speed
        }
        built.at_most("ports of switches", {**taken, **ports})
