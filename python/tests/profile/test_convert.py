"""Profiles from measured bandwidths and from data sheets, and the writer they go through."""

from pathlib import Path

import pytest

from csdplan import ProfileIncomplete, ProfileInvalid
from csdplan.profile import load, parse, shipped_names, workload_of
from csdplan.profile.convert import Bandwidth, KernelTimes, profile_of
from csdplan.profile.write import as_toml

GOLDEN = Path(__file__).parents[3] / "docs" / "internals" / "golden" / "profile"
KERNEL = KernelTimes("count", 4_800_000_000, 0.7, 1.2)
META, HOST = {"machine": "bench"}, {"cores": 8, "ingest_bw_Bps": 32_000_000_000}


@pytest.mark.parametrize("name", shipped_names())
def test_what_is_written_reads_back(name: str) -> None:
    assert parse(as_toml(load(name))) == load(name)


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("valid-*.toml")), ids=lambda f: f.stem)
def test_golden_profiles_survive_the_writer(file: Path) -> None:
    assert parse(as_toml(load(file))) == load(file)


def test_measured_bandwidth_becomes_measured_times() -> None:
    bandwidths = {
        "ext_read": Bandwidth(3e9, 2e9, 4e9, 9),
        "int_read": Bandwidth(1e9, 1e9, 1e9, 9),
    }
    profile = profile_of("my-drive", bandwidths, [KERNEL], meta=META, host=HOST)
    host, drive = profile.point
    assert (host.load_s.median, host.load_s.p25, host.load_s.p75) == (1.6, 1.2, 2.4)
    assert host.prov_of(host.load_s) == "measured"
    assert host.prov_of(host.comp_s) == "given"
    assert profile.device["my-drive"].prov == {
        "ext_read_Bps": "measured",
        "int_read_Bps": "measured",
    }
    resolved = workload_of(profile, "count")
    assert (resolved.csd_tx_s, resolved.csd_comp_s) == (4.8, 1.2)
    assert resolved.k_limit == pytest.approx(32 / 3)
    assert drive.units == 1


def test_a_data_sheet_is_given_and_its_times_inferred() -> None:
    sheet = {"ext_read": Bandwidth(3.2e9), "int_read": Bandwidth(1e9)}
    device = {"cores": 4, "price_usd": 110.0}
    profile = profile_of(
        "sheet", sheet, [KERNEL], meta=META, host=HOST, device=device, prov="given"
    )
    assert profile.device["sheet"].price_usd == 110.0
    assert profile.point[0].prov_of(profile.point[0].load_s) == "inferred"
    assert profile.point[1].units == 4


def test_what_is_missing_is_named() -> None:
    outside = {"ext_read": Bandwidth(3e9)}
    with pytest.raises(ProfileIncomplete, match="the host reads"):
        profile_of("x", {}, [KERNEL], meta=META, host=HOST)
    with pytest.raises(ProfileIncomplete, match="bandwidth inside"):
        profile_of("x", outside, [KERNEL], meta=META, host=HOST)
    with pytest.raises(ProfileIncomplete, match="at least one kernel"):
        profile_of("x", outside, [], meta=META, host=HOST)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 0.0, -1.0])
def test_bad_times_are_the_schemas_fault_and_named(bad: float) -> None:
    kernels = [KernelTimes("count", 10**9, bad), KernelTimes("Bad Name", 0, 1.0)]
    with pytest.raises(ProfileInvalid) as caught:
        profile_of("x", {"ext_read": Bandwidth(3e9)}, kernels, meta=META, host=HOST)
    keys = {problem.key for problem in caught.value.problems}
    assert {"point[0].comp_s.median", "point[1].kernel", "point[1].bytes"} <= keys
