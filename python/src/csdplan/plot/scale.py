"""Axes and colors that renderers share: round ticks, levels of a map, and the styles of lines."""

from __future__ import annotations

import math
from collections.abc import Sequence

#: Cividis, from few drives (light) to many (dark): it keeps its order for color-blind readers.
_CIVIDIS = (
    "#fee838", "#e5cf52", "#c8b866", "#aea371", "#948e77", "#7d7c78", "#666970", "#4f576c",
    "#35456c", "#083370", "#00224e",
)  # fmt: skip
#: Steps of round numbers within a decade.
_ROUND = (1, 2, 5)
#: A map of more levels than this cannot be read.
_LEVELS_MAX = 9


def ticks(low: float, high: float, count: int) -> list[float]:
    """Return about `count` round numbers from `low` to `high`."""
    span = high - low or 1.0
    raw = span / max(count, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * one for one in (*_ROUND, 10) if power * one >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(place * step, 12) for place in range(first, int(high / step + 1e-9) + 1)]


def decades(low: float, high: float) -> list[float]:
    """Return the round numbers 1, 2, 5, 10 and so on from `low` to `high`, or powers of ten."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    found = [one * 10.0**power for power in powers for one in _ROUND]
    inside = [one for one in found if low <= one <= high]
    return inside if len(inside) <= _LEVELS_MAX else [one for one in inside if _is_power(one)]


def levels(values: Sequence[float]) -> list[tuple[int, int]]:
    """Return ranges of whole numbers, first and last, that together hold `values`."""
    low, high = int(min(values)), int(max(values))
    if high - low < _LEVELS_MAX:
        return [(count, count) for count in range(low, high + 1)]
    for rounds, step in ((_ROUND, 1), ((1, 3), 1), ((1,), 1), ((1,), 2), ((1,), 3)):
        edges = [one * 10**power for power in range(0, 17, step) for one in rounds]
        inside = [edge for edge in edges if low < edge <= high]
        if len(inside) < _LEVELS_MAX:
            break
    starts = [low, *inside]
    return [*zip(starts, [edge - 1 for edge in inside] + [high], strict=True)]


def shade(index: int, count: int) -> str:
    """Return the color of level `index` of `count`."""
    place = (len(_CIVIDIS) - 1) * (index / (count - 1) if count > 1 else 0.5)
    low = min(int(place), len(_CIVIDIS) - 2)
    one, other = (_channels(_CIVIDIS[at]) for at in (low, low + 1))
    mixed = (round(a + (b - a) * (place - low)) for a, b in zip(one, other, strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def _channels(color: str) -> list[int]:
    return [int(color[at : at + 2], 16) for at in (1, 3, 5)]


def _is_power(value: float) -> bool:
    place = math.log10(value)
    return math.isclose(place, round(place), abs_tol=1e-9)
