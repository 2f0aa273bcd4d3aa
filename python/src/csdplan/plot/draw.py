"""Renders panels with matplotlib, as SVG or PNG whose bytes depend on content alone.

No date, host name or random identifier goes into a file. matplotlib is imported when the first
figure is drawn, not before; pyplot and its global state stay unused.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal, assert_never

from csdplan.plot.compact import compact
from csdplan.plot.panels import Bars, Line, Lines, Map, Mark, Panel
from csdplan.plot.svg import number

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Color, dash, marker. Okabe and Ito's palette, told apart by most color-blind readers; its
#: yellow is left out: it vanishes on white.
STYLES: tuple[tuple[str, Any, str], ...] = (
    ("#0072B2", (0, (5, 1.5)), "o"),
    ("#D55E00", (0, (1, 1)), "s"),
    ("#009E73", (0, (5, 1.5, 1, 1.5)), "^"),
    ("#CC79A7", (0, (8, 2)), "D"),
    ("#56B4E9", (0, (3, 1, 1, 1, 1, 1)), "v"),
    ("#E69F00", (0, (2, 2)), "P"),
)
#: Style of the reference line.
REFERENCE = ("#000000", "solid", "o")
# Typed loosely: matplotlib's own type lists every key of one of its versions.
_STYLE: dict[Any, Any] = {
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11.0,
    # Every text of a file repeats the list: the one that is measured, and two of its width.
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Arial"],
    "svg.hashsalt": "csdplan",
    "svg.fonttype": "none",
}
_PANEL_INCHES = (6.0, 4.9)
_DPI = 150
#: Panels side by side: more would be too small to read on a page.
_COLUMNS = 2
#: A map that spans more than this ratio is colored by the logarithm.
_LOGARITHMIC_FROM = 20.0
#: Markers of the last line, and how much larger those of each line before it are [points].
_MARKER, _MARKER_STEP = 5.0, 2.4
#: Opacity of a band.
_BAND = 0.15
#: Letters that fit in a line of a title, and in half the width of a legend.
_TITLE, _LEGEND = 58, 26
#: Place of a legend below the axes: inside, it would hide where curves part.
_BELOW: dict[str, Any] = {
    "loc": "upper center",
    "bbox_to_anchor": (0.5, -0.16),
    "frameon": False,
}


def image(panels: Sequence[Panel], form: Literal["svg", "png"]) -> bytes:
    """Return a figure of `panels` as an image file's bytes."""
    import matplotlib as mpl  # noqa: PLC0415 - imported late: it costs half a second
    from matplotlib.figure import Figure  # noqa: PLC0415

    width, height = _PANEL_INCHES
    across = min(len(panels), _COLUMNS)
    down = -(-len(panels) // across)
    # Date and Software would make equal figures differ by day and by version.
    title = "; ".join(dict.fromkeys(panel.title for panel in panels))
    kept = {"svg": {"Date": None, "Creator": None, "Title": title}, "png": {"Software": None}}[form]
    # The defaults, not a user's matplotlibrc: equal results must give equal bytes anywhere.
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        figure = Figure(figsize=(width * across, height * down), layout="constrained")
        axes = list(figure.subplots(down, across, squeeze=False).flat)
        for spare in axes[len(panels) :]:
            spare.set_axis_off()
        for axis, panel in zip(axes, panels, strict=False):
            _draw(axis, panel)
        buffer = io.BytesIO()
        figure.savefig(buffer, format=form, dpi=_DPI, metadata=kept)
    drawn = buffer.getvalue()
    return compact(drawn.decode()).encode() if form == "svg" else drawn


def _draw(axis: Axes, panel: Panel) -> None:
    axis.set_title("\n".join(wrap(panel.title, _TITLE)), loc="left")
    axis.set_xlabel(panel.across)
    axis.set_ylabel(panel.up)
    axis.grid(visible=True, color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)
    match panel:
        case Lines():
            _lines(axis, panel)
        case Bars():
            _bars(axis, panel)
        case Map():
            _map(axis, panel)
        case _:
            assert_never(panel)


def _lines(axis: Axes, panel: Lines) -> None:
    if panel.logarithmic:
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.xaxis.set_major_formatter("{x:.0f}")
        axis.yaxis.set_major_formatter("{x:g}")
    for limit in panel.limits:
        _limit(axis, limit.x, limit.text)
    for index, line in enumerate(panel.lines):
        look = _curve(line) if panel.smooth else _series(panel, index)
        values = [float("nan") if value is None else value for value in line.values]
        style = _style(line, index)
        axis.plot(panel.places, values, **style, **look, label=line.label)
        if line.low:
            axis.fill_between(
                panel.places, line.low, line.high, color=style["color"], alpha=_BAND, linewidth=0
            )
    for mark in panel.marks:
        _ring(axis, mark)
    if panel.smooth:
        axis.set_xlim(panel.places[0], panel.places[-1])
    if not panel.logarithmic:
        axis.set_ylim(bottom=0)
        known = [value for line in panel.lines for value in line.values if value is not None]
        if all(place == int(place) for place in panel.places):
            axis.locator_params(axis="x", integer=True)
        if not panel.smooth and all(value == int(value) for value in known):
            axis.locator_params(axis="y", integer=True)
    # Dashes distinguish curves without markers, and need longer samples in the legend.
    longest = max(len(line.label) for line in panel.lines)
    columns = 1 if longest > _LEGEND else 2
    axis.legend(**_BELOW, ncols=columns, handlelength=3.2 if panel.smooth else 2.0)


def _style(line: Line, index: int) -> dict[str, Any]:
    if line.reference:
        return {"color": REFERENCE[0], "linestyle": REFERENCE[1], "marker": ""}
    color, dash, marker = _of(index if line.style is None else line.style)
    return {"color": color, "linestyle": dash, "marker": marker}


def _curve(line: Line) -> dict[str, Any]:
    return {"linewidth": 2.0 if line.reference else 1.6, "markersize": 5, "markevery": 0.12}


def _series(panel: Lines, index: int) -> dict[str, Any]:
    return {
        # Hollow, and the earlier the larger: of lines that coincide every marker is seen.
        "markersize": _MARKER + _MARKER_STEP * (len(panel.lines) - 1 - index),
        "markerfacecolor": "none",
        "markevery": max(1, len(panel.places) // 12),
        "drawstyle": "steps-post" if panel.steps else "default",
        "clip_on": False,
    }


def _bars(axis: Axes, panel: Bars) -> None:
    stacked = len(panel.parts) > 1
    bottom = [0.0] * len(panel.labels)
    for index, part in enumerate(panel.parts):
        known = [0.0 if value is None else value for value in part.values]
        color = _of(index if part.style is None else part.style)[0]
        drawn = axis.bar(
            list(panel.labels),
            known,
            bottom=bottom,
            color=color,
            width=0.6,
            hatch="/" if index else "",
            label=part.label or None,
        )
        bottom = [low + value for low, value in zip(bottom, known, strict=True)]
    if stacked:
        texts = [f"{total:,.0f}" for total in bottom]
        axis.legend(**_BELOW, ncols=2)
    else:
        values = panel.parts[0].values
        texts = ["unknown" if value is None else number(value) for value in values]
    if panel.rates:
        unit = panel.rates_up.partition("[")[2].rstrip("]")
        rates = ["" if rate is None else f"\n{rate:.3g} {unit}" for rate in panel.rates]
        texts = [text + rate for text, rate in zip(texts, rates, strict=True)]
    axis.bar_label(drawn, labels=texts, padding=2)
    axis.margins(y=0.12)


def _map(axis: Axes, panel: Map) -> None:
    from matplotlib.colors import LogNorm, Normalize  # noqa: PLC0415 - as in image()

    axis.grid(visible=False)
    known = [value for row in panel.z for value in row if value is not None]
    low, high = (min(known), max(known)) if known else (1.0, 1.0)
    wide = high > _LOGARITHMIC_FROM * low
    norm = LogNorm(low, high) if wide else Normalize(low, high)
    values = [[float("nan") if value is None else value for value in row] for row in panel.z]
    # cividis keeps its order for color-blind readers and in gray.
    mesh = axis.pcolormesh(
        panel.x, panel.y, values, shading="nearest", cmap="cividis_r", norm=norm, rasterized=True
    )
    assert axis.figure is not None, "a panel belongs to a figure"
    axis.figure.colorbar(mesh, ax=axis, label="break-even point [drives]")
    for index, iso in enumerate(panel.iso):
        color, dash, _ = _of(index + 1)
        heights = [float("nan") if place is None else place for place in iso.y]
        # White below: seen on the light end of the scale as on the dark one.
        axis.plot(iso.x, heights, color="white", linewidth=4.5)
        axis.plot(iso.x, heights, color=color, linestyle=dash, linewidth=2.2, label=iso.label)
    for mark in panel.marks:
        _star(axis, mark)
    axis.set_xlim(panel.x[0], panel.x[-1])
    axis.set_ylim(panel.y[0], panel.y[-1])
    if panel.iso:
        axis.legend(**_BELOW, ncols=2)


def _of(index: int) -> tuple[str, Any, str]:
    return STYLES[index % len(STYLES)]


def _limit(axis: Axes, x: float, text: str) -> None:
    axis.axvline(x, color="#888888", linewidth=1.0, linestyle=(0, (1, 2)))
    axis.annotate(
        text,
        xy=(x, 0.0),
        xycoords=("data", "axes fraction"),
        xytext=(4, 5),
        textcoords="offset points",
        color="#555555",
        fontsize=9,
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        zorder=4,
    )


def _ring(axis: Axes, mark: Mark) -> None:
    color, _, marker = REFERENCE if mark.style is None else _of(mark.style)
    if mark.low is not None and mark.high is not None:
        axis.plot(
            [mark.low, mark.high],
            [mark.y] * 2,
            color=color,
            linewidth=1.6,
            marker="|",
            markersize=7,
        )
    axis.plot(
        mark.x,
        mark.y,
        marker=marker,
        markersize=10,
        markerfacecolor="white",
        markeredgecolor=color,
        markeredgewidth=2.0,
        linestyle="none",
        zorder=5,
    )
    # Above and to the left, away from the line of the host itself; below where another is near.
    _with_outline(axis, mark, (8, -16) if mark.below else (-8, 8), color)


def _star(axis: Axes, mark: Mark) -> None:
    axis.plot(
        mark.x,
        mark.y,
        marker="*",
        markersize=14,
        color="#D55E00",
        markeredgecolor="white",
        linestyle="none",
        clip_on=False,
        zorder=5,
        label=mark.label or None,
    )
    _with_outline(axis, mark, (-8, 7), "#000000")


def _with_outline(axis: Axes, mark: Mark, offset: tuple[int, int], color: str) -> None:
    """Write a mark's text in bold, with an outline that covers the lines below it."""
    from matplotlib.patheffects import withStroke  # noqa: PLC0415 - as in image()

    axis.annotate(
        mark.text,
        xy=(mark.x, mark.y),
        xytext=offset,
        textcoords="offset points",
        horizontalalignment="right" if offset[0] < 0 else "left",
        color=color,
        fontweight="bold",
        path_effects=[withStroke(linewidth=3, foreground="white")],
        zorder=6,
    )
