"""The functions of ``import csdplan as cp``: tables that agree with the commands' results."""

import subprocess
import sys

import numpy as np
import pytest

import csdplan as cp
from csdplan import ModelError


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
    assert set(tables) == {"bill", "work", "requirements", "front"}


def test_simulate_gives_a_table() -> None:
    table = cp.simulate("newport", "count", host_cores=2, drives=4, task_spread=0.2, seed=5)
    assert table["enabled_drives"].tolist() == [0, 1, 2, 3, 4]
    assert table["throughput_Bps"].is_monotonic_increasing
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
