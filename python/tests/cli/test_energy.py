"""``csdplan energy`` as users run it: joules of a job on a purchase, and on another."""

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from csdplan.cli import app
from csdplan.profile.meter import CpuTimes, JobEnergy, MeteredDrive

JOB = ("--job", "10TB", "--workload", "count=20GB/s")


def run(*arguments: str) -> Result:
    runner = CliRunner(env={"COLUMNS": "160", "NO_COLOR": "1"})
    return runner.invoke(app, ["energy", *arguments])


def test_a_job_on_two_purchases() -> None:
    result = run(*JOB, "--compare", "samsung-smartssd-3.84tb", "--kwh", "0.15", "--json")
    assert result.exit_code == 0, result.output
    body = json.loads(result.stdout)["result"]
    jobs, parts = (table["rows"] for table in body["tables"])
    assert [row["purchase"] for row in jobs] == ["cheapest", "with samsung-smartssd-3.84tb"]
    for row in jobs:
        assert row["time_s"] == pytest.approx(500)
        assert row["job_J"] == pytest.approx(row["cores_J"] + row["drives_J"] + row["rest_J"])
        assert row["J_per_TB"] == pytest.approx(row["job_J"] / 10)
        assert row["site_J"] == pytest.approx(1.5 * row["job_J"])
        assert row["site_usd"] == pytest.approx(row["site_J"] / 3.6e6 * 0.15)
    drives = {row["name"] for row in parts if row["purchase"].startswith("with")}
    assert "samsung-smartssd-3.84tb" in drives
    assert "kJ a TB" in body["answer"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*JOB, "--job", "0"), "job = 0: expected more than 0 bytes"),
        (("--store", "1TB"), "workload = none: expected at least one"),
        (("--job", "1TB"), "store, workload = absent"),
        ((*JOB, "--compare", "nothing"), "compare = nothing"),
    ],
)
def test_wrong_use_is_one_line(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


CPU_S = {"host": 100.0, "os": 20.0, "drives": 5.0, "tunnels_inside": 1.0, "tunnels_outside": 2.0}
RAPL = {"source": "rapl", "joules": 1200.0, "note": None}
BY_TIME = {"source": "cpu-seconds", "joules": 600.0, "note": "energy: not measured"}


def record(tmp_path: Path, energy: dict[str, object], **changed: object) -> str:
    """Write the record of a job that read 50 GB of one drive."""
    drive = {"name": "d0", "read_inside_bytes": 40_000_000_000, "read_outside_bytes": 1e10}
    drive |= {"tunnel_sent_bytes": 0, "tunnel_received_bytes": 0}
    job = {"command": ["./dft", "/data"], "failed": False, "wall_s": 50.0, "cpu_s": CPU_S}
    job |= {"drives": [drive], "energy": energy} | changed
    body = {"schema": 1, "command": "meter", "result": job, "warnings": ["a drive was restarted"]}
    path = tmp_path / f"{energy['source']}.json"
    path.write_text(json.dumps(body))
    return str(path)


def test_a_record_gives_joules_of_a_job_and_of_a_tb(tmp_path: Path) -> None:
    counted, timed = record(tmp_path, RAPL), record(tmp_path, BY_TIME)
    both = ("--record", counted, "--record", timed)
    result = run(*both, "--job", "10TB", "--kwh", "0.15", "--json")
    assert result.exit_code == 0, result.output
    body = json.loads(result.stdout)
    (table,) = body["result"]["tables"]
    assert [row["prov"] for row in table["rows"]] == ["measured", "inferred"]
    for row, joules in zip(table["rows"], (1200, 600), strict=True):
        assert row["input_bytes"] == 5e10
        assert (row["host_cpu_s"], row["drives_cpu_s"]) == (102, 26)
        assert row["net_J_per_TB"] == pytest.approx(joules * 20)
        assert row["net_job_J"] == pytest.approx(joules * 200)
        assert row["site_usd"] == pytest.approx(1.5 * joules * 200 / 3.6e6 * 0.15)
    assert "RAPL, less the machine at rest; measured" in body["result"]["answer"]
    assert body["warnings"] == [f"{one}: a drive was restarted" for one in (counted, timed)]


def test_a_purchase_has_its_own_rest_and_the_work_of_a_record(tmp_path: Path) -> None:
    name = record(tmp_path, RAPL)
    result = run(*JOB, "--record", name, "--input", "100GB", "--json")
    assert result.exit_code == 0, result.output
    tables = {
        table["title"]: table["rows"] for table in json.loads(result.stdout)["result"]["tables"]
    }
    computed, metered = tables["Energy of a job"]
    assert computed["rest_J"] == metered["rest_J"]
    assert metered["work"] == f"{name}: RAPL, less the machine at rest"
    assert (metered["cores_J"], metered["drives_J"]) == (None, None)
    # 1200 J for 100 GB are 12 kJ a TB.
    assert metered["net_J_per_TB"] == pytest.approx(12_000)
    assert metered["job_J"] == pytest.approx(metered["rest_J"] + 120_000)


@pytest.mark.parametrize(
    ("energy", "changed", "arguments", "message"),
    [
        (RAPL, {"failed": True}, (), "a job that failed: expected the record of one that did"),
        (RAPL, {"drives": []}, (), "input = absent: expected the input of the job of"),
        (RAPL | {"joules": None, "note": "energy: no rest"}, {}, (), "energy: no rest"),
        (RAPL | {"joules": 0.0}, {}, (), "energy of 0.0 J"),
        (RAPL | {"joules": -1.0}, {}, (), "result.energy.joules = -1.0: expected a number of at"),
        (RAPL, {"wall_s": "50"}, (), "result.wall_s = '50': expected a number"),
        (RAPL, {}, (*JOB, "--workload", "grep=1GB/s"), "expected one, that of the record"),
        (RAPL, {}, ("--input", "0"), "input = 0: expected more than 0 bytes"),
    ],
)
def test_a_record_that_says_nothing_of_the_job_is_refused(
    tmp_path: Path,
    energy: dict[str, object],
    changed: dict[str, object],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    result = run("--record", record(tmp_path, energy, **changed), *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_fields_of_a_record_are_those_of_its_page() -> None:
    page = Path(__file__).parents[3] / "docs/reference/json.md"
    sections = page.read_text().split("\n###")
    shapes = (("cpu-times", CpuTimes), ("metered drive", MeteredDrive), ("job energy", JobEnergy))
    for title, shape in shapes:
        (section,) = (one for one in sections if one.startswith(f" {title}\n"))
        assert set(shape.model_fields) <= set(re.findall(r"^\| `(\w+)` ", section, re.MULTILINE))
