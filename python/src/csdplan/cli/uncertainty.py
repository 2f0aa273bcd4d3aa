"""``csdplan uncertainty``: how sure a break-even point is."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from csdplan.cli.common import CsvOption, JsonOption, PlotOption, reported, show
from csdplan.cli.picked import (
    BytesOption,
    DeviceOption,
    KernelOption,
    ProfileOption,
    SsdOption,
    picked,
)
from csdplan.errors import ModelError
from csdplan.plot.charts import Bars, bars
from csdplan.plot.figure import check_path
from csdplan.profile import load
from csdplan.result.confidence import UncertaintyResult, uncertain, uncertainty
from csdplan.solve.uncertainty import Uniform

#: A bar chart of more numbers than this cannot be read; neighbors are then put together.
_BARS_MAX = 12


def uncertainty_command(
    profile: ProfileOption,
    kernel: KernelOption,
    host_cores: Annotated[int, typer.Option(min=1, help="Host cores at work.")] = 1,
    k_limit: Annotated[
        int | None, typer.Option(min=1, help="SSDs that use up the host's ingest bandwidth.")
    ] = None,
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
        str, typer.Option(help="What varies of a measured time: a single run, or the median.")
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
    """Draw a profile's times from their spreads, and see where the break-even point falls.

    Also says which of them it hangs on (Sobol indices).
    """
    with reported():
        for path in plot or []:
            check_path(path)
        held = load(profile)
        question = uncertain(
            held,
            picked(profile, kernel, device=device, ssd=ssd, bytes=bytes),
            host_cores=host_cores,
            k_limit=k_limit,
            spreads=dict(_spread(text) for text in spread or []),
            ranges=[_range(text) for text in vary or []],
            of=_of(of),
        )
        result = uncertainty(question, samples=samples, base=base, seed=seed)
        for path in plot or []:
            bars(_drawn(result), path)
    show("uncertainty", result.sheets(), json=json, csv=csv, warnings=result.warnings)


def _of(text: str) -> Literal["run", "median"]:
    if text == "run":
        return "run"
    if text == "median":
        return "median"
    raise ModelError("of", text, "run or median")


def _spread(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    return name, _number("spread", text, value)


def _range(text: str) -> Uniform:
    name, _, bounds = text.partition("=")
    low, _, high = bounds.partition(":")
    return Uniform(name, _number("vary", text, low), _number("vary", text, high))


def _number(option: str, text: str, value: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        example = "inferred=0.05" if option == "spread" else "k_limit=6:10"
        raise ModelError(option, text, f"such as {example}") from error


def _drawn(result: UncertaintyResult) -> list[Bars]:
    counts = result.distribution.counts()
    least, most = min(counts, default=0), max(counts, default=0)
    width = max(1, -(-(most - least + 1) // _BARS_MAX))
    labels, shares = [], []
    for first in range(least, most + 1, width) if counts else []:
        inside = sum(count for devices, count in counts.items() if first <= devices < first + width)
        labels.append(str(first) if width == 1 else f"{first}-{first + width - 1}")
        shares.append(100 * inside / result.distribution.samples)
    panels = [Bars(result.question.title, "draws [%]", tuple(labels), tuple(shares))]
    if result.indices:
        names = tuple(index.name for index in result.indices)
        totals = tuple(index.total for index in result.indices)
        panels.append(Bars("What it hangs on", "total Sobol index", names, totals))
    return panels
