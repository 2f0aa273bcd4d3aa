"""Data files of parts and prices, as checked records.

Faults of a file are reported all at once, as a profile's are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from csdplan.errors import Problem, ProfileInvalid
from csdplan.profile.read import parse_toml, problem, read_file
from csdplan.profile.schema import Provenance, Table, Text

KINDS = ("ssd", "csd", "network-drive", "cpu", "server", "nic", "switch")
_FILES = ("drives", "cpus", "servers", "network")
_Date = Annotated[str, Field(pattern=r"^[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?$")]
_Key = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9.-]*$")]
_Usd = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Source(Table):
    """Document that states a number.

    `date` is the document's own; `seen` is the day on which it was read. The numbers of
    a source without it are known from the vendor's page, but that page was not read for this file.
    """

    publisher: Text
    document: Text
    date: _Date
    seen: _Date | None = None
    url: Text | None = None

    def __str__(self) -> str:
        """Return publisher and document, with a mark if the document was not read."""
        is_checked = self.seen is not None or self.publisher == "assumption"
        return f"{self.publisher}: {self.document}{'' if is_checked else ' (to be checked)'}"


class Number(Table):
    """A number with its source and provenance."""

    value: Annotated[float, Field(gt=0, allow_inf_nan=False)]
    source: _Key
    prov: Provenance


class Part(Table):
    """One product. Absent numbers are unknown."""

    name: _Key
    title: Text
    kind: Literal["ssd", "csd", "network-drive", "cpu", "server", "nic", "switch"]
    note: Text | None = None
    capacity_bytes: Number | None = None
    read_Bps: Number | None = None
    write_Bps: Number | None = None
    media_bw_Bps: Number | None = None
    link_Bps: Number | None = None
    dwpd: Number | None = None
    compression_max: Number | None = None
    pcie_generation: Number | None = None
    pcie_lanes: Number | None = None
    cores: Number | None = None
    core_speed: Number | None = None
    tdp_W: Number | None = None
    idle_W: Number | None = None
    active_W: Number | None = None
    slots: Number | None = None
    ports: Number | None = None
    rack_units: Number | None = None

    @model_validator(mode="after")
    def _numbers_agree(self) -> Part:
        if self.idle_W and self.active_W and self.idle_W.value > self.active_W.value:
            raise ValueError("idle_W at most active_W")
        media = self.media_bw_Bps
        if media and self.read_Bps and media.value < self.read_Bps.value:
            raise ValueError("media_bw_Bps at least read_Bps")
        return self

    def numbers(self) -> dict[str, Number]:
        """Return the numbers that are known, by name."""
        found = {name: getattr(self, name) for name in type(self).model_fields}
        return {name: one for name, one in found.items() if isinstance(one, Number)}

    def value(self, name: str) -> float | None:
        """Return a number's value; None if it is unknown."""
        number = self.numbers().get(name)
        return None if number is None else number.value


class _PartsFile(Table):
    version: Literal[1] = Field(alias="schema")
    source: dict[_Key, Source]
    part: Annotated[list[Part], Field(min_length=1)]


class _PricesFile(Table):
    version: Literal[1] = Field(alias="schema")
    date: _Date
    prov: Provenance
    note: Text | None = None
    usd: dict[str, _Usd]


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
        Price [USD], date and provenance by part.
    """

    parts: Mapping[str, Part]
    sources: Mapping[str, Source]
    prices: Mapping[str, tuple[float, str, str]]

    def of_kind(self, *kinds: str) -> list[Part]:
        """Return the parts of these kinds, in the order of the files."""
        return [part for part in self.parts.values() if part.kind in kinds]

    def price_usd(self, name: str) -> float | None:
        """Return a part's price [USD]; None if it is unknown."""
        return self.prices[name][0] if name in self.prices else None


def load_catalogue(prices: str | Path | None = None, extra: Iterable[Path] = ()) -> Catalogue:
    """Return the catalogue.

    Parameters
    ----------
    prices : str or Path, optional
        A file of prices that go before the shipped ones.
    extra : iterable of Path
        Further files of parts, such as one's own.

    Raises
    ------
    ProfileInvalid
        If a file breaks its schema, or contradicts itself; all faults of a file are listed.
    """
    folder = resources.files("csdplan.hardware") / "data"
    files = [(f"{name}.toml", (folder / f"{name}.toml").read_bytes()) for name in _FILES]
    files += [(str(path), read_file(path)) for path in extra]
    parts: dict[str, Part] = {}
    sources: dict[str, Source] = {}
    for file, data in files:
        body = _checked(_PartsFile, data, file)
        _agree(body, file, parts)
        sources |= body.source
        parts |= {part.name: part for part in body.part}
    known = _prices((folder / "prices.toml").read_bytes(), "prices.toml", parts)
    if prices is not None:
        known |= _prices(read_file(Path(prices)), str(prices), parts)
    return Catalogue(parts, sources, known)


def _prices(data: bytes, file: str, parts: Mapping[str, Part]) -> dict[str, tuple[float, str, str]]:
    body = _checked(_PricesFile, data, file)
    strange = [name for name in body.usd if name not in parts]
    if strange:
        listed = "a part of the catalogue (csdplan catalogue lists them)"
        raise ProfileInvalid(file, [Problem(f"usd.{name}", name, listed) for name in strange])
    return {name: (usd, body.date, body.prov) for name, usd in body.usd.items()}


def _agree(body: _PartsFile, file: str, before: Mapping[str, Part]) -> None:
    """Refuse names that stand twice and numbers whose source the file does not have."""
    problems = []
    seen = set(before)
    for index, part in enumerate(body.part):
        if part.name in seen:
            problems.append(Problem(f"part[{index}].name", part.name, "a name that no part has"))
        seen.add(part.name)
        for name, number in part.numbers().items():
            if number.source not in body.source:
                listed = ", ".join(sorted(body.source))
                key = f"part[{index}].{name}.source"
                problems.append(Problem(key, number.source, f"one of {listed}"))
    if problems:
        raise ProfileInvalid(file, problems)


def _checked(schema: type[Any], data: bytes, file: str) -> Any:
    try:
        return schema.model_validate(_floats(parse_toml(data, file)))
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
