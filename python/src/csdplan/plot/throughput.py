"""Throughput against the number of devices, with break-even points and k_limit marked.

One panel for each system. Hosts differ in colour (Okabe and Ito's palette, told apart by most
colour-blind readers), in dash and in marker, so that the figure also survives a grey printer.
The format follows the file's suffix.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from csdplan.errors import PlotError
from csdplan.result.curves import Curve, SystemCurves

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: File suffixes that can be written.
FORMATS = (".svg", ".png")

_DRIVES_COLOUR = "#000000"
# Colour, dash, marker. Okabe and Ito's yellow is left out: it vanishes on white.
_STYLES: tuple[tuple[str, Any, str], ...] = (
    ("#0072B2", (0, (5, 1.5)), "o"),
    ("#D55E00", (0, (1, 1)), "s"),
    ("#009E73", (0, (5, 1.5, 1, 1.5)), "^"),
    ("#CC79A7", (0, (8, 2)), "D"),
    ("#56B4E9", (0, (3, 1, 1, 1, 1, 1)), "v"),
    ("#E69F00", (0, (2, 2)), "P"),
)
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


def check_path(path: Path) -> None:
    """Raise `PlotError` unless the suffix of `path` names a format that can be written."""
    if path.suffix.lower() not in FORMATS:
        raise PlotError(f"{path}: a figure's name ends in {' or '.join(FORMATS)}")


def throughput(systems: Sequence[SystemCurves], path: Path) -> None:
    """Draw `systems`, a panel each, and write the figure to `path`.

    Raises
    ------
    PlotError
        If the suffix of `path` is not one of `FORMATS`.
    OSError
        If the file cannot be written.
    """
    check_path(path)
    import matplotlib as mpl  # noqa: PLC0415 - imported late: it costs half a second
    from matplotlib.figure import Figure  # noqa: PLC0415

    width, height = _PANEL_INCHES
    # The defaults, not a user's matplotlibrc: equal results must give equal bytes anywhere.
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        figure = Figure(figsize=(width * len(systems), height), layout="constrained")
        panels = figure.subplots(1, len(systems), squeeze=False)[0]
        for panel, system in zip(panels, systems, strict=True):
            _panel(panel, system)
        # Date and Software would make equal figures differ by day and by version.
        absent = {".svg": {"Date": None, "Creator": None}, ".png": {"Software": None}}
        suffix = path.suffix.lower()
        figure.savefig(path, format=suffix[1:], dpi=_DPI, metadata=absent[suffix])


def _panel(panel: Axes, system: SystemCurves) -> None:
    panel.set_title(system.title, loc="left")
    panel.set_xlabel("devices")
    panel.set_ylabel("throughput [GB/s]")
    if system.logarithmic:
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.xaxis.set_major_formatter("{x:.0f}")
        panel.yaxis.set_major_formatter("{x:g}")
    else:
        panel.locator_params(axis="x", integer=True)
    panel.grid(visible=True, color="#dddddd", linewidth=0.6)
    panel.set_axisbelow(True)
    _draw_k_limit(panel, system.k_limit)
    drives = [value / 1e9 for value in system.drives.throughput_Bps]
    panel.plot(system.devices, drives, color=_DRIVES_COLOUR, linewidth=2.0, label="CSDs")
    for index, host in enumerate(system.hosts):
        _draw_host(panel, system, host, index)
    panel.set_xlim(1, system.devices[-1])
    if not system.logarithmic:
        panel.set_ylim(bottom=0)
    # Below the axes: inside, a legend hides the very region where the curves part.
    panel.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, -0.16),
        ncols=2,
        frameon=False,
        handlelength=3.2,
    )


def _draw_k_limit(panel: Axes, k_limit: int) -> None:
    panel.axvline(k_limit, color="#888888", linewidth=1.0, linestyle=(0, (1, 2)))
    panel.annotate(
        f"k_limit {k_limit}",
        xy=(k_limit, 0.0),
        xycoords=("data", "axes fraction"),
        xytext=(4, 5),
        textcoords="offset points",
        color="#555555",
        fontsize=9,
    )


def _draw_host(panel: Axes, system: SystemCurves, host: Curve, index: int) -> None:
    from matplotlib.patheffects import withStroke  # noqa: PLC0415 - as in throughput()

    colour, dash, marker = _STYLES[index % len(_STYLES)]
    values = [value / 1e9 for value in host.throughput_Bps]
    found = host.break_even_devices
    answer = "no BEP" if found is None else f"BEP {found}"
    label = f"SSDs, Host({host.host_cores}): {answer}"
    panel.plot(
        system.devices,
        values,
        color=colour,
        linestyle=dash,
        linewidth=1.6,
        marker=marker,
        markersize=5,
        markevery=0.12,
        label=label,
    )
    if found is None or host.break_even_Bps is None:
        return
    point = (found, host.break_even_Bps / 1e9)
    panel.plot(
        *point,
        marker=marker,
        markersize=10,
        markerfacecolor="white",
        markeredgecolor=colour,
        markeredgewidth=2.0,
        linestyle="none",
        zorder=5,
    )
    panel.annotate(
        str(found),
        xy=point,
        # Above and to the left, away from the line of the host itself; the halo covers others.
        xytext=(-8, 8),
        textcoords="offset points",
        horizontalalignment="right",
        color=colour,
        fontweight="bold",
        path_effects=[withStroke(linewidth=3, foreground="white")],
        zorder=6,
    )
