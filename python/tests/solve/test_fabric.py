"""Queues against simulated requests, headers by hand, and what is measured against its record."""

import json
import random
from heapq import heapreplace
from pathlib import Path

import pytest

from csdplan import published
from csdplan.errors import ModelError
from csdplan.model.queues import Station, erlang_c, latency_s
from csdplan.model.wire import CoreTime, share_of_link
from csdplan.solve.fabric import behind, front_end, stations

RECORD = Path(__file__).parents[3] / "bench" / "records" / "block.jsonl"
WORKLOADS = {
    ("read", 4096, 1): "4 KiB random read, depth 1",
    ("read", 4096, 32): "4 KiB random read, depth 32",
    ("write", 4096, 32): "4 KiB random write, depth 32",
    ("read", 131072, 32): "128 KiB read, depth 32",
}


def simulated(passed: list[Station], per_s: float, requests: int) -> tuple[float, float]:
    """Return mean and 99th percentile of the time that requests wait, first come first served."""
    dice, clock, arrivals = random.Random(7), 0.0, []
    for _ in range(requests):
        clock += dice.expovariate(per_s)
        arrivals.append(clock)
    waits, order = [0.0] * requests, list(range(requests))
    for one in passed:
        # Who is served first at one station comes first to the next.
        order.sort(key=arrivals.__getitem__)
        free = [0.0] * one.servers
        for n in order:
            service = dice.expovariate(1 / one.service_s) if one.variation else one.service_s
            begins = max(arrivals[n], free[0])
            heapreplace(free, begins + service)
            waits[n] += begins - arrivals[n]
            arrivals[n] = begins + service
    kept = sorted(waits[requests // 10 :])
    return sum(kept) / len(kept), kept[int(0.99 * len(kept))]


@pytest.mark.parametrize("load", [0.3, 0.7, 0.9])
@pytest.mark.parametrize(
    ("servers", "variation", "near"),
    [(1, 1.0, 0.1), (4, 1.0, 0.1), (1, 0.0, 0.1), (8, 0.0, 0.2)],
)
def test_one_queue_against_simulated_requests(
    servers: int, variation: float, near: float, load: float
) -> None:
    one = Station("one", servers, 1.0, variation)
    mean, tail = latency_s([one], load * servers, 0.0, 0.99)
    seen_mean, seen_tail = simulated([one], load * servers, 200_000)
    assert mean == pytest.approx(seen_mean, rel=near, abs=5e-3)
    # Few wait under a light load, for less than one constant service: the exponential tail is long.
    assert seen_tail * 0.93 <= tail <= seen_tail * 1.07 + 0.6 * (1.0 - variation) + 0.01


def test_queues_one_after_another_against_simulated_requests() -> None:
    passed = [
        Station("cores", 2, 1.0, 1.0),
        Station("link", 1, 0.4, 0.0),
        Station("drives", 40, 15.0, 0.0),
    ]
    for per_s in (1.0, 1.6, 1.8):
        mean, tail = latency_s(passed, per_s, 0.0, 0.99)
        seen_mean, seen_tail = simulated(passed, per_s, 200_000)
        assert mean == pytest.approx(seen_mean, rel=0.1)
        assert tail == pytest.approx(seen_tail, rel=0.1)


def test_formulas_by_hand() -> None:
    # One server: the probability to wait is the load, the mean wait load / (1 - load) services.
    assert erlang_c(1, 0.6) == pytest.approx(0.6)
    assert latency_s([Station("x", 1, 2.0, 1.0)], 0.4, 5.0, 0.99)[0] == pytest.approx(5 + 8.0)
    assert latency_s([Station("x", 1, 2.0, 0.0)], 0.4, 5.0, 0.99)[0] == pytest.approx(5 + 4.0)
    # Two servers, load 0.75: 0.6429 (a table of Erlang's C).
    assert erlang_c(2, 1.5) == pytest.approx(0.642857, abs=1e-6)
    assert erlang_c(5000, 4000.0) < 1e-6


def test_headers_by_hand() -> None:
    assert share_of_link(4096, 9000) == pytest.approx(4096 / (4096 + 48) * 8948 / 9038)
    assert share_of_link(1 << 20, 1500) == pytest.approx(0.9415, abs=1e-3)


def test_what_is_measured_stands_in_the_record() -> None:
    lines = [json.loads(line) for line in RECORD.read_text(encoding="utf-8").splitlines()]
    record = {line["workload"]: line for line in lines}
    points = published.read("network.toml")["point"]
    assert len(points) == len(WORKLOADS)
    for one in points:
        found = record[WORKLOADS[one["op"], one["block"], one["depth"]]]
        assert one["per_s"] == found["drive_per_s"]
        assert one["cpu_us"] == found["cpu_us_per_io"]["drive"]
        assert not found["inconclusive"]


def test_drives_behind_a_card() -> None:
    core = CoreTime.through((4096, 1e-6), (131072, 20e-6))
    assert core.seconds(4096) == pytest.approx(1e-6)
    found = behind(
        4096, link_Bps=25e9, mtu=9000, cores=2, core=core, drive_Bps=6.5e9, drive_per_s=8e5
    )
    assert found.binds == "cores"
    assert found.host_Bps == pytest.approx(2 * 4096e6)
    assert found.drive_Bps == pytest.approx(8e5 * 4096)
    assert (found.at_full_speed, found.to_fill) == (2, 3)
    assert found.cores_to_fill == pytest.approx(25e9 * share_of_link(4096, 9000) / 4096e6)
    passed = stations(found, cores=2, drives=8, media_s=80e-6)
    assert passed[0].most_per_s == pytest.approx(2e6)
    assert passed[2].servers == 8 * 64


@pytest.mark.parametrize("ratio", [1.0, 2.0, 3.0])
@pytest.mark.parametrize("hosts", [1, 32, 33, 96, 400])
def test_a_front_end_has_ports_for_all(hosts: int, ratio: float) -> None:
    found = front_end(hosts, 1, 32, ratio)
    assert found.cards == hosts
    if hosts <= 32:
        assert (found.leaves, found.spines) == (1, 0)
        return
    # Ports of the leaves: for hosts, and the rest up; the ratio is of full leaves.
    down = -(-hosts // found.leaves)
    up = found.spines * 32 // found.leaves
    assert down + min(up, 32 - down) <= 32
    assert up * ratio >= down - ratio
    assert front_end(hosts + 1, 1, 32, ratio).leaves >= found.leaves


def test_two_layers_have_an_end() -> None:
    assert front_end(512, 1, 32, 1.0).leaves == 32
    with pytest.raises(ModelError, match="at most 512 in two layers"):
        front_end(513, 1, 32, 1.0)
