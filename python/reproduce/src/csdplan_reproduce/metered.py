"""The sixteen configurations of paper 004 from metered runs, or why they are not given.

Records of ``bench/cluster/model.py``: runs of each job on one drive with inputs of two sizes, and
on two drives with a third one. The model of jobs is fitted to the former and foretells the latter.
Only if it does so for all three jobs of Hadoop does it say something of sixteen drives.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ValidationError

from csdplan.errors import CsdplanError, ModelError
from csdplan.files import parsed, read_text
from csdplan.jobs.check import TABLE_3, WITHIN, Checked, Compared, checked, given, table_3
from csdplan.jobs.fit import Given, fitted
from csdplan.jobs.hadoop import Counters
from csdplan.jobs.model import Model
from csdplan.jobs.runs import Run, run_of
from csdplan.profile.meter import Record
from csdplan_reproduce.printed import read as printed

#: Jobs by their names in records, and in the page.
HADOOP = {"wordcount": "WordCount", "sort": "Sort", "terasort": "TeraSort"}
JOBS = HADOOP | {"dft": "DFT"}
#: Runs of each case, at least, and how far their quartiles may be apart, by the median.
RUNS_MIN, STEADY = 5, 0.15
#: Reduces of a job on sixteen drives; the paper does not say how many it had.
REDUCES = 64
_TEXT = """\
## Configurations of paper 004 from metered runs

`bench/cluster/model.py` runs WordCount, Sort, TeraSort and DFT on one drive with inputs of two
sizes, and on two drives with a third size, {least} times each. The model of jobs (`csdplan simulate
--job`) is fitted to the runs on one drive, and foretells the wall time of those on two. It says
something of the paper's configurations only if it comes out within {within:.0%} for all three jobs
of Hadoop.
"""
_COMMAND = """\
```console
# .venv/bin/python bench/cluster/model.py --record bench/records/cluster.jsonl
$ csdplan reproduce --document docs/reference/reproduction.md --cluster bench/records/cluster.jsonl
```
"""
_NOTHING = "Nothing has been measured yet, so nothing is given here. These commands measure it:"


class _Results(BaseModel):
    round: int
    job: Literal["wordcount", "sort", "terasort", "dft"]
    drives: int
    meter: Record
    counters: Counters | None = None
    input_bytes: float | None = None
    block_bytes: float | None = None


class _Line(BaseModel):
    run: str
    machine: str
    results: _Results


@dataclass(frozen=True)
class Recorded:
    """A run of a record, with the round that it was measured in."""

    round: int
    run: Run
    block_bytes: float | None


@dataclass(frozen=True)
class Case:
    """Runs on as many drives with inputs of one size: wall times [s]."""

    drives: int
    input_bytes: float
    walls: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median wall time [s]."""
        return statistics.median(self.walls)

    @property
    def quartiles(self) -> tuple[float, float]:
        """First and third quartile [s]."""
        if len(self.walls) == 1:
            return self.walls[0], self.walls[0]
        first, _, third = statistics.quantiles(self.walls, n=4)
        return first, third

    @property
    def is_steady(self) -> bool:
        """True if the quartiles are near each other."""
        first, third = self.quartiles
        return third - first <= STEADY * self.median


@dataclass(frozen=True)
class Outcome:
    """A job: what was measured, what was foretold, and what follows.

    Attributes
    ----------
    job : str
        Its name in records.
    verdict : str
        ``held``, ``missed``, ``inconclusive`` or ``unknown``.
    why : str
        Reason of the last two.
    cases : tuple of Case
        What the model was fitted to, and last what it foretold.
    model : Model or None
        The model.
    check : Checked or None
        The run of the median wall time, as foretold.
    rounds : tuple of Model
        Models fitted to each round alone.
    """

    job: str
    verdict: str
    why: str
    cases: tuple[Case, ...]
    model: Model | None = None
    check: Checked | None = None
    rounds: tuple[Model, ...] = ()


def read(path: Path) -> dict[str, list[Recorded]]:
    """Return the runs of a file of records by job, those of the last measurement of each.

    Raises
    ------
    CsdplanError
        If the file cannot be read, or a line of it is none of these records.
    """
    found: dict[str, dict[str, list[Recorded]]] = defaultdict(lambda: defaultdict(list))
    for number, text in enumerate(read_text(path).splitlines(), 1):
        place = f"{path}:{number}"
        body = parsed(text, "JSON", place)
        if not isinstance(body, dict) or body.get("part") != "model":
            continue
        try:
            line = _Line.model_validate(body)
        except ValidationError as error:
            (first, *_) = error.errors(include_url=False)
            where = ".".join(map(str, first["loc"]))
            raise ModelError(place, where, f"a record of the model: {first['msg']}") from error
        one = line.results
        if one.meter.result.failed:
            raise ModelError(place, "a job that failed", "the record of one that did its work")
        run = run_of(place, one.meter, one.counters, one.input_bytes)
        found[one.job][line.run].append(Recorded(one.round, run, one.block_bytes))
    return {job: list(runs.values())[-1] for job, runs in found.items()}


def cases(runs: Iterable[Recorded]) -> tuple[Case, ...]:
    """Return the cases of a job, by drives and input; inputs of a case differ by a few percent."""
    groups: list[list[Run]] = []
    for one in sorted((one.run for one in runs), key=lambda run: (run.drives, run.input_bytes)):
        last = groups[-1][0] if groups else None
        near = last is not None and one.input_bytes <= 1.05 * last.input_bytes
        if last is not None and near and last.drives == one.drives:
            groups[-1].append(one)
        else:
            groups.append([one])
    return tuple(
        Case(group[0].drives, group[0].input_bytes, tuple(run.job.wall_s for run in group))
        for group in groups
    )


def outcome(job: str, recorded: Sequence[Recorded]) -> Outcome:
    """Fit the model to the runs on one drive, and compare it with those on two."""
    found = cases(recorded)
    alone = [one for one in recorded if one.run.drives == 1]
    others = [one.run for one in recorded if one.run.drives > 1]
    if len([case for case in found if case.drives == 1]) < len("AB") or not others:
        return Outcome(job, "unknown", "not all cases were measured", found)
    block = alone[0].block_bytes
    try:
        model, _ = fitted([one.run for one in alone], Given(block_bytes=block))
        middle = sorted(others, key=lambda run: run.job.wall_s)[len(others) // 2]
        check = checked(model, [one.run for one in alone], middle)
    except CsdplanError as error:
        return Outcome(job, "unknown", str(error), found)
    by_round = defaultdict(list)
    for one in alone:
        by_round[one.round].append(one.run)
    rounds = []
    for each in by_round.values():
        try:
            rounds.append(fitted(each, Given(block_bytes=block))[0])
        except CsdplanError:
            # A round alone may lack a size, or be too noisy for a fit.
            continue
    verdict, why = "held" if check.passed else "missed", ""
    if any(len(case.walls) < RUNS_MIN for case in found):
        verdict, why = "inconclusive", f"fewer than {RUNS_MIN} runs of a case"
    elif not all(case.is_steady for case in found):
        verdict, why = "inconclusive", f"quartiles more than {STEADY:.0%} apart"
    return Outcome(job, verdict, why, found, model, check, tuple(rounds))


def section(path: Path | None) -> str:
    """Return the section of the reference page; without a file nothing was measured."""
    recorded = {} if path is None else read(path)
    head = _TEXT.format(least=RUNS_MIN, within=WITHIN)
    if not recorded:
        return f"{head}\n{_NOTHING}\n\n{_COMMAND}".rstrip()
    found = {job: outcome(job, recorded[job]) for job in JOBS if job in recorded}
    held = all(job in found and found[job].verdict == "held" for job in HADOOP)
    parts = [head, _COMMAND, _foretold(found)]
    parts.append(_configurations(found) if held else _why_not(found))
    return "\n".join(parts).rstrip()


def _foretold(found: Mapping[str, Outcome]) -> str:
    """Return the table of what was foretold and measured."""
    lines = [
        "| job | inputs of the fit | foretold | predicted | measured, median | quartiles | error "
        "| quartiles | verdict |",
        "|---|---|---|---:|---:|---:|---:|---:|---|",
    ]
    for one in found.values():
        verdict = f"{one.verdict}: {one.why}" if one.why else one.verdict
        sizes = ", ".join(_bytes(case.input_bytes) for case in one.cases if case.drives == 1)
        check = one.check
        if check is None:
            lines.append(f"| {JOBS[one.job]} | {sizes} | | | | | | | {verdict} |")
            continue
        last = one.cases[-1]
        first, third = last.quartiles
        errors = [check.foretold_s / seconds - 1 for seconds in (third, last.median, first)]
        lines.append(
            f"| {JOBS[one.job]} | {sizes} | {_bytes(last.input_bytes)} on {last.drives} drives "
            f"| {check.foretold_s:.1f} s | {last.median:.1f} s | {first:.1f}-{third:.1f} s "
            f"| {errors[1]:+.0%} | {errors[0]:+.0%} to {errors[2]:+.0%} | {verdict} |"
        )
    return "\n".join(lines) + "\n"


def _why_not(found: Mapping[str, Outcome]) -> str:
    """Say why there is no table of configurations."""
    lacking = [JOBS[job] for job in HADOOP if job not in found]
    said = [f"{JOBS[job]} {found[job].verdict}" for job in HADOOP if job in found]
    said += [f"{name} not measured" for name in lacking]
    return (
        f"The paper's configurations are not given: {', '.join(said)}. A model that does not "
        "foretell two drives says nothing of sixteen.\n"
    )


def _scaled(model: Model, tasks: int) -> Model:
    """Return a job with the paper's number of tasks."""
    reduces = REDUCES if model["reduces"] else None
    return given(model, input_bytes=tasks * model["block_bytes"], reduces=reduces)


def _tasks() -> int:
    """Return the paper's number of maps."""
    return int(printed("numbers.toml")["catalina"]["maps"])


def _rows(one: Outcome, tasks: int) -> dict[int, tuple[Compared, float, float]]:
    """Return each configuration with the lowest and highest speed-up of single rounds."""
    assert one.model is not None
    assert one.check is not None
    main = table_3(_scaled(one.model, tasks), one.check)
    each = [table_3(_scaled(model, tasks), one.check) for model in one.rounds]
    found = {}
    for at, row in enumerate(main):
        speeds = [row.speed_up, *(other[at].speed_up for other in each)]
        found[row.configuration.number] = (row, min(speeds), max(speeds))
    return found


def _configurations(found: Mapping[str, Outcome]) -> str:
    """Return the table of configurations, and the paper's numbers next to ours."""
    tasks = _tasks()
    rows = {job: _rows(one, tasks) for job, one in found.items() if one.verdict == "held"}
    lines = [
        "Modelled, not measured: how many times as fast a host is with so many drives that compute "
        f"as without them, with {tasks} tasks (the paper's maps; of DFT as many, assumed) and "
        f"{REDUCES} reduces (assumed). In brackets the lowest and highest value of models fitted "
        "to one round each. A drive has the share of a core that was measured, and every host's "
        "cores are as fast as the machine's: assumed.\n",
        f"| no. | host | drives that compute | {' | '.join(JOBS[job] for job in rows)} |",
        f"|---:|---|---:|{'---:|' * len(rows)}",
    ]
    for row in TABLE_3:
        cells = [str(row.number), row.host, str(row.enabled)]
        for of_job in rows.values():
            if row.number in of_job:
                one, low, high = of_job[row.number]
                cells.append(f"{one.speed_up:.2f} ({low:.2f}-{high:.2f})")
            else:
                cells.append("")
        lines.append(f"| {' | '.join(cells)} |")
    lines.append("")
    if "dft" not in rows:
        why = found["dft"].verdict if "dft" in found else "not measured"
        lines.append(f"DFT is not given: {why}.\n")
    return "\n".join(lines) + "\n" + _beside(rows)


def _beside(rows: Mapping[str, Mapping[int, tuple[Compared, float, float]]]) -> str:
    """Return what the paper prints next to the model's."""
    lines = ["| the paper prints | modelled |", "|---|---|"]
    hadoop = [rows[job] for job in HADOOP]
    for number, energy, name, of_jobs in (
        (16, False, "2.2 times as fast, up to: Hadoop, high host, 16 drives", hadoop),
        (4, True, "36 % less energy, up to: Hadoop, low host, 6 drives", hadoop),
        (16, True, "4.3 times less energy, up to: Hadoop, high host, 16 drives", hadoop),
        (16, False, "5.4 times as fast: DFT, high host, 16 drives", [rows.get("dft", {})]),
        (16, True, "8.9 times less energy: DFT, high host, 16 drives", [rows.get("dft", {})]),
    ):
        of_row = [of_job[number][0] for of_job in of_jobs if number in of_job]
        values = [one.energy_gain if energy else one.speed_up for one in of_row]
        known = [value for value in values if value is not None]
        shown = "not given"
        if known and "36 %" in name:
            shown = ", ".join(f"{1 - 1 / value:.0%} less" for value in known)
        elif known:
            shown = ", ".join(f"{value:.2f} times" for value in known)
        elif of_row:
            shown = "unknown: the records have no energy"
        lines.append(f"| {name} | {shown} |")
    return "\n".join(lines) + "\n"


def _bytes(size: float) -> str:
    return f"{size / 1e6:.0f} MB"
