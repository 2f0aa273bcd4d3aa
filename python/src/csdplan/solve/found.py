"""From the values of a program to the purchase they are, host by host."""

from __future__ import annotations

from csdplan.solve.highs import Answer, Status
from csdplan.solve.plans import Held, Placed, Plan, Share, Verdict
from csdplan.solve.program import GB, Program
from csdplan.solve.purchase import port_Bps
from csdplan.solve.rows import client_terms

#: Rates below this share of what is required are rounding.
_LEAST = 1e-6


def plan_of(built: Program, answer: Answer) -> Plan:
    """Return the purchase that an answer describes."""
    request = built.request
    placed = [
        one for g in range(len(built.groups)) if (one := _placed(built, answer, g)) is not None
    ]
    boxes = _boxes(built, answer)
    hosts: dict[str, int] = {}
    drives: dict[str, int] = {}
    network: dict[str, int] = {}
    for one in placed:
        hosts[one.name] = hosts.get(one.name, 0) + one.hosts
        for held in one.drives:
            drives[held.name] = drives.get(held.name, 0) + one.hosts * held.count
        for name, count in one.cards.items():
            network[name] = network.get(name, 0) + one.hosts * count
    for held in () if boxes is None else boxes.drives:
        drives[held.name] = held.count
    for p, v in built.switch.items():
        if count := round(answer.values[v]):
            network[request.network[p].name] = count
    prices = {cpu.name: cpu.price_usd for cpu in request.cpus}
    prices |= {kind.name: kind.price_usd for kind in request.drives}
    prices |= {part.name: part.price_usd for part in request.network}
    price = sum(prices[name] * count for name, count in {**hosts, **drives, **network}.items())
    known = all(cpu.full_W is not None for cpu in request.cpus if cpu.name in hosts)
    known &= all(kind.active_W is not None for kind in request.drives if kind.name in drives)
    known &= all(part.active_W is not None for part in request.network if part.name in network)
    whole = {v: round(answer.values[v]) for v in built.cost_usd}
    energy = sum((built.cost_usd[v] - built.price_usd[v]) * count for v, count in whole.items())
    optimal = answer.status is Status.OPTIMAL
    everything = (*placed, *(() if boxes is None else (boxes,)))
    return Plan(
        verdict=Verdict.OPTIMAL if optimal else Verdict.STOPPED,
        hosts=_in_order(hosts, [cpu.name for cpu in request.cpus]),
        drives=_in_order(drives, [kind.name for kind in request.drives]),
        price_usd=price,
        energy_usd=energy,
        cost_usd=price + energy,
        bound_usd=price + energy if optimal else min(answer.bound, price + energy),
        power_W=sum(built.power_W[v] * count for v, count in whole.items()) if known else None,
        capacity_bytes=sum(k.capacity_bytes * drives.get(k.name, 0) for k in request.drives),
        scale=float(answer.values[built.scale]),
        shares=_summed(built, everything),
        network=_in_order(network, [part.name for part in request.network]),
        nodes=answer.nodes,
        placed=everything,
    )


def _in_order(counts: dict[str, int], order: list[str]) -> dict[str, int]:
    return {name: counts[name] for name in order if counts.get(name)}


def _placed(built: Program, answer: Answer, g: int) -> Placed | None:
    """Return what each host of a group holds and does; None if there is no such host."""
    request, values = built.request, answer.values
    bought = sum(
        round(values[v]) for mode, v in zip(built.modes, built.host, strict=True) if mode.group == g
    )
    if not bought:
        return None
    hosts = bought * max(1, built.groups[g].size)
    # Variables of equal hosts count the drives of each; of one host alone, its own.
    counted = {k: round(values[v]) for (k, n), v in built.drive.items() if n == g}
    cards = {
        request.network[p].name: round(values[v]) for (p, n), v in built.card.items() if n == g
    }
    shares: dict[tuple[str, str, bool], float] = {}
    for (i, j), v in built.computed.items():
        if built.modes[j].group == g:
            key = (request.demands[i].name, built.cpu(g).name, False)
            shares[key] = shares.get(key, 0.0) + values[v] * GB / hosts
    for (i, k, n), v in built.inside.items():
        if n == g:
            key = (request.demands[i].name, request.drives[k].name, True)
            shares[key] = values[v] * GB / hosts
    over = sum(values[v] for (_, k, n), v in built.read.items() if n == g and k in built.box)
    over += sum(values[v] for (_, n), v in built.sent.items() if n == g)
    over += sum(values[v] for (k, n), v in built.written.items() if n == g and k in built.box)
    taken, given = (
        sum(factor * values[v] for v, factor in terms.items()) * GB / hosts
        for terms in client_terms(built, g)
    )
    return Placed(
        name=built.cpu(g).name,
        hosts=hosts,
        drives=tuple(_held(built, answer, g, hosts, counted)),
        cards={name: count for name, count in cards.items() if count},
        network_Bps=float(over) * GB / hosts,
        shares=_kept(built, shares),
        taken_Bps=float(taken),
        given_Bps=float(given),
    )


def _held(
    built: Program, answer: Answer, g: int, hosts: int, counted: dict[int, int]
) -> list[Held]:
    request, values, cpu = built.request, answer.values, built.cpu(g)
    computed = sum(values[v] for (_, j), v in built.computed.items() if built.modes[j].group == g)
    read = sum(values[v] for (_, _, n), v in built.read.items() if n == g)
    # Plain drives share what is left to read, each in proportion to its port.
    ports = {k: port_Bps(request.drives[k], cpu) / GB for k in counted if built.is_plain[k]}
    most = hosts * sum(ports[k] * counted[k] for k in ports)
    part = max(0.0, computed - read) / most if most else 0.0
    found = []
    for k, count in counted.items():
        if not count:
            continue
        each = GB / (hosts * count)
        reads = sum(values[v] for (_, n, h), v in built.read.items() if (n, h) == (k, g))
        inside = {i: values[v] for (i, n, h), v in built.inside.items() if (n, h) == (k, g)}
        back = sum(request.demands[i].returns * rate for i, rate in inside.items())
        written = values[built.written[k, g]] if (k, g) in built.written else 0.0
        reads_Bps = part * ports[k] * GB if k in ports else reads * each
        found.append(
            Held(
                request.drives[k].name,
                count,
                float(reads_Bps),
                float(sum(inside.values()) * each),
                float(back * each),
                float(written * each),
            )
        )
    return found


def _boxes(built: Program, answer: Answer) -> Placed | None:
    """Return the boxes on the network; None if there are none."""
    request, values = built.request, answer.values
    found: list[Held] = []
    shares: dict[tuple[str, str, bool], float] = {}
    for k, v in built.box.items():
        if not (count := round(values[v])):
            continue
        each, name = GB / count, request.drives[k].name
        inside = {i: values[w] for (i, n, _), w in built.inside.items() if n == k}
        shares |= {(request.demands[i].name, name, True): one * GB for i, one in inside.items()}
        back = sum(request.demands[i].returns * one for i, one in inside.items())
        reads = sum(values[w] for (_, n, _), w in built.read.items() if n == k)
        written = sum(values[w] for (n, _), w in built.written.items() if n == k)
        rates = (reads * each, sum(inside.values()) * each, back * each, written * each)
        found.append(Held(name, count, *(float(rate) for rate in rates)))
    return Placed("", 0, tuple(found), {}, 0.0, _kept(built, shares)) if found else None


def _kept(built: Program, rates: dict[tuple[str, str, bool], float]) -> tuple[Share, ...]:
    """Return the rates that are more than rounding, by workload, the greatest first."""
    demands = built.request.demands
    least = {demand.name: _LEAST * demand.required_Bps for demand in demands}
    order = {demand.name: index for index, demand in enumerate(demands)}
    kept = [Share(*key, float(rate)) for key, rate in rates.items() if rate > least[key[0]]]
    return tuple(sorted(kept, key=lambda share: (order[share.workload], -share.rate_Bps)))


def _summed(built: Program, placed: tuple[Placed, ...]) -> tuple[Share, ...]:
    rates: dict[tuple[str, str, bool], float] = {}
    for one in placed:
        for share in one.shares:
            key = (share.workload, share.where, share.in_drive)
            rates[key] = rates.get(key, 0.0) + share.rate_Bps * max(1, one.hosts)
    return _kept(built, rates)
