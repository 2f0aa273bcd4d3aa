"""A catalogue of one's own: parts, sources and prices that go over the shipped ones.

Numbers may be bare, or text with a unit; they then have the source of their part.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from csdplan.errors import ModelError, Problem, ProfileInvalid
from csdplan.hardware.part import Part
from csdplan.units import quantity

#: What a number measures, by the end of its name; numbers of things have no unit.
_MEASURES = {"bytes": "bytes", "Bps": "Bps", "W": "W", "usd": "USD", "units": "U"}
#: Keys of a part's numbers as a whole.
_COMMON = ("source", "prov", "price_usd", "until")


def expanded(raw: dict[str, Any], file: str, parts: Mapping[str, Part]) -> dict[str, Any]:
    """Return a catalogue's TOML in the form of the shipped files, over the parts that are known.

    A part of a known name keeps the numbers that the file leaves out. A part's ``price_usd``
    becomes a list of prices. Values of a wrong type are left for the schema to name.

    Raises
    ------
    ProfileInvalid
        If a number is none, or makes another kind of a known part.
    """
    rows, problems = raw.get("part", []), []
    if not isinstance(rows, list):
        return raw
    merged, lists = [], []
    sources = raw.get("source", {})
    for index, row in enumerate(rows):
        if not isinstance(row, dict):
            merged.append(row)
            continue
        where = f"part[{index}]"
        try:
            own, prices = _part(row, where, sources if isinstance(sources, dict) else {})
        except ModelError as error:
            problems.append(Problem(error.argument, error.value, error.expected))
            continue
        known = parts.get(str(own.get("name")))
        if known is not None:
            own = {**known.model_dump(exclude_none=True), **own}
            if own["kind"] != known.kind:
                expected = f"{known.kind}, as the catalogue has it"
                problems.append(Problem(f"{where}.kind", str(own["kind"]), expected))
        merged.append(_beside(own, file))
        lists += prices
    if problems:
        raise ProfileInvalid(file, problems)
    given = raw.get("price", [])
    prices = [*(given if isinstance(given, list) else [given]), *lists]
    return {**raw, "part": merged, **({"price": prices} if prices else {})}


def _part(
    row: Mapping[str, Any], where: str, sources: Mapping[str, Any]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    source, prov = row.get("source"), row.get("prov", "given")
    if source is not None and source not in sources:
        expected = f"one of the file's sources: {', '.join(sources) or 'none'}"
        raise ModelError(f"{where}.source", source, expected)
    own: dict[str, Any] = {}
    for key, value in row.items():
        if key in _COMMON:
            continue
        bare = isinstance(value, int | float | str) and not isinstance(value, bool)
        if key not in Part.number_names() or not bare:
            own[key] = value
            continue
        number = _number(f"{where}.{key}", key, value)
        if source is None:
            expected = "the key of a [source] table: numbers say where they come from"
            raise ModelError(f"{where}.source", "absent", expected)
        own[key] = {"value": number, "source": source, "prov": prov}
    if "price_usd" not in row:
        return own, []
    usd = quantity(f"{where}.price_usd", row["price_usd"], "USD")
    if source is None:
        raise ModelError(f"{where}.source", "absent", "the source of price_usd")
    named = sources[source]
    date = named.get("date") if isinstance(named, dict) else None
    price = {"date": date, "prov": prov, "source": source, "until": row.get("until")}
    kept = {key: value for key, value in price.items() if value is not None}
    return own, [{**kept, "usd": {str(row.get("name")): usd}}]


def _number(where: str, key: str, value: str | float) -> float:
    measures = _MEASURES.get(key.rpartition("_")[2])
    if measures is not None:
        return quantity(where, value, measures)
    if isinstance(value, str):
        raise ModelError(where, value, "a number without quotes")
    return float(value)


def _beside(own: dict[str, Any], file: str) -> dict[str, Any]:
    """Name the profile of a part from where the command runs, if it is a file."""
    profile = own.get("profile")
    if isinstance(profile, str) and ("/" in profile or profile.endswith(".toml")):
        return {**own, "profile": str(Path(file).parent / profile)}
    return own
