"""The distribution of a break-even point, and the inputs that it depends on.

Inputs vary independently, each by a distribution of its own. `monte_carlo` draws them and solves
every draw with the general solver, so the result is the distribution of the very number that
`break_even` gives. `sobol` says what share of its variance each input accounts for, by itself and
with all its interactions. Equal seeds give equal answers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from csdplan.errors import ModelError
from csdplan.model.inputs import FloatArray, not_negative, positive
from csdplan.solve.bep import break_even

#: Arguments of `break_even` that may vary; those of `WHOLE` are drawn as whole numbers.
VARIABLE = (
    "ssd_tx_s",
    "ssd_comp_s",
    "csd_tx_s",
    "csd_comp_s",
    "sd_tx",
    "sd_comp",
    "host_part_s",
    "k_limit",
    "host_cores",
)
#: Relative spreads of times without quartiles, by provenance: a number printed to two digits, one
#: solved from such numbers, and one that somebody chose, which is the least certain. A time that
#: was measured differs so much from one session to another, beyond what its quartiles say. All of
#: them are assumptions.
SPREADS = {"given": 0.02, "inferred": 0.05, "assumed": 0.1, "measured": 0.02}
#: Fewer runs than this tell no spread.
_RUNS = 3
#: Quartiles of few runs tell the spread badly: it is widened by 1 + this over their number, with
#: which 90 % of medians lie in their range.
_FEW = 4.0
WHOLE = ("k_limit", "host_cores")
#: Half the distance between a normal distribution's quartiles, in standard deviations.
_QUARTILE = 0.674489750196082
#: A median of n normal values spreads by this times the values' own deviation over sqrt(n).
_MEDIAN = 1.2533141373155003


@dataclass(frozen=True)
class Lognormal:
    """A positive quantity whose logarithm is normal.

    Attributes
    ----------
    name : str
        One of `VARIABLE`.
    median : float
        Its median, in its own unit; greater than 0.
    sigma : float
        Standard deviation of its logarithm [1]; about its relative spread. At least 0.
    """

    name: str
    median: float
    sigma: float

    def __post_init__(self) -> None:
        _known(self.name)
        positive(self.name, self.median)
        not_negative(f"spread of {self.name}", self.sigma)

    def at(self, uniform: FloatArray) -> FloatArray:
        """Return quantiles."""
        from scipy.special import ndtri  # noqa: PLC0415 - slow to import

        return np.asarray(self.median * np.exp(self.sigma * ndtri(uniform)))


@dataclass(frozen=True)
class Uniform:
    """A quantity that lies anywhere between two bounds.

    Attributes
    ----------
    name : str
        One of `VARIABLE`.
    low, high : float
        Bounds, in its own unit; whole numbers between and including them for `WHOLE` ones.
    """

    name: str
    low: float
    high: float

    def __post_init__(self) -> None:
        _known(self.name)
        not_negative(self.name, [self.low, self.high])
        if self.low > self.high:
            raise ModelError(self.name, f"{self.low}:{self.high}", "a lower bound, then a higher")
        if self.name in WHOLE and not (self.low == int(self.low) and self.high == int(self.high)):
            raise ModelError(self.name, f"{self.low}:{self.high}", "whole numbers")

    def at(self, uniform: FloatArray) -> FloatArray:
        """Return quantiles."""
        if self.name in WHOLE:
            steps = np.floor(uniform * (self.high - self.low + 1))
            return np.asarray(np.minimum(self.low + steps, self.high))
        return np.asarray(self.low + uniform * (self.high - self.low))


Input = Lognormal | Uniform


@dataclass(frozen=True)
class Distribution:
    """Break-even points of many draws.

    Attributes
    ----------
    devices : ndarray of int64
        The break-even points of the draws that have one, ascending.
    samples : int
        Draws in all.
    never : int
        Draws that never break even, or only beyond what can be counted.
    """

    devices: NDArray[np.int64]
    samples: int
    never: int

    def quantile(self, share: float) -> int | None:
        """Return the smallest number that at least `share` of all draws do not exceed.

        None if draws that never break even lie there.
        """
        position = max(1, int(np.ceil(share * self.samples - 1e-9)))
        return int(self.devices[position - 1]) if position <= len(self.devices) else None

    def probability(self, devices: int) -> float:
        """Return the share of draws that break even with `devices` drives or fewer."""
        return float(np.searchsorted(self.devices, devices, side="right")) / self.samples

    def counts(self) -> dict[int, int]:
        """Return how many draws gave each number."""
        values, counts = np.unique(self.devices, return_counts=True)
        return {int(value): int(count) for value, count in zip(values, counts, strict=True)}


@dataclass(frozen=True)
class Index:
    """Shares of the variance that an input causes, with the half-widths of 95 % intervals.

    Attributes
    ----------
    name : str
        The input.
    first, first_within : float
        By itself [1].
    total, total_within : float
        With all its interactions [1].
    """

    name: str
    first: float
    first_within: float
    total: float
    total_within: float


def sigma_of_quartiles(p25: float, p75: float, runs: int | None = None) -> float:
    """Return the deviation of the logarithm of a quantity with these quartiles.

    Parameters
    ----------
    p25, p75 : float
        Quartiles, in the quantity's unit; greater than 0, in this order.
    runs : int, optional
        If given, the deviation of the median of so many runs, rather than of one run.

    Returns
    -------
    float
        ln(p75 / p25) / 1.349 [1], times 1.2533 / sqrt(runs).
    """
    positive("p25", p25)
    if p75 < p25:
        raise ModelError("p75", p75, f"at least p25, {p25}")
    sigma = float(np.log(p75 / p25)) / (2 * _QUARTILE)
    return sigma if runs is None else sigma * min(1.0, _MEDIAN / float(np.sqrt(runs)))


def sigma_measured(p25: float, p75: float, runs: int, session: float) -> float:
    """Return the deviation of the logarithm of a measured median from the true one.

    Parameters
    ----------
    p25, p75 : float
        Quartiles of the runs, in the quantity's unit.
    runs : int
        Number of runs.
    session : float
        Deviation from one session to another [1].

    Returns
    -------
    float
        That of a median of so many runs, widened for what their quartiles do not tell, and that of
        sessions, together [1].
    """
    if runs < _RUNS:
        return SPREADS["assumed"]
    return float(np.hypot(sigma_of_quartiles(p25, p75, runs) * (1 + _FEW / runs), session))


def monte_carlo(
    inputs: Sequence[Input],
    fixed: Mapping[str, float | None],
    *,
    samples: int = 100_000,
    seed: int = 1,
) -> Distribution:
    """Draw the inputs and find the break-even point of every draw.

    Parameters
    ----------
    inputs : sequence of Input
        Quantities that vary; each name once.
    fixed : mapping
        All other arguments of `break_even`.
    samples : int
        Draws.
    seed : int
        Seed of the draws.
    """
    _complete(inputs, fixed)
    if samples < 1:
        raise ModelError("samples", samples, "at least 1")
    rng = np.random.default_rng(seed)
    # One stream for each input: the draws of one do not depend on which others vary.
    streams = dict(zip(VARIABLE, rng.spawn(len(VARIABLE)), strict=True))
    uniform = np.array([_open(streams[input_.name].random(samples)) for input_ in inputs])
    devices = _solve(inputs, fixed, uniform)
    found = np.sort(devices[devices > 0])
    return Distribution(found, samples, samples - len(found))


def sobol(
    inputs: Sequence[Input],
    fixed: Mapping[str, float | None],
    *,
    base: int = 1024,
    seed: int = 1,
) -> tuple[Index, ...]:
    """Return the Sobol indices of the break-even point, largest total first.

    Parameters
    ----------
    inputs, fixed, seed
        As in `monte_carlo`; at least two inputs.
    base : int
        Points of the Sobol sequence, a power of two; `base` times two more than the inputs are
        solved.

    Returns
    -------
    tuple of Index
        All zero if the break-even point never changes.

    Notes
    -----
    The analysis is of 1 / m, with 0 where there is no break-even point: it is finite where m is
    not. Indices are Saltelli's and Jansen's, by SALib.

    References
    ----------
    Saltelli et al., Variance based sensitivity analysis of model output,
    https://doi.org/10.1016/j.cpc.2009.09.018.
    """
    _complete(inputs, fixed)
    if len(inputs) < 2:  # noqa: PLR2004 - one input accounts for everything
        raise ModelError("inputs", len(inputs), "at least two that vary")
    if base < 2 or base & (base - 1):  # noqa: PLR2004
        raise ModelError("base", base, "a power of two, at least 2")
    from SALib.analyze import sobol as analysis  # noqa: PLC0415 - slow to import
    from SALib.sample import sobol as sampling  # noqa: PLC0415

    names = [input_.name for input_ in inputs]
    problem = {"num_vars": len(names), "names": names, "bounds": [[0.0, 1.0]] * len(names)}
    uniform = sampling.sample(problem, base, calc_second_order=False, seed=seed)
    devices = _solve(inputs, fixed, _open(np.asarray(uniform).T))
    output = np.divide(1.0, devices, out=np.zeros(devices.shape), where=devices > 0)
    if np.ptp(output) == 0:
        return tuple(Index(name, 0.0, 0.0, 0.0, 0.0) for name in names)
    found = analysis.analyze(problem, output, calc_second_order=False, seed=seed)
    keys = ("S1", "S1_conf", "ST", "ST_conf")
    indices = [Index(name, *(float(found[key][i]) for key in keys)) for i, name in enumerate(names)]
    return tuple(sorted(indices, key=lambda index: -index.total))


def _solve(
    inputs: Sequence[Input], fixed: Mapping[str, float | None], uniform: FloatArray
) -> NDArray[np.int64]:
    drawn = {input_.name: input_.at(row) for input_, row in zip(inputs, uniform, strict=True)}
    arguments = {**fixed, **drawn}
    return break_even(**arguments).devices  # type: ignore[arg-type]


def _open(uniform: FloatArray) -> FloatArray:
    """Keep 0 and 1 out: a normal distribution has no such quantiles."""
    return np.clip(uniform, 1e-12, 1 - 1e-12)


def _complete(inputs: Sequence[Input], fixed: Mapping[str, float | None]) -> None:
    names = [input_.name for input_ in inputs]
    if len(set(names)) < len(names) or set(names) & set(fixed):
        raise ModelError("inputs", ", ".join([*names, *fixed]), "every name once")
    for name in (*fixed, *names):
        _known(name)
    missing = {*VARIABLE[:4], "k_limit"} - {*names, *fixed}
    if missing:
        raise ModelError("inputs", ", ".join(sorted(missing)), "a value or a distribution")


def _known(name: str) -> None:
    if name not in VARIABLE:
        raise ModelError("name", name, f"one of {', '.join(VARIABLE)}")
