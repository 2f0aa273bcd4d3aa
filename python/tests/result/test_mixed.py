"""Mixes of SSDs and drives that compute, from a profile."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from csdplan import ModelError
from csdplan.cli import app
from csdplan.model.array import csd_array_time_s, ssd_array_time_s
from csdplan.profile import load, workload_of
from csdplan.result.mixed import mix

PROFILE = load("newport")
COUNT, RANK = workload_of(PROFILE, "count"), workload_of(PROFILE, "page-rank")


def rows(*arguments: str) -> list[dict[str, Any]]:
    found = CliRunner().invoke(app, ["mix", "--profile", "newport", *arguments, "--json"])
    assert found.exit_code == 0, found.output
    held: list[dict[str, Any]] = json.loads(found.stdout)["result"]["tables"][0]["rows"]
    return held


def test_ends_are_the_closed_forms() -> None:
    whole, parts = mix([COUNT], {"count": 1.0}, drives=16, csds=[0, 16], cores=4)
    host = COUNT.host(4)
    ssd_s = float(ssd_array_time_s(16, host.tx_s, host.comp_s, k_limit=8, cores=4))
    csd_s = float(csd_array_time_s(16, COUNT.csd_tx_s, COUNT.csd_comp_s))
    none, every = whole.column("throughput_Bps")
    assert none == pytest.approx(COUNT.bytes / ssd_s)
    assert every == pytest.approx(COUNT.bytes / ssd_s + COUNT.bytes / csd_s)
    assert whole.column("together") == [True, True]
    assert parts.column("by_host")[0] == pytest.approx(1.0)


def test_every_drive_that_computes_adds() -> None:
    found = rows("--kernel", "count=3", "--kernel", "page-rank=1", "--drives", "24")
    rates = [row["throughput_Bps"] for row in found]
    assert rates == sorted(rates)
    assert rates[-1] > 1.5 * rates[0]
    free = rows("--kernel", "count=3", "--kernel", "page-rank=1", "--placement", "free")
    even = rows("--kernel", "count=3", "--kernel", "page-rank=1")
    for better, plain in zip(free, even, strict=True):
        assert better["throughput_Bps"] >= plain["throughput_Bps"] * (1 - 1e-9)


def test_at_the_limit_of_media_the_split_is_one_of_many() -> None:
    """From two drives that compute on, media are the limit; what they do most grows with them."""
    workload = workload_of(load("smartssd"), "count")
    whole, parts = mix([workload], {"count": 1.0}, drives=8, csds=range(9), cores=48)
    assert whole.column("throughput_Bps")[2:] == pytest.approx([8 * workload.media_Bps] * 7)
    by_drives = [float(str(one)) for one in parts.column("by_drives")]
    assert by_drives == sorted(by_drives)
    assert by_drives[8] == pytest.approx(8 / 7 * by_drives[7], rel=1e-3)
    assert parts.note.startswith("with 2, 3, 4, 5, 6, 7, 8 csds")
    assert "one of many" in parts.note
    _, alone = mix([COUNT], {"count": 1.0}, drives=16, csds=[0, 8, 16], cores=4)
    assert alone.note == ""


def test_page_rank_goes_to_the_drives_first() -> None:
    """Newport computes page rank nearly as fast as a core, but counts slowly: advantage decides."""
    shares = {"count": 1.0, "page-rank": 1.0}
    _, parts = mix([COUNT, RANK], shares, drives=8, csds=[8], cores=1, placement="free")
    by_host = dict(zip(parts.column("workload"), parts.column("by_host"), strict=True))
    assert by_host["count"] == pytest.approx(1, abs=1e-6)
    assert float(str(by_host["page-rank"])) < 0.5


def test_figures_and_faults(tmp_path: Path) -> None:
    figure = tmp_path / "m.svg"
    rows("--kernel", "count", "--plot", str(figure))
    assert figure.stat().st_size > 1000
    with pytest.raises(ModelError, match="from 0 to the 4 devices"):
        mix([COUNT], {"count": 1.0}, drives=4, csds=[5])
    with pytest.raises(ModelError, match="a share of count"):
        mix([COUNT], {}, drives=4, csds=[4])
    with pytest.raises(ModelError, match="even or free"):
        mix([COUNT], {"count": 1.0}, drives=4, csds=[4], placement="capacity")
    wrong = CliRunner().invoke(app, ["mix", "--profile", "newport", "--kernel", "count=x"])
    assert wrong.exit_code == 2
    assert "such as count=3" in wrong.stderr
