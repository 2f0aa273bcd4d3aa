"""Jobs in phases: the closed form where it holds, what each phase costs, and that links hold."""

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csdplan import ModelError
from csdplan.sim import (
    Cluster,
    Cost,
    Job,
    Layout,
    Phases,
    System,
    closed_form_s,
    expected_time_s,
    simulate,
    simulate_phases,
)
from csdplan.sim.phases import Run, begun

MAPS = Phases(input_bytes=960e6, block_bytes=1e6, map=Cost(0.0, 5e-9), begin_s=7.0)
SORT = replace(
    MAPS, reduces=48, reduce=Cost(0.1, 3e-9), shuffle_ratio=1.0, output_ratio=1.0, replication=2
)
DRIVES = Cluster(cores=0, drives=8, enabled=8, drive_cores=0.5, slots=1)


@given(st.integers(1, 12), st.integers(1, 9), st.floats(0.05, 1.0), st.floats(0.5e9, 4e9))
@settings(max_examples=40)
def test_drives_alone_take_what_equation_7_says(
    drives: int, each: int, cores: float, read: float
) -> None:
    of = Cluster(0, drives, drives, cores, slots=1, read_Bps=read)
    job = replace(MAPS, input_bytes=drives * each * 1e6)
    found = simulate_phases(of, job)
    seconds = 7.0 + each * (1e6 / read + 5e-3 / cores)
    assert found.time_s == pytest.approx(seconds, rel=1e-9)
    assert closed_form_s(of, job) == pytest.approx(seconds, rel=1e-9)
    assert (found.waves, found.local_maps, found.stolen_maps) == (each, drives * each, 0)


@given(st.integers(1, 8), st.integers(1, 9))
@settings(max_examples=40)
def test_a_host_alone_takes_what_equation_5_says(cores: int, rounds: int) -> None:
    """As many drives as cores: each core reads one drive at its port's speed."""
    of = Cluster(cores, cores, 0, 0.5, port_Bps=1e9, uplink_Bps=3e9)
    job = replace(MAPS, input_bytes=cores * rounds * 1e6)
    assert simulate_phases(of, job).time_s == pytest.approx(closed_form_s(of, job), rel=1e-9)


@given(st.integers(0, 6), st.integers(1, 12), st.floats(0.05, 1.0), st.integers(1, 4))
@settings(max_examples=40)
def test_host_and_drives_finish_together_up_to_a_task(
    cores: int, drives: int, speed: float, slots: int
) -> None:
    of = Cluster(cores, drives, drives, speed, slots=slots)
    found = simulate_phases(of, MAPS)
    longest_s = slots * 5e-3 / speed + 5e-3
    assert found.time_s == pytest.approx(closed_form_s(of, MAPS), abs=2 * longest_s)
    assert found.host_cpu_s + found.drive_cpu_s == pytest.approx(MAPS.cpu_s)


def test_without_shuffle_it_agrees_with_the_simulation_of_tasks() -> None:
    of = Cluster(4, 16, 8, 0.3, 1, read_Bps=1e9, port_Bps=0.8e9, uplink_Bps=3e9)
    node = of.node(5e-9)
    job = Job(tasks=960, task_bytes=1e6, layout=Layout.WHOLE)
    tasks_s = simulate(System(node), job).time_s
    assert simulate_phases(of, MAPS).time_s - 7.0 == pytest.approx(tasks_s, rel=0.02)
    assert closed_form_s(of, MAPS) - 7.0 == pytest.approx(expected_time_s(System(node), job))


def test_a_shuffle_crosses_tunnels_but_for_what_stays() -> None:
    found = simulate_phases(DRIVES, SORT)
    shuffled = 960e6 * 7 / 8
    copies = 960e6
    # From drive to drive a byte passes two ends.
    assert found.tunnel_bytes == pytest.approx(2 * (shuffled + copies), rel=1e-6)
    assert (found.local_maps, found.stolen_maps) == (960, 0)
    assert found.drive_cpu_s == pytest.approx(960e6 * 8e-9 + 4.8)
    ideal_s = 7.0 + SORT.cpu_s / (8 * 0.5)
    assert found.time_s == pytest.approx(ideal_s, rel=0.01)
    assert found.time_s >= closed_form_s(DRIVES, SORT) * (1 - 1e-9)
    narrow = simulate_phases(replace(DRIVES, uplink_Bps=50e6), SORT)
    # The switch carries shuffle and copies, and drives compute meanwhile.
    assert narrow.shuffle_s + narrow.reduce_s >= (shuffled + copies) / 50e6
    assert narrow.map_s == pytest.approx(found.map_s)


def test_an_only_drive_keeps_everything() -> None:
    found = simulate_phases(Cluster(0, 1, 1, 0.9), replace(SORT, replication=1))
    assert found.tunnel_bytes == 0
    assert found.time_s == pytest.approx(7.0 + SORT.cpu_s / 0.9, rel=1e-6)


def test_a_start_of_each_task_costs_waves() -> None:
    slow = replace(MAPS, map=Cost(2.0, 5e-9), input_bytes=17e6)
    found = simulate_phases(DRIVES, slow)
    assert found.waves == 3
    assert found.time_s == pytest.approx(7.0 + 3 * (2.0 + 5e-3) / 0.5)
    # A drive that runs alone of two that hold the blocks takes one, and steals the other's.
    alone = simulate_phases(Cluster(0, 2, 1, 0.5), replace(slow, input_bytes=2e6))
    assert (alone.local_maps, alone.stolen_maps) == (1, 1)
    assert alone.tunnel_bytes == pytest.approx(2e6)


def test_copies_of_blocks_keep_maps_local() -> None:
    few = Cluster(0, 8, 4, 0.5)
    one = simulate_phases(few, MAPS)
    two = simulate_phases(few, replace(MAPS, replication=2))
    assert one.stolen_maps == 480
    assert two.stolen_maps < 240


def test_routing_takes_the_hosts_cpu() -> None:
    of = Cluster(2, 4, 0, 0.5, routing_byte_s=1e-9)
    free = simulate_phases(replace(of, routing_byte_s=0.0), MAPS)
    paid = simulate_phases(of, MAPS)
    assert paid.tunnel_bytes == 960e6
    # Both cores work all the time: tasks first, and the routing of each block before it.
    assert paid.time_s > free.time_s + 0.9 * 0.96 / 2
    shuffling = Cluster(0, 8, 8, 0.5, slots=4, routing_byte_s=1e-8)
    found = simulate_phases(shuffling, SORT)
    assert found.shuffle_s + found.reduce_s >= found.tunnel_bytes * 1e-8 * (1 - 1e-9)


def test_more_drives_never_make_it_slower() -> None:
    times = [simulate_phases(replace(DRIVES, cores=4, enabled=n), SORT).time_s for n in range(9)]
    assert all(after < before * 1.01 for before, after in pairwise(times))


def carried(run: Run, kind: str) -> float:
    """Return the bytes that all links of a kind have carried."""
    found = run.links.carried_bytes.items()
    return sum(bytes for link, bytes in found if isinstance(link, tuple) and link[0] == kind)


def least_crossed(of: Cluster, job: Phases, run: Run) -> float:
    """Return bytes that cross ports at least, counted from what ran where."""
    found = run.outcome
    assert found is not None
    # The last block may be a small one.
    read = max(0, found.stolen_maps - 1) * 2 * 8e6 + max(0, found.host_maps - 1) * 8e6
    # A drive sends its copies to others; the host sends all of them.
    ends = 2 * (job.replication - 1)
    ends = min(ends, job.replication) if of.cores else ends
    copied = job.output_ratio * job.input_bytes * ends
    most = max(run.books.mapped_bytes.values()) / job.input_bytes
    fetched = 0.0 if of.cores else 2 * (1 - most) * job.shuffle_ratio * job.input_bytes
    return read + copied + fetched


clusters = st.builds(
    Cluster,
    cores=st.integers(0, 4),
    drives=st.just(5),
    enabled=st.integers(1, 5),
    drive_cores=st.floats(0.1, 3.0),
    slots=st.integers(1, 3),
    read_Bps=st.floats(0.2e9, 4e9),
    media_Bps=st.floats(4e9, 6e9),
    port_Bps=st.floats(0.1e9, 4e9),
    uplink_Bps=st.floats(0.3e9, 9e9),
    memory_Bps=st.floats(0.5e9, 20e9),
    routing_byte_s=st.sampled_from([0.0, 1e-10, 2e-9]),
)
jobs = st.builds(
    Phases,
    input_bytes=st.floats(20e6, 400e6),
    block_bytes=st.just(8e6),
    map=st.builds(Cost, st.sampled_from([0.0, 0.01]), st.floats(1e-11, 2e-9)),
    reduces=st.integers(1, 9),
    reduce=st.builds(Cost, st.sampled_from([0.0, 0.01]), st.floats(0, 2e-9)),
    shuffle_ratio=st.floats(0, 2),
    output_ratio=st.floats(0, 2),
    replication=st.integers(1, 3),
)


@given(clusters, jobs)
@settings(max_examples=100, deadline=None)
def test_no_link_no_port_and_no_media_carry_more_than_they_can(of: Cluster, job: Phases) -> None:
    run = begun(of, job)
    run.env.run()
    found = run.outcome
    assert found is not None
    for link, bytes in run.links.carried_bytes.items():
        assert bytes <= run.capacity[link] * found.time_s * (1 + 1e-6), link
    # Reads of others, what a drive fetches, results and copies all cross its one port.
    crossed = least_crossed(of, job, run)
    assert crossed <= of.drives * (of.port_Bps or 0) * found.time_s * (1 + 1e-6)
    assert crossed <= carried(run, "port") * (1 + 1e-6)
    assert carried(run, "port") == pytest.approx(found.tunnel_bytes, rel=1e-6, abs=1)
    assert found.time_s >= closed_form_s(of, replace(job, reduces=0, shuffle_ratio=0)) * 0.4
    assert found.local_maps + found.stolen_maps + found.host_maps == job.maps
    assert found.host_cpu_s + found.drive_cpu_s == pytest.approx(job.cpu_s)
    # Every byte of the output is written as often as it has copies.
    written = job.output_ratio * job.input_bytes * job.replication
    media = carried(run, "media")
    from_host = found.host_maps / job.maps
    fetched = job.shuffle_ratio * job.input_bytes
    assert media <= (job.input_bytes + written + fetched) * (1 + 1e-6)
    assert media >= (job.input_bytes + written + fetched * (1 - from_host)) * 0.6
    assert simulate_phases(of, job) == found


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"reduces": 0}, "the job has a shuffle"),
        ({"input_bytes": 0.0}, "input"),
        ({"map": Cost(0.0, 0.0)}, "CPU time of a map"),
        ({"block_bytes": 1.0}, "at most"),
        ({"replication": 9}, "at most the 8 drives"),
    ],
)
def test_impossible_jobs_are_refused_by_name(change: dict[str, float], said: str) -> None:
    with pytest.raises(ModelError, match=said):
        simulate_phases(DRIVES, replace(SORT, **change))  # type: ignore[arg-type]
