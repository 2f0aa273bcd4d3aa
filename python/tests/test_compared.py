"""Figures of benchmarks in pairs: medians, quartiles, lines and records."""

import argparse
import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def compared() -> ModuleType:
    """Load the benchmarks' module, which is in no package."""
    spec = importlib.util.spec_from_file_location("compared", ROOT / "bench" / "compared.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_sides_take_turns_after_a_round_that_does_not_count(compared: ModuleType) -> None:
    order = []

    def side(name: str, figures: list[float]) -> float:
        order.append(name)
        return figures.pop(0)

    first, second = [9.0, 1.0, 2.0, 3.0], [9.0, 4.0, 5.0, 6.0]
    found = compared.turns(3, lambda: side("a", first), lambda: side("b", second))
    assert found == [(1, 4), (2, 5), (3, 6)]
    assert "".join(order) == "ba" + "abba" + "ab"


def test_a_summary_has_medians_and_the_quartiles_of_the_ratios(compared: ModuleType) -> None:
    pairs = [(100, 50), (200, 150), (50.04, 12.51)]
    expected = {"floor": 100, "ours": 50, "ratio": 0.5, "quartiles": [0.25, 0.75]}
    assert compared.summary(pairs) == expected
    named = compared.summary([(3, 2)], ("plain", "other"), (0, 1))
    assert named == {"plain": 3, "other": 2, "ratio": 0.7, "quartiles": [0.7, 0.7]}


def test_results_are_shown_with_aims_and_recorded(
    compared: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    results = {"put": {"ratio": 0.5}, "get": {"ratio": 1}}
    compared.show(results, {"put": 0.9})
    assert capsys.readouterr().out == 'put: {"ratio": 0.5}; aim 0.9\nget: {"ratio": 1}\n'
    options = argparse.Namespace(record=tmp_path / "record", rounds=3, mib=7)
    for _ in range(2):
        compared.record("scrub", options, ("rounds",), results)
    lines = [json.loads(line) for line in options.record.read_text().splitlines()]
    assert len(lines) == 2
    assert {"load", "cpus"} < set(lines[0])
    assert (lines[0]["bench"], lines[0]["rounds"], lines[0]["results"]) == ("scrub", 3, results)
    compared.record("scrub", argparse.Namespace(record=None), (), results)
