"""From a question and the catalogue to the request that the optimizer solves.

A part whose numbers the catalogue does not know is left out, and the answer says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf

from csdplan.errors import ModelError
from csdplan.hardware import Catalogue, Part
from csdplan.profile import Profile
from csdplan.profile.workload import media_Bps
from csdplan.request import cold
from csdplan.request.ask import SERVED, Ask, Work
from csdplan.request.coding import protection
from csdplan.request.cores import Cores
from csdplan.request.front import carried_Bps, clients
from csdplan.request.load import drive_s_per_byte
from csdplan.request.network import network_parts
from csdplan.solve.purchase import BAY_LANES, Cpu, Demand, DriveKind, Limits, NetworkPart, Request

#: Bytes per second of one lane, by PCIe generation: rate times coding; of 6, bytes of its units.
_LANE_BPS = {3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
#: Lanes of a host that stay with its network cards.
_NETWORK_LANES = 16
#: Share of the memory's peak that reads and writes together reach. An assumption.
_MEMORY_SHARE = 0.8
_SECONDS_PER_DAY, _DAYS_PER_YEAR = 86_400.0, 365.25
#: Years that drive writes per day are about, where no document says.
_WARRANTY_YEARS = 5.0


@dataclass(frozen=True)
class Asked:
    """A request with what a reader must know of it.

    Attributes
    ----------
    request : Request
        The request.
    chassis : str
        Part that every CPU is bought with.
    assumed : mapping of str to tuple of str
        Names of the assumed numbers of each part.
    left_out : tuple of str
        Parts that could not be offered, and why.
    unmeasured : tuple of str
        Parts on offer without a measurement of cores like theirs.
    core_prov : mapping of (str, str) to str
        How the time of a core is known, by workload and part.
    reference : str or None
        CPU that the profile's times are of; None if it is none of the catalogue.
    """

    request: Request
    chassis: str
    assumed: Mapping[str, tuple[str, ...]]
    left_out: tuple[str, ...]
    unmeasured: tuple[str, ...] = ()
    core_prov: Mapping[tuple[str, str], str] = field(default_factory=dict)
    reference: str | None = None


def check_parts(catalogue: Catalogue, only: Sequence[str], without: Sequence[str]) -> None:
    """Check that the parts to choose from exist, and that none is both wanted and left out.

    Raises
    ------
    ModelError
        If it is not so.
    """
    check_known(catalogue, "only", only)
    check_known(catalogue, "without", without)
    if both := sorted(set(only) & set(without)):
        raise ModelError("without", ", ".join(both), "parts that --only does not name")


def check_known(catalogue: Catalogue, option: str, names: Iterable[str]) -> None:
    """Check that the parts that an option names exist.

    Raises
    ------
    ModelError
        If one does not.
    """
    for name in names:
        if name not in catalogue.parts:
            raise ModelError(option, name, "a part that csdplan catalogue lists")


def to_request(
    ask: Ask,
    catalogue: Catalogue,
    profile: Profile,
    inside: Mapping[str, tuple[Profile, str]],
    *,
    only: Sequence[str] = (),
    without: Sequence[str] = (),
    measured: Mapping[str, Profile] | None = None,
    unmeasured: bool = False,
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
        Parts to consider alone, each of its kind; parts to leave out.
    measured : mapping of str to Profile, optional
        Profiles measured on parts themselves: their host points go before all others.
    unmeasured : bool
        True to offer parts without a measurement of their cores; else only those that `only` names.

    Raises
    ------
    ModelError
        If nothing is left to choose from.
    """
    offer = _Offer(catalogue, only, without)
    cores = Cores(catalogue, profile, measured or {})
    wanted = cores.is_measured if ask.works and not unmeasured else None
    needs_watts = ask.power_W is not None or bool(ask.kwh_usd)

    chassis = _chassis(offer.of("server"), catalogue)
    tdp, watts = (["tdp_W"], ["active_W"]) if needs_watts else ([], [])
    offered = offer.measured(offer.of("cpu"), wanted)
    processors = offer.complete(offered, "cores", "pcie_lanes", "pcie_generation", *tdp)
    cpus = [_cpu(part, chassis, catalogue) for part in processors]
    drives = offer.measured(offer.of("ssd", "csd", "network-drive"), wanted)
    stores = offer.complete(drives, "capacity_bytes", "read_Bps", *watts)
    kinds = [_kind(part, ask, catalogue, inside.get(part.name)) for part in stores]
    for what, found in (("drive", kinds), ("CPU", cpus)):
        if not found:
            lacking = "; ".join(offer.left_out) or "none is on offer"
            raise ModelError("part", f"no {what}", f"one whose numbers are known: {lacking}")
    demands = [_demand(work, ask, cores, processors, stores, inside) for work in ask.works]
    disks, servers = _cold(offer, ask, catalogue, watts=needs_watts)
    if ask.cold_read_Bps:
        demands.append(cold.demand_of(ask, servers))
    if ask.serve_Bps:
        # Clients read what is stored: all of it crosses a host, which computes next to nothing.
        none = {cpu.name: 1e-15 for cpu in cpus}
        demands.append(Demand(SERVED, ask.serve_Bps * ask.grown, none, {}, returns=1.0))
    if not demands:
        # Storage alone: a workload that costs next to nothing stands for reading it.
        readers = cpus if ask.raw_bytes else servers
        demands = [Demand("storage", 1e6, {cpu.name: 1e-12 for cpu in readers}, {})]
    cpus, kinds = [*cpus, *servers], [*kinds, *disks]
    network: tuple[NetworkPart, ...] = ()
    if ask.has_clients or any(not kind.slots for kind in kinds):
        network = network_parts(offer.of("nic"), offer.of("switch"), catalogue, watts=needs_watts)
        fastest_Bps = max(part.link_Bps for part in network if part.ports)
        kinds = [
            kind if kind.slots else replace(kind, read_Bps=min(kind.read_Bps, fastest_Bps))
            for kind in kinds
        ]
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
            written_Bps=ask.written_Bps / efficiency,
            drives_min=drives_min if drives_min > 1 else 0,
            cold_bytes=ask.raw_cold_bytes,
        ),
        overlap=ask.overlap,
        network=network,
        clients=clients() if ask.has_clients else None,
    )
    names = [cpu.name for cpu in cpus]
    names += [kind.name for kind in kinds] + [part.name for part in network]
    parts = [catalogue.parts[name] for name in names]
    computing = [part for part in parts if has_cores(part)]
    return Asked(
        request=request,
        chassis=chassis.name,
        assumed={part.name: _assumed(part, chassis) for part in parts},
        left_out=tuple(offer.left_out),
        unmeasured=tuple(part.name for part in computing if not cores.is_measured(part)),
        core_prov={
            (work.name, part.name): cores.prov(work, part)
            for work in ask.works
            for part in computing
        },
        reference=cores.reference,
    )


def has_cores(part: Part) -> bool:
    """Return whether a part runs workloads on cores of its own."""
    return part.kind in {"cpu", "network-drive"} and part.value("cores") is not None


class _Offer:
    """Parts of a catalogue that may be bought, and those that are left out with the reason."""

    def __init__(self, catalogue: Catalogue, only: Sequence[str], without: Sequence[str]) -> None:
        self._catalogue, self._only, self._without = catalogue, only, without
        self.left_out: list[str] = []

    def of(self, *kinds: str) -> list[Part]:
        """Return the parts of these kinds: those that are wanted alone, if any, less the others."""
        parts = self._catalogue.of_kind(*kinds)
        named = [part for part in parts if part.name in self._only]
        return [part for part in named or parts if part.name not in self._without]

    def measured(
        self, parts: Sequence[Part], is_measured: Callable[[Part], bool] | None
    ) -> list[Part]:
        """Return the parts whose cores somebody has measured, and those that were named."""

        def counts(part: Part) -> bool:
            known = is_measured is None or not has_cores(part) or is_measured(part)
            return known or part.name in self._only

        for part in parts:
            if not counts(part):
                how = f"--cores {part.name}=PROFILE, or --unmeasured"
                self.left_out.append(f"{part.name} (nobody has measured its cores: {how})")
        return [part for part in parts if counts(part)]

    def complete(self, parts: Sequence[Part], *needed: str) -> list[Part]:
        """Return the parts of which all that is needed is known."""
        kept = []
        for part in parts:
            if lacks := _lacks(part, self._catalogue, needed):
                self.left_out.append(f"{part.name} ({', '.join(lacks)} unknown)")
            else:
                kept.append(part)
        return kept


def _lacks(part: Part, catalogue: Catalogue, needed: Sequence[str]) -> list[str]:
    lacking = [name for name in needed if part.value(name) is None]
    generation, lanes = part.value("pcie_generation"), part.value("pcie_lanes")
    if generation is not None and generation not in _LANE_BPS:
        lacking.append(f"speed of PCIe {generation:g}")
    if part.kind == "cpu" and lanes is not None and lanes <= _NETWORK_LANES:
        lacking.append(f"pcie_lanes beside the network's {_NETWORK_LANES}")
    return lacking + (["price"] if catalogue.price_usd(part.name) is None else [])


def _chassis(offered: Sequence[Part], catalogue: Catalogue) -> Part:
    """Return what every CPU is bought with: the first that has slots and a price."""
    for part in offered:
        if part.value("slots") is not None and catalogue.price_usd(part.name) is not None:
            return part
    raise ModelError("part", "no chassis", "a server with slots and a price")


def _cpu(part: Part, chassis: Part, catalogue: Catalogue) -> Cpu:
    cores, slots = int(part.value("cores") or 1), int(chassis.value("slots") or 1)
    lanes = int(part.value("pcie_lanes") or BAY_LANES) - _NETWORK_LANES
    lane_Bps = _LANE_BPS[int(part.value("pcie_generation") or 3)]
    prices = [catalogue.price_usd(part.name), catalogue.price_usd(chassis.name)]
    return Cpu(
        name=part.name,
        cores=cores,
        price_usd=sum(price for price in prices if price is not None),
        ingest_Bps=min(lanes, BAY_LANES * slots) * lane_Bps,
        slots=slots,
        idle_W=chassis.value("idle_W"),
        core_W=(part.value("tdp_W") or 0.0) / cores,
        rack_units=chassis.value("rack_units") or 0.0,
        bay_Bps=BAY_LANES * lane_Bps,
        card_Bps=_NETWORK_LANES * lane_Bps,
        memory_Bps=_MEMORY_SHARE * (part.value("memory_bw_Bps") or inf),
    )


def _kind(
    part: Part, ask: Ask, catalogue: Catalogue, inside: tuple[Profile, str] | None
) -> DriveKind:
    networked = part.kind == "network-drive"
    capacity = part.value("capacity_bytes") or 0.0
    # A stripe needs as many drives as it has blocks: no drive holds more than its share of it.
    _, width = protection(ask.protect)
    most = ask.raw_bytes / width if ask.raw_bytes and width > 1 else float("inf")
    ratio = min(ask.compression, part.value("compression_max") or 1.0)
    link_Bps = min(carried_Bps(part.value("link_Bps") or inf), _port_Bps(part))
    read_Bps, write_Bps = part.value("read_Bps") or 0.0, part.value("write_Bps")
    lifetime_bytes = _lifetime_bytes(part)
    return DriveKind(
        name=part.name,
        price_usd=catalogue.price_usd(part.name) or 0.0,
        capacity_bytes=min(capacity * ratio, most),
        read_Bps=min(read_Bps, link_Bps),
        active_W=part.value("active_W"),
        media_Bps=part.value("media_bw_Bps") or max(read_Bps, media_Bps(*inside) if inside else 0),
        idle_W=part.value("idle_W"),
        slots=0 if networked else 1,
        rack_units=part.value("rack_units") or 0.0,
        # Endurance that is not published is not relied on.
        write_Bps=min(write_Bps, link_Bps) if write_Bps and lifetime_bytes else None,
        endurance_Bps=(lifetime_bytes or 0.0) / (ask.years * _DAYS_PER_YEAR * _SECONDS_PER_DAY),
        lanes=int(part.value("pcie_lanes") or BAY_LANES),
    )


def _port_Bps(part: Part) -> float:
    """Return what the lanes of a drive carry; infinite if their generation is unknown."""
    generation = part.value("pcie_generation")
    if generation is None or part.kind == "network-drive":
        return inf
    return (part.value("pcie_lanes") or BAY_LANES) * _LANE_BPS[int(generation)]


def _lifetime_bytes(part: Part) -> float | None:
    """Return the bytes that a drive may be written before it is worn out; None if unknown."""
    if total := part.value("endurance_bytes"):
        return total
    dwpd, capacity = part.value("dwpd"), part.value("capacity_bytes")
    if dwpd is None or capacity is None:
        return None
    return dwpd * capacity * _DAYS_PER_YEAR * (part.value("dwpd_years") or _WARRANTY_YEARS)


def _cold(
    offer: _Offer, ask: Ask, catalogue: Catalogue, *, watts: bool
) -> tuple[list[DriveKind], list[Cpu]]:
    """Return hard drives and servers for them, if there are cold data."""
    if not ask.cold_bytes:
        return [], []
    drive_W, server_W = (("active_W",), cold.WATTS) if watts else ((), ())
    drives = offer.complete(offer.of(cold.DRIVE), *cold.DRIVE_NEEDS, *drive_W)
    servers = offer.complete(offer.of(cold.SERVER), *cold.SERVER_NEEDS, *server_W)
    cards_Bps = {one: _NETWORK_LANES * lane_Bps for one, lane_Bps in _LANE_BPS.items()}
    return cold.tier(ask, catalogue, drives, servers, cards_Bps)


def _demand(
    work: Work,
    ask: Ask,
    cores: Cores,
    processors: Sequence[Part],
    stores: Sequence[Part],
    inside: Mapping[str, tuple[Profile, str]],
) -> Demand:
    drives: dict[str, float] = {}
    for part in sorted(stores, key=lambda part: part.name):
        own = inside.get(part.name)
        known = drive_s_per_byte(own[0], work.name, own[1]) if own and not work.core_Bps else None
        if known is not None:
            drives[part.name] = known
        elif has_cores(part):
            compute_s = cores.s_per_byte(work, part) / (part.value("cores") or 1.0)
            drives[part.name] = max(compute_s, 1.0 / (part.value("read_Bps") or 1.0))
    return Demand(
        name=work.name,
        required_Bps=work.required_Bps * ask.grown,
        core_s_per_byte={part.name: cores.s_per_byte(work, part) for part in processors},
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
