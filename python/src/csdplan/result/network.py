"""Drives behind a network card, latency under load, and a front end, as sheets and a paragraph."""

from __future__ import annotations

from collections.abc import Sequence

from csdplan.model.queues import Station, latency_s
from csdplan.result.sheet import Sheet, Value, sheet_of
from csdplan.solve.fabric import Behind, FrontEnd

#: Loads that the latency is shown for, as shares of the most.
LOADS = (0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
_TAIL = 0.99


def blocks(found: Sequence[Behind], note: str) -> Sheet:
    """Return a row for each length of reads."""
    columns = (
        "block_bytes",
        "link_share",
        "link_Bps",
        "cores_Bps",
        "host_per_s",
        "binds",
        "cores_to_fill_link",
        "drive_Bps",
        "drives_at_full_speed",
        "drives_to_fill",
    )
    rows: list[tuple[Value, ...]] = [
        (
            one.block,
            one.link_share,
            one.link_Bps,
            one.cores_Bps,
            one.host_Bps / one.block,
            one.binds,
            one.cores_to_fill,
            one.drive_Bps,
            one.at_full_speed,
            one.to_fill,
        )
        for one in found
    ]
    return sheet_of("Drives behind one network card", columns, rows, note)


def latency(
    block: int, stations: Sequence[Station], fixed_s: float, asked: float | None, note: str
) -> Sheet:
    """Return mean and 99th percentile of the latency under several loads, or under one."""
    most = min(station.most_per_s for station in stations)
    loads = [share * most for share in LOADS] if asked is None else [asked]
    rows: list[tuple[Value, ...]] = []
    for load in loads:
        mean, tail = latency_s(stations, load, fixed_s, _TAIL)
        busiest = max(stations, key=lambda one: load / one.most_per_s)
        rows.append((load, load * block, load / most, mean * 1e6, tail * 1e6, busiest.name))
    columns = ("reads_per_s", "rate_Bps", "load", "mean_us", "p99_us", "busiest")
    return sheet_of(f"Latency of reads of {block} bytes", columns, rows, note)


def front(
    found: FrontEnd, names: tuple[str, str], prices: tuple[float, float], watts: tuple[float, float]
) -> Sheet:
    """Return the bill of a front end."""
    rows: list[tuple[Value, ...]] = []
    for what, name, count, usd, W in (
        ("network card", names[0], found.cards, prices[0], watts[0]),
        ("switch, with hosts", names[1], found.leaves, prices[1], watts[1]),
        ("switch, between switches", names[1], found.spines, prices[1], watts[1]),
    ):
        if count:
            rows.append((what, name, count, usd, count * usd, count * W))
    total = [sum(float(row[place] or 0.0) for row in rows) for place in (4, 5)]
    rows.append(("all", "", None, None, *total))
    columns = ("what", "name", "count", "price_usd", "cost_usd", "power_W")
    note = "cables and optics are left out; prices and power as csdplan catalogue has them"
    return sheet_of("Front end", columns, rows, note)


def paragraph(found: Sequence[Behind], card: str, drive: str, drives: int) -> str:
    """Say how many drives fit behind the card, for the longest and the shortest reads."""
    said = []
    for one in sorted(found, key=lambda one: -one.block)[:: max(1, len(found) - 1)]:
        said.append(
            f"In reads of {_size(one.block)} {one.at_full_speed} x {drive} are read at full speed "
            f"behind {card}, and {one.to_fill} fill it: {one.host_Bps / 1e9:.3g} GB/s, limited by "
            f"the {one.binds} ({one.cores_to_fill:.2g} cores would fill the link)."
        )
    text = " ".join(said)
    ratio = drives * found[0].drive_Bps / found[0].host_Bps
    if drives:
        text += f" {drives} drives could deliver {ratio:.2g} times what leaves the host."
    return text


def _size(block: int) -> str:
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if block >= unit and block % unit == 0:
            return f"{block // unit} {name}"
    return f"{block} bytes"
