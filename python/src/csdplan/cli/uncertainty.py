"""``csdplan uncertainty``: the distribution of a break-even point."""

from __future__ import annotations

from typing import Annotated

import typer

from csdplan import commands
from csdplan.cli.common import reported, show
from csdplan.cli.options import (
    BytesOption,
    CsvOption,
    DeviceOption,
    HostCoresOption,
    JsonOption,
    KernelOption,
    KLimitOption,
    PlotOption,
    ProfileOption,
    SsdOption,
)
from csdplan.errors import ModelError


def uncertainty_command(
    profile: ProfileOption,
    kernel: KernelOption,
    host_cores: HostCoresOption = 1,
    k_limit: KLimitOption = None,
    spread: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PROV=SHARE",
            help="Relative spread of times without quartiles, such as inferred=0.05. Repeat it.",
        ),
    ] = None,
    vary: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=LOW:HIGH",
            help="Vary another quantity between bounds, such as k_limit=6:10. Repeat it.",
        ),
    ] = None,
    of: Annotated[
        str,
        typer.Option(help="Variation of a measured time: that of a single run, or of the median."),
    ] = "run",
    samples: Annotated[int, typer.Option(min=1, max=10_000_000, help="Draws.")] = 100_000,
    base: Annotated[
        int, typer.Option(min=2, max=1 << 20, help="Points for the indices: a power of two.")
    ] = 1024,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the draws.")] = 1,
    device: DeviceOption = None,
    ssd: SsdOption = None,
    bytes: BytesOption = None,
    plot: PlotOption = None,
    json: JsonOption = False,
    csv: CsvOption = False,
) -> None:
    """Draw a profile's times from their spreads, and find the distribution of the break-even point.

    Sobol indices show the times that it depends on.
    """
    with reported():
        found = commands.uncertainty(
            profile,
            kernel,
            host_cores=host_cores,
            k_limit=k_limit,
            spread=dict(_spread(text) for text in spread or []),
            vary=dict(_bounds(text) for text in vary or []),
            of=of,
            samples=samples,
            base=base,
            seed=seed,
            device=device,
            ssd=ssd,
            bytes=bytes,
            plot=plot or (),
        )
    show("uncertainty", found, json=json, csv=csv)


def _spread(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    return name, _number("spread", text, value)


def _bounds(text: str) -> tuple[str, tuple[float, float]]:
    name, _, bounds = text.partition("=")
    low, _, high = bounds.partition(":")
    return name, (_number("vary", text, low), _number("vary", text, high))


def _number(option: str, text: str, value: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        example = "inferred=0.05" if option == "spread" else "k_limit=6:10"
        raise ModelError(option, text, f"such as {example}") from error
