"""Bandwidths from fio's JSON: what ran at once, what ran after it, and what is refused."""

import json
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from csdplan import ProfileInvalid
from csdplan.profile.fio import read_fio

KIB = 1024
#: Half the distance of the quartiles of a normal distribution, in standard deviations.
QUARTILE = 0.67449


def job(read_bytes: float = 0, *, group: int = 0, **more: Any) -> dict[str, Any]:
    """Return a job's entry; keys with a slash belong to its reads, those with a blank to it."""
    side = {key[5:]: value for key, value in more.items() if key.startswith("read_")}
    rest = {key: value for key, value in more.items() if not key.startswith("read_")}
    read = {"bw_bytes": read_bytes, **side}
    return {"jobname": "seq", "groupid": group, "read": read, "write": {"bw_bytes": 0}, **rest}


def fio(tmp_path: Path, *jobs: Any, **top: Any) -> Path:
    file = tmp_path / "fio.json"
    file.write_text(json.dumps({"fio version": "fio-3.36", "jobs": list(jobs), **top}), "utf-8")
    return file


def test_one_job_gives_fios_own_spread(tmp_path: Path) -> None:
    found = read_fio(fio(tmp_path, job(3e9, read_bw_dev=100_000.0, read_bw_samples=60)))
    assert set(found) == {"read"}
    read = found["read"]
    assert (read.median_Bps, read.samples) == (3e9, 60)
    # 100,000 KiB/s times 0.6745.
    assert read.p25_Bps == pytest.approx(3e9 - 69_068_286, rel=1e-6)


def test_jobs_that_ran_at_once_are_added_up_with_the_spread_of_their_sum(tmp_path: Path) -> None:
    jobs = [job(rate * 1e9, read_bw_dev=dev, read_bw_samples=60) for rate, dev in ((1, 3), (2, 4))]
    read = read_fio(fio(tmp_path, *jobs))["read"]
    assert (read.median_Bps, read.samples) == (3e9, 60)
    assert read.p75_Bps == pytest.approx(3e9 + QUARTILE * 5 * KIB, abs=1)


def test_jobs_of_different_length_are_their_bytes_over_the_longest_time(tmp_path: Path) -> None:
    """Ten seconds at 2 GB/s next to twenty at 1 GB/s: 2 GB/s, as fio's own sum has it."""
    jobs = [job(2e9, read_io_bytes=2e10, read_runtime=10_000),
            job(1e9, read_io_bytes=2e10, read_runtime=20_000)]  # fmt: skip
    assert read_fio(fio(tmp_path, *jobs))["read"].median_Bps == 2e9


def test_an_entry_of_a_group_has_the_spread_of_the_group(tmp_path: Path) -> None:
    """For a group fio adds up means and samples, and gives the deviation of one job."""
    options = {"group_reporting": "", "numjobs": "4"}
    group = job(4e9, read_bw_dev=100.0, read_bw_samples=240)
    for place in ("job options", "global options"):
        entry = {**group, place: options} if place == "job options" else group
        top = {} if place == "job options" else {place: options}
        read = read_fio(fio(tmp_path, entry, **top))["read"]
        assert (read.median_Bps, read.samples) == (4e9, 60)
        assert read.p75_Bps == pytest.approx(4e9 + QUARTILE * 100 * KIB * sqrt(4), abs=1)


def test_phases_of_equal_settings_are_repetitions(tmp_path: Path) -> None:
    waits = {"job options": {"bs": "1M", "stonewall": ""}}
    jobs = [job(rate * 1e9, group=rate, **waits) for rate in (1, 2, 3, 4, 5)]
    read = read_fio(fio(tmp_path, *jobs))["read"]
    assert (read.p25_Bps, read.median_Bps, read.p75_Bps) == (2e9, 3e9, 4e9)
    assert read.samples == 5


def test_a_group_of_its_own_does_not_wait(tmp_path: Path) -> None:
    jobs = [job(1e9), job(2e9, group=1, **{"job options": {"new_group": ""}})]
    assert read_fio(fio(tmp_path, *jobs))["read"].median_Bps == 3e9


def test_a_phase_of_reads_and_one_of_writes_are_both_read(tmp_path: Path) -> None:
    writes = {**job(group=1), "write": {"bw_bytes": 2e9}}
    found = read_fio(fio(tmp_path, job(3e9), writes))
    assert {key: one.median_Bps for key, one in found.items()} == {"read": 3e9, "write": 2e9}


def test_old_fio_wrote_kibibytes_only(tmp_path: Path) -> None:
    old = {"read": {"bw": 1000, "io_bytes": 5, "runtime": 1}, "write": {}}
    assert read_fio(fio(tmp_path, old))["read"].median_Bps == 1_024_000
    assert read_fio(fio(tmp_path, old, old))["read"].median_Bps == 2_048_000


def test_lines_around_the_json_and_other_encodings_are_read(tmp_path: Path) -> None:
    file = fio(tmp_path, job(3e9))
    text = f"note: both iodepth >= 1\nfio: a warning\n{file.read_text('utf-8')}\n\nRun status\n"
    for encoding in ("utf-8", "utf-8-sig", "utf-16", "utf-32"):
        file.write_text(text, encoding)
        assert read_fio(file)["read"].median_Bps == 3e9


def test_jobs_of_a_client_are_read_and_those_of_several_named(tmp_path: Path) -> None:
    one, other = job(3e9, hostname="a", port=1), job(1e9, hostname="b", port=1)
    file = tmp_path / "fio.json"
    for jobs in ([one], [one, job(3e9, jobname="All clients")]):
        file.write_text(json.dumps({"client_stats": jobs}), "utf-8")
        assert read_fio(file)["read"].median_Bps == 3e9
    file.write_text(json.dumps({"client_stats": [one, other]}), "utf-8")
    with pytest.raises(ProfileInvalid, match="client_stats = a, b: expected one host"):
        read_fio(file)


def with_options(rate: float, group: int, **options: str) -> dict[str, Any]:
    return job(rate, group=group, **{"job options": options})


@pytest.mark.parametrize(
    ("jobs", "said"),
    [
        ([job(3e9, error=5)], "jobs[0].error = 5"),
        ([job(3e9), job(1e9, total_err=2)], "jobs[1].total_err = 2"),
        ([{**job(3e9), "write": {"bw_bytes": 1e9}}], "seq reads and writes"),
        ([job(3e9), {**job(), "write": {"bw_bytes": 1e9}}], "seq reads and writes"),
        (
            [with_options(1e9, 0, bs="4k"), with_options(3e9, 1, bs="1M", stonewall="")],
            "read of phases = seq, seq: expected phases of equal settings",
        ),
        (
            [with_options(1e9, 0, filename=f"/dev/nvme{n}n1p1") for n in (0, 1)],
            "filename = /dev/nvme0n1, /dev/nvme1n1: expected one drive",
        ),
        ([job(float("nan"))], "NaN is no number of JSON"),
        ([job(10**400)], "a job that read or wrote"),
        ([job(-1)], "a job that read or wrote"),
        ([3], "jobs = list"),
    ],
)
def test_what_measures_no_drive_is_refused(tmp_path: Path, jobs: list[Any], said: str) -> None:
    with pytest.raises(ProfileInvalid) as caught:
        read_fio(fio(tmp_path, *jobs))
    assert said in str(caught.value)


def test_two_partitions_are_one_drive(tmp_path: Path) -> None:
    jobs = [with_options(1e9, 0, filename=f"/dev/nvme0n1p{n}") for n in (1, 2)]
    assert read_fio(fio(tmp_path, *jobs))["read"].median_Bps == 2e9


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"jobs": 3}', '{"jobs": []}', '{"a":' * 100_000, '{"jobs": [], "jobs": []}',
     '{"jobs": []}\n{"jobs": []}'],
)  # fmt: skip
def test_what_is_not_fios_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "x.json"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ProfileInvalid, match="jobs"):
        read_fio(file)
