"""Lines, bars and maps: the figures of sweeps, surfaces and costs.

Each takes plain records of what to show. A line is broken where a value is None: a configuration
without a break-even point has none to draw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from csdplan.plot import interactive
from csdplan.plot.figure import REFERENCE, STYLES, frame, ring, with_outline, write

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: A map that spans more than this ratio is colored by the logarithm.
_LOGARITHMIC_FROM = 20.0
#: Markers of the last line, and how much larger those of each line before it are [points].
_MARKER, _MARKER_STEP = 5.0, 2.4


@dataclass(frozen=True)
class Line:
    """One line: a label, and a value (or None) for each place across.

    A `reference` is what the others are compared to: black, solid and without markers.
    """

    label: str
    values: tuple[float | None, ...]
    reference: bool = False


@dataclass(frozen=True)
class Lines:
    """One panel of lines.

    Attributes
    ----------
    title, across, up : str
        Title and the axes' labels, with units.
    places : tuple of float
        Places across, ascending.
    lines : tuple of Line
        At least one.
    steps : bool
        Whether values hold from one place to the next, as whole numbers of drives do.
    marks : tuple
        Points to ring: across, up, label.
    """

    title: str
    across: str
    up: str
    places: tuple[float, ...]
    lines: tuple[Line, ...]
    steps: bool = False
    marks: tuple[tuple[float, float, str], ...] = ()


@dataclass(frozen=True)
class Bars:
    """One panel of bars: a label and a value for each; None is written as unknown."""

    title: str
    up: str
    labels: tuple[str, ...]
    values: tuple[float | None, ...]


@dataclass(frozen=True)
class Surface:
    """A map of break-even points over two quantities.

    Attributes
    ----------
    title, across, up : str
        Title and the axes' labels.
    x, y : tuple of float
        Places across and up, ascending.
    z : tuple of tuple of float
        Values, a row for each y; NaN where there is none.
    iso : tuple
        Lines to draw: a label, and places across and up (None where a line has no point).
    marks : tuple
        Points to mark: across, up, label.
    """

    title: str
    across: str
    up: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    z: tuple[tuple[float, ...], ...]
    iso: tuple[tuple[str, tuple[float, ...], tuple[float | None, ...]], ...] = ()
    marks: tuple[tuple[float, float, str], ...] = ()


def lines(panels: Sequence[Lines], path: Path) -> None:
    """Draw panels of lines to `path`; faults as `figure.write`."""

    def draw(axes: list[Axes]) -> None:
        for axis, panel in zip(axes, panels, strict=True):
            _lines(axis, panel)

    write(path, [interactive.lines(panel) for panel in panels], draw)


def bars(panels: Sequence[Bars], path: Path) -> None:
    """Draw panels of bars to `path`; faults as `figure.write`."""

    def draw(axes: list[Axes]) -> None:
        for axis, panel in zip(axes, panels, strict=True):
            _bars(axis, panel)

    write(path, [interactive.bars(panel) for panel in panels], draw)


def surface(panels: Sequence[Surface], path: Path) -> None:
    """Draw maps to `path`; faults as `figure.write`."""

    def draw(axes: list[Axes]) -> None:
        for axis, panel in zip(axes, panels, strict=True):
            _surface(axis, panel)

    write(path, [interactive.surface(panel) for panel in panels], draw)


def _lines(axis: Axes, panel: Lines) -> None:
    frame(axis, panel.title, panel.across, panel.up)
    for index, line in enumerate(panel.lines):
        color, dash, marker = STYLES[index % len(STYLES)]
        look: dict[str, Any] = {"color": color, "linestyle": dash, "marker": marker}
        if line.reference:
            look = {"color": REFERENCE, "linestyle": "solid", "marker": ""}
        axis.plot(
            panel.places,
            [float("nan") if value is None else value for value in line.values],
            **look,
            # Hollow, and the earlier the larger: of lines that coincide every marker is seen.
            markersize=_MARKER + _MARKER_STEP * (len(panel.lines) - 1 - index),
            markerfacecolor="none",
            markevery=max(1, len(panel.places) // 12),
            drawstyle="steps-post" if panel.steps else "default",
            label=line.label,
            clip_on=False,
        )
    for x, y, text in panel.marks:
        ring(axis, (x, y), "o", REFERENCE)
        with_outline(axis, text, (x, y), (-8, 8), REFERENCE)
    axis.set_ylim(bottom=0)
    known = [value for line in panel.lines for value in line.values if value is not None]
    if all(value == int(value) for value in known):
        axis.locator_params(axis="y", integer=True)
    axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False)


def _bars(axis: Axes, panel: Bars) -> None:
    frame(axis, panel.title, "", panel.up)
    known = [0.0 if value is None else value for value in panel.values]
    colors = [STYLES[index % len(STYLES)][0] for index in range(len(known))]
    drawn = axis.bar(list(panel.labels), known, color=colors, width=0.6)
    texts = ["unknown" if value is None else f"{value:,.4g}" for value in panel.values]
    axis.bar_label(drawn, labels=texts, padding=2)
    axis.margins(y=0.12)


def _surface(axis: Axes, panel: Surface) -> None:
    from matplotlib.colors import LogNorm, Normalize  # noqa: PLC0415 - as in figure.write()

    frame(axis, panel.title, panel.across, panel.up)
    axis.grid(visible=False)
    flat = [value for row in panel.z for value in row if value == value]  # noqa: PLR0124 - NaN
    low, high = (min(flat), max(flat)) if flat else (1.0, 1.0)
    wide = high > _LOGARITHMIC_FROM * low
    norm = LogNorm(low, high) if wide else Normalize(low, high)
    # cividis keeps its order for color-blind readers and in gray.
    mesh = axis.pcolormesh(
        panel.x, panel.y, panel.z, shading="nearest", cmap="cividis_r", norm=norm, rasterized=True
    )
    assert axis.figure is not None, "a panel belongs to a figure"
    axis.figure.colorbar(mesh, ax=axis, label="break-even point [drives]")
    for index, (label, across, up) in enumerate(panel.iso):
        color, dash, _ = STYLES[(index + 1) % len(STYLES)]
        heights = [float("nan") if place is None else place for place in up]
        # White below: seen on the light end of the scale as on the dark one.
        axis.plot(across, heights, color="white", linewidth=4.5)
        axis.plot(across, heights, color=color, linestyle=dash, linewidth=2.2, label=label)
    for x, y, text in panel.marks:
        axis.plot(
            x,
            y,
            marker="*",
            markersize=14,
            color="#D55E00",
            markeredgecolor="white",
            linestyle="none",
            clip_on=False,
            zorder=5,
        )
        with_outline(axis, text, (x, y), (-8, 7), "#000000")
    axis.set_xlim(panel.x[0], panel.x[-1])
    axis.set_ylim(panel.y[0], panel.y[-1])
    if panel.iso:
        axis.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, frameon=False)
