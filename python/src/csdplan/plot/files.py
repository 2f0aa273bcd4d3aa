"""Writes figures to files, in the format that each file's suffix names."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path

from csdplan.errors import PlotError
from csdplan.plot import draw, plotly
from csdplan.plot.panels import Panel

#: File suffixes that can be written. An ``.html`` needs no network: it is interactive if Plotly is
#: installed, else it holds the figure as SVG.
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
    elif (script := plotly.script()) is not None:
        path.write_bytes(plotly.page(panels, path.stem, script))
    else:
        path.write_bytes(_still(draw.image(panels, "svg"), path.stem))


def _still(image: bytes, title: str) -> bytes:
    svg = image.decode("utf-8")
    return (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n'
        f"<title>{html.escape(title)}</title>\n"
        f"<style>svg {{ max-width: 100%; height: auto }}</style>\n{svg[svg.index('<svg') :]}"
        "<p>A still picture: csdplan's extra <code>ui</code> makes it interactive.</p>\n"
        "</html>\n"
    ).encode()
