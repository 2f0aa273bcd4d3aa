"""The distribution of a break-even point: uncertainty."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from csdplan.commands.choose import choose, profile_of
from csdplan.commands.tables import Tables, draw, plot_files
from csdplan.options import (
    BytesOption,
    DeviceOption,
    HostCoresOption,
    KernelOption,
    KLimitOption,
    Option,
    PlotOption,
    ProfileOption,
    SsdOption,
    documented,
)
from csdplan.plot import figures
from csdplan.result import confidence
from csdplan.result.break_even import core_warnings
from csdplan.solve.uncertainty import Uniform
from csdplan.texts import bounds, spreads


@documented
def uncertainty(
    profile: ProfileOption,
    kernel: KernelOption,
    *,
    host_cores: HostCoresOption = 1,
    k_limit: KLimitOption = None,
    spread: Annotated[
        Mapping[str, float] | None,
        Option(
            "Relative spread of times without quartiles, such as inferred=0.05. Repeat it.",
            metavar="PROV=SHARE",
            type=list[str],
            parse=spreads,
        ),
    ] = None,
    vary: Annotated[
        Mapping[str, tuple[float, float]] | None,
        Option(
            "Vary another quantity between bounds, such as k_limit=6:10. Repeat it.",
            metavar="NAME=LOW:HIGH",
            type=list[str],
            parse=bounds,
        ),
    ] = None,
    of: Annotated[
        str,
        Option(
            "Variation of a measured time: that of the median, or of a single run.",
            doc="Variation of a measured time: that of the ``median``, or of a single ``run``.",
        ),
    ] = "median",
    samples: Annotated[int, Option("Draws.", min=1, max=10_000_000)] = 100_000,
    base: Annotated[
        int, Option("Points for the indices: a power of two.", min=2, max=1 << 20)
    ] = 1024,
    seed: Annotated[int, Option("Seed of the draws.", min=0)] = 1,
    device: DeviceOption = None,
    ssd: SsdOption = None,
    bytes: BytesOption = None,
    plot: PlotOption = (),
) -> Tables:
    """Find the distribution of a break-even point, and the inputs that it depends on.

    Returns the sheets ``quantiles``, ``indices`` (Sobol indices) and ``shares``.
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
