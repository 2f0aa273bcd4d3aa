"""Makes SVG files of matplotlib smaller, without a change that can be seen.

matplotlib writes six decimals and every vertex of a filled area, far finer than a figure is ever
shown.
"""

from __future__ import annotations

import re

import numpy as np

from csdplan.model.inputs import FloatArray

#: Decimals of a coordinate, and how far a vertex may lie off the line that replaces it [points].
_DECIMALS, _OFF = 2, 0.05
#: Attributes that hold coordinates. Styles, texts and scales are left alone.
_COORDINATES = re.compile(r'(?<=[ \n])(?:d|x|y|width|height)="[^"]*"|\brotate\([^)]*\)')
_LONG_NUMBER = re.compile(rf"-?\d+\.\d{{{_DECIMALS + 1},}}")
#: Straight lines from vertex to vertex: two or more after the place where the pen is set down.
_POLYLINE = re.compile(r"M \S+ \S+ \n(?:L \S+ \S+ \n){2,}")


def compact(svg: str) -> str:
    """Return a figure with rounded coordinates, and without vertices that cannot be seen.

    A polyline keeps its ends, and as many vertices as it needs to stay within a twentieth of a
    point of the original. A second call changes nothing.
    """
    short = _COORDINATES.sub(lambda found: _LONG_NUMBER.sub(_rounded, found[0]), svg)
    return _POLYLINE.sub(lambda found: _thinned(found[0]), short)


def _rounded(number: re.Match[str]) -> str:
    text = f"{float(number[0]):.{_DECIMALS}f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _thinned(line: str) -> str:
    steps = line.splitlines(keepends=True)
    places = np.array([[float(part) for part in step.split()[1:]] for step in steps])
    kept = np.zeros(len(places), dtype=bool)
    kept[[0, -1]] = True
    # Ramer, Douglas and Peucker: a stretch is straight, or is divided where it is furthest off.
    stretches = [(0, len(places) - 1)]
    while stretches:
        first, last = stretches.pop()
        if last - first > 1:
            away = _away(places[first : last + 1])
            middle = first + int(np.argmax(away))
            if away.max() > _OFF:
                kept[middle] = True
                stretches += [(first, middle), (middle, last)]
    return "".join(step for step, stays in zip(steps, kept, strict=True) if stays)


def _away(places: FloatArray) -> FloatArray:
    """Return how far each place lies from the line segment between the first and the last one."""
    along, offsets = places[-1] - places[0], places - places[0]
    square = float(along @ along)
    share = np.clip(offsets @ along / square, 0.0, 1.0) if square else np.zeros(len(places))
    return np.asarray(np.hypot(*(offsets - np.outer(share, along)).T))
