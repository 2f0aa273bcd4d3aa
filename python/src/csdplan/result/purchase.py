"""Purchases as sheets: bill of materials, division of work, binding requirements, shortfalls."""

from __future__ import annotations

from collections.abc import Sequence

from csdplan.result.sheet import Sheet, Value, sheet_of
from csdplan.solve.optimize import LESS, Plan, Shortfall
from csdplan.solve.purchase import Request


def bill(request: Request, plan: Plan) -> Sheet:
    """Return the bill of materials."""
    rows: list[tuple[Value, ...]] = []
    for cpu in request.cpus:
        if count := plan.hosts.get(cpu.name, 0):
            rows.append(("host", cpu.name, count, cpu.price_usd, count * cpu.price_usd))
    for kind in request.drives:
        if count := plan.drives.get(kind.name, 0):
            rows.append(("drive", kind.name, count, kind.price_usd, count * kind.price_usd))
    for part in request.network:
        if count := plan.network.get(part.name, 0):
            what = "switch" if part.ports else "network card"
            rows.append((what, part.name, count, part.price_usd, count * part.price_usd))
    limits = request.limits
    if plan.energy_usd:
        rows.append(("purchase", "all of the above", None, None, plan.price_usd))
        rows.append(("energy", f"{limits.years:g} years", None, None, plan.energy_usd))
    rows.append(("all", "", None, None, plan.cost_usd))
    power = "power unknown" if plan.power_W is None else f"{plan.power_W:g} W at work"
    note = f"{plan.capacity_bytes / 1e12:g} TB, {power}; {plan.verdict.value}"
    if plan.energy_usd:
        note += f"; energy at PUE {limits.pue:g}, {limits.busy:.0%} of the time at work"
    if limits.budget_usd is not None:
        covered = "the purchase" if limits.budget_covers == "purchase" else "purchase and energy"
        note += f"; the budget covers {covered}"
    if plan.bound_usd < plan.cost_usd:
        note += f", no purchase costs less than {plan.bound_usd:.2f} USD"
    return sheet_of("What to buy", ("what", "name", "count", "price_usd", "cost_usd"), rows, note)


def work(plan: Plan) -> Sheet:
    """Return the division of each workload between hosts and drives."""
    total: dict[str, float] = {}
    for share in plan.shares:
        total[share.workload] = total.get(share.workload, 0.0) + share.rate_Bps
    rows = [
        (
            share.workload,
            share.where,
            "in the drive" if share.in_drive else "on the host",
            share.rate_Bps,
            share.rate_Bps / total[share.workload],
        )
        for share in plan.shares
    ]
    return sheet_of("Who does what", ("workload", "by", "where", "rate_Bps", "share"), rows)


def topology(request: Request, plan: Plan) -> Sheet:
    """Return what is in which host, and what crosses each drive's port and each card."""
    rows: list[tuple[Value, ...]] = []
    ports = _ports(request, plan)
    first = 1
    for one in plan.placed:
        last = first + one.hosts - 1
        where = (
            "network" if not one.hosts else f"{first}" if last == first else f"{first} to {last}"
        )
        if one.hosts:
            done = sum(share.rate_Bps for share in one.shares if not share.in_drive)
            rows.append((where, "host", one.name, 1, "", done, None, None, None))
        bay = 1
        for held in one.drives:
            port = (
                ports[held.name] if not one.hosts else "bay " + _numbers(bay, bay + held.count - 1)
            )
            bay += held.count
            rates = (held.inside_Bps, held.read_Bps, held.returned_Bps, held.written_Bps)
            rows.append((where, "drive", held.name, held.count, port, *rates))
        for name, count in one.cards.items():
            port = f"slot, and {ports[name]}"
            crossing = (one.network_Bps, one.given_Bps, one.taken_Bps)
            rows.append((where, "network card", name, count, port, None, *crossing))
        first = last + 1
    for part in request.network:
        if part.ports and (count := plan.network.get(part.name, 0)):
            row = ("network", "switch", part.name, count, f"{part.ports} ports each")
            rows.append((*row, None, None, None, None))
    columns = ("host", "what", "name", "count", "port", "computes_Bps", "read_Bps")
    note = (
        "count: in each of these hosts; rates: of each. A host computes what is read from its own "
        "drives and over its own card; read, returned and written bytes share a drive's port, and "
        "a card: there they are what drives on the network send and get, clients get, and write"
    )
    more = ("returned_Bps", "written_Bps")
    return sheet_of("What is in which host", (*columns, *more), rows, note)


def _ports(request: Request, plan: Plan) -> dict[str, str]:
    """Return the port of each kind of card and box: of the slowest switches that carry it."""
    bought = sorted(request.network, key=lambda part: part.link_Bps)
    switches = [part for part in bought if part.ports and part.name in plan.network]
    free = {part.name: part.ports * plan.network[part.name] for part in switches}
    joined = [(part.link_Bps, part.name) for part in request.network if not part.ports]
    joined += [(kind.read_Bps, kind.name) for kind in request.drives if not kind.slots]
    found = {}
    # The fastest first: what they leave is enough for the others.
    for speed, name in sorted(joined, reverse=True):
        wanted, names = plan.network.get(name, 0) + plan.drives.get(name, 0), []
        for switch in switches:
            if switch.link_Bps >= speed and (taken := min(wanted, free[switch.name])):
                names.append(switch.name)
                free[switch.name] -= taken
                wanted -= taken
        found[name] = f"port of {' or '.join(names) if len(switches) > 1 else 'a switch'}"
    return found


def requirements(plan: Plan) -> Sheet:
    """Return the level reached of each requirement, and the requirements that cost money."""
    rows = []
    for need in plan.requirements:
        one, unit = _unit(need.name)
        row = (need.name, need.required / one, need.reached / one, unit, need.binds)
        rows.append((*row, need.saving_usd))
    note = (
        f"saving_usd: what {LESS:.0%} less of it saves (of a limit: {LESS:.0%} more), drives and "
        "hosts taken as divisible"
    )
    columns = ("requirement", "required", "reached", "unit", "binds", "saving_usd")
    return sheet_of("What binds", columns, rows, note)


def shortfall_sheet(shortfalls: Sequence[Shortfall]) -> Sheet:
    """Return the shortfalls of an infeasible request."""
    rows: list[tuple[Value, ...]] = []
    for lack in shortfalls:
        one, unit = _unit(lack.name)
        alone = None if lack.possible_alone is None else lack.possible_alone / one
        rows.append((lack.name, lack.required / one, alone, lack.possible_together / one, unit))
    note = (
        "possible_alone: what is possible if this requirement alone gives way (empty: that does "
        "not help); possible_together: if all may, with the least relative changes in sum"
    )
    columns = ("requirement", "required", "possible_alone", "possible_together", "unit")
    return sheet_of("Nothing can be bought: what is in the way", columns, rows, note)


def front(plans: Sequence[Plan]) -> Sheet:
    """Return the purchases of a Pareto front, cheapest first."""
    rows = [
        (plan.cost_usd, plan.scale, _list(plan.hosts), _list(plan.drives), plan.power_W)
        for plan in plans
    ]
    note = "throughput: as a multiple of every required throughput; no plan beats another in both"
    columns = ("cost_usd", "throughput", "hosts", "drives", "power_W")
    return sheet_of("Cost against throughput", columns, rows, note)


def capacity(found: Sequence[tuple[str, Plan | None]], capacity_bytes: float) -> Sheet:
    """Return the answers to the fixed-capacity question."""
    rows: list[tuple[Value, ...]] = [
        (name, None, "", "", "not possible")
        if plan is None
        else (name, plan.cost_usd, _list(plan.hosts), _list(plan.drives), plan.verdict.value)
        for name, plan in found
    ]
    title = f"Which drives for the {capacity_bytes / 1e12:g} TB that are needed anyway"
    return sheet_of(title, ("only", "cost_usd", "hosts", "drives", "verdict"), rows)


def _unit(requirement: str) -> tuple[float, str]:
    """Return the unit that people read a requirement in, and its size."""
    units = {
        "capacity": (1e12, "TB"),
        "cold capacity": (1e12, "TB"),
        "budget": (1.0, "USD"),
        "power": (1.0, "W"),
        "hosts": (1.0, "hosts"),
        "rack": (1.0, "U"),
    }
    return units.get(requirement, (1e9, "GB/s"))


def _numbers(first: int, last: int) -> str:
    return f"{first}" if first == last else f"{first} to {last}"


def _list(counts: dict[str, int]) -> str:
    return ", ".join(f"{count} x {name}" for name, count in counts.items())
