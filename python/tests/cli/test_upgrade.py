"""``csdplan upgrade`` as users run it: what to keep, sell and buy."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from csdplan.cli import app

TWELVE = ("--have", "epyc-7763=12", "--have", "samsung-pm9a3-7.68tb=96", "--protect", "rs:8+2")


def run(*arguments: str) -> Result:
    runner = CliRunner(env={"COLUMNS": "160", "NO_COLOR": "1"})
    return runner.invoke(app, ["upgrade", *arguments])


def answer(*arguments: str) -> tuple[dict[str, Any], list[list[dict[str, Any]]]]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    body = json.loads(result.stdout)["result"]
    return body, [table["rows"] for table in body["tables"]]


def test_a_mixed_upgrade_of_twelve_hosts() -> None:
    asked = (*TWELVE, "--store", "1PB", "--workload", "count=120GB/s")
    body, (bill, _, topology, _) = answer(*asked)
    assert body["answer"].startswith("Keep ")
    assert body["kept"]["samsung-pm9a3-7.68tb"] == 96
    counted = {(row["do"], row["name"]): row["count"] for row in bill}
    assert counted["keep", "epyc-7763"] + counted["not needed", "epyc-7763"] == 12
    bought = [row for row in bill if row["do"] == "buy"]
    assert bill[-1]["cost_usd"] == pytest.approx(sum(row["cost_usd"] for row in bought))
    assert {row["name"] for row in topology if row["what"] == "host"} == {"epyc-7763 (have)"}


def test_what_is_not_needed_is_sold() -> None:
    asked = (*TWELVE, "--store", "100TB", "--resale", "30%")
    _, (bill, *_) = answer(*asked)
    sold = [row for row in bill if row["do"] == "sell"]
    assert sold
    assert all(row["cost_usd"] < 0 for row in sold)
    assert bill[-1]["cost_usd"] < 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--store", "1TB"), "have = nothing"),
        (("--store", "1TB", "--have", "epyc-7763"), "expected PART=COUNT"),
        (("--store", "1TB", "--have", "nothing=2"), "have = nothing: expected a part"),
        (("--store", "1TB", "--have", "dell-r760=2"), "have = dell-r760"),
        (("--store", "1TB", "--have", "catalina=2"), "have = catalina"),
        ((*TWELVE, "--store", "1TB", "--resale", "120%"), "a share of at most 1"),
        (TWELVE, "store, workload = absent"),
    ],
)
def test_wrong_use_is_one_line(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_what_cannot_be_done_ends_with_1() -> None:
    result = run(*TWELVE, "--store", "1PB", "--budget", "10k")
    assert result.exit_code == 1
    assert result.stdout.startswith("Nothing can be bought that meets this.")
