"""Runs of a job that were metered: the record, what Hadoop counted, and the job's input."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from csdplan.errors import ModelError, ProfileIncomplete
from csdplan.jobs.hadoop import Counters, counters
from csdplan.profile.meter import Job, Record, done_job
from csdplan.units import quantity

_EXPECTED = "RECORD.json, or RECORD.json,log=FILE,input=SIZE"
#: Share of the input that may cross tunnels without a log that says why.
_UNEXPLAINED = 0.15


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes
    ----------
    name : str
        File of the record.
    job : Job
        The record.
    input_bytes : float
        Input of the job [bytes].
    prov, source : str
        Provenance of the input, and where it is from.
    counted : Counters or None
        What Hadoop counted.
    warnings : tuple of str
        What the record warns of.
    """

    name: str
    job: Job
    input_bytes: float
    prov: str
    source: str
    counted: Counters | None
    warnings: tuple[str, ...]

    @property
    def drives(self) -> int:
        """Drives that took part."""
        return len(self.job.drives)

    @property
    def tunnel_bytes(self) -> float:
        """Bytes at the ends of tunnels: a byte from drive to drive counts twice."""
        return sum(one.tunnel_sent_bytes + one.tunnel_received_bytes for one in self.job.drives)

    @property
    def cpu_s(self) -> float:
        """CPU time of all classes [s]."""
        cpu = self.job.cpu_s
        return cpu.host + cpu.os + cpu.drives + cpu.tunnels_inside + cpu.tunnels_outside


def read_run(text: str) -> Run:
    """Return the run that a text names: the record, and its log and its input if given.

    Raises
    ------
    CsdplanError
        If a file cannot be read, the job failed, or the record does not say what a model needs.
    """
    name, *rest = text.split(",")
    given = dict(one.partition("=")[::2] for one in rest)
    if not set(given) <= {"log", "input"} or len(given) < len(rest):
        raise ModelError("job", text, _EXPECTED)
    counted = counters(Path(given["log"])) if "log" in given else None
    size = quantity("input", given["input"], "bytes") if "input" in given else None
    return run_of(name, done_job(Path(name)), counted, size)


def run_of(name: str, record: Record, counted: Counters | None, given: float | None) -> Run:
    """Return a run by its record, what Hadoop counted, and its input [bytes] if that was given.

    Raises
    ------
    CsdplanError
        If the record does not say what a model needs.
    """
    job = record.result
    if not job.drives:
        raise ProfileIncomplete(f"{name}: no drive took part: run csd meter next to the array")
    if not job.cpu_s.os or not job.wall_s:
        raise ProfileIncomplete(
            f"{name}: no CPU time of drives' operating systems was counted: start them with "
            "csd array up --os, and run csd meter as root"
        )
    read = sum(one.read_inside_bytes + one.read_outside_bytes for one in job.drives)
    if given is not None:
        size, prov, source = given, "given", "input="
    elif counted is not None:
        size, prov, source = float(counted.input_bytes), "measured", "Hadoop: bytes read of HDFS"
    else:
        size, prov, source = read, "measured", "csd meter: bytes read of drives"
    if not size > 0:
        raise ProfileIncomplete(f"{name}: the job read nothing of its drives: give input=SIZE")
    run = Run(name, job, size, prov, source, counted, tuple(record.warnings))
    if counted is None and run.tunnel_bytes > _UNEXPLAINED * size:
        raise ProfileIncomplete(
            f"{name}: {run.tunnel_bytes / size:.0%} of the input crossed tunnels and no log says "
            "what it was, so no shuffle can be foretold: give the job's log, as log=FILE"
        )
    return run
