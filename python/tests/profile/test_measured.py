"""A profile with many measured points, from which a plan takes the right ones."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import csdplan as cp
from csdplan import ProfileIncomplete, ProfileInvalid
from csdplan.cli import app
from csdplan.profile import load, parse, workload_of
from csdplan.profile.write import tables
from csdplan.result.overload import measured

SIZES = (16_000_000, 64_000_000, 256_000_000)
HOST_CORES, UNITS = (1, 2, 3, 4), (1, 2)
KERNELS = ("count", "vector-add")


def timing(median: float) -> dict[str, Any]:
    return {"median": median, "p25": 0.95 * median, "p75": 1.1 * median, "n": 9}


def point(where: str, units: int, size: int, kernel: str, **more: Any) -> dict[str, Any]:
    """Return a point of a host that loads 2 GB/s, or of a drive that loads 3 GB/s inside."""
    speed = (2e9, 1.6e9) if where == "host" else (3e9, 0.4e9)
    slower = 2 if kernel == "vector-add" else 1
    load_s, comp_s = slower * size / speed[0], size / speed[1] / units**0.9
    return {
        "kernel": kernel,
        "where": where,
        "device": "d0",
        "units": units,
        "bytes": size,
        "overlap": "serial",
        "load_s": timing(load_s),
        "comp_s": timing(comp_s),
        "store_s": timing(1e-4),
        "pipelined_s": timing(1.1 * max(load_s, comp_s)),
        "energy_J": {"median": 10 * comp_s, "source": "cpu-seconds"},
        "prov": "measured",
        **more,
    }


def body() -> dict[str, Any]:
    """Return such a profile; overload first, so that taking the first point would show."""
    largest = SIZES[-1]
    limits = [
        ({"kind": "memory", "memory_bytes": 64_000_000}, 3.0, 1.5),
        ({"kind": "memory", "memory_bytes": 128_000_000}, 2.0, 0.9),
        ({"kind": "cpu", "rivals": 4}, 1.0, 2.0),
        ({"kind": "io", "rivals": 2}, 2.5, 1.0),
    ]
    points = []
    for overload, tx, comp in limits:
        slow = point("host", 1, largest, "count", overload=overload)
        slow["load_s"] = timing(tx * slow["load_s"]["median"])
        slow["comp_s"] = timing(comp * slow["comp_s"]["median"])
        points.append(slow)
    for kernel, size in product(KERNELS, SIZES):
        points += [point("host", cores, size, kernel) for cores in HOST_CORES]
        points += [point("drive", units, size, kernel) for units in UNITS]
    device = {"cores": 2, "int_read_Bps": 3_000_000_000, "ext_read_Bps": 2_000_000_000}
    return {
        "schema": 1,
        "meta": {"machine": "bench", "date": "2026-11-21", "version": "0.1.0"},
        "host": {"cores": 4, "ingest_bw_Bps": 9_000_000_000, "core_W": 6.0},
        "device": {"d0": device, "other": {"ext_read_Bps": 1_000_000_000, "target": "elsewhere"}},
        "point": points,
    }


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("measured") / "mine.toml"
    path.write_text(tables(body()), encoding="utf-8")
    return path


def run(*arguments: str) -> Any:
    answer = CliRunner().invoke(app, [*arguments, "--json"])
    assert answer.exit_code == 0, answer.output
    return json.loads(answer.stdout)


def test_bep_takes_the_largest_set_the_hosts_own_points_and_the_drive_at_its_best(
    file: Path,
) -> None:
    found = run("bep", "--profile", str(file), "--kernel", "count", "--host-cores", "1,2,4,8")
    (system,) = found["result"]["systems"]
    assert (system["bytes"], system["sizes"]) == (SIZES[-1], list(SIZES))
    assert 4 <= system["k_limit"] < 5
    assert system["drive_units"] == 2
    assert [units for units, _ in system["gains"]] == [1, 2]
    one, two, four, eight = system["hosts"]
    # Its own point, not equation 2, up to the cores that were measured.
    assert two["ssd_comp_s"] == pytest.approx(one["ssd_comp_s"] / 2**0.9)
    assert four["ssd_comp_s"] == pytest.approx(one["ssd_comp_s"] / 4**0.9)
    assert eight["ssd_comp_s"] == pytest.approx(one["ssd_comp_s"] / 8)
    assert any("Host(8) exceeds" in warning for warning in found["warnings"])
    assert one["devices"] <= two["devices"] <= four["devices"]
    assert system["energy"]["host"][1] == "cpu-seconds"


@pytest.mark.parametrize("size", SIZES)
def test_a_smaller_working_set_can_be_asked_for_everywhere(file: Path, size: int) -> None:
    picks = ("--profile", str(file), "--kernel", "count", "--bytes", str(size))
    found = run("bep", *picks)
    assert found["result"]["systems"][0]["bytes"] == size
    for command in ("sweep --over compute --values 1:2:1", "surface", "uncertainty --samples 99"):
        name, *more = command.split()
        assert run(name, *picks, *more)["command"] == name
    assert cp.bep(file, "count", bytes=size)["devices"].notna().all()


def test_slow_down_factors_are_those_measured(file: Path) -> None:
    found = run("overload", "--profile", str(file), "--kernel", "count")
    (table,) = found["result"]["tables"]
    rows = {row["overload"]: row for row in table["rows"]}
    assert list(rows) == [
        "none",
        "cpu, 4 rivals",
        "io, 2 rivals",
        "memory 128 MB",
        "memory 64 MB",
    ]
    assert (rows["memory 64 MB"]["sd_tx"], rows["memory 64 MB"]["sd_comp"]) == pytest.approx(
        (3.0, 1.5)
    )
    # Quicker under overload is noise.
    assert rows["memory 128 MB"]["sd_comp"] == 1
    assert "count as 1" in table["note"]
    assert rows["memory 64 MB"]["devices"] <= rows["none"]["devices"]


def test_overload_without_its_counterpart_is_refused_by_name() -> None:
    held = body()
    held["point"].append(
        point("host", 7, SIZES[-1], "count", overload={"kind": "cpu", "rivals": 1})
    )
    profile = parse(tables(held))
    with pytest.raises(ProfileIncomplete, match=r"7 cores under overload \(cpu, 1 rivals\)"):
        measured(profile, workload_of(profile, "count"), name="mine", cores=7)
    assert measured(profile, workload_of(profile, "vector-add"), name="mine", cores=1) == ()


def test_pipelined_runs_are_held_against_what_they_took(file: Path) -> None:
    found = run("bep", "--profile", str(file), "--kernel", "count", "--overlap", "pipelined")
    (said,) = [warning for warning in found["warnings"] if "measured, they took" in warning]
    assert said.endswith("host 1.10, drive 1.10")


def test_faults_of_many_points_name_file_key_and_value(tmp_path: Path) -> None:
    held = body()
    held["point"][3]["overload"] = {"kind": "io"}
    held["point"][5]["energy_J"] = {"median": -1.0, "source": "rapl"}
    held["point"][9]["bytes"] = 0
    path = tmp_path / "mine.toml"
    path.write_text(tables(held), encoding="utf-8")
    with pytest.raises(ProfileInvalid) as caught:
        load(path)
    assert [line.split(": expected")[0] for line in str(caught.value).splitlines()] == [
        f"{path}: point[3].overload = {{'kind': 'io'}}",
        f"{path}: point[5].energy_J.median = -1.0",
        f"{path}: point[9].bytes = 0",
    ]
