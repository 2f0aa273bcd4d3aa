"""``csdplan durability`` as users run it: the code that an array needs, and what it costs."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from csdplan.cli import app

ARRAY = ("24", "--hosts", "12", "--part", "kioxia-cd6-r-15.36tb")


def run(*arguments: str) -> Result:
    runner = CliRunner(env={"COLUMNS": "160", "NO_COLOR": "1"})
    return runner.invoke(app, ["durability", *arguments])


def answer(*arguments: str) -> tuple[dict[str, Any], list[list[dict[str, Any]]]]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    body = json.loads(result.stdout)["result"]
    return body, [table["rows"] for table in body["tables"]]


def test_which_code() -> None:
    body, (codes, losses, spares, numbers) = answer(*ARRAY, "--spread", "host", "--nines", "9")
    assert body["verdict"] == "found"
    assert body["answer"].startswith(f"Take {body['code']}: ")
    best = min(codes, key=lambda row: row["flash_per_byte"])
    assert best["code"] == body["code"]
    assert all(row["nines"] >= 9 and not row["misses"] for row in codes)
    assert [row["code"] for row in losses] == [row["code"] for row in codes]
    assert losses[0]["outages_usd"] is None
    assert spares[0]["spares"] >= 1
    assert {row["number"]: row["prov"] for row in numbers}["host_hours"] == "assumed"
    assert all(row["source"] and (row["date"] or row["prov"] == "given") for row in numbers)


def test_codes_that_are_asked_for() -> None:
    chosen = (*ARRAY, "--protect", "rs:8+2", "--protect", "rs:8+3", "--outage-usd", "1000")
    body, (codes, losses, _, numbers) = answer(*chosen, "--loss-usd", "1e6", "--afr", "1%")
    assert [row["code"] for row in codes] == ["rs:8+2", "rs:8+3"]
    assert body["code"] is None
    assert "It misses: durability." in body["answer"]
    assert codes[0]["nines"] < codes[1]["nines"]
    first = losses[0]
    assert first["expected_usd"] == pytest.approx(first["outages_usd"] + first["losses_usd"])
    assert first["losses_usd"] == pytest.approx(1e6 * first["loss_probability"])
    assert {row["number"]: row["source"] for row in numbers}["ssd_afr"] == "this question"


def test_numbers_of_a_drive_that_no_catalogue_has() -> None:
    own = ("--capacity", "15.36TB", "--read", "6.2GB/s", "--write", "4GB/s")
    body, _ = answer("24", "--hosts", "12", *own)
    assert body == answer(*ARRAY)[0]
    doubled = answer(*ARRAY, "--capacity", "30.72TB", "--protect", "rs:8+3")[1][0][0]
    assert (
        doubled["rebuild_hours"]
        > 1.9 * answer(*ARRAY, "--protect", "rs:8+3")[1][0][0]["rebuild_hours"]
    )


def test_what_cannot_be_reached_ends_with_1() -> None:
    result = run("4", "--hosts", "1", "--part", "kioxia-cd6-r-15.36tb", "--nines", "12")
    assert result.exit_code == 1
    assert result.stdout.startswith("No code rs:N+K of this array reaches the goals")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("24",), "capacity = absent: expected a drive of the catalogue"),
        (("24", "--part", "nothing"), "part = nothing: expected a drive"),
        (("24", "--part", "epyc-9754"), "part = epyc-9754: expected a drive"),
        ((*ARRAY, "--protect", "rs:8"), "protect = rs:8: expected rs:N+K"),
        ((*ARRAY, "--protect", "replica:3"), "protect = replica:3: expected rs:N+K"),
        ((*ARRAY, "--protect", "rs:33+2"), "N from 1 to 32"),
        ((*ARRAY, "--protect", "rs:22+4"), "at most 24 pieces"),
        ((*ARRAY, "--racks", "13"), "at most one for each of 12 hosts"),
        (("2", "--hosts", "3"), "at most one for each of 2 drives"),
        ((*ARRAY, "--spread", "rack"), "spread = rack"),
        ((*ARRAY, "--spread", "room"), "one of drive, host, rack"),
        ((*ARRAY, "--rebuild", "none"), "one of spare, all"),
        ((*ARRAY, "--afr", "0%"), "afr = 0: expected more than 0"),
        ((*ARRAY, "--afr", "150%"), "a share of at most 1"),
        ((*ARRAY, "--link", "0"), "link = 0: expected more than 0"),
        ((*ARRAY, "--wait", "400d"), "a year (365.25d) at most"),
        ((*ARRAY, "--wait", "nan"), "wait = nan"),
        ((*ARRAY, "--full", "0%"), "full = 0%"),
    ],
)
def test_wrong_use_is_one_line(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_extreme_arrays_are_answered() -> None:
    part = ("--part", "kioxia-cd6-r-15.36tb")
    many = ("100000", "--hosts", "10000", "--racks", "1000", *part, "--protect", "rs:32+16")
    _, (codes, _, spares, _) = answer(*many, "--replace", "365d", "--host-hours", "8766")
    assert codes[0]["nines"] >= 0
    assert spares[0]["spares"] > 900
    assert answer("2", "--hosts", "2", *part, "--protect", "rs:1+1")[1][0]


def test_hard_drives_fail_as_hard_drives_do() -> None:
    words = ("24", "--hosts", "12", "--part", "seagate-exos-x24-24tb", "--protect", "rs:8+3")
    result = run(*words, "--json")
    assert result.exit_code == 0, result.output
    tables = json.loads(result.stdout)["result"]["tables"]
    used = {row["number"]: row for row in tables[-1]["rows"]}
    assert used["hdd_afr"]["prov"] == "measured"
    assert "ssd_afr" not in used
    assert used["hdd_unreadable_per_bit"]["value"] == 1e-15
    # 24 TB at 285 MB/s take a day at least.
    assert min(row["rebuild_hours"] for row in tables[0]["rows"]) > 24
