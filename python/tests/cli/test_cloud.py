"""``csdplan cloud`` as users run it: own, or rent."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from csdplan.cli import app

KEPT = ("--store", "500TB", "--protect", "rs:8+2", "--egress", "50TB")


def run(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "160", "NO_COLOR": "1"}).invoke(app, ["cloud", *arguments])


def answer(*arguments: str) -> tuple[dict[str, Any], list[list[dict[str, Any]]]]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    body = json.loads(result.stdout)["result"]
    return body, [table["rows"] for table in body["tables"]]


def test_own_or_rent_where_data_is_kept() -> None:
    body, (costs, instances, numbers) = answer(*KEPT)
    by_way = {(row["way"], row["what"]): row["cost_usd"] for row in costs}
    assert by_way["own", "all"] == pytest.approx(sum(row["cost_usd"] for row in costs[:3]))
    assert by_way["cloud", "all"] == pytest.approx(sum(row["cost_usd"] for row in costs[4:6]))
    # 500 TB, rs:8+2, 2 % for the file system, in machines of 60 TB.
    assert max(row["instances"] for row in instances) == 11
    assert "hours a day. Both" not in body["answer"]
    assert all(row["source"] for row in numbers)
    assert {row["number"]: row["prov"] for row in numbers}["read_Bps of i3en.24xlarge"] == "assumed"


def test_a_price_at_which_both_are_even() -> None:
    body, (costs, *_) = answer(*KEPT)
    price = body["answer"].rpartition("at $")[2].partition(" an hour")[0]
    even = answer(*KEPT, "--hourly", price)[1][0]
    assert even[-1]["cost_usd"] == pytest.approx(costs[3]["cost_usd"], rel=0.02)


def test_work_alone_may_run_for_some_hours() -> None:
    few, many = (
        answer("--workload", "count=40GB/s", "--hours", hours)[1][0][-1]["cost_usd"]
        for hours in ("1", "24")
    )
    assert many == pytest.approx(24 * few)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((*KEPT, "--hours", "2"), "hours = 2.0: expected 24 with data to keep"),
        ((*KEPT, "--instance", "nothing"), "instance = nothing: expected one of i3en.24xlarge"),
        ((*KEPT, "--egress", "nan"), "egress = nan"),
        (("--egress", "1TB"), "store, workload = absent"),
    ],
)
def test_wrong_use_is_one_line(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
