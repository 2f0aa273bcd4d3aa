"""Writes figures to files, in the format that each file's suffix names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from csdplan.errors import PlotError
from csdplan.plot import draw, screen
from csdplan.plot.panels import Panel

#: File suffixes that can be written. An ``.html`` needs no network, and shows values under the
#: pointer.
FORMATS = (".svg", ".png", ".html")


def check_paths(paths: Sequence[Path]) -> None:
    """Raise `PlotError` unless the suffix of each path names a format that can be written."""
    for path in paths:
        if path.suffix.lower() not in FORMATS:
            raise PlotError(f"{path}: a figure's name ends in {', '.join(FORMATS)}")


def write(panels: Sequence[Panel], path: Path) -> None:
    """Write a figure of `panels` to `path`.

    Raises
    ------
    PlotError
        If the suffix of `path` is not one of `FORMATS`.
    OSError
        If the file cannot be written.
    """
    check_paths([path])
    suffix = path.suffix.lower()
    if suffix == ".png":
        path.write_bytes(draw.image(panels, "png"))
    elif suffix == ".svg":
        path.write_bytes(draw.image(panels, "svg"))
    else:
        path.write_bytes(screen.page(panels, path.stem))
