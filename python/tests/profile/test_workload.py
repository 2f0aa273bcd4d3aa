"""The choice of a plan's points, and k_limit from bandwidths."""

from collections.abc import Sequence

import pytest
from pydantic import ValidationError

from csdplan import ProfileIncomplete
from csdplan.profile import Profile, k_limit, load, parse, workload_of
from csdplan.profile.workload import media_Bps


def profile(
    points: Sequence[str], host: str = "", devices: str = "[device.a]\n[device.b]"
) -> Profile:
    head = f'schema = 1\n[meta]\nmachine = "m"\n[host]\ncores = 8\n{host}\n{devices}\n'
    return parse(head + "".join(points))


def point(
    where: str,
    load_s: float,
    comp_s: float,
    *,
    device: str = "a",
    units: int = 1,
    size: int = 100,
    extra: str = 'overlap = "serial"',
) -> str:
    return (
        f'[[point]]\nkernel = "count"\nwhere = "{where}"\ndevice = "{device}"\nunits = {units}\n'
        f'bytes = {size}\nprov = "assumed"\n{extra}\n'
        f"load_s = {{ median = {load_s} }}\ncomp_s = {{ median = {comp_s} }}\n"
    )


HOST, DRIVE = point("host", 1.0, 6.0), point("drive", 2.0, 8.0)


def test_host_n_divides_by_n_unless_n_was_measured() -> None:
    load = workload_of(profile([HOST, point("host", 1.1, 2.5, units=3), DRIVE]), "count")
    two, three = load.host(2), load.host(3)
    assert (two.tx_s, two.comp_s, two.divisor) == (1.0, 6.0, 2)
    assert (three.tx_s, three.comp_s, three.divisor) == (1.1, 2.5, 1)


def test_the_drives_best_configuration_is_used() -> None:
    slow, best = point("drive", 2.0, 8.0), point("drive", 2.0, 3.0, units=4)
    worse, level = point("drive", 4.0, 3.0, units=8), point("drive", 1.0, 4.0, units=5)
    load = workload_of(profile([HOST, slow, worse, level, best]), "count")
    assert (load.drive_units, load.csd_tx_s, load.csd_comp_s) == (4, 2.0, 3.0)


def test_the_largest_common_size_is_used_or_the_one_asked_for() -> None:
    points = [HOST, DRIVE]
    points += [point("host", 10, 60, size=900), point("drive", 20, 80, size=900)]
    points += [point("drive", 200, 800, size=9000), point("host", 99, 99, size=5000, units=2)]
    assert workload_of(profile(points), "count").bytes == 900
    assert workload_of(profile(points), "count", bytes=100).csd_tx_s == 2.0
    with pytest.raises(ProfileIncomplete, match="no points of 9000 bytes; there are: 100, 900"):
        workload_of(profile(points), "count", bytes=9000)


def test_the_ssd_is_the_drive_itself_if_it_was_measured_so() -> None:
    points = [HOST, point("host", 5.0, 5.0, device="b"), DRIVE]
    assert workload_of(profile(points), "count").ssd == "a"
    assert workload_of(profile(points), "count", ssd="b").host(1).tx_s == 5.0


def test_an_open_choice_is_an_error_that_lists_the_choices() -> None:
    two_drives = profile([HOST, DRIVE, point("drive", 1.0, 1.0, device="b")])
    with pytest.raises(ProfileIncomplete, match="give --device: a, b"):
        workload_of(two_drives, "count")
    assert workload_of(two_drives, "count", device="b").csd_comp_s == 1.0
    with pytest.raises(ProfileIncomplete, match="no drive point of 'c'; there are: a, b"):
        workload_of(two_drives, "count", device="c")
    third = "[device.a]\n[device.b]\n[device.c]"
    hosts = [point("host", 1.0, 1.0, device=name) for name in ("b", "c")]
    with pytest.raises(ProfileIncomplete, match="give --ssd: b, c"):
        workload_of(profile([*hosts, DRIVE], devices=third), "count")


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([HOST], "no point with where = 'drive'"),
        ([DRIVE], "no point with where = 'host'"),
        ([point("host", 1.0, 1.0, units=2), DRIVE], "needs a host point with units = 1"),
        ([point("host", 1.0, 1.0, size=7), DRIVE], "needs a host point with units = 1"),
    ],
)
def test_a_missing_side_is_an_error(points: list[str], message: str) -> None:
    with pytest.raises(ProfileIncomplete, match=message):
        workload_of(profile(points), "count")


def test_an_unknown_kernel_lists_the_known_ones() -> None:
    with pytest.raises(ProfileIncomplete, match="no kernel 'sort'; it has: count"):
        workload_of(profile([HOST, DRIVE]), "sort")


def test_what_the_equations_leave_out_is_said() -> None:
    assert workload_of(profile([HOST, DRIVE]), "count").warnings == ()
    extra = 'overlap = "pipelined"\nstore_s = { median = 1.0 }'
    warnings = workload_of(profile([HOST, point("drive", 2, 8, extra=extra)]), "count").warnings
    assert len(warnings) == 2
    assert "pipelined" in warnings[0]
    assert "store_s" in warnings[1]


@pytest.mark.parametrize(
    ("host", "device", "expected"),
    [
        ("ingest_bw_Bps = 32", "link_bw_Bps = 4\next_read_Bps = 3", 8),
        ("ingest_bw_Bps = 32", "ext_read_Bps = 3", 32 / 3),
        ("ingest_bw_Bps = 31", "link_bw_Bps = 4", 7.75),
        ("ingest_bw_Bps = 3", "link_bw_Bps = 4", 1),
        ("ingest_bw_Bps = 9223372036854775807", "ext_read_Bps = 1", 9223372036854775807),
        ("", "link_bw_Bps = 4", None),
        ("ingest_bw_Bps = 32", "int_read_Bps = 4", None),
    ],
)
def test_k_limit_rule(host: str, device: str, expected: float | None) -> None:
    made = profile([HOST, DRIVE], host=host, devices=f"[device.a]\n{device}")
    assert k_limit(made, "a") == expected
    assert workload_of(made, "count").k_limit == expected


def test_points_of_an_overloaded_host_stand_for_nothing() -> None:
    slow = 'overlap = "serial"\noverload = { kind = "cpu", rivals = 2 }'
    found = workload_of(
        profile(
            [point("host", 9, 9, extra=slow), point("host", 1, 2), point("drive", 3, 4)],
        ),
        "count",
    )
    assert (found.host(1).tx_s, found.host(1).comp_s) == (1, 2)


def test_stated_media_bandwidth_goes_before_that_of_single_readers() -> None:
    table = load("newport").as_dict()
    device = table["device"]["newport"]
    fastest = media_Bps(Profile.model_validate(table), "newport")
    device["media_bw_Bps"] = int(2 * fastest)
    assert media_Bps(Profile.model_validate(table), "newport") == 2 * fastest
    device["media_bw_Bps"] = device["ext_read_Bps"] - 1
    with pytest.raises(ValidationError, match="media_bw_Bps of at least"):
        Profile.model_validate(table)
