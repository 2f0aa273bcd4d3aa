"""From a question and the catalogue to the request that the optimizer solves.

A part whose numbers the catalogue does not know is left out, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp

from csdplan.errors import ModelError
from csdplan.hardware import Catalogue, Part
from csdplan.profile import Profile
from csdplan.request.ask import Ask, Work, protection
from csdplan.request.load import core_s_per_byte, drive_s_per_byte
from csdplan.solve.purchase import Cpu, Demand, DriveKind, Limits, NetworkPart, Request

#: Bytes per second of one lane, by PCIe generation: rate times coding.
_LANE_BPS = {3: 0.985e9, 4: 1.969e9, 5: 3.938e9}
#: Lanes of a host that stay with its network cards, and lanes of a drive bay.
_NETWORK_LANES, _BAY_LANES = 16, 4
_CHASSIS = "chassis-2u24"
_SECONDS_PER_DAY, _WARRANTY_YEARS = 86_400.0, 5.0
#: Profiles that hold the times of kernels inside a part of the catalogue.
PROFILES = {"samsung-smartssd-3.84tb": ("smartssd", "smartssd")}


@dataclass(frozen=True)
class Asked:
    """A request with what a reader must know of it.

    Attributes
    ----------
    request : Request
        The request.
    assumed : mapping of str to tuple of str
        Names of the assumed numbers of each part.
    left_out : tuple of str
        Parts that could not be offered, and why.
    """

    request: Request
    assumed: Mapping[str, tuple[str, ...]]
    left_out: tuple[str, ...]


def to_request(
    ask: Ask,
    catalogue: Catalogue,
    profile: Profile,
    inside: Mapping[str, tuple[Profile, str]],
    *,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
    slower: float = 0.0,
) -> Asked:
    """Return the request of a question: what the catalogue offers, and what is required.

    Parameters
    ----------
    ask : Ask
        The question.
    catalogue : Catalogue
        Parts and prices.
    profile : Profile
        Its host points give the kernels' compute times of one core.
    inside : mapping of str to (Profile, str)
        Profile and device with the times inside a part, by the part's name.
    only, without : sequence of str
        Parts to consider alone; parts to leave out.
    slower : float
        Standard deviations by which every workload takes longer than stated.

    Raises
    ------
    ModelError
        If a part is unknown, or nothing is left to choose from.
    """
    for name in (*only, *without):
        if name not in catalogue.parts:
            raise ModelError("part", name, "one that csdplan catalogue lists")
    left_out: list[str] = []

    def offered(*kinds: str) -> list[Part]:
        parts = [part for part in catalogue.of_kind(*kinds) if part.name not in without]
        chosen = [part for part in parts if part.name in only]
        return chosen or parts

    needs_watts = ask.power_W is not None or bool(ask.kwh_usd)
    chassis = catalogue.parts[_CHASSIS]
    cpus = [_cpu(part, chassis, catalogue) for part in offered("cpu")]
    kinds = []
    for part in offered("ssd", "csd", "network-drive"):
        lacks = _lacks(part, catalogue, watts=needs_watts)
        if lacks:
            left_out.append(f"{part.name} ({', '.join(lacks)} unknown)")
        else:
            kinds.append(_kind(part, ask, catalogue))
    if not kinds:
        raise ModelError("part", ", ".join(only) or "none", "a drive whose numbers are known")
    chosen = {kind.name for kind in kinds}
    speeds = {part.name: part.value("core_speed") or 1.0 for part in offered("cpu")}
    demands = [
        _demand(work, ask, speeds, profile, catalogue, inside, chosen, slower) for work in ask.works
    ]
    if not demands:
        # Storage alone: a workload that costs next to nothing stands for reading it.
        demands = [Demand("storage", 1e6, {cpu.name: 1e-12 for cpu in cpus}, {})]
    network: tuple[NetworkPart, ...] = ()
    if any(not kind.slots for kind in kinds):
        network = _network(offered("nic"), offered("switch"), catalogue, watts=needs_watts)
    efficiency, drives_min = protection(ask.protect)
    request = Request(
        cpus=tuple(cpus),
        drives=tuple(kinds),
        demands=tuple(demands),
        limits=Limits(
            capacity_bytes=ask.raw_bytes,
            budget_usd=ask.budget_usd,
            power_W=ask.power_W,
            hosts_max=ask.hosts_max,
            energy_usd_per_kWh=ask.kwh_usd or 0.0,
            years=ask.years,
            rack_units=ask.rack_units,
            write_Bps=ask.write_Bps * ask.grown / efficiency,
            drives_min=drives_min if drives_min > 1 else 0,
        ),
        overlap=ask.overlap,
        network=network,
    )
    names = [cpu.name for cpu in cpus]
    names += [kind.name for kind in kinds] + [part.name for part in network]
    parts = [catalogue.parts[name] for name in names]
    return Asked(request, {part.name: _assumed(part, chassis) for part in parts}, tuple(left_out))


def _lacks(part: Part, catalogue: Catalogue, *, watts: bool) -> list[str]:
    needed = ["capacity_bytes", "read_Bps", *(["active_W"] if watts else [])]
    lacking = [name for name in needed if part.value(name) is None]
    return lacking + (["price"] if catalogue.price_usd(part.name) is None else [])


def _cpu(part: Part, chassis: Part, catalogue: Catalogue) -> Cpu:
    cores, slots = int(part.value("cores") or 1), int(chassis.value("slots") or 1)
    lanes = int(part.value("pcie_lanes") or _BAY_LANES) - _NETWORK_LANES
    lane_Bps = _LANE_BPS[int(part.value("pcie_generation") or 3)]
    prices = [catalogue.price_usd(part.name), catalogue.price_usd(chassis.name)]
    if None in prices:
        raise ModelError(f"price of {part.name}", "absent", "a price in --prices")
    return Cpu(
        name=part.name,
        cores=cores,
        price_usd=sum(price for price in prices if price is not None),
        ingest_Bps=min(lanes, _BAY_LANES * slots) * lane_Bps,
        slots=slots,
        idle_W=chassis.value("idle_W"),
        core_W=(part.value("tdp_W") or 0.0) / cores,
        rack_units=chassis.value("rack_units") or 0.0,
        bay_Bps=_BAY_LANES * lane_Bps,
        card_Bps=_NETWORK_LANES * lane_Bps,
    )


def _kind(part: Part, ask: Ask, catalogue: Catalogue) -> DriveKind:
    networked = part.kind == "network-drive"
    capacity = part.value("capacity_bytes") or 0.0
    # A stripe needs as many drives as it has blocks: no drive holds more than its share of it.
    _, width = protection(ask.protect)
    most = ask.raw_bytes / width if ask.raw_bytes and width > 1 else float("inf")
    ratio = min(ask.compression, part.value("compression_max") or 1.0)
    read_Bps, link_Bps = part.value("read_Bps") or 0.0, part.value("link_Bps")
    dwpd = part.value("dwpd")
    lasts = min(1.0, _WARRANTY_YEARS / ask.years)
    return DriveKind(
        name=part.name,
        price_usd=catalogue.price_usd(part.name) or 0.0,
        capacity_bytes=min(capacity * ratio, most),
        read_Bps=min(read_Bps, link_Bps or read_Bps),
        active_W=part.value("active_W"),
        media_Bps=part.value("media_bw_Bps") or read_Bps,
        idle_W=part.value("idle_W"),
        slots=0 if networked else 1,
        rack_units=part.value("rack_units") or 0.0,
        # Endurance that is not published is not relied on.
        write_Bps=part.value("write_Bps") if dwpd else None,
        endurance_Bps=(dwpd or 0.0) * capacity / _SECONDS_PER_DAY * lasts,
    )


def _network(
    cards: Sequence[Part], switches: Sequence[Part], catalogue: Catalogue, *, watts: bool
) -> tuple[NetworkPart, ...]:
    """Return cards, and the fastest of the switches: a card is no faster than its port."""
    needed = ["link_Bps", *(["active_W"] if watts else [])]

    def known(parts: Sequence[Part], *more: str) -> list[Part]:
        return [
            part
            for part in parts
            if catalogue.price_usd(part.name) is not None
            and all(part.value(name) is not None for name in (*needed, *more))
        ]

    switches, cards = known(switches, "ports"), known(cards)
    if not switches or not cards:
        lacking = ", ".join(["link_Bps", "ports of a switch", "price", *needed[1:]])
        raise ModelError("network", "no card or no switch", f"one of each with {lacking}")
    port_Bps = max(part.value("link_Bps") or 0.0 for part in switches)
    fastest = [part for part in switches if part.value("link_Bps") == port_Bps]
    return tuple(
        NetworkPart(
            name=part.name,
            price_usd=catalogue.price_usd(part.name) or 0.0,
            link_Bps=min(part.value("link_Bps") or 0.0, port_Bps),
            ports=int(part.value("ports") or 0),
            active_W=part.value("active_W"),
            rack_units=part.value("rack_units") or 0.0,
        )
        for part in (*cards, *fastest)
    )


def _demand(
    work: Work,
    ask: Ask,
    speeds: Mapping[str, float],
    profile: Profile,
    catalogue: Catalogue,
    inside: Mapping[str, tuple[Profile, str]],
    chosen: set[str],
    slower: float,
) -> Demand:
    factor = exp(slower * work.spread)
    core_s = 1.0 / work.core_Bps if work.core_Bps else core_s_per_byte(profile, work.name)
    if core_s is None:
        listed = ", ".join(profile.kernels())
        raise ModelError(
            f"workload {work.name}", "no such kernel", f"one of {listed}, or @FILE.toml with core"
        )
    drives: dict[str, float] = {}
    for name in sorted(chosen):
        part = catalogue.parts[name]
        own = inside.get(name)
        known = drive_s_per_byte(own[0], work.name, own[1]) if own and not work.core_Bps else None
        cores = part.value("cores")
        if known is not None:
            drives[name] = known * factor
        elif part.kind == "network-drive" and cores:
            compute_s = core_s * factor / (cores * (part.value("core_speed") or 1.0))
            drives[name] = max(compute_s, 1.0 / (part.value("read_Bps") or 1.0))
    return Demand(
        name=work.name,
        required_Bps=work.required_Bps * ask.grown,
        core_s_per_byte={name: core_s * factor / speed for name, speed in speeds.items()},
        drive_s_per_byte=drives,
        returns=work.returns,
    )


def _assumed(part: Part, chassis: Part) -> tuple[str, ...]:
    """Return the names of a part's assumed numbers; a CPU brings those of its chassis."""
    names = [name for name, number in part.numbers().items() if number.prov == "assumed"]
    if part.kind == "cpu":
        numbers = chassis.numbers().items()
        names += [f"{name} of the chassis" for name, one in numbers if one.prov == "assumed"]
    return tuple(names)
