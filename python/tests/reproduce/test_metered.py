"""Configurations from metered runs, or why there are none. No figure here was measured."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from csdplan_reproduce import metered
from csdplan_reproduce.document import text
from csdplan_reproduce.metered import HADOOP, cases, outcome, read, section
from csdplan_reproduce.report import Report

from csdplan.errors import CsdplanError
from csdplan.jobs.hadoop import counters

from ..jobs.made_up import Truth

#: Drives and input of each case: two of the fit, and what is foretold.
CASES = ((1, 320e6), (1, 640e6), (2, 960e6))
OBJECT_BYTES = 1e6


def lines(folder: Path, job: str, made: Callable[[int, int], Truth], rounds: int = 5) -> list[str]:
    """Return the lines of a record; `made` gives the truth of a round and a number of drives."""
    found = []
    for number in range(1, rounds + 1):
        for drives, size in CASES:
            name = f"{job}-{number}-{size:g}"
            made(number, drives).record(folder, name, size, drives)
            results = {
                "round": number, "job": job, "drives": drives,
                "meter": json.loads((folder / f"{name}.json").read_text()),
            }  # fmt: skip
            if job == "dft":
                results |= {"input_bytes": size, "block_bytes": OBJECT_BYTES}
            else:
                results["counters"] = asdict(counters(folder / f"{name}.log"))
            body = {"bench": "cluster", "part": "model", "run": "1", "machine": "x"}
            found.append(json.dumps(body | {"results": results}))
    return found


def steady(number: int, _drives: int) -> Truth:
    """Return a job with a spread of 2 %."""
    return Truth(reduces=64, noise=0.02, seed=number)


def maps_alone(number: int, _drives: int) -> Truth:
    """Return a job without shuffle and output."""
    return Truth(shuffle=0, output=0, noise=0.02, seed=number)


def record(folder: Path, **made: Callable[[int, int], Truth]) -> Path:
    """Write a record of all three jobs of Hadoop, some of them made otherwise, and of more."""
    path = folder / "cluster.jsonl"
    every = dict.fromkeys(HADOOP, steady) | made
    found = [line for job, truth in every.items() for line in lines(folder, job, truth)]
    # Other parts of the record are none of the model's.
    found.append(json.dumps({"bench": "cluster", "part": "floors: dft", "results": {}}))
    path.write_text("\n".join(found) + "\n")
    return path


def test_without_records_nothing_is_claimed(tmp_path: Path) -> None:
    for path in (None, tmp_path / "other.jsonl"):
        if path:
            path.write_text('{"bench": "cluster", "part": "paced: dft", "results": {}}\n')
        said = section(path)
        assert "Nothing has been measured yet" in said
        assert "bench/cluster/model.py --record" in said
        assert "|" not in said


def test_a_model_that_holds_for_all_jobs_gives_the_sixteen_configurations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A tenth of the paper's, which take a tenth of the time.
    monkeypatch.setattr(metered, "_tasks", lambda: 200)
    said = section(record(tmp_path, dft=maps_alone))
    table = [line.split("|") for line in said.splitlines() if line.startswith("| ")]
    rows = [row for row in table if row[1].strip().isdigit()]
    assert [int(row[1]) for row in rows] == list(range(1, 17))
    assert said.count(" held |") == 4
    # Every job of Hadoop has its speed-up on all hosts, DFT on the high one.
    assert all(row[4].strip() and row[6].strip() for row in rows)
    assert [bool(row[7].strip()) for row in rows] == [False] * 8 + [True] * 8
    first, *_, last = (row[4].split() for row in rows if row[2].strip() == "high")
    assert first[0] == "1.00"
    low, high = map(float, last[1].strip("()").split("-"))
    assert 1 < low <= float(last[0]) <= high
    # The printed value stands in the same row.
    for number in ("2.2 times", "36 %", "4.3 times", "5.4 times", "8.9 times"):
        assert f"| {number}" in said
    assert "unknown: the records have no energy" not in said
    assert "not given" not in said


def test_a_miss_of_one_job_stands_in_place_of_the_table(tmp_path: Path) -> None:
    def slow(number: int, drives: int) -> Truth:
        return replace(steady(number, drives), begin_s=20.0 if drives == 1 else 120.0)

    said = section(record(tmp_path, sort=slow))
    assert "The paper's configurations are not given: WordCount held, Sort missed" in said
    (row,) = (line for line in said.splitlines() if line.startswith("| Sort "))
    predicted, measured = (float(row.split("|")[at].split()[0]) for at in (4, 5))
    error = float(row.split("|")[7].strip().rstrip("%")) / 100
    assert predicted / measured - 1 == pytest.approx(error, abs=0.01)
    assert error < -0.2
    assert "| 16 | high |" not in said


def test_unsteady_runs_and_few_runs_are_inconclusive(tmp_path: Path) -> None:
    def jumps(number: int, drives: int) -> Truth:
        return replace(steady(number, drives), begin_s=20.0 * number)

    said = section(record(tmp_path, terasort=jumps))
    assert "TeraSort inconclusive" in said
    assert "quartiles more than 15% apart" in said
    path = tmp_path / "few.jsonl"
    path.write_text("\n".join(lines(tmp_path, "wordcount", steady, rounds=4)))
    assert "fewer than 5 runs of a case" in section(path)
    assert "Sort not measured, TeraSort not measured" in section(path)


def test_a_job_that_was_half_measured_is_unknown(tmp_path: Path) -> None:
    path = tmp_path / "half.jsonl"
    path.write_text("\n".join(lines(tmp_path, "sort", steady)[:2]))
    recorded = read(path)["sort"]
    assert [case.drives for case in cases(recorded)] == [1, 1]
    assert outcome("sort", recorded).verdict == "unknown"


def test_the_last_measurement_of_a_job_counts(tmp_path: Path) -> None:
    path = record(tmp_path)
    again = [
        line.replace('"run": "1"', '"run": "2"') for line in lines(tmp_path, "sort", steady, 2)
    ]
    path.write_text(path.read_text() + "\n".join(again))
    found = read(path)
    assert len(found["sort"]) == 2 * len(CASES)
    assert len(found["wordcount"]) == 5 * len(CASES)


def test_a_line_that_is_no_record_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    body = json.loads(lines(tmp_path, "sort", steady, 1)[0])
    body["results"]["meter"]["result"]["failed"] = True
    path.write_text(json.dumps(body))
    with pytest.raises(CsdplanError, match=r"bad\.jsonl:1.*failed"):
        read(path)
    del body["results"]["round"]
    path.write_text(json.dumps(body))
    with pytest.raises(CsdplanError, match=r"bad\.jsonl:1.*results\.round"):
        read(path)


def test_the_page_has_the_section(tmp_path: Path) -> None:
    path = tmp_path / "cluster.jsonl"
    path.write_text("\n".join(lines(tmp_path, "terasort", steady, 2)))
    page = text(Report(()), path)
    assert page.index("## Configurations of paper 004\n") < page.index("from metered runs")
    assert "| TeraSort |" in page
