"""A purchase with what a decision hangs on: how long its data last, and whence its numbers are."""

from __future__ import annotations

from collections.abc import Mapping

from csdplan.commands.failures import durability
from csdplan.commands.tables import Tables
from csdplan.errors import CsdplanError
from csdplan.hardware import Catalogue
from csdplan.result.planned import Planned
from csdplan.result.sheet import Sheet, Value, rows_of, sheet_of

#: Numbers of a drive that its durability needs; of those bought and known, which one counts.
_NEEDED = {"capacity": max, "read": min, "write": min}
#: Codes of ``durability`` by the kind of protection.
_CODES = {"replica": "rs:1+{}", "rs": "rs:{}"}


def bought(found: Tables, catalogue: Catalogue, protect: str) -> Planned:
    """Return the answer of ``plan`` to a question that asked for this protection."""
    sheets = dict(found.sheets)
    names = [
        str(row["name"]) for row in rows_of(sheets.get("bill")) if row["name"] and row["count"]
    ]
    if names:
        sheets["sources"] = _sources(names, catalogue)
    return Planned(
        answer=str(found.facts["answer"]),
        sheets=sheets,
        warnings=found.warnings,
        titles={name: part.title for name, part in catalogue.parts.items()},
        durability=_durability(rows_of(sheets.get("topology")), catalogue, protect),
    )


def _sources(names: list[str], catalogue: Catalogue) -> Sheet:
    """Return every number of these parts, with its provenance and source."""
    rows: list[tuple[Value, ...]] = []
    for name in dict.fromkeys(names):
        for number, one in catalogue.parts[name].numbers().items():
            source = catalogue.sources[one.source]
            rows.append((name, number, one.value, one.prov, str(source), source.date))
    columns = ("part", "number", "value", "prov", "source", "date")
    return sheet_of("Where the numbers of these parts come from", columns, rows)


def _durability(rows: list[dict[str, Value]], catalogue: Catalogue, protect: str) -> str:
    """Say how long the data last in these hosts, if all are of the largest and slowest drive."""
    drives = [row for row in rows if row["what"] == "drive"]
    if not drives:
        return ""
    hosts, count = 0, 0
    for where in dict.fromkeys(str(row["host"]) for row in drives):
        here = sum(int(row["count"] or 0) for row in drives if row["host"] == where)
        first, _, last = where.partition(" to ")
        # A box on the network is a host of its own.
        many = here if where == "network" else int(last or first) - int(first) + 1
        hosts += many
        count += here if where == "network" else here * many
    kind, _, code = protect.partition(":")
    if kind not in _CODES:
        return f"nothing protects them: any of {count} drives that fails takes its data with it."
    code = _CODES[kind].format(int(code) - 1 if kind == "replica" else code)
    of: dict[str, float] = {}
    for name, least in _NEEDED.items():
        number = f"{name}_{'bytes' if name == 'capacity' else 'Bps'}"
        values = [catalogue.parts[str(row["name"])].value(number) for row in drives]
        known = [value for value in values if value is not None]
        if not known:
            return f"how long they last is unknown: no drive has {number} in the catalogue."
        of[name] = least(known)
    try:
        found = durability(
            count,
            hosts=hosts,
            protect=[code],
            capacity=of["capacity"],
            read=of["read"],
            write=of["write"],
        )
    except CsdplanError as error:
        return f"how long they last is unknown: {error}."
    return str(found.facts["answer"]) + _spoken(hosts, count, found.sheets)


def _spoken(hosts: int, count: int, sheets: Mapping[str, Sheet]) -> str:
    (row,) = rows_of(sheets["codes"])
    years, (spares,) = float(row["mttdl_years"] or 0), sheets["spares"].column("spares")
    text = f" Over {count} drives in {hosts} host{'s' if hosts > 1 else ''}, data is lost once in "
    return text + f"{years:,.3g} years on average; spare drives to keep at hand: {spares}."
