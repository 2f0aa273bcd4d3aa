"""Panels: what a figure shows, before anything is drawn.

A figure is a sequence of panels. Each panel is plain data: titles, axis labels with units, and
values. The renderers `csdplan.plot.draw` (files) and `csdplan.plot.screen` (HTML) draw the same
panels, so a PNG and a page never disagree. A line is broken where a value is None: a configuration
without a break-even point has none to draw.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One line.

    Attributes
    ----------
    label : str
        Text in the legend.
    values : tuple of float or None
        One value for each place across.
    reference : bool
        True for the line that the others are compared with: black, solid, without markers.
    style : int or None
        Number of the line's color, dash and marker; by default its index in the panel.
    low, high : tuple of float
        Bounds in 90 % of cases, drawn as a band; empty if they are unknown.
    """

    label: str
    values: tuple[float | None, ...]
    reference: bool = False
    style: int | None = None
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()


@dataclass(frozen=True)
class Mark:
    """One marked point.

    Attributes
    ----------
    x, y : float
        Place of the point.
    text : str
        Text next to the point, or empty.
    style : int or None
        Number of the color and marker; None for those of the reference line.
    below : bool
        True if the text stands below the point, because the place above is crowded.
    label : str
        Name of the point: in the legend of a map, and under the pointer; or empty.
    low, high : float or None
        Bounds of `x` in 90 % of cases, drawn as a bar through the point; None if unknown.
    """

    x: float
    y: float
    text: str = ""
    style: int | None = None
    below: bool = False
    label: str = ""
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Limit:
    """A vertical line at which something changes.

    Attributes
    ----------
    x : float
        Place of the line.
    text : str
        Text at its foot.
    """

    x: float
    text: str


@dataclass(frozen=True)
class Lines:
    """One panel of lines.

    Attributes
    ----------
    title, across, up : str
        Title and the axes' labels, with units.
    places : tuple of float
        Places across, ascending.
    lines : tuple of Line
        At least one.
    steps : bool
        True if values hold from one place to the next, as whole numbers of drives do.
    smooth : bool
        True for sampled curves, whose single values have no markers of their own.
    logarithmic : bool
        True for logarithmic axes.
    marks : tuple of Mark
        Points to ring.
    limits : tuple of Limit
        Vertical lines.
    """

    title: str
    across: str
    up: str
    places: tuple[float, ...]
    lines: tuple[Line, ...]
    steps: bool = False
    smooth: bool = False
    logarithmic: bool = False
    marks: tuple[Mark, ...] = ()
    limits: tuple[Limit, ...] = ()


@dataclass(frozen=True)
class Bar:
    """One part of every bar of a panel.

    Attributes
    ----------
    values : tuple of float or None
        One value for each bar; None is written as unknown.
    label : str
        Text in the legend of a stack, else empty.
    style : int or None
        Number of the part's color; by default its index in the stack.
    """

    values: tuple[float | None, ...]
    label: str = ""
    style: int | None = None


@dataclass(frozen=True)
class Bars:
    """One panel of bars.

    Attributes
    ----------
    title, up : str
        Title, and the label of the axis upward, with its unit.
    labels : tuple of str
        One for each bar; a line feed breaks a label.
    parts : tuple of Bar
        One part for plain bars; several for stacks, the lowest first.
    rates : tuple of float or None
        A second quantity of each bar, such as the throughput that a price buys; or empty.
    rates_up : str
        Label of the second quantity, with its unit.
    across : str
        Meaning of the bars' labels, with its unit; empty if the labels say it.
    """

    title: str
    up: str
    labels: tuple[str, ...]
    parts: tuple[Bar, ...]
    rates: tuple[float | None, ...] = ()
    rates_up: str = ""
    across: str = ""


@dataclass(frozen=True)
class Iso:
    """A line of equal value over a map.

    Attributes
    ----------
    label : str
        Text in the legend.
    x : tuple of float
        Places across.
    y : tuple of float or None
        Places upward; None where the line has no point.
    """

    label: str
    x: tuple[float, ...]
    y: tuple[float | None, ...]


@dataclass(frozen=True)
class Map:
    """A map of break-even points over two quantities.

    Attributes
    ----------
    title, across, up : str
        Title and the axes' labels.
    x, y : tuple of float
        Places across and upward, ascending.
    z : tuple of tuple of float or None
        Values, a row for each y; None where there is no break-even point.
    iso : tuple of Iso
        Lines of equal break-even point.
    marks : tuple of Mark
        Points to mark with a star.
    """

    title: str
    across: str
    up: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    z: tuple[tuple[float | None, ...], ...]
    iso: tuple[Iso, ...] = ()
    marks: tuple[Mark, ...] = ()


Panel = Lines | Bars | Map
