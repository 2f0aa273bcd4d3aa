"""What all figures share: style, colors, and writing a file whose bytes depend on content alone.

No date, host name or random identifier goes into a file. matplotlib is imported when the first
figure is drawn, not before, and pyplot (its global state) never.
"""

from __future__ import annotations

import html
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from csdplan.errors import PlotError
from csdplan.plot import interactive

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: File suffixes that can be written. An ``.html`` needs no network: it is interactive if Plotly is
#: installed, else it holds the figure as SVG.
FORMATS = (".svg", ".png", ".html")

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
#: Color of what the others are compared to.
REFERENCE = "#000000"
# Typed loosely: matplotlib's own type lists every key of one of its versions.
_STYLE: dict[Any, Any] = {
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 11.0,
    "svg.hashsalt": "csdplan",
    "svg.fonttype": "path",
}
_PANEL_INCHES = (6.0, 4.9)
_DPI = 150
#: Panels side by side: more would be too small to read on a page.
_COLUMNS = 2


def check_path(path: Path) -> None:
    """Raise `PlotError` unless the suffix of `path` names a format that can be written."""
    if path.suffix.lower() not in FORMATS:
        raise PlotError(f"{path}: a figure's name ends in {', '.join(FORMATS)}")


def write(
    path: Path, panels: Sequence[interactive.Figure], draw: Callable[[list[Axes]], None]
) -> None:
    """Write a figure to `path`: `panels` as an interactive page, or what `draw` fills axes with.

    Raises
    ------
    PlotError
        If the suffix of `path` is not one of `FORMATS`.
    OSError
        If the file cannot be written.
    """
    check_path(path)
    if path.suffix.lower() == ".html" and (script := interactive.script()) is not None:
        path.write_bytes(interactive.page(panels, path.stem, script))
        return
    import matplotlib as mpl  # noqa: PLC0415 - imported late: it costs half a second
    from matplotlib.figure import Figure  # noqa: PLC0415

    width, height = _PANEL_INCHES
    across = min(len(panels), _COLUMNS)
    down = -(-len(panels) // across)
    # The defaults, not a user's matplotlibrc: equal results must give equal bytes anywhere.
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        figure = Figure(figsize=(width * across, height * down), layout="constrained")
        axes = list(figure.subplots(down, across, squeeze=False).flat)
        for spare in axes[len(panels) :]:
            spare.set_axis_off()
        draw(axes[: len(panels)])
        path.write_bytes(_encoded(figure, path))


def _encoded(figure: Any, path: Path) -> bytes:
    suffix = path.suffix.lower()
    form = "png" if suffix == ".png" else "svg"
    # Date and Software would make equal figures differ by day and by version.
    absent = {"svg": {"Date": None, "Creator": None}, "png": {"Software": None}}[form]
    buffer = io.BytesIO()
    figure.savefig(buffer, format=form, dpi=_DPI, metadata=absent)
    if suffix != ".html":
        return buffer.getvalue()
    svg = buffer.getvalue().decode("utf-8")
    title = html.escape(path.stem)
    drawn = svg[svg.index("<svg") :]
    return (
        f'<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f"<style>svg {{ max-width: 100%; height: auto }}</style>\n{drawn}"
        "<p>A still picture: csdplan's extra <code>ui</code> makes it interactive.</p>\n"
        "</html>\n"
    ).encode()


def frame(panel: Axes, title: str, across: str, up: str) -> None:
    """Give a panel its title, labels and grid."""
    panel.set_title(title, loc="left")
    panel.set_xlabel(across)
    panel.set_ylabel(up)
    panel.grid(visible=True, color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)


def ring(panel: Axes, point: tuple[float, float], marker: str, color: str) -> None:
    """Ring a point."""
    panel.plot(
        *point,
        marker=marker,
        markersize=10,
        markerfacecolor="white",
        markeredgecolor=color,
        markeredgewidth=2.0,
        linestyle="none",
        zorder=5,
    )


def with_outline(
    panel: Axes, text: str, point: tuple[float, float], offset: tuple[int, int], color: str
) -> None:
    """Write `text` beside a point, in bold, with a halo that covers the lines below."""
    from matplotlib.patheffects import withStroke  # noqa: PLC0415 - as in write()

    panel.annotate(
        text,
        xy=point,
        xytext=offset,
        textcoords="offset points",
        horizontalalignment="right" if offset[0] < 0 else "left",
        color=color,
        fontweight="bold",
        path_effects=[withStroke(linewidth=3, foreground="white")],
        zorder=6,
    )
