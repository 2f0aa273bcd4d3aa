"""The parameters of a job, each with its provenance, source and range."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from csdplan.errors import ModelError
from csdplan.jobs.lines import Line
from csdplan.sim import Cost, Phases


@dataclass(frozen=True)
class Number:
    """A number.

    Attributes
    ----------
    value : float
        The number, in the unit at the end of its name.
    prov, source : str
        Provenance, and where it is from.
    low, high : float or None
        Ends of the range that holds it with 90 %; None if nothing says so.
    """

    value: float
    prov: str
    source: str
    low: float | None = None
    high: float | None = None


#: What every model has. Times of CPU are those of one core of the machine that was metered;
#: `fixed` ones are of the whole job, those of a byte are by bytes of its input, but for
#: `reduce_byte_s` (of the shuffle), `routing_byte_s` and `tunnel_inside_byte_s` (at an end of a
#: tunnel).
NAMES = (
    "input_bytes", "block_bytes", "reduces", "replication", "slots", "drive_cores", "begin_s",
    "map_start_s", "map_byte_s", "reduce_start_s", "reduce_byte_s", "shuffle_ratio",
    "output_ratio", "host_fixed_s", "host_byte_s", "os_fixed_s", "drives_byte_s",
    "routing_byte_s", "tunnel_inside_byte_s",
)  # fmt: skip
#: Energy of a second of CPU time, on the host and in drives; without them energy is unknown.
WATTS = ("host_core_W", "drive_core_W")
WHOLE = ("reduces", "replication", "slots")


@dataclass(frozen=True)
class Model:
    """A job.

    Attributes
    ----------
    numbers : mapping of str to Number
        All of `NAMES`, and those of `WATTS` that are known.
    wall : Line or None
        The fit of the times of runs: of the job's start, and of the tasks' time; for ranges.
    warnings : tuple of str
        Statements that the reader must know.
    """

    numbers: Mapping[str, Number]
    wall: Line | None = None
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, one in self.numbers.items():
            if not np.isfinite(one.value) or one.value < 0:
                raise ModelError(name, one.value, "a finite number of at least 0")

    def __getitem__(self, name: str) -> float:
        """Return a number's value."""
        return self.numbers[name].value

    def phases(self, *, drives: int, seed: int = 1) -> Phases:
        """Return the job as it is simulated on so many drives."""
        return Phases(
            input_bytes=self["input_bytes"],
            block_bytes=self["block_bytes"],
            map=Cost(self["map_start_s"], self["map_byte_s"]),
            begin_s=self["begin_s"],
            reduces=int(self["reduces"]),
            reduce=Cost(self["reduce_start_s"], self["reduce_byte_s"]),
            shuffle_ratio=self["shuffle_ratio"],
            output_ratio=self["output_ratio"],
            # Fewer drives than copies hold one each.
            replication=min(int(self["replication"]), drives),
            seed=seed,
        )
