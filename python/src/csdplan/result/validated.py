"""A plan next to what was measured: throughput, and the number of drives that breaks even.

A plan has a range, in which the median of later runs lies in 90 % of cases: it holds how surely the
host's times are known from their runs, and how much times differ from one session to another. A
measurement has the quartiles of its runs. Which side is faster is judged by pairs: runs of the same
repetition, one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp

import numpy as np

from csdplan.profile import Profile
from csdplan.profile.schema import Timing
from csdplan.profile.workload import workload_of
from csdplan.result.break_even import BepResult, HostResult, SystemResult, bep
from csdplan.result.sheet import Sheet, Value, sheet_of
from csdplan.result.throughput import drives_Bps, host_Bps
from csdplan.solve.uncertainty import SPREADS, sigma_measured
from csdplan.trial import KERNELS, PARTS_AT_ONCE, Pace, Sample, Setting

#: A measurement this far from its plan, as a share of the plan, is a miss.
TOLERANCE = 0.15
#: Standard deviations of a normal distribution that bound 90 % of it.
_NINETY = 1.645
#: Fewer runs have no spread to judge by.
_LEAST_RUNS = 3


@dataclass(frozen=True)
class Row:
    """Throughput of one kernel on one system.

    Attributes
    ----------
    kernel : str
        The kernel.
    host_cores : int or None
        The n of Host(n); None for a run in the drives.
    devices : int
        Drives of the array.
    planned_Bps, measured_Bps : tuple of float
        Low, middle and high [bytes/s]: of the plan bounds of 90 % of cases, of the measurement
        its quartiles.
    best_Bps : float
        The fastest run [bytes/s].
    runs : int
        Number of runs.
    """

    kernel: str
    host_cores: int | None
    devices: int
    planned_Bps: tuple[float, float, float]
    measured_Bps: tuple[float, float, float]
    best_Bps: float
    runs: int

    @property
    def system(self) -> str:
        """Name of the system."""
        return "drives" if self.host_cores is None else f"Host({self.host_cores})"

    @property
    def difference(self) -> float:
        """Measured over planned throughput, less 1."""
        return self.measured_Bps[1] / self.planned_Bps[1] - 1

    @property
    def is_within(self) -> bool:
        """True if the measurement is as near its plan as it should be."""
        return abs(self.difference) <= TOLERANCE

    @property
    def is_in_range(self) -> bool:
        """True if the median of the runs lies in the plan's range."""
        return self.planned_Bps[0] <= self.measured_Bps[1] <= self.planned_Bps[2]

    def explanation(self) -> str:
        """Return why a miss is one, as far as its runs tell."""
        low, middle, high = self.measured_Bps
        if self.runs < _LEAST_RUNS:
            return f"{self.runs} runs are too few to tell"
        if self.difference > 0:
            return "the host's times were longer when they were characterized than in these runs"
        share = f"the best run reached {self.best_Bps / self.planned_Bps[1]:.0%} of the plan"
        reached = self.best_Bps >= (1 - TOLERANCE) * self.planned_Bps[1]
        if reached:
            share += ", so other work of the machine delayed the rest"
        if self.host_cores is not None and KERNELS[self.kernel].by_parts and not reached:
            at_once = min(self.devices, PARTS_AT_ONCE * self.host_cores)
            return (
                f"{self.system} takes whole parts, each of one drive: it reads from at most "
                f"{at_once} of {self.devices} drives at once, as planned, and computes when a part "
                f"has come, which the plan leaves out; {share}"
            )
        if high - low > TOLERANCE * middle:
            return f"unsteady: quartiles {(high - low) / middle:.0%} of the median apart; {share}"
        if reached:
            return share
        return f"steadily slower, {share}: a cost that the plan leaves out"


@dataclass(frozen=True)
class Validation:
    """Plan and measurement of every kernel.

    Attributes
    ----------
    rows : tuple of Row
        Throughputs, by kernel, number of drives and system.
    plans : dict
        Break-even points by kernel.
    samples : tuple of Sample
        Runs, those of one system in the order of repetitions.
    """

    rows: tuple[Row, ...]
    plans: dict[str, BepResult]
    samples: tuple[Sample, ...]

    def misses(self) -> list[Row]:
        """Return the rows whose measurement is not near its plan."""
        return [row for row in self.rows if not row.is_within]


def compare(setting: Setting, pace: Pace, host: Profile, samples: Sequence[Sample]) -> Validation:
    """Plan every kernel from the pace and the host's profile, and set it next to the samples.

    Parameters
    ----------
    setting : Setting
        What was measured.
    pace : Pace
        Device that the drives imitated.
    host : Profile
        What ``csd characterize`` measured on the host, with a paced drive.
    samples : sequence of Sample
        The runs.
    """
    drive = pace.sized(setting.size_bytes)
    streaming = _streaming(host)
    rows: list[Row] = []
    plans = {}
    for kernel in setting.kernels:
        load = workload_of(drive, kernel, name=pace.name, device=pace.device, ssd_profile=streaming)
        plan = bep([load], setting.host_cores, overlap="measured")
        plans[kernel] = plan
        for devices in setting.drives:
            for cores in (None, *setting.host_cores):
                rates = rates_of(samples, kernel, devices, cores)
                if not rates:
                    continue
                quartiles = tuple(float(rate) for rate in np.quantile(rates, (0.25, 0.5, 0.75)))
                low, middle, high = quartiles
                rows.append(
                    Row(
                        kernel,
                        cores,
                        devices,
                        _planned(plan, streaming, cores, devices),
                        (low, middle, high),
                        max(rates),
                        len(rates),
                    )
                )
    return Validation(tuple(rows), plans, tuple(samples))


def rates_of(
    samples: Sequence[Sample], kernel: str, devices: int, host_cores: int | None
) -> list[float]:
    """Return the throughputs of one system's runs [bytes/s], in the order of repetitions."""
    wanted = (kernel, devices, host_cores)
    return [
        sample.rate_Bps
        for sample in samples
        if (sample.kernel, sample.devices, sample.host_cores) == wanted
    ]


def throughput_sheet(found: Validation) -> Sheet:
    """Return planned and measured throughputs, a row for each system."""
    columns = (
        "kernel", "devices", "system", "planned_Bps", "planned_low_Bps", "planned_high_Bps",
        "measured_Bps", "measured_p25_Bps", "measured_p75_Bps", "runs", "difference", "within",
    )  # fmt: skip
    rows = []
    for row in found.rows:
        planned, measured = row.planned_Bps, row.measured_Bps
        values = (planned[1], planned[0], planned[2], measured[1], measured[0], measured[2])
        rounded = (*values, row.runs, round(row.difference, 4), row.is_within)
        rows.append((row.kernel, row.devices, row.system, *rounded))
    near = len(found.rows) - len(found.misses())
    inside = sum(row.is_in_range for row in found.rows)
    note = (
        f"within {TOLERANCE:.0%} of the plan: {near} of {len(found.rows)}; in its range of 90 % of "
        f"cases: {inside}"
    )
    return sheet_of("Throughput, planned and measured", columns, rows, note)


def break_even_sheet(found: Validation, setting: Setting) -> Sheet:
    """Return planned and measured break-even points, a row for each kernel and Host(n)."""
    columns = (
        "kernel", "host_cores", "planned_devices", "planned_low", "planned_high",
        "planned_of_these", "measured_of_these", "agree", "pairs_won_by_drives",
    )  # fmt: skip
    rows: list[tuple[Value, ...]] = []
    for kernel, plan in found.plans.items():
        (system,) = plan.systems
        for host in system.hosts:
            wins = {
                devices: _wins(found.samples, kernel, devices, host.host_cores)
                for devices in setting.drives
            }
            # Plan and measurement answer for the numbers of drives that were measured.
            pairs = {devices: won for devices, won in wins.items() if won}
            faster = [m for m, won in pairs.items() if 2 * sum(won) > len(won)]
            measured = _first(list(pairs), faster)
            exact = host.devices
            planned = _first(list(pairs), [m for m in pairs if exact and m >= exact])
            shown = ", ".join(f"{m}: {sum(won)}/{len(won)}" for m, won in pairs.items())
            bounds = (host.devices_low, host.devices_high)
            agree = planned == measured if pairs else None
            rows.append((kernel, host.host_cores, exact, *bounds, planned, measured, agree, shown))
    counts = ", ".join(map(str, setting.drives))
    note = f"of these: the first of {counts} drives from which on the drives are faster, if any"
    return sheet_of("Break-even points, planned and measured", columns, rows, note)


def terminal_sheets(found: Validation, setting: Setting) -> tuple[Sheet, ...]:
    """Return the tables in a shape for a terminal: MB/s, an interval in one cell."""
    columns = ("kernel", "drives", "runs on", "planned [MB/s]", "measured [MB/s]", "difference")
    rows = [
        (
            row.kernel,
            row.devices,
            row.system,
            _interval(row.planned_Bps),
            _interval(row.measured_Bps),
            f"{row.difference:+.0%}",
        )
        for row in found.rows
    ]
    note = f"{throughput_sheet(found).note}; in brackets the range, and quartiles"
    rates = sheet_of("Throughput, planned and measured", columns, rows, note)
    points = break_even_sheet(found, setting)
    kept = ("kernel", "host_cores", "planned_devices", "planned_of_these", "measured_of_these")
    shown = (points.column(name) for name in (*kept, "pairs_won_by_drives"))
    cells = [
        ["none" if value is None else value for value in row] for row in zip(*shown, strict=True)
    ]
    headings = ("kernel", "Host(n)", "planned", "planned of these", "measured of these", "won")
    answers = sheet_of(points.title, headings, cells, f"{points.note}; won: pairs, by drives")
    return (rates, answers, misses_sheet(found)) if found.misses() else (rates, answers)


def _interval(rates_Bps: tuple[float, float, float]) -> str:
    low, middle, high = (rate / 1e6 for rate in rates_Bps)
    return f"{middle:.1f} ({low:.1f}-{high:.1f})"


def misses_sheet(found: Validation) -> Sheet:
    """Return the measurements that are not near their plan, each with its explanation."""
    rows = [
        (row.kernel, row.devices, row.system, round(row.difference, 4), row.explanation())
        for row in found.misses()
    ]
    columns = ("kernel", "devices", "system", "difference", "explanation")
    return sheet_of(f"Further than {TOLERANCE:.0%} from the plan", columns, rows)


def _streaming(host: Profile) -> Profile:
    """Return a profile whose host points overlap, as the host does in ``csd run``."""
    points = [
        point.model_copy(update={"overlap": "pipelined"}) if point.where == "host" else point
        for point in host.point
    ]
    return host.model_copy(update={"point": points})


def _planned(
    plan: BepResult, host: Profile, cores: int | None, devices: int
) -> tuple[float, float, float]:
    """Return low, middle and high planned throughput [bytes/s]."""
    (system,) = plan.systems
    session = SPREADS["measured"]
    if cores is None:
        rate = float(drives_Bps(plan, system, [devices])[0, 0])
        return rate * exp(-_NINETY * session), rate, rate * exp(_NINETY * session)
    (middle,) = [one for one in system.hosts if one.host_cores == cores]
    sigmas = _sigmas(plan, system, middle, host)
    # A part lies on one drive, and a core works on so many parts at once.
    at_once = PARTS_AT_ONCE * cores if KERNELS[plan.kernel].by_parts else devices
    waits = max(1.0, devices / at_once)
    rates = []
    for sign in (1, 0, -1):
        slower = [exp(sign * _NINETY * sigma) for sigma in sigmas]
        tx_s, comp_s = middle.ssd_tx_s * waits * slower[0], middle.ssd_comp_s * slower[1]
        one = replace(middle, ssd_tx_s=tx_s, ssd_comp_s=comp_s)
        rates.append(float(host_Bps(plan, system, one, [devices])[0, 0]))
    return rates[0], rates[1], rates[2]


def _sigmas(
    plan: BepResult, system: SystemResult, middle: HostResult, host: Profile
) -> tuple[float, float]:
    """Return the deviations of Host(n)'s load and compute time, from one session to another."""
    session = SPREADS["measured"]
    for point in host.points(plan.kernel, "host"):
        if (point.units, point.bytes) == (middle.host_cores, system.bytes):
            return _sigma(point.load_s, session), _sigma(point.comp_s, session)
    return session, session


def _sigma(timing: Timing, session: float) -> float:
    if timing.p25 is None or timing.p75 is None or timing.n is None:
        return session
    return sigma_measured(timing.p25, timing.p75, timing.n, session)


def _wins(samples: Sequence[Sample], kernel: str, devices: int, host_cores: int) -> list[bool]:
    """Return, for each pair of runs, whether the drives were faster than the host."""
    drives = rates_of(samples, kernel, devices, None)
    hosts = rates_of(samples, kernel, devices, host_cores)
    return [drive > host for drive, host in zip(drives, hosts, strict=True)]


def _first(counts: Sequence[int], faster: Sequence[int]) -> int | None:
    """Return the first of `counts` from which on all are among `faster`; None without one."""
    first = None
    for count in reversed(counts):
        if count not in faster:
            break
        first = count
    return first
