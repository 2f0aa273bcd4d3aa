"""Measurements of clusters: reading logs, and tables. No figure here was measured."""

import importlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

FOLDER = Path(__file__).parents[2] / "bench" / "cluster"


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[SimpleNamespace]:
    """Load the modules, which are in no package."""
    monkeypatch.syspath_prepend(FOLDER)
    before = set(sys.modules)
    modules: dict[str, ModuleType] = {
        name: importlib.import_module(name) for name in ("clusters", "jobs", "floors", "table")
    }
    yield SimpleNamespace(**modules)
    for name in set(sys.modules) - before:
        file = getattr(sys.modules[name], "__file__", None)
        if file and Path(file).is_relative_to(FOLDER.parent):
            del sys.modules[name]


LOG = """2026-11-30 12:00:00,000 INFO mapreduce.Job: Running job: job_1_0007
2026-11-30 12:00:10,500 INFO mapreduce.Job:  map 50% reduce 0%
2026-11-30 12:00:20,500 INFO mapreduce.Job:  map 100% reduce 0%
2026-11-30 12:00:23,000 INFO mapreduce.Job:  map 100% reduce 17%
2026-11-30 12:00:26,250 INFO mapreduce.Job:  map 100% reduce 67%
2026-11-30 12:00:30,000 INFO mapreduce.Job:  map 100% reduce 100%
"""


def test_a_shuffle_lies_between_the_last_map_and_a_third_of_the_reduces(
    bench: SimpleNamespace,
) -> None:
    begin, end = bench.jobs.shuffle_window(LOG)
    assert end - begin == 5.75
    times = [(begin + second, 0.1 * second, 2.0 * second) for second in range(-3, 10)]
    done = SimpleNamespace(log=LOG, ran=SimpleNamespace(times=times))
    found = bench.jobs.shuffle(done)
    assert found == pytest.approx({"s": 5, "routing_s": 0.5, "machine_s": 10})
    assert bench.jobs.shuffle_window("INFO Job:  map 10% reduce 0%") is None


def test_bytes_of_tunnels_are_explained_by_where_tasks_ran(bench: SimpleNamespace) -> None:
    counted = SimpleNamespace(maps=4, local_maps=3, input_bytes=400, output_bytes=50)
    moved = {"maps": [("d0", 30), ("d0", 30), ("d1", 40)], "reduces": [("d0", 60), ("d1", 40)]}
    # d0 fetches 40 % of its 60 bytes from d1, d1 60 % of its 40 from d0; a copy of the output and
    # the block of one map are elsewhere. All count at two ends.
    expected = 2 * (24 + 24 + 50 + 100)
    done = SimpleNamespace(counted=counted)
    assert bench.jobs.explained_bytes(done, moved, 2) == pytest.approx(expected)


def test_transforms_are_counted_by_their_last_line(bench: SimpleNamespace) -> None:
    assert bench.jobs.transforms_s("x\n90 objects in 1.250 s: host 50 d0 40\n") == (90, 1.25)
    with pytest.raises(RuntimeError):
        bench.jobs.transforms_s("mpirun failed")


def test_curves_are_read_as_netpipe_prints_them(bench: SimpleNamespace) -> None:
    said = """0: d0
Now starting the main loop
  0:       1 bytes   3245 times -->      1.03 Mbps in       7.40 usec
 12:     192 bytes    900 times -->    131.74 Mbps in      11.12 usec
"""
    assert bench.floors.curve(said) == [(1, pytest.approx(7.4e-6)), (192, pytest.approx(11.12e-6))]
    with pytest.raises(RuntimeError):
        bench.floors.curve("mpirun failed")


def test_an_interrupted_run_knows_what_it_has_done(bench: SimpleNamespace, tmp_path: Path) -> None:
    options = SimpleNamespace(record=tmp_path / "record", run="b")
    assert not bench.clusters.is_done(options, "model", round=1)
    lines = [
        {"bench": "cluster", "part": "model", "run": run, "results": {"round": 1, "job": job}}
        for run, job in (("a", "sort"), ("b", "dft"))
    ]
    options.record.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert bench.clusters.is_done(options, "model", round=1, job="dft")
    assert not bench.clusters.is_done(options, "model", round=1, job="sort")
    assert not bench.clusters.is_done(options, "model", round=2, job="dft")
    assert not bench.clusters.is_done(options, "routing", round=1)


def tables(bench: SimpleNamespace, part: str, rounds: Sequence[Mapping[str, object]]) -> str:
    """Return the table of a record with an earlier run that must not count."""
    common = {"bench": "cluster", "part": part, "machine": "x", "load": 0.1}
    lines = [json.dumps(common | {"run": "1", "results": {"round": 1}})]
    lines += [json.dumps(common | {"run": "2", "results": one}) for one in rounds]
    lines.append(json.dumps({"bench": "tunnel", "results": {}}))
    about, found = bench.table.last_runs("\n".join(lines))[part]
    assert about["run"] == "2"
    return "\n".join(bench.table.PARTS[part](found))


def test_pairs_are_compared_and_judged(bench: SimpleNamespace) -> None:
    def side(wall_s: float, cpu_s: float) -> dict[str, object]:
        return {"wall_s": wall_s, "transforms_s": wall_s / 2, "cpu_s": {"host": cpu_s, "os": 1.0}}

    rounds = [{"floor": side(10, 1), "drives": side(ours, 2)} for ours in (10.4, 10.5, 10.6)]
    said = tables(bench, "floors: dft", rounds)
    assert "| transforms, wall of the whole job, s | 10 | 10.5 | 1.05 | 1.04-1.06 | 1.1 |" in said
    assert "| transforms, CPU-s | 2 | 3 | 1.5 | 1.5-1.5 |  |" in said
    rounds = [{"floor": {"all_reduce_s": 0.1}, "drives": {"all_reduce_s": x}} for x in (0.2, 0.9)]
    said = tables(bench, "floors: allreduce", rounds)
    assert "| 5.5 (inconclusive): missed |" in said


def test_drives_under_quotas_count_only_with_their_loops(bench: SimpleNamespace) -> None:
    def one(number: int, drives: int, per_s: float, loop: float = 1.0) -> dict[str, object]:
        return {"round": number, "drives": drives, "per_s": per_s, "loops": {"host": loop}}

    rounds = [one(1, 0, 100), one(1, 4, 200), one(1, 8, 300, 0.9), one(2, 4, 400)]
    said = tables(bench, "paced: dft", rounds)
    # The second round was interrupted before the host alone was measured.
    assert "| 4 | 200 | 2 | 0.952 | 0.952-0.952 | 0.9 | 1.000 |" in said
    assert "| 8 | 300 | 3 | 0.938 | 0.938-0.938 | 0.9 | 0.900: not valid |" in said


def test_hadoop_has_rows_of_pairs_and_of_drives(bench: SimpleNamespace) -> None:
    cpu = {"host": 2.0, "os": 10.0, "drives": 1.0, "tunnels_inside": 1.0, "tunnels_outside": 0.5}
    drive = {"tunnel_sent_bytes": 5e8, "tunnel_received_bytes": 5e8}
    side = {
        "wall_s": 30, "cpu_s": cpu, "os_system_s": 2.0, "meter": {"result": {"drives": [drive]}},
        "counters": {"maps": 20, "local_maps": 19}, "held_bytes": {"2": 1 << 30, "3": 1 << 31},
    }  # fmt: skip
    floor = {"wall_s": 20, "cpu_s": {"host": 5.0, "os": 5.0}}
    shuffle = {"s": 5, "routing_s": 1.0, "machine_s": 10.0}
    more = {"job": "sort", "explained_bytes": 1e9, "shuffle": shuffle}
    said = tables(bench, "floors: hadoop", [{"floor": floor, "drives": side} | more] * 2)
    for row in (
        "| sort, CPU-s | 10 | 14.5 | 1.45: missed |",
        "| sort, wall, s | 20 | 30 | 1.5: missed |",
        "| sort, local maps, % | 95 |",
        "| sort, bytes of tunnels over those of counters | 1 |",
        "| sort, most memory of a drive with 2 containers, GiB | 1 |",
        "| sort, host's routing, CPU-s a GB from drive to drive | 1 |",
        "| sort, routing, % of CPU time during the shuffle | 10 |",
        "| sort, what serves a drive's programs, % of its CPU time | 16.667 |",
        "| sort, kernel's time, % of that of a drive's programs | 20 |",
    ):
        assert row in said
