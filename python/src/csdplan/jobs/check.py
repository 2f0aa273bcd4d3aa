"""A model against a run that it was not fitted to; and what only a model that passed may say."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from csdplan.errors import ModelError
from csdplan.jobs.fit import of_run
from csdplan.jobs.foretold import Foretold, foretold
from csdplan.jobs.model import Model, Number
from csdplan.jobs.runs import Run
from csdplan.sim import Cluster

#: How far a foretold wall time may be from the measured one.
WITHIN = 0.2
#: Inputs nearer than this, on as many drives, are one case.
_SAME = 0.05


@dataclass(frozen=True)
class Checked:
    """A run that was foretold.

    Attributes
    ----------
    name : str
        File of its record.
    drives : int
        Drives that took part.
    input_bytes : float
        Its input [bytes].
    foretold_s, measured_s : float
        Wall time, foretold and measured [s].
    low_s, high_s : float or None
        Range of the foretold one [s].
    """

    name: str
    drives: int
    input_bytes: float
    foretold_s: float
    measured_s: float
    low_s: float | None
    high_s: float | None

    @property
    def error(self) -> float:
        """Foretold over measured, less 1."""
        return self.foretold_s / self.measured_s - 1

    @property
    def passed(self) -> bool:
        """True if the two are near enough."""
        return abs(self.error) <= WITHIN


def checked(model: Model, runs: Sequence[Run], other: Run) -> Checked:
    """Foretell a run that is none of those that the model was fitted to.

    Raises
    ------
    ModelError
        If it is one of them, of as many drives and of the same input, or of another kind.
    """
    assert model.wall is not None, "a model of runs"
    if (other.counted is None) != (runs[0].counted is None):
        raise ModelError("check", other.name, "a run with a log just where the others have one")
    if bool(other.counted and other.counted.reduces) != bool(model["reduces"]):
        raise ModelError("check", other.name, "a run of the same job, with reduces or without")
    for run in runs:
        near = abs(run.input_bytes / other.input_bytes - 1) < _SAME
        if near and run.drives == other.drives:
            raise ModelError(
                "check", other.name, f"another input or number of drives than {run.name} has"
            )
    tasks_s = of_run(model, other, 1.0 / float(model.wall.coefficients[1])).time_s
    terms = np.array([1.0, tasks_s / float(model.wall.coefficients[1])])
    low_s, high_s = model.wall.range_at(terms)
    found_s = model["begin_s"] + tasks_s
    wall_s = other.job.wall_s
    return Checked(other.name, other.drives, other.input_bytes, found_s, wall_s, low_s, high_s)


@dataclass(frozen=True)
class Configuration:
    """A row of Table 3 of Torabzadehkashi et al., Journal of Big Data 6 (2019).

    Attributes
    ----------
    number : int
        Number of the experiment.
    host : str
        The application host.
    cores, drives, enabled : int
        Cores of its processor, which Table 2 names, its drives, and those that compute.
    """

    number: int
    host: str
    cores: int
    drives: int
    enabled: int


_HOSTS = (
    ("low", 4, 6, (0, 2, 4, 6)),
    ("medium", 4, 6, (0, 2, 4, 6)),
    ("high", 8, 16, (0, 2, 4, 6, 8, 10, 12, 16)),
)
_ROWS = [(host, cores, drives, n) for host, cores, drives, counts in _HOSTS for n in counts]
TABLE_3 = tuple(Configuration(number, *row) for number, row in enumerate(_ROWS, 1))
#: What the paper prints at a host and its drives that compute: how many times as fast as without
#: them, and how many times less energy. A decrease of 36 % is 1 / 0.64 times less.
_HADOOP: dict[tuple[str, int], tuple[float | None, float | None]] = {
    ("low", 6): (None, 1 / 0.64),
    ("high", 16): (2.2, 4.3),
}
_DFT: dict[tuple[str, int], tuple[float | None, float | None]] = {("high", 16): (5.4, 8.9)}


@dataclass(frozen=True)
class Compared:
    """A configuration, as the model has it, and as the paper prints it."""

    configuration: Configuration
    found: Foretold
    speed_up: float
    energy_gain: float | None
    printed_speed_up: float | None
    printed_energy_gain: float | None


def table_3(model: Model, check: Checked, *, seed: int = 1) -> list[Compared]:
    """Return the paper's configurations; those of the high host alone for a job of maps.

    Tasks are as many as the job has; the drives' speed is that of the model.
    """
    assert check.passed, "only a model that passed is compared"
    printed = _HADOOP if model["reduces"] else _DFT
    found, alone = [], None
    for row in TABLE_3:
        if not model["reduces"] and row.host != "high":
            continue
        cluster = Cluster(row.cores, row.drives, row.enabled, model["drive_cores"])
        here = foretold(model, cluster, seed=seed)
        alone = here if not row.enabled else alone
        assert alone is not None, "each host's first row has no drives that compute"
        energy = None
        if here.net_energy_J and alone.net_energy_J:
            energy = alone.net_energy_J / here.net_energy_J
        speed_up = alone.run.time_s / here.run.time_s
        found.append(
            Compared(
                row, here, speed_up, energy, *printed.get((row.host, row.enabled), (None, None))
            )
        )
    return found


def given(model: Model, **values: float | None) -> Model:
    """Return a model with numbers that the user gave over its own."""
    chosen = {
        name: Number(value, "given", f"--{name.partition('_bytes')[0].replace('_', '-')}")
        for name, value in values.items()
        if value is not None
    }
    return replace(model, numbers=dict(model.numbers) | chosen)
