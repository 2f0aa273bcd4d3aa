"""Records of ``csd meter``: what one run of a job took, as the machine counted it.

`docs/reference/json.md` describes the record. Fields that csdplan does not use are not read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from csdplan.errors import ModelError, ProfileInvalid
from csdplan.files import parsed, read_text
from csdplan.profile.read import problem
from csdplan.profile.schema import Provenance, Table

_Amount = Annotated[float, Field(ge=0, le=1e24, allow_inf_nan=False)]


class CpuTimes(Table, extra="ignore"):
    """CPU time of a job [s]."""

    host: _Amount
    os: _Amount
    drives: _Amount
    tunnels_inside: _Amount
    tunnels_outside: _Amount


class MeteredDrive(Table, extra="ignore"):
    """Bytes that were read of a drive, and that its operating system sent and received."""

    read_inside_bytes: _Amount
    read_outside_bytes: _Amount
    tunnel_sent_bytes: _Amount
    tunnel_received_bytes: _Amount


class JobEnergy(Table, extra="ignore"):
    """Energy of a job beyond that of the machine at rest, with its source."""

    source: Literal["rapl", "cpu-seconds"] | None
    joules: _Amount | None
    note: str | None


class Job(Table, extra="ignore"):
    """Consumption of a command."""

    command: list[str]
    failed: bool
    wall_s: _Amount
    cpu_s: CpuTimes
    drives: list[MeteredDrive]
    energy: JobEnergy


class Record(Table, extra="ignore"):
    """A record as `csd meter` writes it."""

    version: Literal[1] = Field(alias="schema")
    command: Literal["meter"]
    result: Job
    warnings: list[str] = Field(default_factory=list)


#: How each source of energy is known, in words.
_LABELS = {"rapl": "RAPL, less the machine at rest", "cpu-seconds": "CPU time by a profile's watts"}
_PROVS: dict[str, Provenance] = {"rapl": "measured", "cpu-seconds": "inferred"}


class Metered(Table):
    """A job that was run and metered.

    Attributes
    ----------
    name : str
        File of the record.
    words : str
        The command.
    joules : float
        Energy beyond that of the machine at rest [J].
    label, prov : str
        How the energy is known, in words, and its provenance.
    wall_s, host_s, drives_s : float
        Time of the job, CPU time of the host, and of drives with their operating systems and
        tunnels [s].
    read_bytes : float
        Bytes read of drives; 0 if there were none.
    warnings : tuple of str
        What the record warns of.
    """

    name: str
    words: str
    joules: float
    label: str
    prov: Provenance
    wall_s: float
    host_s: float
    drives_s: float
    read_bytes: float
    warnings: tuple[str, ...]


def done_job(path: Path) -> Record:
    """Return the record in a file, of a job that did its work.

    Raises
    ------
    ProfileNotFound
        If the file cannot be read.
    ModelError
        If it is no JSON, or the job failed.
    ProfileInvalid
        If the record lacks something.
    """
    file = str(path)
    try:
        record = Record.model_validate(parsed(read_text(path), "JSON", file))
    except ValidationError as error:
        problems = [problem(detail, Record) for detail in error.errors(include_url=False)]
        raise ProfileInvalid(file, problems) from error
    if record.result.failed:
        raise ModelError(file, "a job that failed", "the record of one that did its work")
    return record


def read_record(path: Path) -> Metered:
    """Return the record in a file.

    Raises
    ------
    ProfileNotFound
        If the file cannot be read.
    ModelError
        If it is no JSON, the job failed, or its energy is not known.
    ProfileInvalid
        If the record lacks something.
    """
    file = str(path)
    record = done_job(path)
    job = record.result
    source, joules = job.energy.source, job.energy.joules
    if source is None or not joules:
        why = job.energy.note or f"energy of {joules} J"
        raise ModelError(file, why, "energy of the job: csd meter --idle or --profile measures it")
    cpu = job.cpu_s
    return Metered(
        name=file,
        words=" ".join(job.command),
        joules=joules,
        label=_LABELS[source],
        prov=_PROVS[source],
        wall_s=job.wall_s,
        host_s=cpu.host + cpu.tunnels_outside,
        drives_s=cpu.os + cpu.drives + cpu.tunnels_inside,
        read_bytes=sum(one.read_inside_bytes + one.read_outside_bytes for one in job.drives),
        warnings=tuple(f"{file}: {one}" for one in record.warnings),
    )
