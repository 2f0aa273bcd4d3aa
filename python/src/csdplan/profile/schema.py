"""Profile schema 1 as strict types.

The types refuse unknown keys, numbers out of range, text for numbers and floats for whole
numbers. They hold no rule that spans two tables: those are in ``read``, where they can be
reported together with the faults found here. `docs/internals/profile.md` is the text of the
contract; golden files next to it bind this module and the Rust reader to the same answers.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from csdplan.units import bytes_text

Provenance = Literal["given", "measured", "inferred", "assumed"]

#: The largest whole number that TOML must carry.
WHOLE_MAX = 2**63 - 1

Name = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]*$", max_length=64)]
Text = Annotated[str, Field(min_length=1)]
Whole = Annotated[int, Field(ge=1, le=WHOLE_MAX)]
Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Provenances = dict[str, Provenance]


class Table(BaseModel):
    """A TOML table: strict, frozen, closed to unknown keys."""

    # Built when first used: most commands need few of the tables.
    model_config = ConfigDict(
        strict=True, frozen=True, extra="forbid", populate_by_name=False, defer_build=True
    )


class _Sourced(Table):
    """A table whose numbers may each state where they come from, in `prov`."""

    prov: Provenances | None = None

    @model_validator(mode="after")
    def _prov_names_present_keys(self) -> Self:
        for key in self.prov or {}:
            if key == "prov" or getattr(self, key, None) is None:
                raise ValueError(f"a prov that names numbers of this table; it has no {key!r}")
        return self


class Meta(Table):
    """Origin of the profile: place, time and sources."""

    machine: Text
    date: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")] | None = None
    version: Text | None = None
    commit: Text | None = None
    source: Text | None = None
    note: Text | None = None


class Host(_Sourced):
    """The machine that uses the drives. Absent numbers are unknown."""

    cores: Whole
    ingest_bw_Bps: Whole | None = None
    dram_bytes: Whole | None = None
    idle_W: Amount | None = None
    core_W: Amount | None = None
    price_usd: Amount | None = None


class Device(_Sourced):
    """One model of drive, used as an SSD, as a computational drive, or both."""

    cores: Whole | None = None
    dram_bytes: Whole | None = None
    int_read_Bps: Whole | None = None
    int_write_Bps: Whole | None = None
    ext_read_Bps: Whole | None = None
    ext_write_Bps: Whole | None = None
    link_bw_Bps: Whole | None = None
    media_bw_Bps: Whole | None = None
    idle_W: Amount | None = None
    active_W: Amount | None = None
    price_usd: Amount | None = None
    capacity_bytes: Whole | None = None
    target: Text | None = None
    note: Text | None = None

    @model_validator(mode="after")
    def _media_serve_every_reader(self) -> Self:
        fastest = max(self.int_read_Bps or 0, self.ext_read_Bps or 0)
        if self.media_bw_Bps is not None and self.media_bw_Bps < fastest:
            raise ValueError("media_bw_Bps of at least int_read_Bps and ext_read_Bps")
        return self


class _Spread(Table):
    """A number with its median and, where it was measured, its spread."""

    median: Amount
    p25: Amount | None = None
    p75: Amount | None = None
    n: Whole | None = None

    @model_validator(mode="after")
    def _spread_is_whole_and_ordered(self) -> Self:
        if (self.p25 is None, self.p75 is None, self.n is None) not in {(True,) * 3, (False,) * 3}:
            raise ValueError("p25, p75 and n together: all three or none")
        if self.p25 is not None and self.p75 is not None:
            if not self.p25 <= self.median <= self.p75:
                raise ValueError("p25 <= median <= p75")
        elif self._is_measured():
            raise ValueError("p25, p75 and n with what is measured")
        return self

    def _is_measured(self) -> bool:
        raise NotImplementedError


class Timing(_Spread):
    """A time in seconds."""

    prov: Provenance | None = None

    def _is_measured(self) -> bool:
        return self.prov == "measured"


class Energy(_Spread):
    """Energy of a run in joules, beyond what the machine draws idle, and who says so."""

    source: Literal["rapl", "meter", "cpu-seconds"]

    def _is_measured(self) -> bool:
        return self.source != "cpu-seconds"


class Overload(Table):
    """Resource that a host lacked while a point was measured."""

    kind: Literal["memory", "cpu", "io"]
    memory_bytes: Whole | None = None
    rivals: Whole | None = None

    @model_validator(mode="after")
    def _amount_fits_the_kind(self) -> Self:
        of_memory = self.kind == "memory"
        if (self.memory_bytes is not None) != of_memory or (self.rivals is None) != of_memory:
            raise ValueError("memory_bytes alone for memory, rivals alone for cpu and io")
        return self

    def __str__(self) -> str:
        if self.memory_bytes is not None:
            return f"memory {bytes_text(self.memory_bytes)}"
        return f"{self.kind}, {self.rivals} rivals"


class Point(Table):
    """One kernel on one system: the unit of measurement."""

    kernel: Name
    where: Literal["host", "drive"]
    device: Name
    units: Whole
    bytes: Whole
    work: Whole | None = None
    layout: Literal["spread", "range", "whole"] | None = None
    overlap: Literal["serial", "pipelined"]
    load_s: Timing
    comp_s: Timing
    store_s: Timing | None = None
    pipelined_s: Timing | None = None
    energy_J: Energy | None = None
    overload: Overload | None = None
    prov: Provenance
    note: Text | None = None

    @model_validator(mode="after")
    def _only_hosts_are_overloaded(self) -> Self:
        if self.overload is not None and self.where != "host":
            raise ValueError("an overload of host points only")
        return self

    @model_validator(mode="after")
    def _measured_times_have_a_spread(self) -> Self:
        if self.prov != "measured":
            return self
        for key in ("load_s", "comp_s", "store_s", "pipelined_s"):
            timing: Timing | None = getattr(self, key)
            if timing is not None and timing.prov is None and timing.n is None:
                raise ValueError(f"a measured {key} with p25, p75 and n")
        return self

    def prov_of(self, timing: Timing) -> Provenance:
        """Return where `timing`, one of this point's times, comes from."""
        return timing.prov or self.prov


class Profile(Table):
    """A whole profile: one host, its devices, and the points measured on them."""

    version: Literal[1] = Field(alias="schema")
    meta: Meta
    host: Host
    device: Annotated[dict[Name, Device], Field(min_length=1)]
    point: Annotated[list[Point], Field(min_length=1)]

    def kernels(self) -> tuple[str, ...]:
        """Return the kernels that the points name, sorted."""
        return tuple(sorted({point.kernel for point in self.point}))

    def points(self, kernel: str, where: Literal["host", "drive"]) -> list[Point]:
        """Return a kernel's points of one side, without those of an overloaded host."""
        return [
            point
            for point in self.point
            if (point.kernel, point.where, point.overload) == (kernel, where, None)
        ]

    def as_dict(self) -> dict[str, Any]:
        """Return the normal form: keys as in the file, absent ones absent, JSON types only."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)
