"""The order of measurements: this machine as a host first, then arrays of paced drives.

Within a repetition each kernel runs in the drives and on every host one after the other, so a
change of the machine's load meets both sides of a comparison alike.

A drive may be silent for a while on a machine that is busy. A run that fails is tried once more,
then left out by itself: the runs before and after it count.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TypeVar

from csdplan.profile import Profile, load
from csdplan.trial.drives import paced_drives
from csdplan.trial.objects import KERNELS, put_inputs
from csdplan.trial.pace import Pace
from csdplan.trial.program import Csd, WrongAnswerError

T = TypeVar("T")
#: Called with the work done and all work, both as planned [s], and the step that is next.
Progress = Callable[[float, float, str], None]

#: Space of a drive for each byte of a working set: every kernel's inputs and results, several
#: results at once while old ones are cleaned away.
_SPACE = 24
_LEAST_BYTES = 1 << 30
#: Runs of a kernel in ``csd characterize`` for each number of cores: load and compute, and both at
#: once, on the host and in the drive.
_WAYS = 4
#: Time of an array's start, inputs and end [s].
_SET_UP_S = 3.0


@dataclass(frozen=True)
class Setting:
    """Measurements to make.

    Attributes
    ----------
    kernels : tuple of str
        Kernels.
    drives, host_cores : tuple of int
        Numbers of drives, and the n of each Host(n); ascending.
    size_bytes : int
        Working set [bytes].
    repeat : int
        Repetitions that count, after one for warmth.
    """

    kernels: tuple[str, ...]
    drives: tuple[int, ...]
    host_cores: tuple[int, ...]
    size_bytes: int
    repeat: int


@dataclass(frozen=True)
class Sample:
    """One run.

    Attributes
    ----------
    kernel : str
        The kernel.
    devices : int
        Drives of the array.
    host_cores : int or None
        The n of Host(n); None for a run in the drives.
    rate_Bps : float
        Bytes of input over wall time [bytes/s].
    """

    kernel: str
    devices: int
    host_cores: int | None
    rate_Bps: float


@dataclass(frozen=True)
class Measured:
    """The outcome of all measurements.

    Attributes
    ----------
    host : Profile
        The profile that ``csd characterize`` wrote.
    samples : tuple of Sample
        A sample of each run that counts, those of one system in the order of repetitions.
    lost : tuple of str
        Runs and arrays that could not be measured, and why.
    """

    host: Profile
    samples: tuple[Sample, ...]
    lost: tuple[str, ...]


def measure(csd: Csd, setting: Setting, pace: Pace, folder: Path, progress: Progress) -> Measured:
    """Characterize this machine as a host, then run every kernel on every system.

    Parameters
    ----------
    csd : Csd
        The program.
    setting : Setting
        Measurements to make.
    pace : Pace
        Device that the drives imitate.
    folder : Path
        Folder for scratch files.
    progress : callable
        Called before each step.

    Raises
    ------
    ChildProcessError
        If drives and host give different answers, the host cannot be characterized, or no run
        succeeds.
    """
    clock = _Clock(setting, pace, progress)
    clock.next("this machine as a host, by csd characterize", clock.characterize_s())
    profile = _twice(lambda: _characterize(csd, setting, pace, folder))
    samples: list[Sample] = []
    lost: list[str] = []
    for devices in setting.drives:
        try:
            _on_array(csd, setting, pace, folder, devices, clock, samples, lost)
        except WrongAnswerError:
            raise
        except ChildProcessError as error:
            lost.append(f"{devices} drives: {error}")
    clock.end()
    if not samples:
        raise ChildProcessError("; ".join(lost))
    return Measured(profile, tuple(samples), tuple(lost))


def _on_array(
    csd: Csd,
    setting: Setting,
    pace: Pace,
    folder: Path,
    devices: int,
    clock: _Clock,
    samples: list[Sample],
    lost: list[str],
) -> None:
    """Run every kernel on one array and its hosts; add to what was measured, and what was not."""
    with ExitStack() as drives:

        def start() -> tuple[Path, dict[str, int]]:
            # The drives of a first try end before others start.
            drives.close()
            array = drives.enter_context(
                paced_drives(csd, devices, pace.shared(devices), folder, _space(setting))
            )
            read = {
                kernel: put_inputs(csd, array, kernel, setting.size_bytes, folder)
                for kernel in setting.kernels
            }
            return array, read

        clock.next(f"inputs on {devices} drives", _SET_UP_S)
        array, read = _twice(start)
        for repetition in range(setting.repeat + 1):
            for kernel in setting.kernels:
                step = f"{kernel} on {devices} drives, repetition {repetition}"
                clock.next(step, clock.runs_s(kernel, devices))
                try:
                    found = _twice(partial(_runs, csd, array, kernel, setting.host_cores))
                except WrongAnswerError:
                    raise
                except ChildProcessError as error:
                    lost.append(f"{step}: {error}")
                    continue
                samples += [
                    Sample(kernel, devices, cores, read[kernel] / wall_s)
                    for cores, wall_s in found.items()
                    if repetition
                ]


def _twice(action: Callable[[], T]) -> T:
    """Do something, and once more if it fails."""
    try:
        return action()
    except WrongAnswerError:
        raise
    except ChildProcessError:
        return action()


def _characterize(csd: Csd, setting: Setting, pace: Pace, folder: Path) -> Profile:
    """Return the profile of this machine with one paced drive."""
    written = folder / "measured.toml"
    with paced_drives(csd, 1, pace.shared(1), folder, _space(setting)) as array:
        words = ["characterize", "--kernels", ",".join(setting.kernels)]
        words += ["--size", str(setting.size_bytes), "--repeat", str(max(2, setting.repeat))]
        words += ["--cores", ",".join(str(n) for n in sorted({1, *setting.host_cores}))]
        words += ["--ingest-bw", str(pace.intake_Bps), "--output", str(written)]
        csd.run(array, *words)
    return load(written)


def _runs(
    csd: Csd, array: Path, kernel: str, host_cores: tuple[int, ...]
) -> dict[int | None, float]:
    """Run a kernel in the drives and on each Host(n); return wall times, None for the drives."""
    walls: dict[int | None, float] = {}
    answers = []
    for cores in (None, *host_cores):
        on = ("--on", "drives") if cores is None else ("--on", "host", "--cores", str(cores))
        output = KERNELS[kernel].output
        try:
            result = csd.run(array, "run", kernel, *KERNELS[kernel].words, *on)
        except ChildProcessError:
            # The next try writes the same object, if this one got as far.
            with suppress(ChildProcessError):
                if output is not None:
                    csd.run(array, "rm", output)
            raise
        if output is not None:
            csd.run(array, "rm", output)
        (run,) = result["runs"]
        walls[cores] = float(run["wall_s"])
        how = {"on", "cores", "wall_s", "crossed_bytes", "shares"}
        answers.append({key: value for key, value in run.items() if key not in how})
    if any(answer != answers[0] for answer in answers):
        raise WrongAnswerError(f"{kernel}: drives and host give different answers: {answers}")
    return walls


def _space(setting: Setting) -> int:
    """Return the size of a drive's media [bytes]; memory is taken as it is written."""
    return max(_LEAST_BYTES, _SPACE * setting.size_bytes)


class _Clock:
    """Work done and to be done, in seconds as planned."""

    def __init__(self, setting: Setting, pace: Pace, progress: Progress) -> None:
        self._setting, self._pace, self._progress = setting, pace, progress
        runs = (self.runs_s(k, m) for k in setting.kernels for m in setting.drives)
        self._all_s = self.characterize_s() + (setting.repeat + 1) * sum(runs)
        self._all_s += _SET_UP_S * len(setting.drives)
        self._done_s = self._begun_s = 0.0

    def next(self, step: str, seconds: float) -> None:
        """Report that a step of so many seconds begins, and the one before has ended."""
        self._done_s += self._begun_s
        self._begun_s = seconds
        self._progress(min(self._done_s, self._all_s), self._all_s, step)

    def end(self) -> None:
        """Report that all is done."""
        self._progress(self._all_s, self._all_s, "done")

    def characterize_s(self) -> float:
        """Return the time of ``csd characterize``."""
        setting = self._setting
        each_s = setting.size_bytes / self._pace.read_Bps
        rounds = (max(2, setting.repeat) + 1) * _WAYS * len({1, *setting.host_cores})
        return _SET_UP_S + each_s * rounds * len(setting.kernels)

    def runs_s(self, kernel: str, devices: int) -> float:
        """Return the time of a kernel's runs in one repetition."""
        size = self._setting.size_bytes
        host_s = size / min(self._pace.read_Bps * devices, self._pace.intake_Bps)
        drives_s = self._pace.drive_s(kernel, size) / devices
        passes = KERNELS[kernel].passes
        return passes * (drives_s + host_s * len(self._setting.host_cores))
