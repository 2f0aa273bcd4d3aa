"""A given mix of drives under several workloads at once, work split so that all finish together.

The host has some SSDs and some drives that compute, several workloads share it, and every byte is
worked on by the drive on which it lies or read and worked on by the host. `split` finds the split
with the highest throughput: a linear program, because the drives, and with them the speed at which
the host can read, are given. Where nothing stands in the way host and drives are then busy to the
end; where data lies unevenly, the busy times say who waits. A drive's media serve its own
computing and the host's reads, and deliver no more than their bandwidth to both together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from csdplan.errors import ModelError
from csdplan.model.inputs import FloatArray, positive, slow_down
from csdplan.model.overlap import Overlap
from csdplan.solve.purchase import Cpu, Demand, DriveKind, media_Bps

#: Relative error of a rate that a solver found.
_ROUNDING = 1e-9


class Placement(StrEnum):
    """Placement of each workload's data.

    ``even``: the same amount on every drive, as the papers take it.
    ``capacity``: in proportion to the drives' capacities.
    ``free``: wherever it is best; drives have room for it.
    """

    EVEN = "even"
    CAPACITY = "capacity"
    FREE = "free"


@dataclass(frozen=True)
class Split:
    """Division of the work between the host and the drives.

    Attributes
    ----------
    throughput_Bps : float
        Input of all workloads per second [bytes/s].
    by_host, by_drives : dict
        For each workload, the share of its input that the host computes, and that drives do [1].
    by_kind : dict
        For each workload and kind of drive, the share computed inside [1].
    host_busy : float
        Busy share of the host [1]: of its time if load and compute add, else of its cores or of
        its intake, whichever is greater.
    drive_busy : dict
        Busy share of each kind of drive that computes [1].
    together : bool
        True if the host and all kinds that compute are busy to the end.
    drives_least : float
        Share of all input that drives do at least at this throughput [1]. This split is that in
        which they do most; if the two differ, every split between them is as fast.
    """

    throughput_Bps: float
    by_host: dict[str, float]
    by_drives: dict[str, float]
    by_kind: dict[tuple[str, str], float]
    host_busy: float
    drive_busy: dict[str, float]
    together: bool
    drives_least: float


def split(
    cpu: Cpu,
    drives: Sequence[tuple[DriveKind, int]],
    demands: Sequence[Demand],
    *,
    placement: Placement | str = Placement.EVEN,
    overlap: Overlap | str = Overlap.SERIAL,
    sd_tx: float = 1.0,
    sd_comp: float = 1.0,
) -> Split:
    """Split workloads between a host and its drives for the highest throughput.

    Parameters
    ----------
    cpu : Cpu
        The host.
    drives : sequence of (DriveKind, int)
        Drives of the host, each kind once, at least one drive in all.
    demands : sequence of Demand
        The workloads; their shares of the input are as their `required_Bps` to each other.
        `stored_bytes` is not looked at.
    placement : Placement
        Placement of the data.
    overlap : Overlap
        ``serial`` if the host adds load and compute time, as the papers do; else they overlap.
    sd_tx, sd_comp : float
        Slow-down factors of an overloaded host [1]; at least 1.

    Returns
    -------
    Split
        The best split.

    Raises
    ------
    ModelError
        If an argument is out of range, or a workload can be run nowhere that its data lies.
    """
    kinds = [(kind, count) for kind, count in drives if count]
    if not kinds or any(count < 0 for _, count in kinds):
        raise ModelError("drives", [count for _, count in drives], "at least one drive")
    if not demands:
        raise ModelError("demands", "[]", "at least one workload")
    slow_down("sd_tx", sd_tx)
    slow_down("sd_comp", sd_comp)
    model = _Model(cpu, kinds, list(demands), Placement(placement), Overlap(overlap))
    return model.solve(sd_tx, sd_comp)


@dataclass(frozen=True)
class _Model:
    """The linear program; rates are in units of the largest speed, to keep numbers near 1."""

    cpu: Cpu
    kinds: list[tuple[DriveKind, int]]
    demands: list[Demand]
    placement: Placement
    overlap: Overlap

    def solve(self, sd_tx: float, sd_comp: float) -> Split:
        from scipy.optimize import linprog  # noqa: PLC0415 - slow to import

        count, width = len(self.kinds), len(self.demands) * len(self.kinds)
        unit = sum(kind.read_Bps * number for kind, number in self.kinds)
        total = sum(demand.required_Bps for demand in self.demands)
        share = np.array([demand.required_Bps / total for demand in self.demands])
        # Columns: x_ik inside, r_ik read by the host, lambda.
        inside, port, host = self._limits(unit, sd_tx, sd_comp)
        below = np.vstack([inside, port, self._media(unit), host])
        equal, sides = self._balance(share, count, width)
        bounds = [(0.0, None if self._runs(i, k) else 0.0) for i, k in self._pairs()]
        bounds += [(0.0, None if self._host_runs(i) else 0.0) for i, _ in self._pairs()]

        def best(cost: FloatArray, rate: tuple[float, float | None]) -> FloatArray:
            result = linprog(
                cost,
                A_ub=below,
                b_ub=np.ones(len(below)),
                A_eq=equal,
                b_eq=sides,
                bounds=[*bounds, rate],
                method="highs",
            )
            assert result.x is not None, f"zero throughput is always feasible: {result.message}"
            return np.asarray(result.x, dtype=np.float64)

        rate = float(best(np.append(np.zeros(2 * width), -1.0), (0.0, None))[-1])
        if rate <= 0:
            raise ModelError("demands", "a workload", "one that runs wherever its data lies")
        # Rounding must not make the rate infeasible that was just found.
        rate *= 1.0 - _ROUNDING
        drives = np.append(np.repeat([1.0, 0.0], width), 0.0)
        most, least = best(-drives, (rate, rate)), best(drives, (rate, rate))
        shares = (share, float(drives @ least) / rate)
        return self._split(most, rate, unit, (inside @ most, host @ most), shares)

    def _pairs(self) -> list[tuple[int, int]]:
        return [(i, k) for i in range(len(self.demands)) for k in range(len(self.kinds))]

    def _runs(self, i: int, k: int) -> bool:
        return self.kinds[k][0].name in self.demands[i].drive_s_per_byte

    def _host_runs(self, i: int) -> bool:
        return self.cpu.name in self.demands[i].core_s_per_byte

    def _limits(
        self, unit: float, sd_tx: float, sd_comp: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return rows of busy shares, each at most 1: drives inside, their ports, the host."""
        pairs, width = self._pairs(), len(self.demands) * len(self.kinds)
        reads_Bps = sum(kind.read_Bps * number for kind, number in self.kinds)
        transfer = sd_tx * unit / min(reads_Bps, self.cpu.intake_Bps)
        inside, port = np.zeros((2, len(self.kinds), 2 * width + 1))
        loads, computes = np.zeros((2, 2 * width + 1))
        for column, (i, k) in enumerate(pairs):
            kind, number = self.kinds[k]
            demand = self.demands[i]
            inside[k, column] = unit * demand.drive_s_per_byte.get(kind.name, 0.0) / number
            port[k, width + column] = unit / (kind.read_Bps * number)
            loads[width + column] = transfer
            core_s = demand.core_s_per_byte.get(self.cpu.name, 0.0)
            computes[width + column] = sd_comp * unit * core_s / self.cpu.cores
        serial = self.overlap is Overlap.SERIAL
        return inside, port, np.vstack([loads + computes] if serial else [loads, computes])

    def _media(self, unit: float) -> FloatArray:
        """Return rows of busy shares of the drives' media, which both readers share."""
        pairs, width = self._pairs(), len(self.demands) * len(self.kinds)
        rows = np.zeros((len(self.kinds), 2 * width + 1))
        for column, (_, k) in enumerate(pairs):
            kind, number = self.kinds[k]
            each = unit / (media_Bps(kind, self.demands) * number)
            rows[k, [column, width + column]] = each
        return rows

    def _balance(self, share: FloatArray, count: int, width: int) -> tuple[FloatArray, FloatArray]:
        """Return rows that say where each workload's bytes lie, per unit of throughput."""
        rows = []
        for i in range(len(self.demands)):
            each = np.zeros((count, 2 * width + 1))
            for k, lies in enumerate(self._lies()):
                column = i * count + k
                each[k, [column, width + column]] = 1.0
                each[k, -1] = -share[i] * lies
            free = self.placement is Placement.FREE
            rows.append(each.sum(axis=0, keepdims=True) if free else each)
        equal = np.vstack(rows)
        return equal, np.zeros(len(equal))

    def _lies(self) -> list[float]:
        """Return the share of all data that lies on each kind."""
        by_capacity = self.placement is Placement.CAPACITY
        weights = [
            (kind.capacity_bytes if by_capacity else 1.0) * number for kind, number in self.kinds
        ]
        return [weight / sum(weights) for weight in weights]

    def _split(
        self,
        values: FloatArray,
        rate: float,
        unit: float,
        busy: tuple[FloatArray, FloatArray],
        shares: tuple[FloatArray, float],
    ) -> Split:
        share, drives_least = shares
        names = [demand.name for demand in self.demands]
        by_kind: dict[tuple[str, str], float] = {}
        by_drives: dict[str, float] = dict.fromkeys(names, 0.0)
        for column, (i, k) in enumerate(self._pairs()):
            part = float(values[column]) / (rate * float(share[i]))
            by_drives[names[i]] += part
            if self._runs(i, k):
                by_kind[names[i], self.kinds[k][0].name] = part
        computing = {k for i, k in self._pairs() if self._runs(i, k)}
        drive_busy = {self.kinds[k][0].name: float(busy[0][k]) for k in sorted(computing)}
        host_busy = float(busy[1].max())
        full = 1.0 - 1e-6
        return Split(
            throughput_Bps=rate * unit,
            by_host={name: 1.0 - part for name, part in by_drives.items()},
            by_drives=by_drives,
            by_kind=by_kind,
            host_busy=host_busy,
            drive_busy=drive_busy,
            together=host_busy >= full and all(part >= full for part in drive_busy.values()),
            drives_least=drives_least,
        )


def demands_of(shares: Mapping[str, float], times: Mapping[str, Demand]) -> tuple[Demand, ...]:
    """Return the workloads named in `shares`, their rates as those shares are to each other."""
    found = []
    for name, share in shares.items():
        if name not in times:
            raise ModelError("workload", name, f"one of {', '.join(sorted(times))}")
        positive(f"share of {name}", share)
        demand = times[name]
        found.append(
            Demand(
                name, share, demand.core_s_per_byte, demand.drive_s_per_byte, demand.stored_bytes
            )
        )
    return tuple(found)
