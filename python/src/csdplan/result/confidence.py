"""The distribution of a workload's break-even point, from the spreads in its profile.

A measured time has quartiles, and they give its spread. A time that was printed, inferred or
assumed has none: it gets the relative spread that the caller holds such numbers to have.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from csdplan.errors import ModelError, ProfileIncomplete
from csdplan.model.inputs import not_negative
from csdplan.profile.schema import Point, Profile, Timing
from csdplan.profile.workload import Workload
from csdplan.result.sheet import Sheet, Value, sheet_of
from csdplan.solve.uncertainty import (
    SPREADS,
    Distribution,
    Index,
    Input,
    Lognormal,
    Uniform,
    monte_carlo,
    sigma_measured,
    sigma_of_quartiles,
    sobol,
)

#: Quantiles that are shown.
QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


@dataclass(frozen=True)
class Uncertain:
    """Quantities that vary, and those that are fixed.

    Attributes
    ----------
    title : str
        Kernel, device and host.
    inputs : tuple
        The distributions.
    fixed : dict
        All other arguments of `break_even`.
    sources : dict
        Source of each input's spread, for people.
    """

    title: str
    inputs: tuple[Input, ...]
    fixed: dict[str, float | None]
    sources: dict[str, str] = field(default_factory=dict)


def uncertain(
    profile: Profile,
    workload: Workload,
    *,
    host_cores: int = 1,
    k_limit: float | None = None,
    spreads: Mapping[str, float] | None = None,
    ranges: Sequence[Uniform] = (),
    of: str = "median",
) -> Uncertain:
    """Return the inputs of a workload with their spreads.

    Parameters
    ----------
    profile : Profile
        The profile that `workload` was resolved from.
    workload : Workload
        The workload.
    host_cores : int
        n of Host(n).
    k_limit : float, optional
        Overrides the profile's own.
    spreads : mapping, optional
        Relative spread by provenance, over `SPREADS`.
    ranges : sequence of Uniform
        Quantities that vary between bounds, in place of a profile's value.
    of : {"run", "median"}
        ``median`` if a measured time varies as the median of all runs does, from one session to
        another, ``run`` as single runs do.
    """
    if of not in {"run", "median"}:
        raise ModelError("of", of, "run or median")
    effective = k_limit if k_limit is not None else workload.k_limit
    ranged = {input_.name for input_ in ranges}
    if effective is None and "k_limit" not in ranged:
        raise ProfileIncomplete(f"{workload.profile}: k_limit is unknown; give --k-limit")
    used = {**SPREADS, **(spreads or {})}
    if unknown := set(used) - set(SPREADS):
        raise ModelError("spread", ", ".join(sorted(unknown)), f"one of {', '.join(SPREADS)}")
    for name, value in used.items():
        not_negative(f"spread of {name}", value)
    host, drive = _host_point(profile, workload, host_cores), _drive_point(profile, workload)
    timings = {
        "ssd_tx_s": (host, host.load_s),
        "ssd_comp_s": (host, host.comp_s),
        "csd_tx_s": (drive, drive.load_s),
        "csd_comp_s": (drive, drive.comp_s),
    }
    inputs: list[Input] = list(ranges)
    sources = {input_.name: f"{input_.low:g} to {input_.high:g}, as given" for input_ in ranges}
    for name, (point, timing) in timings.items():
        if name not in ranged:
            sigma, sources[name] = _sigma(point, timing, used, of)
            inputs.append(Lognormal(name, timing.median, sigma))
    divisor = workload.host(host_cores).divisor
    fixed: dict[str, float | None] = {"k_limit": effective, "host_cores": divisor}
    kept = {name: value for name, value in fixed.items() if name not in ranged}
    title = f"{workload.kernel} on {workload.device} against Host({host_cores})"
    return Uncertain(title, tuple(inputs), kept, sources)


def _sigma(
    point: Point, timing: Timing, spreads: Mapping[str, float], of: str
) -> tuple[float, str]:
    if timing.p25 is not None and timing.p75 is not None and timing.n is not None:
        source = f"quartiles of {timing.n} runs"
        if of == "run":
            return sigma_of_quartiles(timing.p25, timing.p75), source
        return sigma_measured(timing.p25, timing.p75, timing.n, spreads["measured"]), source
    provenance = point.prov_of(timing)
    return spreads[provenance], f"{provenance}: taken as {spreads[provenance]:.1%}"


def _host_point(profile: Profile, workload: Workload, cores: int) -> Point:
    points = [
        point
        for point in profile.points(workload.kernel, "host")
        if (point.device, point.bytes) == (workload.ssd, workload.bytes)
    ]
    own = [point for point in points if point.units == cores]
    return (own or [point for point in points if point.units == 1])[0]


def _drive_point(profile: Profile, workload: Workload) -> Point:
    return next(
        point
        for point in profile.points(workload.kernel, "drive")
        if (point.device, point.bytes, point.units)
        == (workload.device, workload.bytes, workload.drive_units)
    )


@dataclass(frozen=True)
class UncertaintyResult:
    """A distribution, indices, and the tables that show them."""

    question: Uncertain
    distribution: Distribution
    indices: tuple[Index, ...]

    def sheets(self) -> tuple[Sheet, Sheet, Sheet]:
        """Return quantiles, the indices of the inputs, and the share of each number."""
        return _quantiles(self), _indices(self), _counts(self)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Statements that the reader must know."""
        found = []
        still = [input_.name for input_ in self.question.inputs if _is_still(input_)]
        if still:
            found.append(
                f"{', '.join(still)} held fixed: no spread is known; --spread assumed=0.05 and the "
                "like give them one"
            )
        if self.distribution.never:
            share = self.distribution.never / self.distribution.samples
            found.append(f"{share:.1%} of the draws never break even")
        return tuple(found)


def uncertainty(
    question: Uncertain, *, samples: int = 100_000, base: int = 1024, seed: int = 1
) -> UncertaintyResult:
    """Draw, solve and analyze. The parameters are those of `monte_carlo` and `sobol`."""
    varying = [input_ for input_ in question.inputs if not _is_still(input_)]
    distribution = monte_carlo(question.inputs, question.fixed, samples=samples, seed=seed)
    indices: tuple[Index, ...] = ()
    if len(varying) > 1:
        medians = {
            input_.name: input_.median
            for input_ in question.inputs
            if isinstance(input_, Lognormal) and _is_still(input_)
        }
        lows = {
            input_.name: input_.low
            for input_ in question.inputs
            if isinstance(input_, Uniform) and _is_still(input_)
        }
        fixed = {**question.fixed, **medians, **lows}
        indices = sobol(varying, fixed, base=base, seed=seed)
    elif varying:
        indices = (Index(varying[0].name, 1.0, 0.0, 1.0, 0.0),)
    return UncertaintyResult(question, distribution, indices)


def _is_still(input_: Input) -> bool:
    return input_.sigma == 0 if isinstance(input_, Lognormal) else input_.low == input_.high


def _quantiles(result: UncertaintyResult) -> Sheet:
    found = result.distribution
    rows: list[tuple[Value, ...]] = [(f"{share:.0%}", found.quantile(share)) for share in QUANTILES]
    never = found.never / found.samples
    note = f"{found.samples} draws; in that share of them so many drives are enough"
    note += f"; {never:.1%} of them never break even" if never else ""
    return sheet_of(
        f"Break-even point of {result.question.title}", ("of_draws", "devices"), rows, note
    )


def _indices(result: UncertaintyResult) -> Sheet:
    rows = [
        (
            index.name,
            index.first,
            index.first_within,
            index.total,
            index.total_within,
            result.question.sources[index.name],
        )
        for index in result.indices
    ]
    columns = ("input", "first", "first_within", "total", "total_within", "spread_from")
    note = (
        "Sobol indices of 1 / break-even point: share of its variance that the input accounts "
        "for by itself (first) and with its interactions (total), within 95 %"
    )
    return sheet_of("What it hangs on", columns, rows, note)


def _counts(result: UncertaintyResult) -> Sheet:
    found = result.distribution
    rows = [
        (devices, count / found.samples, found.probability(devices))
        for devices, count in found.counts().items()
    ]
    return sheet_of("Shares", ("devices", "share", "share_up_to"), rows)
