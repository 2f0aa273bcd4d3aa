"""Products that can be bought, each number with its source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from pydantic import Field, model_validator

from csdplan.hardware.source import Key
from csdplan.profile.schema import Provenance, Table, Text

KINDS = (
    "ssd", "csd", "network-drive", "hdd", "cpu", "server", "disk-server", "nic", "switch",
)  # fmt: skip
#: Numbers of things.
_MOST = 1_000_000
_WHOLE = ("cores", "slots", "ports", "pcie_generation", "pcie_lanes")


class Number(Table):
    """A number with its source and provenance."""

    value: Annotated[float, Field(gt=0, le=1e24, allow_inf_nan=False)]
    source: Key
    prov: Provenance


class Part(Table):
    """One product. Absent numbers are unknown.

    `profile` has the times of kernels inside the part, as those of `device`; by default as those of
    the only device that computes.
    """

    name: Key
    title: Text
    kind: Literal[
        "ssd", "csd", "network-drive", "hdd", "cpu", "server", "disk-server", "nic", "switch"
    ]
    note: Text | None = None
    profile: Text | None = None
    device: Text | None = None
    capacity_bytes: Number | None = None
    read_Bps: Number | None = None
    read_per_s: Number | None = None
    write_Bps: Number | None = None
    media_bw_Bps: Number | None = None
    link_Bps: Number | None = None
    dwpd: Number | None = None
    dwpd_years: Number | None = None
    endurance_bytes: Number | None = None
    compression_max: Number | None = None
    pcie_generation: Number | None = None
    pcie_lanes: Number | None = None
    cores: Number | None = None
    core_speed: Number | None = None
    memory_bw_Bps: Number | None = None
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
        for name in _WHOLE:
            number = self.value(name)
            if number is not None and (number != int(number) or number > _MOST):
                raise ValueError(f"a whole number of {name} of at most {_MOST:,}")
        if self.compression_max and self.compression_max.value < 1:
            raise ValueError("compression_max at least 1")
        return self

    @classmethod
    def number_names(cls) -> Iterable[str]:
        """Return the names of all numbers that a part may have."""
        texts = {"name", "title", "kind", "note", "profile", "device"}
        return [name for name in cls.model_fields if name not in texts]

    def numbers(self) -> dict[str, Number]:
        """Return the numbers that are known, by name."""
        found = {name: getattr(self, name) for name in self.number_names()}
        return {name: one for name, one in found.items() if one is not None}

    def value(self, name: str) -> float | None:
        """Return a number's value; None if it is unknown."""
        number: Number | None = getattr(self, name)
        return None if number is None else number.value
