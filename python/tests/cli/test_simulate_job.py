"""``csdplan simulate --job`` as users run it, on made-up records: answers, refusals, the gate."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import csdplan as cp
from csdplan.cli import app

from ..jobs.made_up import Truth

ENABLED = ("--drives", "16", "--enabled", "0,2,4,6,8,10,12,16", "--reduces", "64")


def run(*arguments: str) -> Result:
    runner = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"})
    return runner.invoke(app, ["simulate", *arguments])


def records(folder: Path, truth: Truth | None = None) -> list[str]:
    """Return the options of two made-up records."""
    made = (truth or Truth(reduces=64)).records(folder, [(320e6, 1), (640e6, 1)])
    return [word for text in made for word in ("--job", text)]


def body_of(result: Result) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(result.stdout)["result"]
    body["tables"] = {table["title"].split()[0]: table["rows"] for table in body["tables"]}
    return body


def test_sixteen_drives_from_two_records(tmp_path: Path) -> None:
    result = run(*records(tmp_path), *ENABLED, "--host-cores", "8", "--input", "4GB", "--json")
    assert result.exit_code == 0, result.output
    body = body_of(result)
    rows = body["tables"]["4"]
    assert [row["enabled_drives"] for row in rows] == [0, 2, 4, 6, 8, 10, 12, 16]
    assert all(a["time_s"] > b["time_s"] for a, b in pairwise(rows))
    for row in rows:
        assert row["local_maps"] + row["stolen_maps"] + row["host_maps"] == 500
        assert row["throughput_Bps"] <= row["closed_form_Bps"] * (1 + 1e-9)
        classes = sum(row[f"{name}_J"] for name in ("host", "os", "drives", "tunnels"))
        assert row["net_energy_J"] == pytest.approx(classes)
    numbers = {row["number"]: row for row in body["tables"]["Numbers"]}
    assert {row["prov"] for row in numbers.values()} <= {
        "given", "measured", "inferred", "assumed",
    }  # fmt: skip
    assert (numbers["reduces"]["prov"], numbers["slots"]["prov"]) == ("given", "assumed")
    assert {row["quantity"] for row in body["tables"]["Residuals"]} >= {"wall_s", "os_cpu_s"}
    assert "No measured run has checked it" in body["answer"]
    # Without a check nothing is said of the paper.
    assert set(body["tables"]) == {"4", "Numbers", "Residuals"}


def test_a_table_and_a_figure(tmp_path: Path) -> None:
    figure = tmp_path / "job.svg"
    result = run(*records(tmp_path), *ENABLED, "--plot", str(figure))
    assert result.exit_code == 0, result.output
    assert "Numbers behind it" in result.stdout
    assert "closed forms" in figure.read_text()
    texts = Truth(reduces=64).records(tmp_path, [(320e6, 1), (640e6, 1)])
    table = cp.simulate(job=texts, drives=4, reduces=64, enabled=[2, 4])
    assert any("no ranges" in text for text in table.attrs["warnings"])
    assert list(table["enabled_drives"]) == [2, 4]


def test_the_papers_configurations_need_a_check_that_passes(tmp_path: Path) -> None:
    jobs, truth = records(tmp_path), Truth(reduces=64)
    good = truth.record(tmp_path, "third", 960e6, 2)
    result = run(*jobs, *ENABLED, "--check", good, "--json")
    assert result.exit_code == 0, result.output
    body = body_of(result)
    assert body["verdict"] == "found"
    rows = body["tables"]["The"]
    assert [row["experiment"] for row in rows] == list(range(1, 17))
    assert [row["host"] for row in rows] == ["low"] * 4 + ["medium"] * 4 + ["high"] * 8
    printed = {row["experiment"]: row["printed_speed_up"] for row in rows}
    assert {number for number, value in printed.items() if value} == {16}
    assert rows[15]["printed_energy_gain"] == 4.3
    assert rows[3]["printed_energy_gain"] == pytest.approx(1 / 0.64)
    assert rows[15]["speed_up"] > rows[9]["speed_up"] > rows[8]["speed_up"] == 1
    # The machine did other work during the third run: it is too far off, so no paper is quoted.
    slow = replace(truth, begin_s=90.0).record(tmp_path, "slow", 960e6, 2)
    result = run(*jobs, *ENABLED, "--check", slow, "--json")
    assert result.exit_code == 4, result.output
    body = body_of(result)
    assert body["verdict"] == "missed"
    assert "The" not in body["tables"]
    (row,) = body["tables"]["A"]
    assert row["passed"] is False
    assert row["error"] < -0.2
    assert "configurations are not given" in body["answer"]


def test_a_check_on_a_fitted_case_is_none(tmp_path: Path) -> None:
    jobs = records(tmp_path)
    again = Truth(reduces=64, seed=2).record(tmp_path, "again", 640e6, 1)
    refused(run(*jobs, "--check", again), "another input or number of drives than")
    no_log = again.partition(",")[0]
    refused(run(*jobs, "--check", f"{no_log},input=1GB"), "a run with a log just where")


def refused(result: Result, said: str) -> None:
    """Check that a message is one line, and the exit code that of wrong use."""
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1, result.stderr
    assert result.stdout == ""


def changed(text: str, **values: object) -> str:
    """Change values of a record's result."""
    path = Path(text.partition(",")[0])
    body = json.loads(path.read_text())
    body["result"] |= values
    path.write_text(json.dumps(body))
    return text


def test_records_that_do_not_say_enough_are_one_line(tmp_path: Path) -> None:
    truth = Truth()
    one, two = truth.records(tmp_path, [(320e6, 1), (640e6, 1)])
    refused(run("--job", one), "records of one size")
    refused(run("--job", one, "--job", one), "at least 1.25 times as large")
    log = tmp_path / "job1.log"
    whole = log.read_text()
    log.write_text("Job failed")
    refused(run("--job", one, "--job", two), "no counters of a job: give what Hadoop printed")
    log.write_text(whole.replace("Launched map tasks", "Maps"))
    refused(run("--job", one, "--job", two), "lack 'Launched map tasks'")
    log.write_text(whole.replace("Total time spent by all reduce tasks", "Reduces"))
    refused(run("--job", one, "--job", two), "lack 'Total time spent by all reduce tasks (ms)'")
    log.write_text(whole)
    refused(run("--job", one, "--job", two.partition(",")[0]), "give log=FILE here as well")
    refused(run("--job", one, "--job", f"{two},x=1"), "expected RECORD.json")
    refused(run("--job", one, "--job", two, "--skew", "1"), "nothing with --job")
    refused(run("--job", one, "--job", two, "--block", "64MB"), "4 runs with tasks of different")
    refused(run("--job", one, "--job", two, "--reduces", "0"), "0 only where no run has reduces")
    refused(run("--profile", "newport", "--kernel", "count", "--slots", "2"), "without --job")
    refused(run(), "a profile and a kernel, or a job (--job)")
    changed(two, failed=True)
    refused(run("--job", one, "--job", two), "a job that failed")
    changed(two, failed=False, drives=[])
    refused(run("--job", one, "--job", two), "no drive took part")
    zeros = {"host": 1.0, "os": 0.0, "drives": 0.0, "tunnels_inside": 0.0, "tunnels_outside": 0.0}
    changed(one, cpu_s=zeros)
    refused(run("--job", one, "--job", two), "no CPU time of drives' operating systems")
    changed(one, cpu_s={})
    result = run("--job", one, "--job", two)
    assert result.exit_code == 2
    assert "cpu_s.host = absent" in result.stderr
    refused(run("--job", str(tmp_path / "none.json")), "cannot be read")


def test_a_shuffle_that_no_record_has_is_not_foretold(tmp_path: Path) -> None:
    one, two = Truth().records(tmp_path, [(320e6, 2), (640e6, 2)])
    bare = [text.partition(",")[0] for text in (one, two)]
    said = "crossed tunnels and no log says what it was, so no shuffle can be foretold"
    refused(run("--job", bare[0], "--job", bare[1], "--block", "8MB"), said)
    # Reduces whose shuffle nobody counted.
    for text in (one, two):
        log = Path(text.partition("log=")[2])
        log.write_text(log.read_text().replace("Reduce shuffle bytes", "Shuffle"))
    refused(run("--job", one, "--job", two), "no run has a shuffle, but reduces")


def test_maps_alone_need_no_log_but_the_bytes_of_a_task(tmp_path: Path) -> None:
    texts = Truth(shuffle=0, output=0).records(tmp_path, [(320e6, 1), (640e6, 1), (640e6, 2)])
    jobs = [word for text in texts for word in ("--job", text.partition(",")[0])]
    refused(run(*jobs), "block = absent: expected bytes of a task")
    result = run(*jobs, "--block", "8MB", "--drives", "4", "--host-cores", "0", "--json")
    assert result.exit_code == 0, result.output
    rows = body_of(result)["tables"]["640"]
    assert rows[-1]["shuffle_s"] == rows[-1]["reduce_s"] == 0
    assert rows[-1]["time_s"] == pytest.approx(20 + 2e-7 * 640e6 / 0.8 / 4, rel=0.01)
    assert rows[-1]["low_s"] <= rows[-1]["time_s"] <= rows[-1]["high_s"]
    # A job without a shuffle stands next to the paper's DFT, which ran on its high host alone.
    third = Truth(shuffle=0, output=0).record(tmp_path, "third", 960e6, 2).partition(",")[0]
    result = run(*jobs, "--block", "8MB", "--check", third, "--json")
    assert result.exit_code == 0, result.output
    rows = body_of(result)["tables"]["The"]
    assert [row["experiment"] for row in rows] == list(range(9, 17))
    assert (rows[-1]["printed_speed_up"], rows[-1]["printed_energy_gain"]) == (5.4, 8.9)


def test_without_watts_the_rest_is_given_and_the_code_is_partial(tmp_path: Path) -> None:
    jobs = records(tmp_path, Truth(reduces=64, watts=None))
    result = run(*jobs, "--drives", "4", "--json")
    assert result.exit_code == 4, result.output
    body = body_of(result)
    assert body["tables"]["640"][0]["net_energy_J"] is None
    warnings = json.loads(result.stdout)["warnings"]
    assert any("energy is unknown: meter with csd meter --idle" in text for text in warnings)
    given = run(*jobs, "--drives", "4", "--profile", "catalina", "--json")
    assert given.exit_code == 0, given.output
    numbers = {row["number"]: row for row in body_of(given)["tables"]["Numbers"]}
    assert numbers["host_core_W"]["value"] == 10.625
    assert numbers["host_core_W"]["prov"] == "assumed"


BY_HAND = """schema = 1
input_bytes = "1GB"
block_bytes = "8MB"
drive_cores = 0.25
map_byte_s = 1e-8
begin_s = 2.0
"""


def test_a_job_by_hand_is_given(tmp_path: Path) -> None:
    job = tmp_path / "job.toml"
    job.write_text(BY_HAND + "host_core_W = 5.0\ndrive_core_W = 1.0\n")
    options = ("--job", str(job), "--drives", "5", "--enabled", "0,5", "--host-cores", "1")
    result = run(*options, "--json")
    assert result.exit_code == 0, result.output
    body = body_of(result)
    alone, helped = body["tables"]["1"]
    assert alone["time_s"] == pytest.approx(2 + 10)
    assert helped["time_s"] == pytest.approx(2 + 10 / 2.25, rel=0.1)
    assert alone["low_s"] is None
    assert alone["net_energy_J"] == pytest.approx(50)
    numbers = {row["number"]: row["prov"] for row in body["tables"]["Numbers"]}
    assert (numbers["map_byte_s"], numbers["slots"]) == ("given", "assumed")
    refused(run(*options, "--check", "x.json"), "records as --job")
    job.write_text(BY_HAND.replace("drive_cores = 0.25\n", ""))
    refused(run(*options), "drive_cores = absent")
    job.write_text(BY_HAND + "speed = 1\n")
    refused(run(*options), "speed = 1: expected only")
    job.write_text(BY_HAND.replace("2.0", "-2.0"))
    refused(run(*options), "begin_s = -2")
    job.write_text(BY_HAND + 'slots = "two"\n')
    refused(run(*options), "slots = two: expected a number")
    job.write_text(BY_HAND + "shuffle_ratio = 1.0\n")
    refused(run(*options), "the job has a shuffle")
    job.write_text(BY_HAND)
    result = run(*options)
    assert result.exit_code == 4
    assert "energy is unknown" in result.stderr
