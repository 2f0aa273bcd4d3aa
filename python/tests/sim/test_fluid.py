"""The fluid mode against events with small tasks, against closed forms, and on whole fleets."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csdplan import ModelError
from csdplan.sim import (
    Fleet,
    Job,
    Layout,
    Node,
    System,
    expected_time_s,
    fleet_of,
    run_fluid,
    simulate,
)

SPEEDS: dict[str, Any] = {
    "core_Bps": 6.56e9,
    "drive_read_Bps": 0.5333e9,
    "drive_comp_Bps": 3.859e9,
    "port_Bps": 3.2e9,
    "uplink_Bps": 25.6e9,
    "nic_Bps": 2.5e9,
    "media_Bps": 3.7333e9,  # for the drive and its port at once: neither slows the other down
}


def system(cores: int, drives: int, enabled: int, hosts: int = 1, **change: Any) -> System:
    return System(Node(cores, drives, enabled, **{**SPEEDS, **change}), hosts)


def fluid_s(of: System, job: Job) -> float:
    return run_fluid(fleet_of(of, job)).time_s


@given(st.integers(0, 16), st.integers(1, 16), st.integers(1, 4))
@settings(max_examples=60)
def test_an_even_fleet_takes_what_the_closed_forms_say(cores: int, drives: int, hosts: int) -> None:
    of = system(cores, drives, drives, hosts)
    job = Job(tasks=64, task_bytes=1e9)
    assert fluid_s(of, job) == pytest.approx(expected_time_s(of, job), rel=1e-9)


@given(
    st.integers(0, 6),
    st.integers(2, 8),
    st.floats(0, 1.2),
    st.integers(0, 2),
    st.floats(1, 4),
    st.integers(1, 5),
)
@settings(max_examples=25)
def test_events_approach_the_fluid_as_tasks_shrink(
    cores: int, drives: int, skew: float, stragglers: int, factor: float, seed: int
) -> None:
    of = system(cores, drives, drives)
    job = Job(tasks=4000, task_bytes=2e6, skew=skew, stragglers=stragglers)
    job = replace(job, straggler_factor=factor, seed=seed)
    # Cores out of step overlap a little, which the fluid's equation 5 does not: one side only.
    assert simulate(of, job).time_s == pytest.approx(fluid_s(of, job), rel=0.03)


def test_stealing_and_results_agree_with_events() -> None:
    job = Job(tasks=8000, task_bytes=1e6, skew=0.8, steal=True)
    of = system(0, 16, 16)
    assert simulate(of, job).time_s == pytest.approx(fluid_s(of, job), rel=0.06)
    tight = system(0, 32, 32, uplink_Bps=1e9)
    full = Job(tasks=8000, task_bytes=1e6, result_ratio=0.5, task_spread=0.5)
    bound_s = full.total_bytes * 0.5 / 1e9
    assert fluid_s(tight, full) == pytest.approx(bound_s, rel=1e-6)
    assert simulate(tight, full).time_s == pytest.approx(bound_s, rel=0.03)


@pytest.mark.parametrize(("cores", "drives"), [(1, 8), (3, 8), (8, 4), (3, 2), (6, 4), (16, 8)])
def test_hosts_that_read_whole_tasks_agree_with_events(cores: int, drives: int) -> None:
    """A core sees one drive; drives with a reader more than others put cores out of step."""
    job = Job(tasks=4000, task_bytes=2e6, layout=Layout.WHOLE)
    of = system(cores, drives, 0)
    assert simulate(of, job).time_s == pytest.approx(fluid_s(of, job), rel=0.02)


def test_hosts_with_time_to_spare_help_over_the_network() -> None:
    job = Job(tasks=4000, task_bytes=2e6, skew=1.0)
    of = system(4, 4, 4, hosts=4)
    alone, together = fluid_s(of, replace(job, remote=False)), fluid_s(of, job)
    assert together < 0.95 * alone
    throttled = System(of.node, 4, network_Bps=1e8)
    assert together < fluid_s(throttled, job) < alone
    # Readers queue at the one full host, which the fluid leaves out: a lower bound, and near.
    assert together <= simulate(of, job).time_s < 1.25 * together


def test_a_fleet_of_ten_thousand_hosts_takes_as_many_steps_as_one_host() -> None:
    of = system(16, 64, 64, hosts=10_000)
    job = Job(tasks=1_000_000, task_bytes=64e6, skew=0.3, stragglers=6400, straggler_factor=3.0)
    outcome = run_fluid(fleet_of(of, job), of)
    one = system(16, 64, 64)
    alone = run_fluid(fleet_of(one, replace(job, tasks=100, stragglers=0)), one)
    # All hosts are bisected at once, then the fleet as a whole: twice the steps of one host.
    assert 0 < outcome.steps <= 2 * alone.steps + 20
    assert alone.steps < 100
    assert outcome.drive_busy_s.shape == (10_000, 64)
    total = outcome.host_bytes + outcome.drive_bytes
    assert total == pytest.approx(job.total_bytes, rel=1e-6)
    assert outcome.time_s > expected_time_s(of, job)


def test_energy_of_an_even_fleet_equals_that_of_events() -> None:
    watts: dict[str, Any] = {
        "idle_W": 100.0,
        "core_W": 5.0,
        "drive_idle_W": 4.0,
        "drive_active_W": 7.0,
    }
    of = system(4, 8, 8, **watts)
    job = Job(tasks=8000, task_bytes=1e6)
    events, fluid = simulate(of, job), run_fluid(fleet_of(of, job), of)
    assert fluid.net_energy_J == pytest.approx(events.net_energy_J, rel=0.02)
    assert fluid.energy_J == pytest.approx(events.energy_J, rel=0.02)


def test_unreachable_data_and_bad_shapes_are_refused() -> None:
    with pytest.raises(ModelError, match="can reach all the data"):
        fluid_s(system(0, 8, 4), Job(tasks=8, task_bytes=1e6))
    good = fleet_of(system(1, 2, 2), Job(tasks=8, task_bytes=1e6))
    with pytest.raises(ModelError, match="drive_Bps"):
        replace(good, drive_Bps=np.ones((1, 3)))
    with pytest.raises(ModelError, match="work_bytes"):
        replace(good, work_bytes=np.ones(3))
    assert isinstance(good, Fleet)
