"""Drives behind a network card, latency under load, and a front end: network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from csdplan import published
from csdplan.commands.tables import Tables
from csdplan.errors import ModelError
from csdplan.hardware import Catalogue, load_catalogue
from csdplan.hardware import Part as Product
from csdplan.options import CatalogueOption, Option, PricesOption, documented, paths_of
from csdplan.request.front import core_time
from csdplan.result import network as sheets
from csdplan.result.sourced import Sourced, numbers
from csdplan.solve.fabric import behind, front_end, stations
from csdplan.units import quantity

_DRIVES = ("ssd", "csd", "network-drive", "hdd")
#: Blocks of reads [bytes]: least, most.
_LEAST, _MOST = 512, 16 * 1024 * 1024


@documented
def network(
    *,
    nic: Annotated[
        str, Option("The network card, of the catalogue.", metavar="PART")
    ] = "connectx-6-dx",
    part: Annotated[
        str, Option("The drive, of the catalogue.", metavar="PART")
    ] = "samsung-pm9a3-7.68tb",
    drives: Annotated[int, Option("Drives in a host.", min=1, max=1000)] = 8,
    iops: Annotated[
        float | None,
        Option(
            "Reads a second of one drive at most; by default the catalogue's, or its bandwidth "
            "alone counts.",
            min=1,
        ),
    ] = None,
    media_us: Annotated[
        float,
        Option("Latency of the drive's media. Default: 80, assumed.", min=0.1, max=1e6),
    ] = 80.0,
    cores: Annotated[int, Option("Cores of a host that serve the network.", min=1, max=1024)] = 4,
    mtu: Annotated[int, Option("Bytes of a frame's payload.", min=576, max=65_536)] = 9000,
    block: Annotated[
        Sequence[str],
        Option(
            "Length of reads, such as 4KiB or 1MiB. Repeat it. The latency is of the first.",
            metavar="SIZE",
            type=list[str],
        ),
    ] = (),
    load: Annotated[
        float | None, Option("Latency with so many reads a second of one host.", min=1)
    ] = None,
    hosts: Annotated[
        int, Option("Hosts of the front end, with one card each and a port of a switch.", min=1)
    ] = 1,
    cards: Annotated[int, Option("Cards of each host.", min=1, max=16)] = 1,
    switch: Annotated[str, Option("The switch.", metavar="PART")] = "spectrum-sn3700",
    oversubscription: Annotated[
        float,
        Option("Bandwidth toward hosts over that between switches.", min=1, max=64),
    ] = 1.0,
    catalogue: CatalogueOption = (),
    prices: PricesOption = None,
) -> Tables:
    """Find how many drives one network card carries, the latency under load, and the switches.

    Returns the sheets ``blocks``, ``latency``, ``front`` and ``numbers``; fact ``answer`` is one
    paragraph.
    """
    found = load_catalogue(prices, paths_of(catalogue))
    card, drive, joins = (
        _part(found, "nic", nic, ("nic",), "link_Bps"),
        _part(found, "part", part, _DRIVES, "read_Bps"),
        _part(found, "switch", switch, ("switch",), "ports"),
    )
    measured = published.read("network.toml")
    core = core_time()
    blocks = [
        behind(
            length,
            # A card's port is no faster than that of its switch.
            link_Bps=cards * min(_number(card, "link_Bps"), _number(joins, "link_Bps")),
            mtu=mtu,
            cores=cores,
            core=core,
            drive_Bps=_number(drive, "read_Bps"),
            drive_per_s=drive.value("read_per_s") if iops is None else iops,
        )
        for length in (_lengths(block or ("4KiB", "16KiB", "128KiB", "1MiB")))
    ]
    first = blocks[0]
    passed = stations(first, cores=cores, drives=drives, media_s=media_us / 1e6)
    most = min(one.most_per_s for one in passed)
    if load is not None and load >= most:
        raise ModelError("load", f"{load:g}", f"less than the {most:.6g} reads a second of a host")
    alone = next(one for one in measured["point"] if one["depth"] == 1)
    fixed_s = 1.0 / alone["per_s"] + media_us / 1e6 + first.block / first.link_Bps
    source = measured["source"]
    note = (
        f"CPU time: {source['document']} ({source['date']}), on a line through 4 KiB and 128 KiB. "
        "That of the hosts that read is not in it"
    )
    ends = front_end(hosts, cards, int(_number(joins, "ports")), oversubscription)
    tables = {
        "blocks": sheets.blocks(blocks, note),
        "latency": sheets.latency(first.block, passed, fixed_s, load, _LATENCY_NOTE),
        "front": sheets.front(ends, *_bill(found, card, joins)),
        "numbers": numbers(
            _used(found, (card, "link_Bps"), (drive, "read_Bps"), (joins, "ports"))
            | _assumed(measured, media_us)
        ),
    }
    answer = sheets.paragraph(blocks, card.title, drive.title, drives)
    return Tables(tables, facts={"answer": answer})


_LATENCY_NOTE = (
    "reads that come at random, spread over all drives; without a wait: the round trip measured at "
    "depth 1, the media, and the link. Writes next to them, and pauses of flash, are left out"
)


def _lengths(texts: Sequence[str]) -> list[int]:
    found = []
    for text in texts:
        size = quantity("block", text, "bytes")
        if not (_LEAST <= size <= _MOST and size == int(size)):
            raise ModelError("block", text, f"a whole number of bytes from {_LEAST} to 16 MiB")
        found.append(int(size))
    return found


def _part(
    catalogue: Catalogue, option: str, name: str, kinds: Sequence[str], needed: str
) -> Product:
    part = catalogue.parts.get(name)
    if part is None or part.kind not in kinds or part.value(needed) is None:
        listed = " or ".join(kinds)
        raise ModelError(option, name, f"a {listed} of the catalogue with {needed}")
    return part


def _number(part: Product, name: str) -> float:
    value = part.value(name)
    if value is None:
        raise ModelError(part.name, f"without {name}", f"a part with {name}")
    return value


def _bill(
    catalogue: Catalogue, card: Product, switch: Product
) -> tuple[tuple[str, str], tuple[float, float], tuple[float, float]]:
    """Return names, prices and watts of a card and a switch."""
    prices = []
    for part in (card, switch):
        usd = catalogue.price_usd(part.name)
        if usd is None:
            raise ModelError(part.name, "without a price", "one, in a file of prices (prices)")
        prices.append(usd)
    watts = [part.value("active_W") or 0.0 for part in (card, switch)]
    return (card.name, switch.name), (prices[0], prices[1]), (watts[0], watts[1])


def _used(catalogue: Catalogue, *wanted: tuple[Product, str]) -> dict[str, Sourced]:
    found: dict[str, Sourced] = {}
    for part, name in wanted:
        one = part.numbers()[name]
        source = catalogue.sources[one.source]
        found[f"{name} of {part.name}"] = (one.value, one.prov, str(source), source.date)
    return found


def _assumed(measured: dict[str, Any], media_us: float) -> dict[str, Sourced]:
    """Return the numbers of NVMe/TCP and of the media, with their sources."""
    source = measured["source"]
    text = f"{source['publisher']}: {source['document']}"
    found: dict[str, Sourced] = {
        f"CPU us of a {one['op']} of {one['block']} bytes at depth {one['depth']}": (
            one["cpu_us"], "measured", text, source["date"],
        )
        for one in measured["point"]
        if one["op"] == "read"
    }  # fmt: skip
    media = measured["media"]
    same = media_us == media["us"]
    prov, where = (media["prov"], "assumption") if same else ("given", "this question")
    return found | {"media_us": (media_us, prov, where, None)}
