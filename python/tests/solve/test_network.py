"""Drives on the network: cards and switches, next to an enumeration of every purchase."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from csdplan.errors import ModelError
from csdplan.model.overlap import Overlap
from csdplan.result.purchase import topology
from csdplan.solve.optimize import optimize
from csdplan.solve.purchase import Cpu, Demand, DriveKind, Limits, NetworkPart, Request

GB, TB = 1e9, 1e12


def request(rng: np.random.Generator) -> Request:
    """Return a small random question with local drives, boxes, two cards and two switches.

    The fast card is too fast for the small switch, and in some of the questions the boxes are.
    """
    cpu = Cpu("cpu", 16, float(rng.integers(1000, 9000)), 20 * GB, 4, 100.0, 5.0, 2.0)
    local = DriveKind("local", float(rng.integers(300, 900)), 8 * TB, 5 * GB, 10.0)
    price = float(rng.integers(300, 900))
    box = DriveKind("box", price, 10 * TB, 4 * GB, 20.0, slots=0, rack_units=1.0)
    cards = [
        NetworkPart("slow", float(rng.integers(100, 400)), 6 * GB, active_W=10.0),
        NetworkPart("fast", float(rng.integers(300, 900)), 14 * GB, active_W=15.0),
    ]
    small_Bps = 6 * GB if rng.random() < 0.7 else 3 * GB
    switches = [
        NetworkPart("small", float(rng.integers(200, 900)), small_Bps, 4, 90.0, 1.0),
        NetworkPart("large", float(rng.integers(600, 2000)), 14 * GB, 12, 150.0, 2.0),
    ]
    demand = Demand("scan", float(rng.integers(5, 25)) * GB, {"cpu": 0.4e-9}, {})
    limits = Limits(
        capacity_bytes=float(rng.integers(10, 60)) * TB,
        hosts_max=3,
        rack_units=float(rng.integers(6, 14)),
        power_W=float(rng.integers(600, 1500)),
    )
    return Request((cpu,), (local, box), (demand,), limits, network=(*cards, *switches))


def cheapest(asked: Request) -> float | None:
    """Return the price of the cheapest purchase, by enumeration and by hand."""
    (cpu,), (local, box), (demand,) = asked.cpus, asked.drives, asked.demands
    slow, fast, small, large = asked.network
    limits = asked.limits
    best = None
    for hosts in range(1, limits.hosts_max + 1):
        cards = [(a, b) for a in range(hosts + 1) for b in range(hosts + 1 - a)]
        for locals_, boxes in product(range(4 * hosts + 1), range(13)):
            for (a, b), s, g in product(cards, range(4), range(3)):
                if boxes and not a + b:
                    continue
                needs = [slow.link_Bps] * a + [fast.link_Bps] * b + [box.read_Bps] * boxes
                ports = [large.link_Bps] * g * large.ports + [small.link_Bps] * s * small.ports
                if not _fits(sorted(needs, reverse=True), ports):
                    continue
                if locals_ * local.capacity_bytes + boxes * box.capacity_bytes < (
                    limits.capacity_bytes
                ):
                    continue
                units = hosts * cpu.rack_units + boxes * box.rack_units
                units += s * small.rack_units + g * large.rack_units
                power = hosts * (100 + 16 * 5) + locals_ * 10 + boxes * 20
                power += a * 10 + b * 15 + s * 90 + g * 150
                if units > (limits.rack_units or 0) or power > (limits.power_W or 0):
                    continue
                remote = min(boxes * box.read_Bps, a * slow.link_Bps + b * fast.link_Bps)
                read = locals_ * local.read_Bps + remote
                if read * hosts == 0 or not _in_time(demand.required_Bps, hosts, cpu, read):
                    continue
                price = hosts * cpu.price_usd + locals_ * local.price_usd + boxes * box.price_usd
                price += a * slow.price_usd + b * fast.price_usd
                price += s * small.price_usd + g * large.price_usd
                best = price if best is None else min(best, price)
    return best


def _fits(needs: list[float], ports: list[float]) -> bool:
    """Return whether each finds a port that is no slower; both from the fastest down."""
    each = zip(needs, ports, strict=False)
    return len(needs) <= len(ports) and all(need <= port for need, port in each)


def _in_time(required_Bps: float, hosts: int, cpu: Cpu, read_Bps: float) -> bool:
    """Overlapped hosts: drives, intake and cores each carry the whole rate."""
    return required_Bps <= min(read_Bps, hosts * cpu.ingest_Bps, hosts * 16 / 0.4e-9)


def test_plans_are_those_of_an_enumeration() -> None:
    rng = np.random.default_rng(5)
    networked, switches = 0, set[str]()
    for _ in range(24):
        asked = replace(request(rng), overlap=Overlap.PIPELINED)
        expected, plan = cheapest(asked), optimize(asked, explain=False)
        if expected is None:
            assert plan is None
            continue
        assert plan is not None
        assert plan.price_usd == pytest.approx(expected)
        networked += bool(plan.network)
        switches |= {"small", "large"} & plan.network.keys()
        assert bool(plan.drives.get("box")) == bool(plan.network)
    assert networked >= 6, "boxes are bought in some of the cases"
    assert switches == {"small", "large"}


def test_without_drives_on_the_network_nothing_of_it_is_bought() -> None:
    asked = request(np.random.default_rng(1))
    alone = replace(asked, drives=asked.drives[:1], limits=Limits(capacity_bytes=TB, hosts_max=3))
    plan = optimize(alone)
    assert plan is not None
    assert plan.network == {}


def test_unknown_watts_of_a_switch_are_named_where_power_counts() -> None:
    asked = request(np.random.default_rng(1))
    dark = replace(asked.network[2], active_W=None)
    with pytest.raises(ModelError, match="the watts of small"):
        replace(asked, network=(asked.network[0], dark))


def test_a_fast_card_and_slow_boxes_take_ports_of_two_switches() -> None:
    cpu = Cpu("cpu", 64, 5000.0, 40 * GB, 4)
    local = DriveKind("local", 1e5, TB, GB)
    box = DriveKind("box", 500.0, TB, 4 * GB, slots=0)
    network = (
        NetworkPart("card", 300.0, 14 * GB),
        NetworkPart("narrow", 200.0, 6 * GB, 4),
        NetworkPart("wide", 300.0, 14 * GB, 1),
    )
    scan = Demand("scan", 11 * GB, {"cpu": 0.4e-9}, {})
    asked = Request((cpu,), (local, box), (scan,), overlap=Overlap.PIPELINED, network=network)
    plan = optimize(asked, explain=False)
    assert plan is not None
    assert plan.bought == {"cpu": 1, "box": 3, "card": 1, "narrow": 1, "wide": 1}
    sheet = topology(asked, plan)
    ports = dict(zip(sheet.column("name"), sheet.column("port"), strict=True))
    assert ports["card"] == "slot, and port of wide"
    assert ports["box"] == "port of narrow"
