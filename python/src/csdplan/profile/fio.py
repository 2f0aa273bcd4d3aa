"""Bandwidths from fio's JSON.

Jobs that ran at once share the drive: their bytes are added up. Jobs that waited for others
(``stonewall``) are a phase of their own; phases of equal settings are repetitions.
https://fio.readthedocs.io/en/latest/fio_doc.html#json-output
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import hypot, sqrt
from pathlib import Path
from statistics import quantiles
from typing import Any

from csdplan.errors import Problem, ProfileInvalid
from csdplan.files import STRICT, read_text
from csdplan.profile.convert import Bandwidth

#: Quartiles of a normal distribution, in standard deviations.
_QUARTILE = 0.6744897501960817
_KIB = 1024
#: No drive moved as many bytes, nor ran for as long [bytes, ms].
_MOST = 1e18
_DIRECTIONS = ("read", "write")
#: Options by which a job differs from another without measuring another thing.
_INCIDENTAL = frozenset({
    "name", "description", "stonewall", "wait_for_previous", "new_group", "filename",
    "group_reporting", "runtime", "time_based", "startdelay",
})  # fmt: skip
#: What a job says that waits for those before it.
_WAITS = ("stonewall", "wait_for_previous")
_PARTITION = re.compile(r"(/dev/(?:nvme[0-9]+n[0-9]+(?=p)|[a-z]+))p?[0-9]+")


@dataclass(frozen=True)
class _Rate:
    """Bandwidth of what ran at once, and the standard deviation of its samples [bytes/s]."""

    Bps: float
    deviation_Bps: float | None
    samples: int


def read_fio(path: Path) -> dict[str, Bandwidth]:
    """Return the ``read`` and ``write`` bandwidths that a fio JSON file measured.

    With one phase, fio's own samples give the spread, taken as normal; with several of equal
    settings, their quartiles do.

    Raises
    ------
    ProfileInvalid
        If the file is not fio's JSON, a job failed or none moved a byte, or phases are no
        repetitions of each other.
    ProfileNotFound
        If it cannot be read.
    """
    try:
        body = _body(read_text(path))
    except (ValueError, RecursionError) as error:
        raise _wrong(path, "jobs", str(error), "fio's output with --output-format=json") from error
    jobs = _jobs(path, body)
    found = {}
    for direction in _DIRECTIONS:
        phases = [phase for phase in _phases(jobs) if any(_moved(job, direction) for job in phase)]
        if phases:
            found[direction] = _bandwidth(path, body, phases, direction)
    if not found:
        raise _wrong(path, "jobs", f"{len(jobs)} jobs", "a job that read or wrote")
    return found


def _wrong(path: Path, key: str, value: object, expected: str) -> ProfileInvalid:
    return ProfileInvalid(str(path), [Problem(key, str(value), expected)])


def _body(text: str) -> dict[str, Any]:
    """Return the one object of fio's output, which may stand between lines for people."""
    starts = [found.start() for found in re.finditer(r"^\{", text, re.MULTILINE)]
    if not starts:
        raise ValueError("no line begins with {")
    body, end = json.JSONDecoder(**STRICT).raw_decode(text, starts[0])
    if any(start >= end for start in starts):
        raise ValueError("several results (--status-interval writes one each time)")
    return dict(body)


def _jobs(path: Path, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the jobs of one host, none of which failed."""
    key = "jobs" if "jobs" in body else "client_stats"
    jobs = body.get(key)
    if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
        raise _wrong(path, "jobs", type(jobs).__name__, "fio's output with --output-format=json")
    if key == "client_stats":
        jobs = [job for job in jobs if job.get("jobname") != "All clients"]
        hosts = {str(job.get("hostname")) for job in jobs}
        if len(hosts) > 1:
            listed = ", ".join(sorted(hosts))
            raise _wrong(path, key, listed, "one host: a profile is of one, so import each alone")
    for index, job in enumerate(jobs):
        for error in ("error", "total_err"):
            if job.get(error):
                name = f"{key}[{index}].{error}"
                raise _wrong(path, name, job[error], f"0: job {job.get('jobname')} failed")
    return jobs


def _options(job: Mapping[str, Any]) -> Mapping[str, Any]:
    options = job.get("job options")
    return options if isinstance(options, dict) else {}


def _phases(jobs: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Return the jobs that ran at once, phase after phase.

    A group's number changes where a job waited for those before it, and where a job asked for a
    group of its own (``new_group``), which does not wait.
    """
    phases: list[list[dict[str, Any]]] = []
    before: object = None
    for job in jobs:
        options, group = _options(job), job.get("groupid")
        waited = any(key in options for key in _WAITS)
        regrouped = group != before and "new_group" not in options
        if not phases or waited or regrouped:
            phases.append([])
        phases[-1].append(job)
        before = group
    return phases


def _moved(job: Mapping[str, Any], direction: str) -> bool:
    side = job.get(direction)
    return isinstance(side, dict) and _rate(side) > 0


def _bandwidth(
    path: Path, body: Mapping[str, Any], phases: Sequence[list[dict[str, Any]]], direction: str
) -> Bandwidth:
    for phase in phases:
        _check_phase(path, phase)
    settings = [sorted(map(_settings, phase)) for phase in phases]
    if any(one != settings[0] for one in settings):
        names = ", ".join(_name(phase) for phase in phases)
        expected = "phases of equal settings: keep one with fio's --section=NAME"
        raise _wrong(path, f"{direction} of phases", names, expected)
    rates = [_at_once(body, phase, direction) for phase in phases]
    if len(rates) > 1:
        low, middle, high = quantiles([one.Bps for one in rates], n=4, method="inclusive")
        return Bandwidth(middle, low, high, len(rates))
    (rate,) = rates
    if rate.deviation_Bps is None:
        return Bandwidth(rate.Bps)
    half = min(_QUARTILE * rate.deviation_Bps, 0.99 * rate.Bps)
    return Bandwidth(rate.Bps, rate.Bps - half, rate.Bps + half, rate.samples)


def _check_phase(path: Path, phase: Sequence[dict[str, Any]]) -> None:
    """Refuse what measures no drive alone: reads next to writes, and several drives at once."""
    if all(any(_moved(job, direction) for job in phase) for direction in _DIRECTIONS):
        expected = "reads or writes: at once each takes bandwidth of the other"
        raise _wrong(path, "phase", f"{_name(phase)} reads and writes", expected)
    names = {name for job in phase for name in str(_options(job).get("filename", "")).split(":")}
    drives = {_PARTITION.sub(r"\1", name) for name in names if name.startswith("/dev/")}
    if len(drives) > 1:
        listed = ", ".join(sorted(drives))
        raise _wrong(path, "filename", listed, "one drive: a profile's bandwidth is that of one")


def _settings(job: Mapping[str, Any]) -> str:
    kept = {key: value for key, value in _options(job).items() if key not in _INCIDENTAL}
    return json.dumps(kept, sort_keys=True)


def _name(phase: Sequence[Mapping[str, Any]]) -> str:
    return "+".join(dict.fromkeys(str(job.get("jobname")) for job in phase))


def _at_once(body: Mapping[str, Any], phase: Sequence[dict[str, Any]], direction: str) -> _Rate:
    """Return the bandwidth of jobs that ran at once: their bytes over the longest's time."""
    jobs = [job for job in phase if _moved(job, direction)]
    sides = [job[direction] for job in jobs]
    rate = sum(map(_rate, sides))
    moved, longest_ms = [_number(side, "io_bytes") for side in sides], 0.0
    # fio 2 counts io_bytes in KiB, and has no bw_bytes.
    if len(sides) > 1 and all("bw_bytes" in side for side in sides) and all(moved):
        longest_ms = max(_number(side, "runtime") for side in sides)
    if longest_ms:
        rate = sum(moved) * 1000 / longest_ms
    deviations, samples = [], []
    for job, side in zip(jobs, sides, strict=True):
        # An entry for a group has the deviation of one of its jobs, and the samples of all.
        members = _members(body, job)
        count = int(_number(side, "bw_samples")) // members
        if count < 1 or "bw_dev" not in side:
            return _Rate(rate, None, 0)
        # bw_dev is in KiB/s whatever the rest is in.
        deviations.append(_number(side, "bw_dev") * _KIB * sqrt(members))
        samples.append(count)
    # Jobs vary by themselves, so their variances add up.
    return _Rate(rate, hypot(*deviations), min(samples))


def _members(body: Mapping[str, Any], job: Mapping[str, Any]) -> int:
    """Return how many jobs an entry stands for: more than one if fio reports by groups."""
    common = body.get("global options")
    options = {**(common if isinstance(common, dict) else {}), **_options(job)}
    if "group_reporting" not in options:
        return 1
    text = str(options.get("numjobs", 1))
    return max(1, int(text)) if re.fullmatch(r"[0-9]{1,6}", text) else 1


def _rate(side: Mapping[str, Any]) -> float:
    """Return a job's bandwidth [bytes/s]; 0 if it moved nothing or says nothing."""
    if "bw_bytes" in side:
        return _number(side, "bw_bytes")
    return _number(side, "bw") * _KIB  # fio 2 wrote KiB/s only


def _number(side: Mapping[str, Any], key: str) -> float:
    """Return a number of fio's; 0 if there is none."""
    value = side.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0.0
    # NaN is in no range, and a whole number may be too long for a float.
    return float(value) if 0 < value <= _MOST else 0.0
