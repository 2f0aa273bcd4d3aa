"""Throughput against the number of devices, with break-even points and k_limit marked.

One panel for each system. Hosts differ in color, in dash and in marker, so that the figure also
survives a gray printer. The format follows the file's suffix.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from csdplan.plot import interactive
from csdplan.plot.figure import REFERENCE, STYLES, frame, ring, with_outline, write
from csdplan.result.throughput import Curve, SystemCurves

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Break-even points nearer than this share of the panel's width have their labels apart.
_CROWDED = 0.09


def throughput(systems: Sequence[SystemCurves], path: Path) -> None:
    """Draw `systems`, a panel each, and write the figure to `path`.

    Raises
    ------
    PlotError
        If the suffix of `path` is not one that can be written.
    OSError
        If the file cannot be written.
    """

    def draw(panels: list[Axes]) -> None:
        for panel, system in zip(panels, systems, strict=True):
            _panel(panel, system)

    write(path, [interactive.throughput(system) for system in systems], draw)


def _panel(panel: Axes, system: SystemCurves) -> None:
    frame(panel, system.title, "devices", "throughput [GB/s]")
    if system.logarithmic:
        panel.set_xscale("log")
        panel.set_yscale("log")
        panel.xaxis.set_major_formatter("{x:.0f}")
        panel.yaxis.set_major_formatter("{x:g}")
    else:
        panel.locator_params(axis="x", integer=True)
    _draw_k_limit(panel, system.k_limit)
    drives = [value / 1e9 for value in system.drives.throughput_Bps]
    panel.plot(system.devices, drives, color=REFERENCE, linewidth=2.0, label="CSDs")
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
        bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
        zorder=4,
    )


def _draw_host(panel: Axes, system: SystemCurves, host: Curve, index: int) -> None:
    color, dash, marker = STYLES[index % len(STYLES)]
    values = [value / 1e9 for value in host.throughput_Bps]
    found = host.break_even_devices
    answer = "no BEP" if found is None else f"BEP {found}"
    label = f"SSDs, Host({host.host_cores}): {answer}"
    panel.plot(
        system.devices,
        values,
        color=color,
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
    ring(panel, point, marker, color)
    # Above and to the left, away from the line of the host itself; below where the next is near.
    offset = (8, -16) if _crowded(system, index) else (-8, 8)
    with_outline(panel, str(found), point, offset, color)


def _crowded(system: SystemCurves, index: int) -> bool:
    """Return whether the next host's break-even point lies so near that labels would meet."""
    found = [host.break_even_devices for host in system.hosts[index : index + 2]]
    if len(found) == 1 or None in found:
        return False
    first, second = (float(count or 0) for count in found)
    if system.logarithmic:
        return abs(math.log(second / first)) < _CROWDED * math.log(system.devices[-1])
    return abs(second - first) < _CROWDED * system.devices[-1]
