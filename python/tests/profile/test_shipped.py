"""Every number of the shipped profiles, derived again from the calibration's relations."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from csdplan.profile import k_limit, load, shipped_names, workload
from csdplan.profile.schema import Point, Profile
from csdplan.solve import break_even

DATA = Path(__file__).parents[1] / "data" / "calibration.toml"
CALIBRATION: dict[str, Any] = tomllib.loads(DATA.read_text(encoding="utf-8"))
KERNELS = sorted(CALIBRATION["kernel"])
# Files print seven significant digits.
PRINTED = 1e-6


def point(profile: Profile, kernel: str, where: str) -> Point:
    (found,) = [p for p in profile.point if (p.kernel, p.where) == (kernel, where)]
    return found


def test_the_calibrated_profiles_are_shipped() -> None:
    assert shipped_names() == ("newport", "smartssd")
    for name in shipped_names():
        assert list(load(name).kernels()) == KERNELS


@pytest.mark.parametrize("name", shipped_names())
@pytest.mark.parametrize("kernel", KERNELS)
def test_times_follow_from_the_calibration(name: str, kernel: str) -> None:
    given = CALIBRATION["kernel"][kernel]
    ssd_tx = given["size_GB"] / CALIBRATION["bw_ext_GBps"]
    ssd_comp = ssd_tx / given["r"]
    if name == "smartssd":
        csd_tx = ssd_tx / CALIBRATION["r_tx_smartssd"]
    else:
        csd_tx = CALIBRATION["q_newport"] * ssd_tx
    csd_comp = given[f"slow_down_{name}"] * ssd_comp
    profile = load(name)
    host, drive = point(profile, kernel, "host"), point(profile, kernel, "drive")
    assert host.load_s.median == pytest.approx(ssd_tx, rel=PRINTED)
    assert host.comp_s.median == pytest.approx(ssd_comp, rel=PRINTED)
    assert drive.load_s.median == pytest.approx(csd_tx, rel=PRINTED)
    assert drive.comp_s.median == pytest.approx(csd_comp, rel=PRINTED)
    assert host.bytes == drive.bytes == round(given["size_GB"] * 1e9)
    assert host.device == "smartssd"
    assert host.units == 1
    assert host.prov_of(host.load_s) == "assumed"
    assert {host.prov, drive.prov} == {"inferred"}


def test_bandwidths_follow_from_the_calibration() -> None:
    smartssd, newport = load("smartssd"), load("newport")
    device = smartssd.device["smartssd"]
    external = CALIBRATION["bw_ext_GBps"] * 1e9
    assert device.ext_read_Bps == round(external)
    assert device.int_read_Bps == round(external * CALIBRATION["r_tx_smartssd"])
    assert device.link_bw_Bps == CALIBRATION["link_GBps"] * 1e9
    internal = external / CALIBRATION["q_newport"]
    assert newport.device["newport"].int_read_Bps == round(internal)
    assert newport.device["newport"].ext_read_Bps == round(
        internal * CALIBRATION["ext_over_int_newport"]
    )
    assert smartssd.host.ingest_bw_Bps == CALIBRATION["ingest_GBps"] * 1e9


def test_both_profiles_hold_the_same_host_and_ssd() -> None:
    smartssd, newport = load("smartssd"), load("newport")
    assert smartssd.host == newport.host
    assert smartssd.device["smartssd"] == newport.device["smartssd"]
    for kernel in KERNELS:
        assert point(smartssd, kernel, "host") == point(newport, kernel, "host")


def test_every_hardware_number_says_where_it_comes_from() -> None:
    for name in shipped_names():
        profile = load(name)
        assert profile.meta.source == "https://doi.org/10.1145/3623677"
        for table in (profile.host, *profile.device.values()):
            numbers = set(table.model_dump(exclude_none=True)) - {"prov"}
            assert numbers == set(table.prov or {})


@pytest.mark.parametrize("name", shipped_names())
def test_k_limit_is_the_papers(name: str) -> None:
    assert k_limit(load(name), "smartssd") == 8


@pytest.mark.parametrize("name", shipped_names())
@pytest.mark.parametrize("kernel", KERNELS)
def test_break_even_points_are_those_of_the_fit(name: str, kernel: str) -> None:
    load_ = workload(load(name), kernel)
    host = load_.host(1)
    solution = break_even(
        host.tx_s,
        host.comp_s,
        load_.csd_tx_s,
        load_.csd_comp_s,
        k_limit=load_.k_limit,
        host_cores=[1, 4, 16, 64],
    )
    assert solution.devices.tolist() == CALIBRATION["kernel"][kernel][f"bep_{name}"]


@pytest.mark.parametrize(
    "claim", CALIBRATION["printed"], ids=lambda c: f"{c['kernel']}-{c['profile']}-{c['host_cores']}"
)
def test_break_even_points_are_those_that_the_paper_prints(claim: dict[str, Any]) -> None:
    load_ = workload(load(claim["profile"]), claim["kernel"])
    host = load_.host(claim["host_cores"])
    solution = break_even(
        host.tx_s,
        host.comp_s,
        load_.csd_tx_s,
        load_.csd_comp_s,
        k_limit=load_.k_limit,
        host_cores=host.divisor,
    )
    assert solution.devices == claim["devices"], claim["place"]
