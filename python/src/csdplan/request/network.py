"""Network cards and switches of a plan."""

from __future__ import annotations

from collections.abc import Sequence

from csdplan.errors import ModelError
from csdplan.hardware import Catalogue, Part
from csdplan.request.front import carried_Bps
from csdplan.solve.purchase import NetworkPart


def network_parts(
    cards: Sequence[Part], switches: Sequence[Part], catalogue: Catalogue, *, watts: bool
) -> tuple[NetworkPart, ...]:
    """Return cards, and the switches that carry at least one of them.

    A card that is faster than every switch on offer is as fast as the fastest.
    """
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

    def link_Bps(part: Part) -> float:
        return part.value("link_Bps") or 0.0

    fastest_Bps = max(link_Bps(part) for part in switches)
    slowest_Bps = min(fastest_Bps, *(link_Bps(part) for part in cards))
    carrying = [part for part in switches if link_Bps(part) >= slowest_Bps]
    return tuple(
        NetworkPart(
            name=part.name,
            price_usd=catalogue.price_usd(part.name) or 0.0,
            link_Bps=carried_Bps(min(link_Bps(part), fastest_Bps)),
            ports=int(part.value("ports") or 0),
            active_W=part.value("active_W"),
            rack_units=part.value("rack_units") or 0.0,
        )
        for part in (*cards, *carrying)
    )
