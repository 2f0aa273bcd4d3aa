"""``csdplan network`` as users run it: drives behind a card, latency, switches."""

import json
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from csdplan.cli import app


def run(*arguments: str) -> Result:
    runner = CliRunner(env={"COLUMNS": "160", "NO_COLOR": "1"})
    return runner.invoke(app, ["network", *arguments])


def answer(*arguments: str) -> tuple[dict[str, Any], list[list[dict[str, Any]]]]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    body = json.loads(result.stdout)["result"]
    return body, [table["rows"] for table in body["tables"]]


def test_how_many_ssds_behind_this_nic() -> None:
    body, (blocks, latency, front, numbers) = answer("--block", "4KiB", "--block", "1MiB")
    assert [row["block_bytes"] for row in blocks] == [4096, 1 << 20]
    # 200 Gb/s carry 24.7 GB/s of data: three drives of 6.5 GB/s.
    assert (blocks[1]["drives_at_full_speed"], blocks[1]["drives_to_fill"]) == (3, 4)
    assert "3 x Samsung PM9A3" in body["answer"]
    assert [row["p99_us"] for row in latency] == sorted(row["p99_us"] for row in latency)
    assert all(row["mean_us"] < row["p99_us"] for row in latency)
    assert front[-1]["cost_usd"] == sum(row["cost_usd"] for row in front[:-1])
    assert {row["prov"] for row in numbers} == {"given", "measured", "assumed"}


def test_short_reads_of_hard_drives_are_bound_by_their_seeks() -> None:
    _, (blocks, *_) = answer("--part", "toshiba-mg10-20tb", "--block", "4KiB", "--block", "16MiB")
    assert blocks[0]["drive_Bps"] == 82 * 4096
    assert blocks[1]["drive_Bps"] == 281e6
    _, (blocks, *_) = answer("--part", "toshiba-mg10-20tb", "--block", "4KiB", "--iops", "170")
    assert blocks[0]["drive_Bps"] == 170 * 4096


def test_more_cores_and_slower_frames() -> None:
    few, many = (answer("--cores", n, "--block", "4KiB")[1][0][0] for n in ("2", "16"))
    assert (few["binds"], many["binds"]) == ("cores", "link")
    small = answer("--mtu", "1500", "--cores", "16", "--block", "4KiB")[1][0][0]
    assert small["link_Bps"] < many["link_Bps"]


def test_latency_under_one_load() -> None:
    rows = answer("--load", "1e6", "--block", "4KiB", "--cores", "8")[1][1]
    assert [row["reads_per_s"] for row in rows] == [1e6]
    more = answer("--load", "4e6", "--block", "4KiB", "--cores", "8")[1][1]
    assert more[0]["p99_us"] > rows[0]["p99_us"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--nic", "nothing"), "nic = nothing: expected a nic of the catalogue"),
        (("--nic", "spectrum-sn3700"), "nic = spectrum-sn3700"),
        (("--part", "epyc-9754"), "part = epyc-9754"),
        (("--switch", "connectx-7"), "switch = connectx-7"),
        (("--block", "100"), "a whole number of bytes from 512 to 16 MiB"),
        (("--block", "nan"), "block = nan"),
        (("--load", "1e9"), "load = 1e+09: expected less than"),
        (("--hosts", "100000"), "in two layers of this switch"),
    ],
)
def test_wrong_use_is_one_line(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
