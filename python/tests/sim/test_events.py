"""The simulation against the closed forms where they hold, and its effects where they do not."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csdplan import ModelError
from csdplan.model.array import csd_array_time_s, ssd_array_time_s
from csdplan.sim import Job, Layout, Node, System, expected_time_s, simulate
from csdplan.sim.expected import host_Bps

# Newport's and SmartSSD's counts of 4.8 GB, as speeds.
SPEEDS: dict[str, Any] = {
    "core_Bps": 6.56e9,
    "drive_read_Bps": 0.5333e9,
    "drive_comp_Bps": 3.859e9,
    "port_Bps": 3.2e9,
    "uplink_Bps": 25.6e9,
    "media_Bps": 3.7333e9,  # for the drive and its port at once: neither slows the other down
}


def node(cores: int, drives: int, enabled: int, **change: Any) -> Node:
    return Node(cores=cores, drives=drives, enabled=enabled, **{**SPEEDS, **change})


def run(of: Node, job: Job) -> float:
    return simulate(System(of), job).time_s


@given(st.integers(1, 8), st.integers(1, 12), st.integers(1, 9), st.floats(1, 4), st.floats(1, 4))
@settings(max_examples=60)
def test_hosts_alone_take_what_equation_5_says(
    cores: int, drives: int, rounds: int, sd_tx: float, sd_comp: float
) -> None:
    """Equal tasks keep cores in step, and in step they load together and compute together."""
    job = Job(tasks=cores * rounds, task_bytes=64e6)
    time_s = run(node(cores, drives, 0, sd_tx=sd_tx, sd_comp=sd_comp), job)
    expected = ssd_array_time_s(
        drives,
        job.total_bytes / 3.2e9,
        job.total_bytes / 6.56e9,
        k_limit=8,
        cores=cores,
        sd_tx=sd_tx,
        sd_comp=sd_comp,
    )
    assert time_s == pytest.approx(float(expected), rel=1e-9)


@given(st.integers(1, 24), st.integers(1, 9))
@settings(max_examples=40)
def test_drives_alone_take_what_equation_7_says(drives: int, each: int) -> None:
    job = Job(tasks=drives * each, task_bytes=64e6)
    expected = csd_array_time_s(drives, job.total_bytes / 0.5333e9, job.total_bytes / 3.859e9)
    assert run(node(0, drives, drives), job) == pytest.approx(float(expected), rel=1e-9)


@given(st.integers(1, 16), st.integers(1, 16), st.data())
@settings(max_examples=40)
def test_hosts_and_drives_finish_together_up_to_a_task(
    cores: int, drives: int, data: st.DataObject
) -> None:
    enabled = data.draw(st.integers(0, drives))
    job = Job(tasks=40 * (cores + drives), task_bytes=8e6)
    of = node(cores, drives, enabled)
    longest_task_s = 8e6 * (1 / 0.5333e9 + 1 / 3.859e9) + cores * 8e6 / 3.2e9 + 8e6 / 6.56e9
    time_s, expected = run(of, job), expected_time_s(System(of), job)
    assert time_s == pytest.approx(expected, abs=2 * longest_task_s)
    # A core that has got out of step with the others overlaps their loads with its computing, so
    # the host may do better than equation 5; pipelining bounds by how much.
    best = job.total_bytes / (host_Bps(replace(of), job.overlap.PIPELINED) + enabled * 0.4686e9)
    assert time_s > 0.999 * best


def test_several_hosts_divide_the_work() -> None:
    job = Job(tasks=16000, task_bytes=4e6)
    one, four = System(node(4, 8, 8)), System(node(4, 8, 8), hosts=4)
    ratio = simulate(one, job).time_s / simulate(four, job).time_s
    assert ratio == pytest.approx(4, rel=0.03)


def test_skew_makes_drives_wait_for_the_fullest() -> None:
    """Equation 7 takes data to be even; with skew the array is as slow as its fullest drive."""
    job = Job(tasks=1600, task_bytes=64e6, skew=0.8)
    of = node(0, 16, 16, drive_read_Bps=3.2e9)  # as fast inside as its port, so theft gains nothing
    even_s = expected_time_s(System(of), job)
    weights = [1 / rank**0.8 for rank in range(1, 17)]
    fullest_s = even_s * 16 * weights[0] / sum(weights)
    alone_s = run(of, job)
    assert alone_s == pytest.approx(fullest_s, rel=0.01)
    stolen_s = run(of, replace(job, steal=True))
    helped_s = run(replace(of, cores=8), job)
    assert even_s < stolen_s < 0.6 * alone_s
    assert helped_s < stolen_s


def test_a_straggler_holds_the_array_up_unless_others_may_help() -> None:
    job = Job(tasks=1600, task_bytes=64e6, stragglers=1, straggler_factor=4.0)
    of = node(0, 16, 16)
    even_s = expected_time_s(System(of), job)
    assert run(of, job) == pytest.approx(4 * even_s, rel=1e-9)
    assert run(of, replace(job, steal=True)) < 1.2 * even_s


@pytest.mark.parametrize("layout", list(Layout))
@pytest.mark.parametrize("inside_Bps", [0.5333e9, 3e9])
def test_a_slow_host_does_not_spare_the_media_what_drives_fetch(
    layout: Layout, inside_Bps: float
) -> None:
    """Without cores nothing crosses to the host, so its slow-down changes nothing."""
    job = Job(tasks=800, task_bytes=64e6, layout=layout, skew=0.8, steal=True)
    of = node(0, 4, 4, drive_read_Bps=inside_Bps, drive_comp_Bps=9e9, media_Bps=3.3e9)
    assert run(replace(of, sd_tx=3.0), job) == run(of, job)


def test_results_saturate_the_switch() -> None:
    """Equation 7 lets drives gain for ever; with results sent back they gain to the switch."""
    few, many = node(0, 4, 4, uplink_Bps=1e9), node(0, 32, 32, uplink_Bps=1e9)
    job = Job(tasks=3200, task_bytes=8e6, result_ratio=0.5)
    bound_Bps = 1e9 / 0.5
    few_Bps = simulate(System(few), job).throughput_Bps
    assert few_Bps < 0.95 * bound_Bps
    # Drives in step all compute, then all send: the times add.
    in_step = simulate(System(many), job)
    added_s = expected_time_s(System(many), job) + 0.5 * job.total_bytes / 1e9
    assert in_step.time_s == pytest.approx(added_s, rel=1e-6)
    outcome = simulate(System(many), replace(job, task_spread=0.5))
    assert outcome.throughput_Bps == pytest.approx(bound_Bps, rel=0.03)
    assert outcome.uplink_utilization == pytest.approx(1, rel=0.03)
    assert job.total_bytes / expected_time_s(System(many), job) > 7 * bound_Bps


def test_uneven_tasks_put_cores_out_of_step_which_overlaps_loads() -> None:
    """Equation 5 adds load and compute over the whole host; only cores in step really do that."""
    of = node(8, 8, 0)
    job = Job(tasks=1600, task_bytes=64e6)
    in_step = run(of, job)
    out_of_step = run(of, replace(job, task_spread=0.5))
    pipelined = run(of, replace(job, overlap=job.overlap.PIPELINED))
    assert out_of_step < 0.98 * in_step
    assert pipelined < out_of_step
    longer_s = max(job.total_bytes / 25.6e9, job.total_bytes / (8 * 6.56e9))
    assert pipelined == pytest.approx(longer_s, rel=0.02)


def test_one_core_reading_whole_blocks_sees_one_drive() -> None:
    """Equation 5 divides loading by m even on one core; that needs data spread over the drives."""
    job = Job(tasks=64, task_bytes=64e6, layout=Layout.WHOLE)
    one_s, eight_s = run(node(1, 1, 0), job), run(node(1, 8, 0), job)
    assert eight_s == pytest.approx(one_s, rel=1e-9)
    assert run(node(1, 8, 0), replace(job, layout=Layout.SPREAD)) < 0.55 * one_s


def test_a_slow_network_keeps_help_at_home() -> None:
    job = Job(tasks=800, task_bytes=64e6, skew=1.0)
    of = node(4, 4, 4, nic_Bps=5e9)
    near = simulate(System(of, hosts=4), replace(job, remote=False)).time_s
    far = simulate(System(of, hosts=4), job).time_s
    slow = simulate(System(of, hosts=4, network_Bps=1e8), job).time_s
    assert far < 0.9 * near
    assert far < slow


def test_energy_is_active_power_times_busy_time_and_idle_apart() -> None:
    watts = {"idle_W": 100.0, "core_W": 5.0, "drive_idle_W": 4.0, "drive_active_W": 7.0}
    job = Job(tasks=160, task_bytes=64e6)
    outcome = simulate(System(node(4, 8, 8, **watts)), job)
    net_J = 5.0 * outcome.core_busy_s + 3.0 * outcome.drive_busy_s
    assert outcome.net_energy_J == pytest.approx(net_J)
    assert outcome.energy_J == pytest.approx(net_J + (100 + 8 * 4) * outcome.time_s)
    unknown = simulate(System(node(4, 8, 8)), job)
    assert unknown.net_energy_J is None
    assert unknown.energy_J is None
    # Busy time is what equation 7 and the tasks done say.
    each_s = 64e6 * (1 / 0.5333e9 + 1 / 3.859e9)
    assert outcome.drive_busy_s == pytest.approx(outcome.drive_bytes / 64e6 * each_s)


def test_dispatch_costs_each_pull() -> None:
    job = Job(tasks=160, task_bytes=64e6)
    slower = run(node(0, 8, 8), replace(job, dispatch_s=0.01))
    assert slower == pytest.approx(run(node(0, 8, 8), job) + 20 * 0.01)


def test_equal_seeds_give_equal_runs_and_others_do_not() -> None:
    of = System(node(3, 6, 5), hosts=2)
    job = Job(tasks=500, task_bytes=64e6, skew=0.5, task_spread=0.4, stragglers=2)
    job = replace(job, straggler_factor=2.0, result_ratio=0.1, steal=True)
    first, again = simulate(of, job), simulate(of, job)
    assert first == again
    assert simulate(of, replace(job, seed=2)).time_s != first.time_s
    assert first.host_bytes + first.drive_bytes == pytest.approx(job.total_bytes)


@pytest.mark.parametrize(
    ("change", "argument"),
    [
        ({"cores": -1}, "cores"),
        ({"enabled": 9}, "enabled"),
        ({"cores": 0, "enabled": 0}, "enabled"),
        ({"port_Bps": 0.0}, "port_Bps"),
        ({"uplink_Bps": float("nan")}, "uplink_Bps"),
        ({"sd_tx": 0.5}, "sd_tx"),
        ({"core_W": -1.0}, "core_W"),
    ],
)
def test_impossible_nodes_are_refused_by_name(change: dict[str, Any], argument: str) -> None:
    with pytest.raises(ModelError) as caught:
        Node(**{"cores": 1, "drives": 8, "enabled": 1, **SPEEDS, **change})
    assert caught.value.argument == argument


def test_data_that_nobody_can_reach_is_refused() -> None:
    with pytest.raises(ModelError, match="all 8 drives, a host core, or steal"):
        simulate(System(node(0, 8, 4)), Job(tasks=10, task_bytes=1e6))
    assert run(node(0, 8, 4), Job(tasks=10, task_bytes=1e6, steal=True)) > 0


def test_too_many_tasks_are_sent_to_the_fluid_mode() -> None:
    with pytest.raises(ModelError, match="fluid"):
        Job(tasks=1_000_001, task_bytes=1.0)


@pytest.mark.parametrize("steal", [False, True])
def test_media_that_never_hold_anything_up_are_left_out(
    steal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = node(4, 8, 6, uplink_Bps=16e9, media_Bps=3.3e9)
    assert not of.contended(Layout.SPREAD, steal)
    assert of.contended(Layout.WHOLE, steal)
    job = Job(400, 4e6, task_spread=0.3, skew=0.4, stragglers=2, steal=steal)
    without = simulate(System(of, hosts=2), job)
    monkeypatch.setattr(Node, "contended", lambda *_: True)
    assert simulate(System(of, hosts=2), job).time_s == pytest.approx(without.time_s, rel=1e-9)
