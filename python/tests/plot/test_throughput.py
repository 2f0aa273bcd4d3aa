"""Figures: right format, right content, and equal bytes for equal results."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from csdplan import PlotError
from csdplan.plot import throughput
from csdplan.profile import load, workload_of
from csdplan.result import bep, curves
from csdplan.result.throughput import SystemCurves


@pytest.fixture(scope="module")
def systems() -> tuple[SystemCurves, ...]:
    loads = [workload_of(load(name), "count", name=name) for name in ("newport", "smartssd")]
    return curves(bep(loads, [1, 16]))


def test_svg_is_xml_and_bytes_are_equal(
    systems: tuple[SystemCurves, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = tmp_path / "first.svg", tmp_path / "second.svg"
    throughput(systems, first)
    # Neither the day nor a user's own settings may show.
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    import matplotlib as mpl  # noqa: PLC0415 - only drawing may import it

    monkeypatch.setitem(mpl.rcParams, "axes.facecolor", "red")
    throughput(systems, second)
    assert first.read_bytes() == second.read_bytes()
    assert ET.parse(first).getroot().tag == "{http://www.w3.org/2000/svg}svg"
    text = first.read_text(encoding="utf-8")
    assert "date" not in text
    # matplotlib leaves a comment with the text of each label beside its outlines.
    for label in ("k_limit 8", "SSDs, Host(16): BEP 44", "SSDs, Host(1): BEP 2", "CSDs"):
        assert f"<!-- {label} -->" in text


def test_png_is_png_and_bytes_are_equal(systems: tuple[SystemCurves, ...], tmp_path: Path) -> None:
    first, second = tmp_path / "first.PNG", tmp_path / "second.png"
    throughput(systems, first)
    throughput(systems, second)
    assert first.read_bytes() == second.read_bytes()
    assert first.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")


@pytest.mark.parametrize("name", ["plan.pdf", "plan", "plan.svg.gz"])
def test_other_formats_are_refused_before_drawing(
    systems: tuple[SystemCurves, ...], tmp_path: Path, name: str
) -> None:
    with pytest.raises(PlotError, match=r"ends in \.svg, \.png"):
        throughput(systems, tmp_path / name)
    assert not (tmp_path / name).exists()
