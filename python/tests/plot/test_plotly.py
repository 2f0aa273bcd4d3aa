"""Figures as pages: self-contained, with every number of the plain figure."""

import json
import re
from pathlib import Path

import pytest

from csdplan.plot import Bar, Bars, Iso, Line, Lines, Map, Mark, figures, plotly, write
from csdplan.profile import load, workload_of
from csdplan.result import bep, curves

pytest.importorskip("plotly", reason="plotly is not installed: figures are NOT interactive")

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
    iso=(Iso("BEP 3", (1.0, 2.0), (None, 1.5)),),
    marks=(Mark(1.0, 1.0, "100"),),
)


def held(path: Path) -> list[plotly.Figure]:
    """Return the figures that a page holds, read as the browser reads them."""
    text = path.read_text(encoding="utf-8")
    # Plotly's own script comes first, and may hold anything.
    body = text[text.index("<body>") :]
    assert body.count("<script>") == body.count("</script>") == 1
    found = re.search(r"<script>(\[.*\])\.forEach", body)
    assert found is not None
    drawn: list[plotly.Figure] = json.loads(found.group(1))
    return drawn


def test_a_page_fetches_nothing_and_equal_results_give_equal_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "a" / "f.html", tmp_path / "b" / "f.html"
    for path in (first, second):
        path.parent.mkdir()
        write([SWEEP], path)
    assert first.read_bytes() == second.read_bytes()
    text = first.read_text(encoding="utf-8")
    assert "src=" not in text[: text.index("<script>")] + text[text.index("<body>") :]
    assert len(text) > 1_000_000, "Plotly's script is inside"


def test_every_kind_of_figure_holds_its_numbers(tmp_path: Path) -> None:
    path = tmp_path / "f.html"
    write([SWEEP], path)
    (figure,) = held(path)
    assert figure["layout"]["title"]["text"] == SWEEP.title
    assert [trace["y"] for trace in figure["data"]] == [[3.0, None, 1.0], [2.0, 2.0, 2.0], [2.0]]

    write([MAP], path)
    (figure,) = held(path)
    assert figure["data"][0]["customdata"] == [[100.0, None], [10.0, 1.0]]
    assert figure["data"][0]["z"][0] == [2.0, None]

    write([Bars("costs", "USD", ("a\nb", "c"), (Bar((2.0, None)),))], path)
    (figure,) = held(path)
    assert figure["data"][0]["text"] == ["2", "unknown"]

    found = curves(bep([workload_of(load("newport"), "count", name="newport")], [1, 16]))
    write([figures.throughput(each) for each in found], path)
    (figure,) = held(path)
    assert [trace["x"] for trace in figure["data"] if trace["mode"] == "markers+text"] == [
        [12],
        [44],
    ]


def test_without_plotly_a_page_holds_the_plain_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plotly, "script", lambda: None)
    path = tmp_path / "f.html"
    write([SWEEP], path)
    text = path.read_text(encoding="utf-8")
    assert "<svg" in text
    assert "<script" not in text
