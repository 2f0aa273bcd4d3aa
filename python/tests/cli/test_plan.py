"""The planning commands as users run them: tables, JSON, CSV, figures, faults."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from csdplan.cli import app

NEWPORT = ("--profile", "newport", "--kernel", "vector-add")


def run(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(app, list(arguments))


def rows(*arguments: str, table: int = 0) -> list[dict[str, Any]]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    body = json.loads(result.stdout)
    assert body["command"] == arguments[0]
    found: list[dict[str, Any]] = body["result"]["tables"][table]["rows"]
    return found


def test_sweep() -> None:
    found = rows("sweep", *NEWPORT, "--over", "compute", "--values", "1,2,3")
    assert [row["devices"] for row in found] == [15, 12, 12]
    table = run("sweep", *NEWPORT, "--over", "compute", "--values", "1,2,3")
    assert "closed form devices" in table.stdout
    text = run("sweep", *NEWPORT, "--over", "cores", "--values", "1,4", "--csv").stdout
    read = list(csv.DictReader(io.StringIO(text)))
    assert [(row["cores"], row["devices"]) for row in read] == [("1", "15"), ("4", "37")]


def test_what_would_have_to_change() -> None:
    chosen = ("sweep", *NEWPORT, "--over", "compute", "--target", "4")
    above = {row["quantity"]: row["above"] for row in rows(*chosen, table=1)}
    # 4 x (1.5 / 4 + 0.769) s is less than the 9 s of transfer: no compute is enough.
    assert above["compute"] is None
    assert above["sd_tx"] == pytest.approx((13.846154 / 4 - 0.7692308) / (1.5 / 4))


def test_surface() -> None:
    chosen = ("surface", "--profile", "newport-b", "--kernel", "vector-add")
    found = {(row["bandwidth"], row["compute"]): row["devices"] for row in rows(*chosen)}
    assert [found[place] for place in ((2, 7), (3, 4), (4, 3), (8, 2))] == [4, 4, 4, 4]
    iso = rows(*chosen, table=1)
    assert iso[0]["compute_above"] is None
    assert iso[2]["bandwidth"] == 2
    assert iso[2]["compute_above"] == pytest.approx(6.56, abs=0.01)


def test_ec(tmp_path: Path) -> None:
    assert rows("ec", "--blocks", "48", "--block-mb", "64")[0]["devices"] == 5
    file = tmp_path / "points.csv"
    file.write_text("blocks,block_MB,ssd_s,csd_s\n12,64,1.0,2.0\n48,64,2.0,20.5\n")
    found = rows("ec", "--points", str(file), "--blocks", "48", "--block-mb", "64")
    assert found[0]["drive_s"] == pytest.approx(20.5)
    assert found[0]["devices"] == 11
    file.write_text("blocks,block_MB,ssd_s\n12,64,1.0\n")
    bad = run("ec", "--points", str(file))
    assert bad.exit_code == 2
    assert "the first line must be blocks,block_MB,ssd_s,csd_s" in bad.stderr
    file.write_text("blocks,block_MB,ssd_s,csd_s\n12,64,one,2.0\n")
    assert "line 2" in run("ec", "--points", str(file)).stderr


def test_overload(tmp_path: Path) -> None:
    found = rows("overload", *NEWPORT)
    assert [row["devices"] for row in found] == [1, 1, 15, 15, 15, 15]
    file = tmp_path / "limited.csv"
    file.write_text("memory_GB,load_s,comp_s\n2,3.0,1.5384616\n8,1.5,0.7692308\n")
    found = rows("overload", *NEWPORT, "--points", str(file))
    assert (found[0]["sd_tx"], found[0]["sd_comp"]) == (2.0, 2.0)
    assert found[0]["devices"] < found[1]["devices"] == 15


def test_tco(tmp_path: Path) -> None:
    as_is, equal = rows("tco"), rows("tco", table=1)
    assert [row["purchase_usd"] for row in as_is] == [3028, 2059, 1365]
    assert [row["reaches_throughput"] for row in as_is] == [True, False, False]
    assert [row["drives"] for row in equal] == [12, 12, 12]
    assert [row["reaches_throughput"] for row in equal] == [True, True, True]
    assert "CSD-system (A)" in run("tco").stdout
    assert "power unknown" in run("tco").stderr
    scenario = tmp_path / "s.toml"
    scenario.write_text(
        'profile = "newport"\nkernel = "count"\n[[system]]\nname = "a"\ncpu = "b"\n'
        'computes = "host"\nhost_usd = 1.0\ndrive_usd = 1.0\ndrives = 2\ndrive_bytes = 1.0\n'
        "host_idle_W = 100.0\nhost_active_W = 50.0\ndrive_idle_W = 2.0\ndrive_active_W = 8.0\n"
    )
    costed = rows("tco", "--scenario", str(scenario))[0]
    assert costed["energy_usd"] == pytest.approx((100 + 25 + 10) / 1000 * 8766 * 5 * 0.12 * 1.5)
    scenario.write_text('profile = "newport"\nkernel = "count"\nsystem = [{ nam = "a" }]\n')
    bad = run("tco", "--scenario", str(scenario))
    assert bad.exit_code == 2
    assert "['nam']" in bad.stderr
    scenario.write_text("profile = ")
    assert run("tco", "--scenario", str(scenario)).exit_code == 2


def test_reproduce() -> None:
    found = rows("reproduce", "--only", "P0-4", "--only", "CR-10")
    assert {row["id"]: row["verdict"] for row in found}["P0-46"] == "reproduced"
    assert found[-1]["verdict"] == "contradicted"
    body = json.loads(run("reproduce", "--json").stdout)["result"]
    assert sum(body["counts"].values()) == len(body["tables"][0]["rows"]) == 128


def test_import(tmp_path: Path) -> None:
    out = tmp_path / "my.toml"
    chosen = ["import", "my-drive", "--out", str(out), "--host-cores", "8"]
    chosen += ["--kernel", "count:4800000000:0.7:1.2", "--read-bps", "3.2e9"]
    chosen += ["--ingest-bps", "32000000000"]
    lacking = run(*chosen)
    assert lacking.exit_code == 2
    assert "bandwidth inside" in lacking.stderr
    assert not out.exists()
    assert run(*chosen, "--inside-bps", "1e9").exit_code == 0
    planned = json.loads(run("bep", "--profile", str(out), "--kernel", "count", "--json").stdout)
    assert planned["result"]["systems"][0]["hosts"][0]["devices"] == 7
    assert run(*chosen[:-4], "--kernel", "count:many").exit_code == 2


@pytest.mark.parametrize("suffix", ["svg", "png", "html"])
@pytest.mark.parametrize(
    "arguments",
    [
        ("sweep", *NEWPORT, "--over", "k_limit", "--host-cores", "1,4"),
        ("surface", *NEWPORT),
        ("ec",),
        ("overload", *NEWPORT),
        ("tco",),
    ],
    ids=lambda arguments: arguments[0],
)
def test_figures(arguments: tuple[str, ...], suffix: str, tmp_path: Path) -> None:
    first, second = tmp_path / f"a.{suffix}", tmp_path / "b" / f"a.{suffix}"
    second.parent.mkdir()
    assert run(*arguments, "--plot", str(first), "--plot", str(second)).exit_code == 0
    data = first.read_bytes()
    assert data == second.read_bytes()
    begins = {"svg": b"<?xml", "png": b"\x89PNG", "html": b"<!doctype html>"}[suffix]
    assert data.startswith(begins)
    if suffix == "html":
        # Self-contained: nothing but names of XML vocabularies may look like an address.
        assert b"<script src" not in data
        assert b"<link" not in data


@pytest.mark.parametrize(
    "arguments",
    [
        ("sweep", *NEWPORT, "--over", "speed"),
        ("sweep", *NEWPORT, "--over", "compute", "--values", "1:2"),
        ("sweep", *NEWPORT, "--over", "compute", "--values", "0"),
        ("sweep", *NEWPORT, "--over", "compute", "--values", "1:1e9:1e-9"),
        ("sweep", *NEWPORT, "--over", "compute", "--json", "--csv"),
        ("sweep", *NEWPORT, "--over", "compute", "--plot", "x.pdf"),
        ("surface", *NEWPORT, "--compute", "2,1"),
        ("surface", *NEWPORT, "--iso", "0"),
        ("ec", "--drive-power", "0"),
        ("ec", "--blocks", "x"),
        ("overload", *NEWPORT, "--sd-tx", "0.5"),
        ("tco", "--prices", "nan"),
    ],
)
def test_wrong_use_is_exit_code_2_with_a_message(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stderr
    assert result.exception is None or isinstance(result.exception, SystemExit)


def test_old_names_of_host_cores_work_for_one_release() -> None:
    chosen = ("--profile", "newport", "--kernel", "count")
    for command in ("surface", "overload"):
        new = run(command, *chosen, "--host-cores", "4", "--json")
        assert run(command, *chosen, "--cores", "4", "--json").stdout == new.stdout
        assert "--cores" not in run(command, "--help").stdout.replace("--host-cores", "")
    now = rows("sweep", *chosen, "--over", "host-cores", "--values", "1,4")
    before = rows("sweep", *chosen, "--over", "cores", "--values", "1,4")
    assert [row["devices"] for row in now] == [row["devices"] for row in before]
    assert ("host_cores" in now[0], "cores" in before[0]) == (True, True)
