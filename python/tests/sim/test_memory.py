"""Host memory as a limit: what comes in is written to it and read again, in every layout."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from csdplan import ModelError
from csdplan.model.overlap import Overlap
from csdplan.sim import Job, Layout, Node, System, fleet_of, run_fluid, simulate
from csdplan.sim.bound import bound_Bps

SPEEDS: dict[str, Any] = {
    "core_Bps": 2e9,
    "drive_read_Bps": 1e9,
    "drive_comp_Bps": 4e9,
    "port_Bps": 3e9,
    "uplink_Bps": 24e9,
}
WAYS = list(itertools.product(Layout, Overlap))


def node(rng: np.random.Generator) -> Node:
    drives = int(rng.integers(1, 9))
    return Node(
        cores=int(rng.integers(1, 13)),
        drives=drives,
        enabled=int(rng.integers(0, drives + 1)),
        memory_Bps=float(rng.uniform(2e9, 20e9)),
        **SPEEDS,
    )


@pytest.mark.parametrize(("layout", "overlap"), WAYS)
def test_no_run_moves_more_than_memory_carries(layout: Layout, overlap: Overlap) -> None:
    rng = np.random.default_rng(5)
    for _ in range(12):
        of = node(rng)
        ratio = float(rng.choice([0.0, 0.6]))
        job = Job(400, 8e6, layout=layout, overlap=overlap, result_ratio=ratio)
        job = replace(job, steal=bool(rng.integers(0, 2)) and of.enabled > 1)
        found = simulate(System(of), job)
        came_in = found.host_bytes + ratio * found.drive_bytes
        assert 2 * came_in <= (of.memory_Bps or 0.0) * found.time_s * (1 + 1e-9)
        assert found.throughput_Bps <= bound_Bps(System(of), job) * (1 + 1e-9)
        # A task is not small here, and cores may be out of step: the limit is near, and below.
        fluid = run_fluid(fleet_of(System(of), job)).time_s
        assert fluid <= found.time_s * 1.05


@pytest.mark.parametrize("layout", Layout)
def test_a_host_short_of_memory_is_as_fast_as_its_memory(layout: Layout) -> None:
    of = Node(cores=16, drives=8, enabled=0, memory_Bps=10e9, **SPEEDS)
    job = Job(4000, 2e6, layout=layout, overlap=Overlap.PIPELINED)
    assert simulate(System(of), job).throughput_Bps == pytest.approx(5e9, rel=0.01)
    assert run_fluid(fleet_of(System(of), job)).throughput_Bps == pytest.approx(5e9, rel=1e-6)
    enough = replace(of, memory_Bps=48e9)
    unlimited = simulate(System(replace(of, memory_Bps=None)), job)
    assert simulate(System(enough), job).time_s == pytest.approx(unlimited.time_s, rel=1e-9)


def test_help_over_the_network_crosses_the_memory_of_both_hosts() -> None:
    of = Node(cores=8, drives=2, enabled=0, nic_Bps=20e9, memory_Bps=6e9, **SPEEDS)
    job = Job(2000, 2e6, overlap=Overlap.PIPELINED, skew=2.0)
    slow = simulate(System(of, hosts=2), job)
    fast = simulate(System(replace(of, memory_Bps=None), hosts=2), job)
    assert slow.throughput_Bps < 3e9 * 2 * 1.001
    assert slow.time_s > 1.2 * fast.time_s


def test_drives_that_send_nothing_back_need_no_memory() -> None:
    of = Node(cores=0, drives=8, enabled=8, memory_Bps=1e9, **SPEEDS)
    job = Job(800, 8e6)
    unlimited = simulate(System(replace(of, memory_Bps=None)), job)
    assert simulate(System(of), job).time_s == unlimited.time_s


def test_memory_without_bandwidth_is_refused() -> None:
    with pytest.raises(ModelError, match="memory_Bps"):
        Node(cores=1, drives=1, enabled=0, memory_Bps=0.0, **SPEEDS)
