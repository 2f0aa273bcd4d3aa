"""The distribution of a break-even point: uncertainty."""

from __future__ import annotations

from collections.abc import Mapping

from csdplan.commands.choose import ProfileLike, choose, profile_of
from csdplan.commands.tables import Paths, Tables, draw, plot_files
from csdplan.plot import figures
from csdplan.result import confidence
from csdplan.result.break_even import core_warnings
from csdplan.solve.uncertainty import Uniform


def uncertainty(
    profile: ProfileLike,
    kernel: str,
    *,
    host_cores: int = 1,
    k_limit: float | None = None,
    spread: Mapping[str, float] | None = None,
    vary: Mapping[str, tuple[float, float]] | None = None,
    of: str = "run",
    samples: int = 100_000,
    base: int = 1024,
    seed: int = 1,
    device: str | None = None,
    ssd: str | None = None,
    bytes: int | None = None,
    plot: Paths = (),
) -> Tables:
    """Find the distribution of a break-even point, and the inputs that it depends on.

    Returns the sheets ``quantiles``, ``indices`` (Sobol indices) and ``shares``.

    Parameters
    ----------
    profile, kernel, device, ssd, bytes, plot
        As in `bep`.
    host_cores : int
        Host cores at work.
    k_limit : float, optional
        SSDs that use up the host's ingest bandwidth; by default the profile's.
    spread : mapping of str to float, optional
        Relative spread of times without quartiles, by provenance [1].
    vary : mapping of str to a pair of float, optional
        Bounds of quantities that vary evenly, such as ``{"k_limit": (6, 10)}``.
    of : str
        ``run`` if a measured time varies as single runs do, ``median`` as the median of all does.
    samples : int
        Draws of the Monte Carlo analysis.
    base : int
        Points for the indices: a power of two.
    seed : int
        Seed of the draws.
    """
    files = plot_files(plot)
    workload = choose(profile, kernel, device=device, ssd=ssd, bytes=bytes)
    question = confidence.uncertain(
        profile_of(profile)[1],
        workload,
        host_cores=host_cores,
        k_limit=k_limit,
        spreads=spread,
        ranges=[Uniform(name, low, high) for name, (low, high) in (vary or {}).items()],
        of=of,
    )
    result = confidence.uncertainty(question, samples=samples, base=base, seed=seed)
    draw(figures.uncertain(result), files)
    names = ("quantiles", "indices", "shares")
    warnings = (*core_warnings(workload, [host_cores]), *result.warnings)
    return Tables(dict(zip(names, result.sheets(), strict=True)), warnings)
