"""``csdplan day`` and ``csdplan steps`` as users run them."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from csdplan.cli import app

INGEST = ("day", "--window", "8-10,write=30GB/s", "--protect", "rs:8+2", "--store", "200TB")
GROWING = ("steps", "--store", "100TB", "--growth", "30%", "--years", "3")


def run(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "160", "NO_COLOR": "1"}).invoke(app, list(arguments))


def answer(*arguments: str) -> tuple[dict[str, Any], list[list[dict[str, Any]]]]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    body = json.loads(result.stdout)["result"]
    return body, [table["rows"] for table in body["tables"]]


def test_thirty_gigabytes_a_second_for_two_hours_a_day() -> None:
    body, (bill, times) = answer(*INGEST)
    assert times[0]["written_TB_a_day"] == pytest.approx(216)
    drives = sum(row["count"] for row in bill if row["what"] == "drive")
    assert drives >= 10
    assert body["answer"].startswith("Buy ")
    _, (all_day, _) = answer("day", "--window", "0-24,write=30GB/s", *INGEST[3:])
    more = sum(row["count"] for row in all_day if row["what"] == "drive")
    assert more > 2 * drives
    assert all_day[-1]["cost_usd"] > bill[-1]["cost_usd"]


def test_windows_that_are_not_at_once_cost_no_more_than_at_once() -> None:
    apart = ("day", "--window", "8-10,write=10GB/s", "--window", "12-14,count=200GB/s")
    together = ("day", "--window", "8-10,write=10GB/s,count=200GB/s")
    rest = ("--store", "50TB")
    prices = [answer(*one, *rest)[1][0][-1]["cost_usd"] for one in (apart, together)]
    assert prices[0] <= prices[1]


def test_growth_in_steps() -> None:
    body, (steps, compared) = answer(*GROWING)
    assert [row["year"] for row in steps] == [0, 1, 2]
    assert compared[1]["price_usd"] == pytest.approx(sum(row["price_usd"] for row in steps))
    assert body["answer"].startswith("Buy in steps")
    _, (_, dear) = answer(*GROWING, "--decay", "0%", "--discount", "0%")
    assert dear[0]["value_today_usd"] <= dear[1]["value_today_usd"] + 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("day",), "window = 0 times of the day"),
        (("day", "--window", "8"), "window = 8: expected FROM-TO"),
        (("day", "--window", "8-10,nothing=1GB/s"), "no such kernel"),
        ((*INGEST, "--store", "0TB"), "store"),
        ((*GROWING, "--decay", "100%"), "decay = 100%: expected a share below 1"),
        ((*GROWING, "--every", "0.1"), "every = 0.1: expected at least 0.15 years"),
        (("steps", "--growth", "3%"), "store, workload = absent"),
    ],
)
def test_wrong_use_is_one_line(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_what_cannot_be_done_ends_with_1() -> None:
    result = run("day", "--window", "8-10,write=900TB/s", "--store", "1TB")
    assert result.exit_code == 1
    assert result.stdout.startswith("Nothing can be bought that meets every window")
