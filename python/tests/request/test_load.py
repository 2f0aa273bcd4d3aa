"""Requests: their plain numbers, and the errors of faulty ones."""

from pathlib import Path

import pytest

from csdplan import ProfileIncomplete, ProfileInvalid, ProfileNotFound
from csdplan.profile import load, workload_of
from csdplan.request import load_request, parse_request, request_names

GOOD = """
schema = 1
[host]
profile = "newport"
slots = 12
[[cpu]]
name = "a"
cores = 8
core_speed = 2.0
price_usd = 500
[[drive]]
name = "csd"
profile = "newport"
device = "newport"
price_usd = 110
[[drive]]
name = "ssd"
profile = "smartssd"
device = "smartssd"
computes = false
price_usd = 100
capacity_bytes = 2_000_000_000_000
[[workload]]
kernel = "count"
throughput_Bps = 1e9
"""


def test_numbers_are_the_profiles() -> None:
    held = parse_request(GOOD)
    (cpu,), (csd, ssd), (demand,) = held.cpus, held.drives, held.demands
    count = workload_of(load("newport"), "count")
    assert cpu.ingest_Bps == 32e9
    assert cpu.slots == 12
    assert csd.capacity_bytes == 8e12  # the profile's own
    assert ssd.capacity_bytes == 2e12
    assert csd.read_Bps == 1.216e9
    # A core twice as fast takes half the time.
    assert demand.core_s_per_byte["a"] == pytest.approx(count.host(1).comp_s / 2 / 4.8e9)
    drive_s = (count.csd_tx_s + count.csd_comp_s) / 4.8e9
    assert demand.drive_s_per_byte == {"csd": pytest.approx(drive_s)}


def test_shipped_requests_load() -> None:
    assert "epyc" in request_names()
    for name in request_names():
        assert load_request(name).demands


def test_a_file_may_name_profiles_beside_it(tmp_path: Path) -> None:
    shipped = Path(str(__import__("csdplan").__file__)).parent / "profile" / "shipped"
    (tmp_path / "mine.toml").write_bytes((shipped / "newport.toml").read_bytes())
    path = tmp_path / "request.toml"
    path.write_text(GOOD.replace('profile = "newport"', 'profile = "mine.toml"'))
    assert load_request(path).demands == parse_request(GOOD).demands


def test_all_faults_are_reported_at_once() -> None:
    bad = GOOD.replace("cores = 8", "cores = 0").replace("slots = 12", "slots = 12\nsolts = 1")
    bad = bad.replace("throughput_Bps = 1e9", "throughput_Bps = nan")
    with pytest.raises(ProfileInvalid) as caught:
        parse_request(bad, file="r.toml")
    keys = {problem.key for problem in caught.value.problems}
    assert keys == {"cpu[0].cores", "host.solts", "workload[0].throughput_Bps"}
    assert "no such key; there are: profile, slots" in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "error", "message"),
    [
        ("schema = 1", "schema = 2", ProfileInvalid, "the only version"),
        ("price_usd = 110", "", ProfileIncomplete, "drive csd: price_usd is unknown"),
        ('device = "newport"', 'device = "x"', ProfileIncomplete, "it has: newport, smartssd"),
        ('kernel = "count"', 'kernel = "sort"', ProfileIncomplete, "kernel sort"),
        ('profile = "newport"', 'profile = "nope"', ProfileNotFound, "no shipped profile"),
    ],
)
def test_what_is_missing_is_named(old: str, new: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        parse_request(GOOD.replace(old, new))


def test_unknown_requests_are_refused() -> None:
    with pytest.raises(ProfileNotFound, match="there are: epyc"):
        load_request("epic")
    with pytest.raises(ProfileNotFound, match="cannot be read"):
        load_request("no/such.toml")
