"""Renders panels as HTML and SVG for screens: text as text, light and dark, on any width.

Every color is a CSS variable of `STYLE`, except for the levels of a map, which both modes share.
Lines differ in dash as well, bars in pattern, so that no answer depends on color alone. Values
under the pointer are in ``data-hover``, which `SCRIPT` shows; without it every figure is complete.
"""

from __future__ import annotations

import html
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from typing import assert_never

from csdplan.plot.bars import bars
from csdplan.plot.panels import Bars, Line, Lines, Map, Mark, Panel
from csdplan.plot.scale import decades, levels, shade, ticks
from csdplan.plot.svg import dash_of, number, safe, swatch, text

STYLE = (resources.files("csdplan.plot") / "screen.css").read_text(encoding="utf-8")
SCRIPT = (resources.files("csdplan.plot") / "screen.js").read_text(encoding="utf-8")
#: Widths that are drawn [px]; a page scales beyond.
NARROWEST, WIDEST = 280, 1100
_MARGIN_LEFT, _MARGIN_RIGHT, _MARGIN_TOP, _MARGIN_BOTTOM = 54, 14, 26, 44
#: Values under the pointer at so many places at most.
_HOVER_MAX = 120


@dataclass(frozen=True)
class Room:
    """Ends of axes that several figures share, so that they can be compared.

    Attributes
    ----------
    across, up : float
        Greatest values.
    logarithmic : bool
        True if any of the figures needs logarithmic axes.
    """

    across: float
    up: float
    logarithmic: bool = False


def room_of(panels: Sequence[Lines]) -> Room:
    """Return the room that all of `panels` fit in."""
    return Room(
        max(panel.places[-1] for panel in panels),
        max(_highest(panel) for panel in panels),
        any(panel.logarithmic for panel in panels),
    )


def page(panels: Sequence[Panel], title: str) -> bytes:
    """Return a page of `panels` that needs no network and no other file."""
    figures = "\n".join(figure(panel, 760) for panel in panels)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{safe(title)}</title>\n<style>{STYLE}\nbody {{ margin: 1rem auto; "
        "max-width: 52rem; padding: 0 1rem }</style>\n</head>\n<body>\n"
        f"{figures}\n<script>{SCRIPT}</script>\n</body>\n</html>\n"
    ).encode()


def figure(panel: Panel, width: int = 640, room: Room | None = None, *, reads: bool = True) -> str:
    """Return one panel as a ``figure`` element, `width` pixels wide.

    With `reads` it holds the values that `SCRIPT` shows under the pointer.
    """
    width = min(max(width, NARROWEST), WIDEST)
    match panel:
        case Lines():
            drawn, legend = _lines(panel, width, room, reads)
        case Bars():
            drawn, legend = bars(panel, width)
        case Map():
            drawn, legend = _map(panel, width)
        case _:
            assert_never(panel)
    listed = "".join(f"<li>{mark}{safe(name)}</li>" for mark, name in legend)
    return (
        f'<figure class="plot"><figcaption>{safe(panel.title)}</figcaption>\n{drawn}\n'
        f'<ul class="legend">{listed}</ul></figure>'
    )


@dataclass(frozen=True)
class _Frame:
    """Area of a figure and its two scales, from values to pixels."""

    width: int
    height: int
    x: Callable[[float], float]
    y: Callable[[float], float]

    @property
    def right(self) -> int:
        return self.width - _MARGIN_RIGHT

    @property
    def bottom(self) -> int:
        return self.height - _MARGIN_BOTTOM


def _frame(
    width: int, across: tuple[float, float], up: tuple[float, float], logarithmic: bool = False
) -> _Frame:
    height = min(max(round(0.66 * width), 280), 430)
    right, bottom = width - _MARGIN_RIGHT, height - _MARGIN_BOTTOM
    x = _scale(across, (_MARGIN_LEFT, right), logarithmic)
    return _Frame(width, height, x, _scale(up, (bottom, _MARGIN_TOP), logarithmic))


def _scale(
    values: tuple[float, float], pixels: tuple[float, float], logarithmic: bool
) -> Callable[[float], float]:
    low, high = (math.log10(one) if logarithmic else one for one in values)

    def place(value: float) -> float:
        at = math.log10(max(value, 1e-300)) if logarithmic else value
        share = (at - low) / ((high - low) or 1.0)
        return round(pixels[0] + share * (pixels[1] - pixels[0]), 1)

    return place


def _axes(frame: _Frame, panel: Lines | Map, across: list[float], up: list[float]) -> str:
    parts = []
    for value in up:
        y = frame.y(value)
        parts.append(f'<path class="grid" d="M{_MARGIN_LEFT} {y}H{frame.right}"/>')
        parts.append(text(_MARGIN_LEFT - 6, y + 4, number(value), anchor="end"))
    for value in across:
        x = frame.x(value)
        parts.append(f'<path class="axis" d="M{x} {frame.bottom}v5"/>')
        parts.append(text(x, frame.bottom + 18, number(value), anchor="middle"))
    parts.append(f'<path class="axis" d="M{_MARGIN_LEFT} {frame.bottom}H{frame.right}"/>')
    parts.append(text(0, 14, panel.up, kind="name"))
    parts.append(text(frame.right, frame.height - 8, panel.across, anchor="end", kind="name"))
    return "".join(parts)


def _svg(frame: _Frame, title: str, inside: str, hover: list[list[object]] | None = None) -> str:
    data = json.dumps(hover, ensure_ascii=False, separators=(",", ":")) if hover else ""
    told = f' data-hover="{html.escape(data, quote=True)}" tabindex="0"' if hover else ""
    return (
        f'<svg viewBox="0 0 {frame.width} {frame.height}" width="{frame.width}" '
        f'height="{frame.height}" role="img" aria-label="{safe(title)}"{told}>{inside}</svg>'
    )


def _lines(
    panel: Lines, width: int, room: Room | None, reads: bool
) -> tuple[str, list[tuple[str, str]]]:
    space = room or room_of([panel])
    lowest = _lowest(panel) if space.logarithmic else 0.0
    first = max(panel.places[0], 1e-9) if space.logarithmic else panel.places[0]
    frame = _frame(width, (first, space.across), (lowest, space.up), space.logarithmic)
    if space.logarithmic:
        across, up = decades(first, space.across), decades(lowest, space.up)
    else:
        across, up = ticks(first, space.across, _labels(width)), ticks(0.0, space.up, 5)
    parts = [_axes(frame, panel, across, up)]
    parts += [_band(panel, line, index, frame) for index, line in enumerate(panel.lines)]
    for limit in panel.limits:
        if first <= limit.x <= space.across:
            x = frame.x(limit.x)
            parts.append(f'<path class="limit" d="M{x} {_MARGIN_TOP}V{frame.bottom}"/>')
            side = ("end", -5) if x > width * 0.6 else ("start", 5)
            parts.append(text(x + side[1], frame.bottom - 7, limit.text, anchor=side[0], kind="by"))
    for index, line in reversed([*enumerate(panel.lines)]):
        path = _path(panel, line.values, frame)
        look = _look(line, index)
        parts.append(f'<path class="line {look}" {dash_of(look)} d="{path}"/>')
    parts += [_mark(mark, frame) for mark in panel.marks]
    legend = [(swatch(_look(line, at)), line.label) for at, line in enumerate(panel.lines)]
    if any(line.low for line in panel.lines):
        legend.append((swatch("band"), "bands and bars: 90 % of cases"))
    said = [mark.label + ": " + mark.text for mark in panel.marks if mark.label]
    title = "; ".join([panel.title, *said])
    hover = _hover(panel, frame) if reads else None
    return _svg(frame, title, "".join(parts), hover), legend


def _labels(width: int) -> int:
    """Return how many labels fit below a figure."""
    return max(4, width // 80)


def _look(line: Line, index: int) -> str:
    return "ref" if line.reference else f"s{(index if line.style is None else line.style) % 6}"


def _path(panel: Lines, values: Sequence[float | None], frame: _Frame) -> str:
    parts, open_ = [], False
    for place, value in zip(panel.places, values, strict=True):
        if value is None:
            open_ = False
            continue
        x, y = frame.x(place), frame.y(value)
        step = "H{0}V{1}" if panel.steps else "L{0} {1}"
        parts.append((step if open_ else "M{0} {1}").format(x, y))
        open_ = True
    return "".join(parts)


def _band(panel: Lines, line: Line, index: int, frame: _Frame) -> str:
    if not line.low:
        return ""
    low = [f"{frame.x(x)} {frame.y(y)}" for x, y in zip(panel.places, line.low, strict=True)]
    high = [f"{frame.x(x)} {frame.y(y)}" for x, y in zip(panel.places, line.high, strict=True)]
    points = "L".join([*high, *reversed(low)])
    return f'<path class="band {_look(line, index)}" d="M{points}Z"/>'


def _mark(mark: Mark, frame: _Frame) -> str:
    look = "ref" if mark.style is None else f"s{mark.style % 6}"
    x, y = frame.x(mark.x), frame.y(mark.y)
    parts = [f'<g class="mark {look}"><title>{safe(mark.label or mark.text)}: {safe(mark.text)}']
    parts.append("</title>")
    if mark.low is not None and mark.high is not None:
        low, high = frame.x(mark.low), min(frame.x(mark.high), frame.right)
        ends = f"M{low} {y - 4}v8M{high} {y - 4}v8"
        parts.append(f'<path class="whisker" d="M{low} {y}H{high}{ends}"/>')
    parts.append(f'<circle cx="{x}" cy="{y}" r="5.5"/>')
    offset = (9, 18, "start") if mark.below else (-9, -9, "end")
    parts.append(text(x + offset[0], y + offset[1], mark.text, anchor=offset[2], kind="value"))
    return "".join(parts) + "</g>"


def _hover(panel: Lines, frame: _Frame) -> list[list[object]]:
    step = -(-len(panel.places) // _HOVER_MAX)
    found: list[list[object]] = []
    for at in range(0, len(panel.places), step):
        said = [
            f"{line.label.partition(': ')[0]} {number(value)}"
            for line in panel.lines
            if (value := line.values[at]) is not None
        ]
        place = panel.places[at]
        found.append([frame.x(place), f"{panel.across} {number(place)}: {', '.join(said)}"])
    return found


def _highest(panel: Lines) -> float:
    tops = [value for line in panel.lines for value in line.values if value is not None]
    tops += [value for line in panel.lines for value in line.high]
    # Room above for the number of a mark that lies on the highest line.
    return max(tops, default=1.0) * 1.06 or 1.0


def _lowest(panel: Lines) -> float:
    values = [value for line in panel.lines for value in line.values if value]
    return min([*values, *(value for line in panel.lines for value in line.low if value)])


def _map(panel: Map, width: int) -> tuple[str, list[tuple[str, str]]]:
    frame = _frame(width, (panel.x[0], panel.x[-1]), (panel.y[0], panel.y[-1]))
    known = [value for row in panel.z for value in row if value is not None]
    found = levels(known) if known else []
    parts = ['<g class="map">', *_cells(panel, found, frame), "</g>"]
    for index, iso in enumerate(panel.iso):
        points = [
            f"{frame.x(x)} {frame.y(y)}" for x, y in zip(iso.x, iso.y, strict=True) if y is not None
        ]
        if points:
            path = "L".join(points)
            dash = "" if len(panel.iso) == 1 else dash_of(f"s{index}")
            parts.append(f'<path class="below" d="M{path}"/>')
            parts.append(f'<path class="iso" {dash} d="M{path}"/>')
    parts += [_star(mark, frame) for mark in panel.marks]
    across = ticks(panel.x[0], panel.x[-1], _labels(width))
    axes = _axes(frame, panel, across, ticks(panel.y[0], panel.y[-1], 5))
    legend = [
        (
            swatch("box", shade(at, len(found))),
            f"{low} drive{'s' if low > 1 else ''}" if low == high else f"{low}-{high} drives",
        )
        for at, (low, high) in enumerate(found)
    ]
    if any(value is None for row in panel.z for value in row):
        legend.append((swatch("box none"), "never"))
    for index, iso in enumerate(panel.iso):
        legend.append((swatch("iso", dash="" if len(panel.iso) == 1 else f"s{index}"), iso.label))
    legend += [("★ ", mark.label) for mark in panel.marks if mark.label]
    return _svg(frame, panel.title, axes + "".join(parts)), legend


def _cells(panel: Map, found: list[tuple[int, int]], frame: _Frame) -> list[str]:
    """Return the map as rectangles, neighbors of a level joined."""
    starts = [low for low, _ in found]
    edges_x, edges_y = _edges(panel.x), _edges(panel.y)
    parts = []
    for row, values in enumerate(panel.z):
        top, bottom = frame.y(edges_y[row + 1]), frame.y(edges_y[row])
        places = [
            None if value is None else sum(start <= value for start in starts) - 1
            for value in values
        ]
        begin = 0
        for end in range(1, len(places) + 1):
            if end < len(places) and places[end] == places[begin]:
                continue
            left, right = frame.x(edges_x[begin]), frame.x(edges_x[end])
            at = places[begin]
            fill = 'class="none"' if at is None else f'fill="{shade(at, len(found))}"'
            # Half a pixel more closes the gaps that rounding leaves.
            size = f'width="{right - left + 0.5:.1f}" height="{bottom - top + 0.5:.1f}"'
            parts.append(f'<rect x="{left}" y="{top}" {size} {fill}/>')
            begin = end
    return parts


def _edges(places: Sequence[float]) -> list[float]:
    middles = [(one + other) / 2 for one, other in pairwise(places)]
    return [places[0], *middles, places[-1]]


def _star(mark: Mark, frame: _Frame) -> str:
    x, y = frame.x(mark.x), frame.y(mark.y)
    label = f"<title>{safe(mark.label)}</title>" if mark.label else ""
    star = f'<text class="star" x="{x}" y="{y + 8}" text-anchor="middle">★</text>'
    return f"<g>{label}{star}{text(x + 10, y - 6, mark.text, kind='on')}</g>"
