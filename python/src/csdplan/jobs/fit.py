"""From metered runs of different sizes to the parameters of their job.

Linear least squares, errors relative to what was measured. A job's CPU time in drives is a part
that does not depend on its input, and parts by task and by byte; its wall time is a start, and the
time that the simulated tasks take on drives of one core, divided by the cores that a drive gave.
Parts that the runs cannot separate stay one number, whose source says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from csdplan.errors import ModelError, ProfileIncomplete
from csdplan.jobs.lines import Line, line
from csdplan.jobs.model import Model, Number
from csdplan.jobs.runs import Run
from csdplan.model.inputs import FloatArray
from csdplan.sim import Cluster, Phased, simulate_phases

#: The largest input over the smallest, at least; else start and time of a byte are one number.
_APART = 1.25
#: Bytes of a task, largest over smallest, from which a task's start shows, and runs that it takes.
_TASKS_APART, _TASKS_RUNS = 1.2, 4
#: Below this input, starts of Java are most of what a run of Hadoop takes [bytes].
_SMALL = 200e6
#: How far the bytes of tunnels may be from what the model has, before the answer warns.
_TUNNELS_FAR = 0.25
#: Rounds in which the cores of a drive and the simulated times settle.
_ROUNDS = 3


@dataclass(frozen=True)
class Given:
    """Numbers of the job that the user gave; None for those that the runs give.

    Attributes
    ----------
    block_bytes : float or None
        Bytes of a map.
    reduces : int or None
        Reduce tasks.
    replication, slots : int or None
        Copies of blocks, and tasks that a drive runs at once; by default 2 of each.
    drive_cores : float or None
        CPU of a drive, in host cores, in place of that of the drives that were metered.
    watts : mapping of str to Number
        Watts of a profile, over those of the records.
    """

    block_bytes: float | None = None
    reduces: int | None = None
    replication: int | None = None
    slots: int | None = None
    drive_cores: float | None = None
    watts: tuple[tuple[str, Number], ...] = ()


@dataclass(frozen=True)
class Residual:
    """A number of a run, as measured and as the model has it."""

    run: str
    quantity: str
    measured: float
    fitted: float


def fitted(runs: Sequence[Run], given: Given) -> tuple[Model, list[Residual]]:
    """Return the model of a job, and how far it is from the runs.

    Raises
    ------
    ProfileIncomplete
        If the runs do not say what the model needs; the message tells what to do.
    """
    _check(runs)
    numbers, lines = _bytes_and_tasks(runs, given), {}
    counted, size = [run.counted for run in runs], np.array([run.input_bytes for run in runs])
    tasks = size / numbers["block_bytes"].value
    if counted[0] is not None:
        tasks = np.array([float(one.maps + one.reduces) for one in counted if one])
    cpu = [run.job.cpu_s for run in runs]
    each = size / tasks
    starts = len(runs) >= _TASKS_RUNS and each.max() / each.min() >= _TASKS_APART
    columns = [np.ones(len(runs)), *([tasks] if starts else []), size]
    lines["os"] = line(np.stack(columns, axis=1), np.array([one.os for one in cpu]))
    lines["host"] = _line([np.ones(len(runs)), size], [one.host for one in cpu])
    lines["drives"] = _line([size], [one.drives for one in cpu])
    ends = np.array([run.tunnel_bytes for run in runs])
    lines["routing"] = _line([ends], [one.tunnels_outside for one in cpu])
    lines["inside"] = _line([ends], [one.tunnels_inside for one in cpu])
    numbers |= _work(runs, numbers, lines, starts=starts)
    model = _with_wall(runs, Model(numbers), given)
    model = _with_watts(runs, model, given)
    _refuse_other_tasks(runs, model, given, starts=starts)
    return _with_warnings(runs, model), residuals(runs, model, lines, columns)


def _check(runs: Sequence[Run]) -> None:
    sizes = [run.input_bytes for run in runs]
    if len(runs) == 1 or max(sizes) < _APART * min(sizes):
        raise ProfileIncomplete(
            f"{runs[0].name}: records of one size of input do not tell a job's start from its time "
            f"for a byte: give another --job whose input is at least {_APART:g} times as large"
        )
    without = [run.name for run in runs if run.counted is None]
    if without and len(without) < len(runs):
        raise ProfileIncomplete(f"{without[0]}: other runs have a log: give log=FILE here as well")
    with_reduces = {bool(run.counted and run.counted.reduces) for run in runs}
    if len(with_reduces) > 1:
        raise ProfileIncomplete(f"{runs[0].name}: only some of the runs have reduces: not one job")


def _line(terms: Sequence[FloatArray], measured: Sequence[float]) -> Line:
    """Fit what may be 0 in some runs, or in all."""
    counts = np.array(measured)
    some = counts > 0
    if some.sum() < len(terms):
        zeros = np.zeros(len(terms))
        return Line(zeros, np.zeros((len(terms), len(terms))), None, 0)
    return line(np.stack(terms, axis=1)[some], counts[some])


def _number(of: Line, index: int, source: str, *, factor: float = 1.0) -> Number:
    low, high = of.range_of(index)
    value = float(of.coefficients[index]) * factor
    if low is None or high is None:
        return Number(value, "inferred", f"{source}; no more runs than numbers: no range")
    return Number(value, "inferred", source, low * factor, high * factor)


def _bytes_and_tasks(runs: Sequence[Run], given: Given) -> dict[str, Number]:
    """Return sizes and numbers of tasks."""
    largest = max(runs, key=lambda run: run.input_bytes)
    found = {"input_bytes": Number(largest.input_bytes, largest.prov, largest.source)}
    counted = [run.counted for run in runs if run.counted is not None]
    if given.block_bytes is not None:
        found["block_bytes"] = Number(given.block_bytes, "given", "--block")
    elif largest.counted is not None:
        each = largest.input_bytes / largest.counted.maps
        found["block_bytes"] = Number(each, "measured", "input over maps of the largest run")
    else:
        raise ModelError("block", "absent", "bytes of a task, as no log says how many there were")
    reduces = {one.reduces for one in counted}
    if given.reduces is not None:
        if bool(given.reduces) != any(reduces):
            raise ModelError("reduces", given.reduces, "0 only where no run has reduces")
        found["reduces"] = Number(given.reduces, "given", "--reduces")
    elif len(reduces) > 1:
        raise ModelError("reduces", "absent", "a number, as the runs had different ones")
    else:
        source = "Hadoop: launched reduce tasks" if counted else "no log: one phase"
        prov = "measured" if counted else "assumed"
        found["reduces"] = Number(float(max(reduces, default=0)), prov, source)
    for name in ("replication", "slots"):
        value = getattr(given, name)
        prov, source = ("given", f"--{name}") if value else ("assumed", "as the recipes have it")
        found[name] = Number(float(value or 2), prov, source)
    size = [np.array([run.input_bytes for run in runs])]
    for name in ("shuffle", "output"):
        moved = [float(getattr(one, f"{name}_bytes")) for one in counted]
        ratio = _line(size, moved) if moved else None
        none = Number(0.0, "assumed", "no log: none")
        source = f"Hadoop: bytes of {name}, by bytes of input"
        found[f"{name}_ratio"] = none if ratio is None else _number(ratio, 0, source)
    return found


def _work(
    runs: Sequence[Run], numbers: dict[str, Number], lines: dict[str, Line], *, starts: bool
) -> dict[str, Number]:
    """Return CPU times, of tasks and of the rest."""
    found = {
        "host_fixed_s": _number(lines["host"], 0, "host's CPU time"),
        "host_byte_s": _number(lines["host"], 1, "host's CPU time by input"),
        "os_fixed_s": _number(lines["os"], 0, "CPU time in drives that no input changes"),
        "drives_byte_s": _number(lines["drives"], 0, "CPU time of drives' processes by input"),
        "routing_byte_s": _number(lines["routing"], 0, "host's tunnel ends by bytes at them"),
        "tunnel_inside_byte_s": _number(lines["inside"], 0, "drives' tunnel ends, likewise"),
    }
    together = Number(0.0, "assumed", "in the time of a byte: runs do not tell them apart")
    start = _number(lines["os"], 1, "CPU time in drives by task") if starts else together
    found["map_start_s"] = start
    by_byte = _number(lines["os"], 2 if starts else 1, "CPU time in drives by input")
    counted = [run.counted for run in runs if run.counted is not None]
    maps_ms, reduces_ms = sum(one.map_ms for one in counted), sum(one.reduce_ms for one in counted)
    if not reduces_ms:
        none = Number(0.0, "measured" if counted else "assumed", "no reduces")
        return found | {"map_byte_s": by_byte, "reduce_start_s": none, "reduce_byte_s": none}
    if not numbers["shuffle_ratio"].value:
        raise ProfileIncomplete(
            "no run has a shuffle, but reduces: none can be foretold: meter a job that shuffles"
        )
    share = maps_ms / (maps_ms + reduces_ms)
    said = f"{by_byte.source}; {share:.0%} of it maps', as of the tasks' times"
    maps = replace(_times(by_byte, share), source=said)
    reduce_factor = (1 - share) / numbers["shuffle_ratio"].value
    reduces = replace(_times(by_byte, reduce_factor), source=f"{said}; by byte of the shuffle")
    return found | {"map_byte_s": maps, "reduce_start_s": start, "reduce_byte_s": reduces}


def _times(one: Number, factor: float) -> Number:
    low = None if one.low is None else one.low * factor
    high = None if one.high is None else one.high * factor
    return replace(one, value=one.value * factor, low=low, high=high)


def of_run(model: Model, run: Run, drive_cores: float) -> Phased:
    """Return a run as the model has it, without the job's start; drives alone take tasks."""
    phases = model.phases(drives=run.drives)
    counted = run.counted
    block = run.input_bytes / counted.maps if counted else phases.block_bytes
    reduces = counted.reduces if counted else 0
    phases = replace(
        phases, input_bytes=run.input_bytes, block_bytes=block, begin_s=0.0, reduces=reduces
    )
    cluster = Cluster(
        cores=0, drives=run.drives, enabled=run.drives, drive_cores=drive_cores,
        slots=int(model["slots"]), routing_byte_s=model["routing_byte_s"],
    )  # fmt: skip
    return simulate_phases(cluster, phases)


def _with_wall(runs: Sequence[Run], model: Model, given: Given) -> Model:
    """Return the model with the job's start, and the cores that a drive gave."""
    begin = Number(0.0, "assumed", "not yet known")
    model = replace(model, numbers=dict(model.numbers) | {"begin_s": begin})
    walls = np.array([run.job.wall_s for run in runs])
    cores, found = 1.0, None
    for _ in range(_ROUNDS):
        tasks_s = [of_run(model, run, cores).time_s * cores for run in runs]
        found = line(np.stack([np.ones(len(runs)), np.array(tasks_s)], axis=1), walls)
        if not found.coefficients[1] > 0:
            raise ProfileIncomplete(
                f"{runs[0].name}: wall time does not grow with the input: meter larger inputs, on "
                "a machine that does nothing else"
            )
        cores = 1.0 / float(found.coefficients[1])
    assert found is not None, "there are rounds"
    low, high = found.range_of(1)
    source = "CPU that a drive gave its tasks, in cores: from wall times"
    if low is None or high is None:
        number = Number(cores, "inferred", f"{source}; no more runs than numbers: no range")
    else:
        number = Number(cores, "inferred", source, 1 / high, 1 / low if low > 0 else None)
    if given.drive_cores is not None:
        number = Number(given.drive_cores, "given", "--drive-cores")
    begin = _number(found, 0, "wall time that no input changes")
    numbers = dict(model.numbers) | {"begin_s": begin, "drive_cores": number}
    return replace(model, numbers=numbers, wall=found)


def _with_watts(runs: Sequence[Run], model: Model, given: Given) -> Model:
    """Return the model with what a second of CPU time takes, if anything says so."""
    if given.watts:
        return replace(model, numbers=dict(model.numbers) | dict(given.watts))
    joules = [run.job.energy.joules or 0.0 for run in runs]
    if not all(joules):
        return model
    ratio = line(np.array([[run.cpu_s] for run in runs]), np.array(joules))
    sources = "/".join(sorted({run.job.energy.source or "" for run in runs}))
    watts = _number(ratio, 0, f"energy of the records ({sources}), by CPU time of all classes")
    return replace(
        model, numbers=dict(model.numbers) | {"host_core_W": watts, "drive_core_W": watts}
    )


def _refuse_other_tasks(runs: Sequence[Run], model: Model, given: Given, *, starts: bool) -> None:
    """Refuse another size of tasks where runs do not tell what a task's start takes."""
    if given.block_bytes is None or starts or runs[0].counted is None:
        return
    for run in runs:
        each = run.input_bytes / run.counted.maps if run.counted else given.block_bytes
        if max(each, given.block_bytes) > _TASKS_APART * min(each, given.block_bytes):
            raise ModelError(
                "block", f"{given.block_bytes:g}",
                f"about the {each:.4g} bytes of {run.name}'s maps: what a task's start takes, "
                f"{_TASKS_RUNS} runs with tasks of different sizes tell",
            )  # fmt: skip


def _with_warnings(runs: Sequence[Run], model: Model) -> Model:
    found = [f"{run.name}: {one}" for run in runs for one in run.warnings]
    if runs[0].counted is not None and min(run.input_bytes for run in runs) < _SMALL:
        found.append("inputs below 200 MB: starts of Java are most of what such runs take")
    if model.wall is not None and model.wall.spread is None:
        found.append("no more runs than numbers: no ranges; meter each size several times")
    for run in runs:
        expected = of_run(model, run, 1.0).tunnel_bytes
        times = run.tunnel_bytes / expected if expected else 1.0
        if abs(times - 1) > _TUNNELS_FAR:
            found.append(
                f"{run.name}: tunnels carried {times:.3g} times what shuffle, output and reads "
                "explain"
            )
    return replace(model, warnings=tuple(found))


def residuals(
    runs: Sequence[Run], model: Model, lines: dict[str, Line], columns: Sequence[FloatArray]
) -> list[Residual]:
    """Return measured and fitted numbers of every run."""
    assert model.wall is not None, "fitted before"
    cores = 1.0 / float(model.wall.coefficients[1])
    os_s = np.stack(columns, axis=1) @ lines["os"].coefficients
    found = []
    for run, os_cpu_s in zip(runs, os_s, strict=True):
        phased, cpu, ends = of_run(model, run, cores), run.job.cpu_s, run.tunnel_bytes
        host_s = model["host_fixed_s"] + model["host_byte_s"] * run.input_bytes
        rows = {
            "wall_s": (run.job.wall_s, model["begin_s"] + phased.time_s),
            "os_cpu_s": (cpu.os, float(os_cpu_s)),
            "host_cpu_s": (cpu.host, host_s),
            "drives_cpu_s": (cpu.drives, model["drives_byte_s"] * run.input_bytes),
            "routing_cpu_s": (cpu.tunnels_outside, model["routing_byte_s"] * ends),
            "tunnel_bytes": (ends, phased.tunnel_bytes),
        }
        found += [Residual(run.name, name, *both) for name, both in rows.items()]
    return found
