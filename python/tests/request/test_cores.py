"""Times of cores: measured on the part, in proportion to public figures, or assumed and said."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import csdplan as cp
from csdplan import ModelError
from csdplan.cli import app
from csdplan.hardware import load_catalogue
from csdplan.profile import load
from csdplan.request.ask import read_ask
from csdplan.request.cores import Cores
from csdplan.request.offer import Asked, to_request

PARTS = load_catalogue()


def asked(work: Any = "count=10GB/s", **options: Any) -> Asked:
    ask = read_ask({"workload": [work]})
    return to_request(ask, PARTS, load("newport"), {}, **options)


def answer(*arguments: str) -> tuple[str, list[str], dict[str, Any]]:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["plan", *arguments, "--json"])
    assert result.exit_code == 0, result.output
    body = json.loads(result.stdout)
    return body["result"]["answer"], body["warnings"], body["result"]


def measured(tmp_path: Path, machine: str, comp_s: float) -> Path:
    """Write a profile as ``csd characterize`` measures it: counts of 4 GB in `comp_s` a core."""
    file = tmp_path / "mine.toml"
    times = f"median = {comp_s}, p25 = {comp_s}, p75 = {comp_s}, n = 9"
    file.write_text(
        f'schema = 1\n[meta]\nmachine = "{machine}"\nsource = "csd characterize"\n'
        "[host]\ncores = 8\n[device.d]\next_read_Bps = 1000000000\n"
        '[[point]]\nkernel = "count"\nwhere = "host"\ndevice = "d"\nunits = 1\n'
        'bytes = 4000000000\noverlap = "pipelined"\nprov = "measured"\n'
        f"load_s = {{ {times} }}\ncomp_s = {{ {times} }}\n",
        encoding="utf-8",
    )
    return file


@pytest.mark.parametrize(
    ("machine", "part"),
    [
        ("2 x AMD EPYC 7352, Newport", "epyc-7352"),
        ("AMD EPYC 7763 64-Core Processor, 128 cores", "epyc-7763"),
        ("Intel(R) Xeon(R) Platinum 8480+", "xeon-8480"),
        ("Raspberry Pi 5", None),
    ],
)
def test_a_profiles_host_is_found_in_the_catalogue(
    tmp_path: Path, machine: str, part: str | None
) -> None:
    profile = load(measured(tmp_path, machine, 1.0))
    assert Cores(PARTS, profile, {}).reference == part


def test_cores_of_other_cpus_take_times_in_proportion_to_public_figures() -> None:
    found = asked()
    (demand,) = found.request.demands
    unit = demand.core_s_per_byte["epyc-7352"]
    assert unit == pytest.approx(0.7317073 / 4.8e9)
    assert demand.core_s_per_byte["epyc-9755"] == pytest.approx(unit / 1.91)
    assert demand.drive_s_per_byte["altra-q80-box"] == pytest.approx(
        max(unit / 0.98 / 80, 1 / 6.9e9)
    )
    assert found.core_prov["count", "epyc-7352"] == "measured"
    assert found.core_prov["count", "epyc-9755"] == "inferred"
    own = {"name": "grep", "throughput": "1GB/s", "core": "1GB/s", "cpu": "epyc-9755"}
    (demand,) = asked(own).request.demands
    assert demand.core_s_per_byte["epyc-9755"] == pytest.approx(1e-9)
    assert demand.core_s_per_byte["epyc-7352"] == pytest.approx(1.91e-9)
    with pytest.raises(ModelError, match="a CPU that csdplan catalogue lists"):
        asked({**own, "cpu": "8086"})


def test_what_was_measured_on_a_part_goes_before_all_else(tmp_path: Path) -> None:
    own = load(measured(tmp_path, "a box", 2.0))
    found = asked(measured={"bluefield2-box": own, "epyc-9755": own})
    (demand,) = found.request.demands
    assert demand.core_s_per_byte["epyc-9755"] == pytest.approx(2.0 / 4e9)
    assert demand.drive_s_per_byte["bluefield2-box"] == pytest.approx(max(2 / 4e9 / 8, 1 / 6.9e9))
    assert found.core_prov["count", "bluefield2-box"] == "measured"
    assert "bluefield2-box" not in found.unmeasured
    # A kernel that it has no point of is known from public figures only.
    (demand,) = asked("page-rank=1GB/s", measured={"epyc-9755": own}).request.demands
    unit = demand.core_s_per_byte["epyc-7352"]
    assert demand.core_s_per_byte["epyc-9755"] == pytest.approx(unit / 1.91)


def test_parts_whose_cores_nobody_measured_are_left_out_unless_asked_for(tmp_path: Path) -> None:
    names = {kind.name for kind in asked().request.drives}
    assert "altra-q80-box" in names
    assert not names & {"bluefield2-box", "bluefield3-box"}
    assert {kind.name for kind in asked(unmeasured=True).request.drives} > {"bluefield2-box"}
    assert {kind.name for kind in asked(only=["bluefield2-box"]).request.drives} == {
        "bluefield2-box"
    }
    text, warnings, _ = answer("--workload", "count=40GB/s")
    assert text.startswith("Buy ")
    assert any("bluefield2-box (nobody has measured its cores" in one for one in warnings)
    boxes = ("--workload", "count=40GB/s", "--only", "bluefield2-box")
    text, _, _ = answer(*boxes)
    assert text.startswith("Nobody has measured the cores of BlueField-2 box")
    mine = measured(tmp_path, "a box", 1.0)
    text, _, _ = answer(*boxes, "--cores", f"bluefield2-box={mine}")
    assert text.startswith("Buy ")
    # Storage alone has no use for cores.
    _, warnings, _ = answer("--store", "10TB")
    assert not any("nobody has measured" in one for one in warnings)


def test_the_host_of_a_profile_that_is_no_cpu_of_the_catalogue_is_named(tmp_path: Path) -> None:
    mine = measured(tmp_path, "Raspberry Pi 5", 1.0)
    _, warnings, _ = answer("--workload", "count=1GB/s", "--profile", str(mine))
    assert any("its host is no CPU of the catalogue" in one for one in warnings)
    with pytest.raises(ModelError, match="PART=PROFILE"):
        cp.plan(workload=["count=1GB/s"], cores=["acme=mine.toml"])
