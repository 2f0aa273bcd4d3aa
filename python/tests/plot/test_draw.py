"""Figures as images: right format, right content, and equal bytes for equal results."""

import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

from csdplan import PlotError
from csdplan.plot import Bar, Bars, Lines, Map, Panel, draw, figures, screen, write
from csdplan.profile import load, workload_of
from csdplan.result import bep, curves


@pytest.fixture(scope="module")
def systems() -> list[Lines]:
    loads = [workload_of(load(name), "count", name=name) for name in ("newport", "smartssd")]
    return [figures.throughput(each) for each in curves(bep(loads, [1, 16]))]


def test_svg_is_xml_and_bytes_are_equal(
    systems: list[Lines], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first.svg", tmp_path / "second.svg"
    write(systems, first)
    # Neither the day nor a user's own settings may show.
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    import matplotlib as mpl  # noqa: PLC0415 - only drawing may import it

    monkeypatch.setitem(mpl.rcParams, "axes.facecolor", "red")
    write(systems, second)
    assert first.read_bytes() == second.read_bytes()
    assert ET.parse(first).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    text = first.read_text(encoding="utf-8")
    assert "date" not in text
    for label in (
        "host's link is full (k_limit 8)",
        "SSDs, host with 16 cores: break-even 44",
        "SSDs, host with 1 core: break-even 2",
        "drives that compute",
    ):
        assert f">{label}</text>" in text, "text is text, which can be searched and restyled"
    titles = "; ".join(panel.title for panel in systems)
    assert f"<title>{titles}</title>" in text


def test_png_is_png_and_bytes_are_equal(systems: list[Lines], tmp_path: Path) -> None:
    first, second = tmp_path / "first.PNG", tmp_path / "second.png"
    write(systems, first)
    write(systems, second)
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


@pytest.mark.parametrize("name", ["plan.pdf", "plan", "plan.svg.gz"])
def test_other_formats_are_refused_before_drawing(
    systems: list[Lines], tmp_path: Path, name: str
) -> None:
    with pytest.raises(PlotError, match=r"ends in \.svg, \.png"):
        write(systems, tmp_path / name)
    assert not (tmp_path / name).exists()


MAP = Map("map", "x", "y", (1.0, 2.0), (1.0, 2.0), ((100.0, None), (10.0, 1.0)))
STACK = Bars("stack", "USD", ("a", "b"), (Bar((1.0, 2.0), "drives"), Bar((3.0, None), "host")))


@pytest.mark.parametrize("panel", [MAP, STACK], ids=["map", "stack"])
def test_both_renderers_draw_every_panel(panel: Panel) -> None:
    image = draw.image([panel], "svg").decode()
    assert f">{panel.title}</text>" in image
    assert f"<figcaption>{panel.title}</figcaption>" in screen.figure(panel)


def test_a_stack_is_labeled_with_its_totals_and_what_they_buy() -> None:
    stack = replace(STACK, rates=(2.5, None), rates_up="throughput [GB/s]")
    image = draw.image([stack], "svg").decode()
    for text in (">4</text>", ">2</text>", ">2.5 GB/s</text>"):
        assert text in image


def test_bars_of_one_meaning_have_one_color() -> None:
    bars = Bars("bars", "USD", ("a", "b", "c"), (Bar((1.0, 2.0, 3.0)),))
    image = draw.image([bars], "svg").decode()
    assert "#0072b2" in image
    assert "#d55e00" not in image
