"""``csdplan energy`` as users run it: joules of a job on a purchase, and on another."""

import json

import pytest
from typer.testing import CliRunner, Result

from csdplan.cli import app

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
        ((*JOB, "--compare", "nothing"), "part = nothing"),
    ],
)
def test_wrong_use_is_one_line(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
