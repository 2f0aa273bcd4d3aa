"""Data files of parts and prices, as checked records.

Faults of a file are reported all at once, as a profile's are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date as day
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from csdplan.errors import ModelError, Problem, ProfileInvalid
from csdplan.files import read_file
from csdplan.hardware.measured import part_of
from csdplan.hardware.own import expanded
from csdplan.hardware.part import Part
from csdplan.hardware.prices import Price, PriceList, PricesFile, last_day, newest, prices_of
from csdplan.hardware.source import Key, Source
from csdplan.profile.read import load, parse_toml, problem
from csdplan.profile.schema import Table

#: Messages call a catalogue so that is no file.
TYPED = "your parts"
_FILES = ("drives", "cpus", "servers", "network")


class _PartsFile(Table):
    version: Literal[1] = Field(alias="schema")
    source: dict[Key, Source] = Field(default_factory=dict)
    part: Annotated[list[Part], Field(min_length=1)]


class _OwnFile(_PartsFile):
    part: list[Part] = Field(default_factory=list)
    price: list[PriceList] = Field(default_factory=list)


@dataclass(frozen=True)
class Catalogue:
    """Parts, sources and prices.

    Attributes
    ----------
    parts : dict
        Parts by name.
    sources : dict
        Sources by key.
    prices : dict
        The price that counts, by part.
    history : dict
        All prices of each part, the ones of files of one's own alone where there are any.
    """

    parts: Mapping[str, Part]
    sources: Mapping[str, Source]
    prices: Mapping[str, Price]
    history: Mapping[str, tuple[Price, ...]]

    def of_kind(self, *kinds: str) -> list[Part]:
        """Return the parts of these kinds, in the order of the files."""
        return [part for part in self.parts.values() if part.kind in kinds]

    def price_usd(self, name: str) -> float | None:
        """Return a part's price [USD]; None if it is unknown."""
        return self.prices[name].usd if name in self.prices else None


def load_catalogue(
    prices: str | Path | None = None,
    extra: Iterable[Path] = (),
    *,
    drives: Iterable[Path] = (),
    typed: str = "",
    latest: str | None = None,
) -> Catalogue:
    """Return the catalogue.

    Parameters
    ----------
    prices : str or Path, optional
        A file of prices that go before all others.
    extra : iterable of Path
        Catalogues of one's own, each over the ones before it.
    drives : iterable of Path
        Profiles of drives of one's own, which become parts; catalogues go over them.
    typed : str
        Text of one more catalogue, over all the others.
    latest : str, optional
        Year, month or day after which no price counts, unless a part has none from before; by
        default the newest price counts.

    Raises
    ------
    ProfileInvalid
        If a file breaks its schema, or contradicts itself; all faults of a file are listed.
    ModelError
        If `latest` is no date.
    """
    folder = resources.files("csdplan.hardware") / "data"
    parts: dict[str, Part] = {}
    sources: dict[str, Source] = {}
    for name in _FILES:
        file = f"{name}.toml"
        body = _checked(_PartsFile, parse_toml((folder / file).read_bytes(), file), file)
        _agree(body, file, parts, {})
        sources |= body.source
        parts |= {part.name: part for part in body.part}
    known = _prices((folder / "prices.toml").read_bytes(), "prices.toml", parts)
    for path in drives:
        part, (key, source), price = part_of(load(path), str(path), None, str(day.today()))
        if part.name in parts:
            expected = "a device whose name no part of the catalogue has"
            raise ProfileInvalid(str(path), [Problem("device", part.name, expected)])
        parts[part.name], sources[key] = part, source
        known |= {} if price is None else {part.name: [price]}
    texts: list[tuple[str, bytes | str]] = [(str(path), read_file(path)) for path in extra]
    for file, text in [*texts, *([(TYPED, typed)] if typed else [])]:
        raw = expanded(parse_toml(text, file), file, parts)
        body = _checked(_OwnFile, raw, file)
        _agree(body, file, {}, sources)
        sources |= body.source
        parts |= {part.name: part for part in body.part}
        known |= prices_of(body.price, body.source, file, parts)
    if prices is not None:
        known |= _prices(read_file(Path(prices)), str(prices), parts)
    history = {name: tuple(found) for name, found in known.items()}
    day_of = None if latest is None else _day(latest)
    counted = {name: newest(found, day_of) for name, found in history.items()}
    return Catalogue(parts, sources, counted, history)


def _day(text: str) -> day:
    try:
        return last_day(text)
    except (ValueError, OverflowError) as error:
        expected = "a year, month or day, such as 2025, 2025-06 or 2025-06-30"
        raise ModelError("price_date", text, expected) from error


def _prices(data: bytes, file: str, parts: Mapping[str, Part]) -> dict[str, list[Price]]:
    body = _checked(PricesFile, parse_toml(data, file), file)
    sources = body.source if isinstance(body.source, dict) else {}
    return prices_of(body.lists(), sources, file, parts)


def _agree(
    body: _PartsFile, file: str, before: Mapping[str, Part], known: Mapping[str, Source]
) -> None:
    """Refuse names that stand twice and numbers whose source no file has."""
    problems = []
    seen, sources = set(before), {*known, *body.source}
    for key, source in body.source.items():
        if key in known and known[key] != source:
            problems.append(Problem(f"source.{key}", key, "a name that no other source has"))
    for index, part in enumerate(body.part):
        if part.name in seen:
            problems.append(Problem(f"part[{index}].name", part.name, "a name that no part has"))
        seen.add(part.name)
        for name, number in part.numbers().items():
            if number.source not in sources:
                listed = ", ".join(sorted(body.source)) or "the file's [source] tables"
                key = f"part[{index}].{name}.source"
                problems.append(Problem(key, number.source, f"one of {listed}"))
    if problems:
        raise ProfileInvalid(file, problems)


def _checked(schema: type[Any], raw: dict[str, Any], file: str) -> Any:
    try:
        return schema.model_validate(_floats(raw))
    except ValidationError as error:
        found = [problem(detail, schema) for detail in error.errors(include_url=False)]
        raise ProfileInvalid(file, found) from error


def _floats(raw: Any) -> Any:
    """Return TOML with whole numbers under ``value`` and in ``usd`` as floats."""
    if isinstance(raw, list):
        return [_floats(one) for one in raw]
    if not isinstance(raw, dict):
        return raw
    return {
        key: float(one)
        if key == "value" and type(one) is int
        else {name: float(v) if type(v) is int else v for name, v in one.items()}
        if key == "usd" and isinstance(one, dict)
        else _floats(one)
        for key, one in raw.items()
    }
