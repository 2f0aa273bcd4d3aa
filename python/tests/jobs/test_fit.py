"""Models of made-up runs: the parameters are found again, and ranges hold the truth."""

from pathlib import Path

import numpy as np
import pytest

from csdplan.jobs.check import checked
from csdplan.jobs.fit import Given, fitted
from csdplan.jobs.foretold import foretold
from csdplan.jobs.lines import line
from csdplan.jobs.model import Model
from csdplan.jobs.runs import read_run
from csdplan.sim import Cluster

from .made_up import Truth

#: One drive, two sizes; both divide into whole waves of two slots.
TWO = [(320e6, 1), (640e6, 1)]


def model_of(truth: Truth, folder: Path, sizes: list[tuple[float, int]]) -> Model:
    return fitted([read_run(text) for text in truth.records(folder, sizes)], Given())[0]


def test_without_noise_two_runs_give_every_parameter(tmp_path: Path) -> None:
    truth = Truth()
    model = model_of(truth, tmp_path, TWO)
    expected = {
        "begin_s": 20.0, "drive_cores": 0.8, "os_fixed_s": 15.0, "map_byte_s": 0.75 * 2e-7,
        "reduce_byte_s": 0.25 * 2e-7, "shuffle_ratio": 1.0, "output_ratio": 1.0, "reduces": 8,
        "host_fixed_s": 4.0, "host_byte_s": 5e-9, "routing_byte_s": 2e-9,
        "tunnel_inside_byte_s": 3e-9, "drives_byte_s": 1e-9, "host_core_W": 6.0,
        "block_bytes": 8e6, "input_bytes": 640e6,
    }  # fmt: skip
    for name, value in expected.items():
        assert model[name] == pytest.approx(value, rel=1e-3), name
    for name in ("begin_s", "drive_cores", "os_fixed_s", "map_byte_s", "host_byte_s"):
        assert model.numbers[name].low is None
    assert model.numbers["map_start_s"].prov == "assumed"
    assert model.numbers["begin_s"].prov == "inferred"
    assert any("no ranges" in text for text in model.warnings)


def test_two_drives_and_a_third_size_are_foretold(tmp_path: Path) -> None:
    truth = Truth()
    texts = truth.records(tmp_path, TWO)
    runs = [read_run(text) for text in texts]
    model, residuals = fitted(runs, Given())
    other = read_run(truth.record(tmp_path, "third", 960e6, 2))
    found = checked(model, runs, other)
    assert found.passed
    assert found.error == pytest.approx(0, abs=0.02)
    # The residual of tunnels is what one drive has that the model has not, 1 MB of heartbeats.
    walls = [one for one in residuals if one.quantity == "wall_s"]
    assert all(one.fitted == pytest.approx(one.measured, rel=1e-6) for one in walls)


def test_ranges_hold_the_truth_as_often_as_they_say(tmp_path: Path) -> None:
    sizes = [(size, drives) for size in (320e6, 640e6, 1280e6) for drives in (1, 2)] * 2
    names = {"begin_s": 20.0, "drive_cores": 0.8, "os_fixed_s": 15.0, "routing_byte_s": 2e-9}
    inside = dict.fromkeys(names, 0)
    foretelling, rounds = 0, 40
    for seed in range(rounds):
        truth = Truth(noise=0.02, seed=seed)
        model = model_of(truth, tmp_path, sizes)
        for name, value in names.items():
            one = model.numbers[name]
            assert one.low is not None
            assert one.high is not None
            inside[name] += one.low <= value <= one.high
            assert one.value == pytest.approx(value, rel=0.25)
        there = foretold(model, Cluster(0, 4, 4, 1.0))
        assert there.low_s is not None
        assert there.high_s is not None
        foretelling += there.low_s <= truth._seen(truth.wall_s(1280e6, 4)) <= there.high_s
    # 90 % each; that fewer than 31 of 40 hold has a chance below 1 %.
    assert min(*inside.values(), foretelling) >= 31, (inside, foretelling)


def test_starts_of_tasks_show_where_tasks_differ() -> None:
    tasks, size = np.array([10.0, 40, 20, 80, 30]), np.array([1e8, 1e8, 2e8, 2e8, 3e8])
    cpu = 5.0 + 1.5 * tasks + 1e-7 * size
    found = line(np.stack([np.ones(5), tasks, size], axis=1), cpu)
    assert list(found.coefficients) == pytest.approx([5.0, 1.5, 1e-7])
    assert found.free == 2
    assert found.spread == pytest.approx(0, abs=1e-9)


def test_no_coefficient_is_negative() -> None:
    size = np.array([1.0, 2.0, 3.0])
    found = line(np.stack([np.ones(3), size], axis=1), 2 * size - 0.5)
    assert found.coefficients[0] == 0
    assert found.coefficients[1] > 0
    assert found.free == 2


def test_energy_is_that_of_classes_and_adds_up(tmp_path: Path) -> None:
    model = model_of(Truth(), tmp_path, TWO)
    found = foretold(model, Cluster(0, 4, 4, 1.0))
    assert found.energy_J is not None
    assert found.net_energy_J == pytest.approx(6.0 * sum(found.cpu_s.values()), rel=1e-6)
    assert found.cpu_s["os"] == pytest.approx(15 + 2e-7 * 640e6, rel=1e-3)
    # Three quarters of the shuffle and a copy of the output, each at two ends.
    assert found.run.tunnel_bytes == pytest.approx(2 * 1.75 * 640e6, rel=1e-6)
    assert found.cpu_s["tunnels"] == pytest.approx(5e-9 * found.run.tunnel_bytes, rel=1e-6)
    without = foretold(model_of(Truth(watts=None), tmp_path, TWO), Cluster(0, 4, 4, 1.0))
    assert without.energy_J is None
