"""Pictures with a curve for each policy of background work, which two benchmarks draw."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt

#: Names of the cases, by those in the records.
NAMES = {
    "none": "no background work (case 1)",
    "inline": "inline (case 2)",
    "local": "local",
    "bts": "bts (case 3)",
    "adaptive": "adaptive",
    "adaptive-90us": "adaptive, published update",
    "bts-classes": "bts with classes",
    "bts-threshold": "bts with a threshold",
}
_COLOURS = {name: f"C{number}" for number, name in enumerate(NAMES)}


@dataclass(frozen=True)
class Panel:
    """One part of a picture.

    Attributes
    ----------
    title : str
        What the curves show, with its unit.
    curves : mapping
        A figure for each number on the horizontal axis, by case.
    is_log : bool
        True if the vertical axis is logarithmic.
    """

    title: str
    curves: Mapping[str, Sequence[float]]
    is_log: bool = False


def draw(
    file: Path, panels: Sequence[Panel], axis: str, across: Sequence[int], columns: int = 3
) -> None:
    """Draw panels with the same horizontal axis, logarithmic if its numbers are powers of 2."""
    doubles = all(after == 2 * before for before, after in pairwise(across))
    rows = -(-len(panels) // columns)
    size = (12, 3.6 * rows)
    figure, axes = plt.subplots(rows, columns, figsize=size, squeeze=False)
    for place, panel in zip(axes.flat, panels, strict=True):
        for case, figures in panel.curves.items():
            style = {"color": _COLOURS[case], "label": NAMES[case]}
            place.plot(across, figures, "o-", markersize=3 if doubles else 2, **style)
        if doubles:
            place.set_xscale("log", base=2)
            place.set_xticks(across, [str(number) for number in across])
        if panel.is_log:
            place.set_yscale("log")
        else:
            place.set_ylim(bottom=0)
        place.set_xlabel(axis)
        place.set_title(panel.title)
    handles = {
        label: handle
        for place in axes.flat
        for handle, label in zip(*place.get_legend_handles_labels(), strict=True)
    }
    figure.tight_layout(rect=(0, 0, 1, 1 - 0.35 / size[1]))
    legend = {"loc": "upper center", "ncols": min(2 * columns, len(handles)), "fontsize": 8}
    figure.legend(handles.values(), handles.keys(), frameon=False, **legend)
    # Without a date, so that it only changes with its contents.
    figure.savefig(file, metadata={"Date": None})
