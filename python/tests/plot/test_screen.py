"""Figures for screens: complete without a script, readable by machines, in two modes."""

import html
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from csdplan.plot import Bar, Bars, Iso, Line, Lines, Map, Mark, figures, screen, write
from csdplan.plot.scale import decades, levels, shade, ticks
from csdplan.profile import load, workload_of
from csdplan.result import bep, curves

SWEEP = Lines(
    "a </script> title",
    "cores",
    "drives",
    (1.0, 2.0, 3.0),
    (Line("first", (3.0, None, 1.0)), Line("base", (2.0, 2.0, 2.0), reference=True)),
    steps=True,
    marks=(Mark(2.0, 2.0, "here"),),
)
MAP = Map(
    "map",
    "x",
    "y",
    (1.0, 2.0),
    (1.0, 2.0),
    ((100.0, None), (10.0, 1.0)),
    iso=(Iso("break-even point 3", (1.0, 2.0), (None, 1.5)),),
    marks=(Mark(1.0, 1.0, "100", label="here"),),
)
STACK = Bars(
    "stack", "USD", ("a\nb", "c"), (Bar((2.0, None), "drives"), Bar((3.0, 1.0), "host")),
    (4.5, None), "throughput [GB/s]",
)  # fmt: skip
WORKLOAD = workload_of(load("newport"), "count", name="newport")


def drawn(panel: Lines | Bars | Map, width: int = 640) -> ET.Element:
    """Return a figure's element: it is well-formed XML too."""
    return ET.fromstring(screen.figure(panel, width))


def texts(figure: ET.Element) -> list[str]:
    return ["".join(one.itertext()) for one in figure.iter("text")]


def test_a_page_fetches_nothing_and_equal_results_give_equal_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "a" / "f.html", tmp_path / "b" / "f.html"
    for path in (first, second):
        path.parent.mkdir()
        write([SWEEP, MAP, STACK], path)
    assert first.read_bytes() == second.read_bytes()
    text = first.read_text(encoding="utf-8")
    assert not re.search(r"(src|href)=|url\(|@import", text)
    assert text.count("<script>") == text.count("</script>") == 1
    assert "prefers-color-scheme: dark" in text


@pytest.mark.parametrize("width", [280, 358, 640, 1100])
@pytest.mark.parametrize("panel", [SWEEP, MAP, STACK], ids=["lines", "map", "bars"])
def test_every_figure_is_titled_and_stays_inside(panel: Lines | Bars | Map, width: int) -> None:
    figure = drawn(panel, width)
    caption, svg, _ = figure
    assert caption.text == panel.title
    assert svg.get("role") == "img"
    assert (svg.get("aria-label") or "").startswith(panel.title)
    assert int(svg.get("width", "0")) == width
    for one in svg.iter("rect"):
        assert float(one.get("x", "0")) >= 0
        assert float(one.get("x", "0")) + float(one.get("width", "0")) <= width + 0.5


def test_lines_step_where_results_are_whole_numbers_and_break_where_there_are_none() -> None:
    paths = [
        one.get("d", "") for one in drawn(SWEEP).iter("path") if "line" in one.get("class", "")
    ]
    first = next(path for path in paths if path.count("M") == 2)
    base = next(path for path in paths if path.count("M") == 1)
    assert "L" not in first + base
    assert base.count("H") == base.count("V") == 2


def test_a_figure_of_throughput_marks_points_and_bands() -> None:
    (found,) = curves(bep([WORKLOAD], [1, 16]), [WORKLOAD])
    figure = drawn(figures.throughput(found))
    classes = [one.get("class", "") for one in figure.iter()]
    bands = [name for name in classes if name.startswith("band")]
    assert bands == ["band ref", "band s0", "band s1", "band"], "and one in the legend"
    assert classes.count("whisker") == 2
    assert {"12", "44", "host's link is full (k_limit 8)"} <= set(texts(figure))
    svg = figure[1]
    told = json.loads(html.unescape(svg.get("data-hover", "")))
    assert [one[1].partition(":")[0] for one in told[:2]] == [
        "number of drives 1",
        "number of drives 2",
    ]
    assert "drives that compute 0.469" in told[0][1]
    dashes = [
        one.get("stroke-dasharray")
        for one in figure.iter("path")
        if "line s" in one.get("class", "")
    ]
    assert len({*dashes[:2]}) == 2, "lines differ without color"


def test_two_figures_share_their_axes() -> None:
    panels = [
        figures.throughput(curves(bep([WORKLOAD], [cores]), [WORKLOAD])[0]) for cores in (1, 16)
    ]
    room = screen.room_of(panels)
    first, second = (
        [one for one in texts(ET.fromstring(screen.figure(panel, 640, room))) if one.isdigit()]
        for panel in panels
    )
    assert set(first) - {"12", "44"} == set(second) - {"12", "44"}


def test_a_map_says_what_each_color_means() -> None:
    (*_, legend) = drawn(MAP)
    names = ["".join(one.itertext()) for one in legend]
    assert names[:2] == ["1 drive", "2-4 drives"]
    assert "never" in names
    assert "break-even point 3" in names
    assert "★ here" in names


def test_short_labels_stand_before_their_bars() -> None:
    bars = Bars(
        "b", "share [%]", ("11", "12"), (Bar((1.0, 3.0)),), across="break-even point [drives]"
    )
    figure = drawn(bars)
    assert {"break-even point", "share [%]", "11"} <= set(texts(figure))
    (rect, *_) = figure.iter("rect")
    (label,) = (one for one in figure.iter("text") if one.text == "11")
    assert float(label.get("y", "0")) > float(rect.get("y", "0")), "in the same row"
    assert float(rect.get("x", "0")) > 20


def test_bars_say_price_and_throughput() -> None:
    assert {"5", "4.5", "unknown", "throughput [GB/s]", "a, b"} <= set(texts(drawn(STACK)))
    assert "a, b: 5 USD, 4.5 throughput [GB/s]" in (drawn(STACK)[1].get("aria-label") or "")


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=40))
def test_levels_hold_every_value_once(values: list[int]) -> None:
    found = levels(values)
    assert len(found) <= 9
    for value in values:
        assert sum(low <= value <= high for low, high in found) == 1
    assert len({shade(at, len(found)) for at in range(len(found))}) == len(found)


@given(st.floats(1e-3, 1e6), st.floats(1.5, 1e6), st.integers(2, 12))
def test_ticks_are_inside(low: float, ratio: float, count: int) -> None:
    high = low * ratio
    for found in (ticks(low, high, count), decades(low, high)):
        assert all(low * 0.999 <= one <= high * 1.001 for one in found)
        assert len(found) <= 2 * count + 9
