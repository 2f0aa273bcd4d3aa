"""Ranges of a plan hold what is measured later in about the share of cases that they claim.

Worlds are simulated here: true times, a session in which the host is characterized, and another in
which it runs; within both, runs scatter. Host(n) of a kernel that goes by parts is added up here.
"""

from typing import Any

import numpy as np
import pytest

from csdplan.profile.schema import Profile
from csdplan.result.validated import compare
from csdplan.trial import Sample, Setting, load_pace

MB = 1_000_000
SIZE = 8 * MB
PACE = load_pace()
#: Bytes per second of the paced drives: one to the host, and all together.
READ, INTAKE = 40 * MB, 60 * MB


def host_profile(rng: np.random.Generator, load_s: float, comp_s: float, runs: int) -> Profile:
    """Return what a session measures of a host whose true times these are."""
    body: dict[str, Any] = PACE.sized(SIZE).as_dict()
    body["device"]["paced"]["link_bw_Bps"] = READ
    for point in body["point"]:
        point |= {"where": "host", "overlap": "pipelined", "prov": "measured"}
        for key, true in (("load_s", load_s), ("comp_s", comp_s)):
            seen = true * session(rng) * np.exp(0.03 * rng.standard_normal(runs))
            p25, median, p75 = (float(one) for one in np.quantile(seen, (0.25, 0.5, 0.75)))
            point[key] = {"median": median, "p25": p25, "p75": p75, "n": runs}
    return Profile.model_validate(body)


def session(rng: np.random.Generator) -> float:
    """Return how a session differs from others: by 1.4 %, twice of which makes the 2 % planned."""
    return float(np.exp(0.014 * rng.standard_t(6) / np.sqrt(1.5)))


@pytest.mark.parametrize("kernel", ["count", "page-rank"])
def test_what_is_measured_lies_in_nine_ranges_of_ten(kernel: str) -> None:
    rng = np.random.default_rng(20261128)
    within: list[bool] = []
    for _ in range(150):
        runs = int(rng.choice([3, 5, 9]))
        setting = Setting((kernel,), (1, 2, 4), (1,), SIZE, runs)
        comp_s = SIZE / (float(rng.uniform(10, 200)) * MB)
        profile = host_profile(rng, SIZE / READ, comp_s, runs)
        samples = []
        for devices in setting.drives:
            together = devices if kernel == "count" else min(devices, 2)
            reads = together * min(READ, INTAKE / devices)
            now_s = max(SIZE / reads * session(rng), comp_s * session(rng))
            seen = SIZE / now_s * np.exp(0.03 * rng.standard_normal(runs))
            samples += [Sample(kernel, devices, 1, float(rate)) for rate in seen]
        found = compare(setting, PACE, profile, samples)
        within += [row.is_in_range for row in found.rows]
    assert 0.85 <= sum(within) / len(within) <= 0.97


def test_a_host_that_takes_parts_reads_from_few_drives_at_once() -> None:
    """Two of four drives at 15 MB/s each for Host(1); all four for Host(2), and for chunks."""
    rng = np.random.default_rng(1)
    profile = host_profile(rng, SIZE / READ, 1e-4, 9)
    setting = Setting(("count", "page-rank"), (4,), (1, 2), SIZE, 3)
    samples = [
        Sample(kernel, 4, cores, 1.0 * MB)
        for kernel in setting.kernels
        for cores in setting.host_cores
        for _ in range(3)
    ]
    rows = compare(setting, PACE, profile, samples).rows
    planned = {(row.kernel, row.host_cores): row.planned_Bps[1] / MB for row in rows}
    assert planned["page-rank", 1] == pytest.approx(30, rel=0.1)
    assert planned["page-rank", 2] == pytest.approx(60, rel=0.1)
    assert planned["count", 1] == pytest.approx(60, rel=0.1)
