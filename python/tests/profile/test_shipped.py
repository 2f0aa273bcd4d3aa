"""Every number of the shipped profiles, derived again from the calibration's relations."""

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from csdplan.model.scaling import augmented_speed_up
from csdplan.profile import k_limit, load, shipped_names, workload_of
from csdplan.profile.schema import Point, Profile
from csdplan.published import read
from csdplan.solve import break_even

DATA = Path(__file__).parents[1] / "data" / "calibration.toml"
CALIBRATION: dict[str, Any] = tomllib.loads(DATA.read_text(encoding="utf-8"))
KERNELS = sorted(CALIBRATION["kernel"])
# Files print seven significant digits.
PRINTED = 1e-6


CALIBRATED = ("newport", "newport-b", "smartssd", "smartssd-b")


def point(profile: Profile, kernel: str, where: str) -> Point:
    found = [p for p in profile.point if (p.kernel, p.where) == (kernel, where)]
    return max(found, key=lambda p: p.units)


def calibration(name: str, kernel: str) -> dict[str, Any]:
    """Return the values of calibration A or B that a profile was made from."""
    device, _, variant = name.partition("-")
    given = {"device": device, "q_newport": CALIBRATION["q_newport"]}
    given |= CALIBRATION["kernel"][kernel]
    if variant == "b":
        given["q_newport"] = CALIBRATION["b"]["q_newport"]
        given |= CALIBRATION["b"]["kernel"][kernel]
    return given


def test_the_calibrated_profiles_are_shipped() -> None:
    assert shipped_names() == (
        "catalina",
        "fpga-verifier",
        *CALIBRATED[:2],
        "newport-encode",
        "nvme-ssd",
        *CALIBRATED[2:],
    )
    for name in CALIBRATED:
        assert list(load(name).kernels()) == KERNELS


@pytest.mark.parametrize("name", CALIBRATED)
@pytest.mark.parametrize("kernel", KERNELS)
def test_times_follow_from_the_calibration(name: str, kernel: str) -> None:
    given = calibration(name, kernel)
    ssd_tx = given["size_GB"] / CALIBRATION["bw_ext_GBps"]
    ssd_comp = ssd_tx / given["r"]
    if given["device"] == "smartssd":
        csd_tx = ssd_tx / CALIBRATION["r_tx_smartssd"]
    else:
        csd_tx = given["q_newport"] * ssd_tx
    csd_comp = given[f"slow_down_{given['device']}"] * ssd_comp
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
    gain = CALIBRATION["gain"][given["device"]][kernel]
    units, found = workload_of(profile, kernel).gains[-1]
    assert units == drive.units
    assert found == pytest.approx(gain, rel=PRINTED)


@pytest.mark.parametrize(("kernel", "printed"), [("dft", 5.4), ("hadoop", 2.2)])
def test_catalinas_times_give_the_printed_speed_up(kernel: str, printed: float) -> None:
    resolved = workload_of(load("catalina"), kernel)
    host = resolved.host(8)
    assert host.divisor == 1
    ratio = (host.tx_s / 16 + host.comp_s) / (resolved.csd_tx_s + resolved.csd_comp_s)
    assert augmented_speed_up(16, ratio, 0.035 / 16) == pytest.approx(printed, rel=PRINTED)
    one = resolved.host(1)
    assert one.comp_s == 8 * host.comp_s


def test_the_plain_ssd_is_newports_host_with_another_drive() -> None:
    plain, newport = load("nvme-ssd"), load("newport")
    assert plain.host == newport.host
    read = plain.device["nvme-ssd"].ext_read_Bps
    assert read is not None
    for kernel in KERNELS:
        ours, theirs = point(plain, kernel, "host"), point(newport, kernel, "host")
        assert ours.load_s.median == pytest.approx(ours.bytes / read, rel=PRINTED)
        assert ours.comp_s.median == pytest.approx(theirs.comp_s.median, rel=PRINTED)


def test_a_faster_ssd_asks_for_more_drives() -> None:
    """R_tx is taken against the device that the host really reads from."""
    own = workload_of(load("newport"), "count")
    other = workload_of(load("newport"), "count", ssd_profile=load("nvme-ssd"))
    assert (own.ssd, other.ssd) == ("smartssd", "nvme-ssd")
    assert own.k_limit == 8
    assert other.k_limit == pytest.approx(32 / 6.5)
    assert own.csd_tx_s == other.csd_tx_s
    assert other.host(1).tx_s < own.host(1).tx_s


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


def test_the_verifiers_times_are_its_recorded_cycles() -> None:
    record = Path(__file__).parents[3] / "bench" / "records" / "rtl.jsonl"
    rows = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    cycles = {
        row["units"]: row["cycles"]
        for row in rows
        if row["record"] == "cycles" and row["lane_bits"] == 8
    }
    cycles[1] = next(row["sequential"] for row in rows if row.get("lane_bits") == 8)
    points = [point for point in load("fpga-verifier").point if point.where == "drive"]
    assert {point.units for point in points} == set(cycles)
    for point_ in points:
        assert point_.comp_s.median == pytest.approx(cycles[point_.units] / 300e6, rel=1e-6)


def test_encoding_takes_the_printed_times() -> None:
    profile, given = load("newport-encode"), read("encode.toml")["encode"]
    for row in given:
        data = row["blocks"] * 2 // 3
        kernel, size = f"rs-{data}-{row['blocks'] - data}", data * row["block_MB"] * 1_000_000
        for points, seconds in (
            (profile.points(kernel, "host"), row["ssd_s"]),
            (profile.points(kernel, "drive"), row["csd_s"]),
        ):
            (found,) = (p for p in points if p.bytes == size)
            assert found.comp_s.median == seconds
    assert len(profile.point) == 2 * len(given)


def test_every_hardware_number_says_where_it_comes_from() -> None:
    for name in shipped_names():
        profile = load(name)
        assert profile.meta.source
        assert profile.meta.date
        for table in (profile.host, *profile.device.values()):
            numbers = set(table.model_dump(exclude_none=True)) - {"prov"}
            assert numbers == set(table.prov or {})


@pytest.mark.parametrize("name", CALIBRATED)
def test_k_limit_is_the_papers(name: str) -> None:
    assert k_limit(load(name), "smartssd") == 8


@pytest.mark.parametrize("name", CALIBRATED)
@pytest.mark.parametrize("kernel", KERNELS)
def test_break_even_points_are_those_of_the_fit(name: str, kernel: str) -> None:
    load_ = workload_of(load(name), kernel)
    host = load_.host(1)
    solution = break_even(
        host.tx_s,
        host.comp_s,
        load_.csd_tx_s,
        load_.csd_comp_s,
        k_limit=load_.k_limit,
        host_cores=[1, 4, 16, 64],
    )
    given = calibration(name, kernel)
    assert solution.devices.tolist() == given[f"bep_{given['device']}"]


@pytest.mark.parametrize(
    "claim", CALIBRATION["printed"], ids=lambda c: f"{c['kernel']}-{c['profile']}-{c['host_cores']}"
)
def test_break_even_points_are_those_that_the_paper_prints(claim: dict[str, Any]) -> None:
    load_ = workload_of(load(claim["profile"]), claim["kernel"])
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
