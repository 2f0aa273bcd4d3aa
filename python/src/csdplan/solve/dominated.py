"""Parts that no cheapest purchase needs: another costs no more, and does no less, one for one.

Leaving them out keeps the optimum, and the solver's trees small.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from typing import TypeVar

from csdplan.solve.purchase import Cpu, DriveKind, NetworkPart, Request, media_Bps

Part = TypeVar("Part", Cpu, DriveKind, NetworkPart)


def without_dominated(request: Request) -> Request:
    """Return a request without the parts that another one can stand for in every purchase."""
    return replace(
        request,
        cpus=_kept(request.cpus, lambda cpu: _cpu(request, cpu)),
        drives=_kept(request.drives, lambda kind: _drive(request, kind)),
        network=_kept(request.network, lambda part: _network(request, part)),
    )


def _kept(parts: Sequence[Part], costs: Callable[[Part], tuple[float, ...]]) -> tuple[Part, ...]:
    """Return the parts that have less of something than every other; of equal ones the first.

    A part of which there are only so many stands for no other.
    """
    vectors = [costs(part) for part in parts]
    kept = []
    for i, part in enumerate(parts):
        rivals = (
            (j, vector)
            for j, vector in enumerate(vectors)
            if j != i
            and parts[j].most is None
            and all(one <= other for one, other in zip(vector, vectors[i], strict=True))
        )
        if not any(vector != vectors[i] or j < i for j, vector in rivals):
            kept.append(part)
    return tuple(kept)


def _cpu(request: Request, cpu: Cpu) -> tuple[float, ...]:
    """Return what a host costs and lacks; the less of each, the better."""
    times = (demand.core_s_per_byte.get(cpu.name, inf) / cpu.cores for demand in request.demands)
    lacks = (-cpu.intake_Bps, -cpu.slots, -cpu.bay_Bps, -cpu.card_Bps)
    cores = () if request.clients is None else (-cpu.cores,)
    place = (cpu.disks, not cpu.disks)
    return (cpu.price_usd, *place, cpu.rack_units, *_watts(request, cpu), *times, *lacks, *cores)


def _drive(request: Request, kind: DriveKind) -> tuple[float, ...]:
    times = (demand.drive_s_per_byte.get(kind.name, inf) for demand in request.demands)
    lacks = (-kind.capacity_bytes, -kind.read_Bps, -media_Bps(kind, request.demands), -kind.lanes)
    # Drives of unequal slots are of no one's kind: a slot less is not a slot in a host.
    place = (kind.slots, -kind.slots, kind.disk, not kind.disk)
    writes = (-(kind.write_Bps or 0.0), -kind.endurance_Bps) if request.limits.write_Bps else ()
    watts = _watts(request, kind)
    needs = () if kind.slots else (_port_Bps(request, kind.read_Bps),)
    return (kind.price_usd, kind.rack_units, *watts, *times, *lacks, *place, *writes, *needs)


def _network(request: Request, part: NetworkPart) -> tuple[float, ...]:
    # A switch stands for no card, and a card for no switch; a card may need a faster port.
    kind = (bool(part.ports), not part.ports)
    needs = 0.0 if part.ports else _port_Bps(request, part.link_Bps)
    return (
        part.price_usd,
        part.rack_units,
        *_watts(request, part),
        -part.link_Bps,
        -part.ports,
        *kind,
        needs,
    )


def _port_Bps(request: Request, link_Bps: float) -> float:
    """Return the speed of the slowest port on offer that is as fast as a card or box."""
    ports = (part.link_Bps for part in request.network if part.ports)
    return min((speed for speed in ports if speed >= link_Bps), default=inf)


def _watts(request: Request, part: Cpu | DriveKind | NetworkPart) -> tuple[float, ...]:
    if not request.limits.needs_watts:
        return ()
    full = part.full_W if isinstance(part, Cpu) else part.active_W
    return (full or 0.0, part.average_W(request.limits.busy))
