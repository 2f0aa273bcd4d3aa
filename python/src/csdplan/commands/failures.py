"""Durability of an array, and the code that it needs: durability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf
from typing import Annotated, Any

from csdplan import published
from csdplan.commands.tables import Tables
from csdplan.errors import ModelError
from csdplan.hardware import Part as Product
from csdplan.hardware import load_catalogue
from csdplan.model.cost import HOURS_PER_YEAR
from csdplan.model.rebuild import Array
from csdplan.options import CatalogueOption, Option, documented, paths_of
from csdplan.request.coding import code_of
from csdplan.result import durability as sheets
from csdplan.result.sourced import Sourced, numbers
from csdplan.solve import durability as solver
from csdplan.units import quantity

_DRIVES = ("ssd", "csd", "network-drive", "hdd")
_DRIVES_MAX, _YEARS_MAX = 100_000, 100.0


def _number(text: str, metavar: str) -> Option:
    return Option(text, metavar=metavar)


@documented
def durability(
    drives: Annotated[
        int, Option("Drives of the array.", min=2, max=_DRIVES_MAX, argument=True, required=True)
    ],
    *,
    hosts: Annotated[int, Option("Hosts that they are in, evenly.", min=1, max=10_000)] = 1,
    racks: Annotated[
        int, Option("Racks that the hosts are in, evenly; 0: racks do not fail.", min=0, max=1000)
    ] = 0,
    part: Annotated[
        str | None,
        Option("A drive of the catalogue: its capacity and speeds.", metavar="PART"),
    ] = None,
    capacity: Annotated[str | float | None, _number("Of one drive.", "SIZE")] = None,
    read: Annotated[str | float | None, _number("Of one drive, by a host.", "RATE")] = None,
    write: Annotated[str | float | None, _number("Of one drive.", "RATE")] = None,
    link: Annotated[
        str | float | None,
        _number("Network of one host, each way, such as 100Gb/s (the default).", "RATE"),
    ] = None,
    protect: Annotated[
        Sequence[str],
        Option(
            "Look at this code, such as rs:8+2, alone. Repeat it. By default the one that needs "
            "the least flash and reaches the goals is found.",
            type=list[str],
            metavar="CODE",
        ),
    ] = (),
    spread: Annotated[
        str,
        Option(
            "drive (default, as csd does), host or rack: over what the pieces of a stripe are "
            "spread evenly."
        ),
    ] = "drive",
    rebuild: Annotated[
        str,
        Option(
            "spare (default, as csd repair does): onto a new drive; or all: into free space of "
            "all drives."
        ),
    ] = "spare",
    share: Annotated[
        str | float | None,
        _number("Share of every bandwidth that rebuilds may take. Default: 30%.", "SHARE"),
    ] = None,
    cores: Annotated[int, Option("Cores of a host that decode.", min=1, max=1024)] = 1,
    full: Annotated[
        str | float, _number("Share of the flash that holds data and parity.", "SHARE")
    ] = "100%",
    wait: Annotated[
        str | float, _number("From a failure until its rebuild begins.", "TIME")
    ] = "15min",
    replace: Annotated[
        str | float | None, _number("Until a new spare is there. Default: 72h.", "TIME")
    ] = None,
    afr: Annotated[
        str | float | None,
        _number("Drives that fail a year. Default: 0.98%; hard drives 1.57%.", "SHARE"),
    ] = None,
    unreadable: Annotated[
        float | None,
        Option(
            "Unreadable sectors for each bit read. Default: 1e-16; hard drives 1e-15.",
            min=0,
            max=1e-9,
        ),
    ] = None,
    host_outages: Annotated[
        float | None, Option("Failures of one host a year. Default: 0.56.", min=0, max=1000)
    ] = None,
    host_hours: Annotated[
        float | None, Option("Length of one, in hours. Default: 4.", min=0, max=8766)
    ] = None,
    host_lost: Annotated[
        str | float | None,
        _number("Share after which the data of its drives is gone. Default: 1%.", "SHARE"),
    ] = None,
    rack_outages: Annotated[
        float | None, Option("Failures of one rack a year. Default: 0.67.", min=0, max=1000)
    ] = None,
    rack_hours: Annotated[
        float | None, Option("Length of one, in hours. Default: 3.5.", min=0, max=8766)
    ] = None,
    rack_lost: Annotated[
        str | float | None,
        _number("Share after which the data of its drives is gone. Default: 0.1%.", "SHARE"),
    ] = None,
    nines: Annotated[
        float, Option("Goal: nines of a year's durability, 9 for 99.9999999 %.", min=1, max=20)
    ] = 9.0,
    available: Annotated[
        str | float,
        _number("Goal: share of time in which all data can be read.", "SHARE"),
    ] = "0%",
    rebuild_max: Annotated[str | float, _number("Goal: time of a rebuild.", "TIME")] = "24h",
    reads: Annotated[
        str | float, _number("Goal: share of reads left during a rebuild.", "SHARE")
    ] = "50%",
    years: Annotated[float, Option("Years in service, for costs.", min=0.01, max=_YEARS_MAX)] = 5.0,
    outage_usd: Annotated[
        float | None, Option("Cost of an hour in which some data cannot be read.", min=0)
    ] = None,
    loss_usd: Annotated[float | None, Option("Cost of losing data once.", min=0)] = None,
    catalogue: CatalogueOption = (),
) -> Tables:
    """Find how durable an array is under rs:N+K, and the code that it needs.

    Quantities are text with units, such as ``100Gb/s``, ``0.98%`` or ``24h``, or numbers in bytes,
    bytes per second, shares and hours. Returns the sheets ``codes``, ``losses``, ``spares`` and
    ``numbers``; fact ``answer`` is one paragraph.
    """
    product = _product(part, catalogue)
    disks = product is not None and product.kind == "hdd"
    afr_of = "hdd_afr" if disks else "ssd_afr"
    unreadable_of = "hdd_unreadable_per_bit" if disks else "unreadable_per_bit"
    values = _Values({
        afr_of: _share("afr", afr),
        unreadable_of: unreadable,
        "host_outages": host_outages,
        "host_hours": host_hours,
        "host_lost": _share("host_lost", host_lost),
        "rack_outages": rack_outages,
        "rack_hours": rack_hours,
        "rack_lost": _share("rack_lost", rack_lost),
        "replace_hours": _hours("replace", replace),
        "share": _share("share", share),
    })  # fmt: skip
    if hosts > drives:
        raise ModelError("hosts", hosts, f"at most one for each of {drives} drives")
    if racks > hosts:
        raise ModelError("racks", racks, f"at most one for each of {hosts} hosts")
    for name, text, known in (
        ("spread", spread, ("drive", "host", "rack")),
        ("rebuild", rebuild, ("spare", "all")),
    ):
        if text not in known:
            raise ModelError(name, text, f"one of {', '.join(known)}")
    if spread == "rack" and not racks:
        raise ModelError("spread", spread, "the number of racks (racks) with it")
    speeds = {
        name: _of_drive(name, given, measures, product)
        for name, given, measures in (
            ("capacity", capacity, "bytes"),
            ("read", read, "Bps"),
            ("write", write, "Bps"),
        )
    }
    filled = _share("full", full) or 0.0
    if not filled:
        raise ModelError("full", full, "more than 0")
    decodes = published.read("failures.toml")["decode"]
    failing = solver.Failing(
        array=Array(
            drives=drives,
            hosts=hosts,
            used_bytes=speeds["capacity"] * filled,
            read_Bps=speeds["read"],
            write_Bps=speeds["write"],
            link_Bps=_positive("link", "100Gb/s" if link is None else link, "Bps"),
            decode_Bps=cores * decodes[-1]["GBps"] * 1e9,
        ),
        afr=values[afr_of],
        hosts=values.part("host", hosts),
        racks=values.part("rack", racks),
        domain=spread,
        unreadable_per_bit=values[unreadable_of],
        share=values["share"],
        to_spare=rebuild == "spare",
        wait_hours=_hours("wait", wait) or 0.0,
        replace_hours=values["replace_hours"],
        decodes=tuple((one["data"], one["parity"], cores * one["GBps"] * 1e9) for one in decodes),
    )
    for name, option in ((afr_of, "afr"), ("share", "share")):
        if not values[name]:
            raise ModelError(option, 0, "more than 0")
    goals = solver.Goals(
        nines=nines,
        unavailable=1.0 - (_share("available", available) or 0.0),
        hours=_positive("rebuild_max", rebuild_max, "hours"),
        reads=_share("reads", reads) or 0.0,
    )
    return _answer(failing, goals, protect, values, (years, outage_usd, loss_usd))


def _answer(
    failing: solver.Failing,
    goals: solver.Goals,
    protect: Sequence[str],
    values: _Values,
    money: tuple[float, float | None, float | None],
) -> Tables:
    if protect:
        best = None
        found = [solver.durability(failing, *code_of(text)) for text in protect]
    else:
        found = list(solver.candidates(failing, goals))
        best = min(found, key=lambda one: (one.overhead, one.data), default=None)
    array = failing.array
    causes = [solver.first_cause(failing, one.data, one.parity) for one in found]
    answer = sheets.paragraph(best, found, causes, goals, array.drives * array.used_bytes)
    a_year, wait = array.drives * failing.afr, failing.replace_hours
    tables = {
        "codes": sheets.codes(found, causes, goals),
        "losses": sheets.losses(found, *money),
        "spares": sheets.spares(array.drives, a_year, wait, solver.spares(failing)),
        "numbers": numbers(values.used),
    }
    verdict = "found" if found else "infeasible"
    facts = {"verdict": verdict, "answer": answer, "code": best.code if best else None}
    # Figures of bandwidths are for programs; a terminal has room for the answer.
    shown = (sheets.brief(tables["codes"]), *list(tables.values())[1:])
    return Tables(tables, terminal=shown, facts=facts)


class _Values:
    """Numbers of a question, those that it lacks from the published ones, with where they are from.

    Attributes
    ----------
    used : dict
        Value, provenance, source and date of each number that was asked for.
    """

    def __init__(self, given: Mapping[str, float | None]) -> None:
        body = published.read("failures.toml")
        self._sources: dict[str, dict[str, Any]] = body["source"]
        self._known: dict[str, dict[str, Any]] = body["number"]
        self._given = given
        self.used: dict[str, Sourced] = {}

    def __getitem__(self, name: str) -> float:
        """Return a number, and note where it is from."""
        mine = self._given.get(name)
        if mine is not None:
            if not 0 <= mine < inf:
                raise ModelError(name, mine, "a number of at least 0")
            self.used[name] = (mine, "given", "this question", None)
            return mine
        known = self._known[name]
        source = self._sources[known["source"]]
        text = f"{source['publisher']}: {source['document']}"
        self.used[name] = (known["value"], known["prov"], text, source["date"])
        return float(known["value"])

    def part(self, kind: str, count: int) -> solver.Part:
        """Return the failures of hosts or racks."""
        if not count:
            return solver.Part(0)
        names = (f"{kind}_outages", f"{kind}_hours", f"{kind}_lost")
        return solver.Part(count, *(self[name] for name in names))


def _product(part: str | None, catalogue: Any) -> Product | None:
    """Return the drive of the catalogue that is named."""
    if part is None:
        return None
    found = load_catalogue(None, paths_of(catalogue)).parts.get(part)
    if found is None or found.kind not in _DRIVES:
        raise ModelError("part", part, "a drive that csdplan catalogue lists")
    return found


def _of_drive(name: str, given: str | float | None, measures: str, part: Product | None) -> float:
    """Return a number of the drives: the one given, else that of the catalogue."""
    if given is not None:
        return _positive(name, given, measures)
    known = None if part is None else part.value(f"{name}_{measures}")
    if known is None:
        wanted = "a drive of the catalogue with it (part), or the number"
        raise ModelError(name, "absent", wanted)
    return known


def _positive(name: str, given: str | float, measures: str) -> float:
    number = quantity(name, given, measures)
    if not number > 0:
        raise ModelError(name, given, "more than 0")
    return number


def _share(name: str, given: str | float | None) -> float | None:
    """Return a share from 0 to 1; None if none is given."""
    if given is None:
        return None
    share = quantity(name, given, "share")
    if share > 1:
        raise ModelError(name, given, "a share of at most 1, or 100%")
    return share


def _hours(name: str, given: str | float | None) -> float | None:
    """Return hours, of a year at most; None if none are given."""
    if given is None:
        return None
    hours = quantity(name, given, "hours")
    if hours > HOURS_PER_YEAR:
        raise ModelError(name, given, "a year (365.25d) at most")
    return hours
