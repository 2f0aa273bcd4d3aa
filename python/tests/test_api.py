"""The functions of ``import csdplan as cp``: tables that agree with the commands' results."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import csdplan as cp
from csdplan import ModelError
from csdplan.cli import app
from csdplan.errors import ExtraMissing
from csdplan.profile.convert import KernelTimes

NEWPORT = "--profile newport --kernel count"
CASES: dict[str, tuple[Callable[[], Any], str]] = {
    "sweep": (
        lambda: cp.sweep("newport", "count", "k_limit", [4, 8], host_cores=[4], target=3),
        f"sweep {NEWPORT} --over k_limit --values 4,8 --host-cores 4 --target 3",
    ),
    "surface": (
        lambda: cp.surface("newport", "count", [1, 2], [1, 3], iso=[4, 8], host_cores=4),
        f"surface {NEWPORT} --bandwidth 1,2 --compute 1,3 --iso 4,8 --host-cores 4",
    ),
    "ec": (
        lambda: cp.ec(blocks=[12], block_MB=[16, 64], ssd_tx_s=1.0, k_limit=4),
        "ec --blocks 12 --block-mb 16,64 --ssd-tx 1 --k-limit 4",
    ),
    "tco": (lambda: cp.tco(prices_usd=[90, 120]), "tco --prices 90,120"),
    "overload": (
        lambda: cp.overload("newport", "count", memory_GB=[2, 8], sd_tx=2, host_cores=4),
        f"overload {NEWPORT} --memory-gb 2,8 --sd-tx 2 --host-cores 4",
    ),
    "mix": (
        lambda: cp.mix("newport", {"count": 3, "page-rank": 1}, drives=4, placement="free"),
        "mix --profile newport --kernel count=3 --kernel page-rank --drives 4 --placement free",
    ),
    "optimize": (
        lambda: cp.optimize("epyc", front=2, by_kind=True),
        "optimize epyc --front 2 --by-kind",
    ),
    "simulate": (
        lambda: cp.simulate("newport", "count", drives=8, nic_Bps=1e9, layout="whole", seed=3),
        f"simulate {NEWPORT} --drives 8 --nic 1e9 --layout whole --seed 3",
    ),
    "uncertainty": (
        lambda: cp.uncertainty(
            "newport",
            "count",
            spread={"given": 0.1},
            vary={"k_limit": (7, 9)},
            samples=500,
            base=16,
            of="median",
        ),
        f"uncertainty {NEWPORT} --spread given=0.1 --vary k_limit=7:9"
        " --samples 500 --base 16 --of median",
    ),
    "reproduce": (lambda: cp.reproduce(["P0-4"]), "reproduce --only P0-4"),
}


@pytest.mark.parametrize("name", CASES)
def test_a_function_gives_the_tables_of_its_command(name: str) -> None:
    function, arguments = CASES[name]
    found = function()
    tables = list(found.values()) if isinstance(found, dict) else [found]
    result = CliRunner().invoke(app, [*arguments.split(), "--json"])
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)["result"]["tables"]
    for table, sheet in zip(tables, printed, strict=True):
        assert table.attrs["title"] == sheet["title"]
        rows = json.loads(table.to_json(orient="records", double_precision=15))
        assert [list(row) for row in rows] == [list(row) for row in sheet["rows"]]
        for row, expected in zip(rows, sheet["rows"], strict=True):
            assert row == pytest.approx(expected)


def test_functions_draw_figures(tmp_path: Path) -> None:
    figures = [tmp_path / "a.svg", tmp_path / "b.png"]
    cp.bep("newport", "count", [1, 4], plot=figures)
    cp.tco(plot=str(tmp_path / "c.html"))
    assert {file.name for file in tmp_path.iterdir()} == {"a.svg", "b.png", "c.html"}
    with pytest.raises(cp.PlotError, match="ends in"):
        cp.ec(plot="a.pdf")


def test_several_profiles_are_compared() -> None:
    table = cp.bep(["smartssd", "newport"], "count", [1, 4])
    assert table["profile"].tolist() == ["smartssd", "smartssd", "newport", "newport"]
    assert table["devices"].tolist() == [2, 8, 12, 28]


def test_a_report_is_written(tmp_path: Path) -> None:
    out = cp.report(tmp_path / "r.html", "smartssd", "count", host_cores=[4])
    assert "smartssd drives that compute are faster than as many" in out.read_text(encoding="utf-8")


def test_profiles_are_listed_and_imported(tmp_path: Path) -> None:
    assert "newport" in cp.profiles()["name"].tolist()
    file = tmp_path / "p.toml"
    times = KernelTimes("count", 10**9, 1.0, 2.0)
    profile = cp.import_profile("mine", [times], 8, out=file, read_Bps=3e9, inside_Bps=6e9)
    assert cp.load(file) == profile


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "csdplan_reproduce", None)
    with pytest.raises(ExtraMissing, match="the extra reproduce: pip install"):
        cp.reproduce()


def test_bep_is_a_table() -> None:
    table = cp.bep("newport", "count", [1, 4, 16])
    assert table["devices"].tolist() == [12, 28, 44]
    assert table["closed_form_devices"].tolist() == [12, 48, 192]
    assert table["difference"].tolist() == ["none", "k_limit", "k_limit"]
    never = cp.bep("smartssd", "count", [16], host_part_s=0.3)
    assert never["devices"].isna().all()
    assert never["verdict"].tolist() == ["never"]


def test_grid_is_a_data_set_with_named_dimensions() -> None:
    found = cp.grid("newport", "count", host_cores=[1, 4, 16], compute=np.linspace(1, 8, 5))
    assert found.devices.sizes["host_cores"] == 3
    assert found.devices.sizes["compute"] == 5
    at = found.devices.sel(host_cores=16, compute=1.0).squeeze()
    assert int(at) == 44
    # A faster drive needs no more drives.
    assert (found.devices.diff("compute") <= 0).all()
    with pytest.raises(ModelError, match="bandwidth"):
        cp.grid("newport", "count", bandwidth=[0.0])
    with pytest.raises(ModelError, match="compute = none"):
        cp.grid("newport", "count", compute=[])


def test_optimize_gives_tables() -> None:
    tables = cp.optimize("epyc", front=2)
    bill = tables["bill"]
    assert bill["cost_usd"].iloc[-1] == bill["cost_usd"].iloc[:-1].sum()
    assert len(tables["front"]) == 2
    assert set(tables) == {"bill", "work", "topology", "requirements", "front"}


def test_simulate_gives_a_table() -> None:
    table = cp.simulate("newport", "count", host_cores=2, drives=4, task_spread=0.2, seed=5)
    assert table["enabled_drives"].tolist() == [0, 1, 2, 3, 4]
    # The first drive that computes slows reads that are striped over it; all four make up for it.
    assert table["throughput_Bps"].iloc[-1] > table["throughput_Bps"].iloc[0]
    assert (table["throughput_Bps"] <= table["bound_Bps"]).all()
    assert table["net_energy_J"].isna().all()
    assert "seed 5" in table.attrs["note"]


def test_uncertainty_gives_tables() -> None:
    tables = cp.uncertainty("newport", "count", samples=2000, base=64, vary={"k_limit": (7, 9)})
    assert tables["shares"]["share"].sum() == pytest.approx(1)
    assert "k_limit" in tables["indices"]["input"].tolist()


def test_mix_gives_tables() -> None:
    tables = cp.mix("newport", {"count": 3, "page-rank": 1}, drives=4)
    assert tables["throughput"]["csds"].tolist() == [0, 1, 2, 3, 4]
    assert tables["throughput"]["throughput_Bps"].is_monotonic_increasing
    assert len(tables["shares"]) == 10
    with pytest.raises(ModelError, match="at least one workload"):
        cp.mix("newport", {})


def test_profiles_may_be_given_loaded() -> None:
    held = cp.load("smartssd")
    assert cp.bep(held, "count")["devices"].tolist() == [2]


def test_names_are_listed_and_others_refused() -> None:
    assert "simulate" in dir(cp)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = cp.nonsense


def test_importing_brings_in_nothing_heavy() -> None:
    code = (
        "import sys, csdplan, csdplan.cli\n"
        "heavy = {'matplotlib', 'pandas', 'scipy', 'SALib', 'xarray'} & set(sys.modules)\n"
        "sys.exit(', '.join(heavy) or 0)\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert found.returncode == 0, found.stderr
