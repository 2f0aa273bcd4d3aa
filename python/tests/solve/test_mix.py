"""Splits against closed forms, against a greedy optimum, and against the fluid simulation."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csdplan import ModelError
from csdplan.model.overlap import Overlap
from csdplan.sim import Job, Node, System, fleet_of, run_fluid
from csdplan.solve.mix import Placement, demands_of, split
from csdplan.solve.purchase import Cpu, Demand, DriveKind

HOST = Cpu("host", cores=16, price_usd=1000, ingest_Bps=25.6e9, slots=64)
SSD = DriveKind("ssd", price_usd=100, capacity_bytes=2e12, read_Bps=3.2e9)
#: With media for its own reading and for its port at once, so that neither slows the other down.
CSD = DriveKind("csd", price_usd=110, capacity_bytes=2e12, read_Bps=3.2e9, media_Bps=6.4e9)
CORE_S, DRIVE_S = 1 / 6.56e9, 1 / 0.5333e9 + 1 / 3.859e9


def count(**change: Any) -> Demand:
    held: dict[str, Any] = {"name": "count", "required_Bps": 1.0}
    held |= {"core_s_per_byte": {"host": CORE_S}, "drive_s_per_byte": {"csd": DRIVE_S}}
    return Demand(**{**held, **change})


def host_Bps(devices: int, cores: int = 16) -> float:
    return 1 / (1 / min(devices * 3.2e9, 25.6e9) + CORE_S / cores)


@given(st.integers(1, 40), st.integers(1, 64))
@settings(max_examples=40)
def test_host_and_drives_together_do_the_sum_of_what_each_does(drives: int, cores: int) -> None:
    cpu = Cpu("host", cores, 0.0, 25.6e9, 64)
    found = split(cpu, [(CSD, drives)], [count()])
    assert found.throughput_Bps == pytest.approx(host_Bps(drives, cores) + drives / DRIVE_S)
    assert found.together
    by_host = host_Bps(drives, cores) / found.throughput_Bps
    assert found.by_host["count"] == pytest.approx(by_host)


def test_drives_alone_or_host_alone() -> None:
    alone = split(HOST, [(SSD, 12)], [count()])
    assert alone.throughput_Bps == pytest.approx(host_Bps(12))
    assert alone.by_host == {"count": pytest.approx(1.0)}
    cannot = split(HOST, [(CSD, 12)], [count(core_s_per_byte={})])
    assert cannot.throughput_Bps == pytest.approx(12 / DRIVE_S)


def test_data_on_ssds_must_cross_so_a_few_csds_may_wait() -> None:
    """Even placement: the host must do at least what lies on SSDs."""
    slow = Cpu("host", 1, 0.0, 25.6e9, 64)
    mixed = [(SSD, 14), (CSD, 4)]
    found = split(slow, mixed, [count()])
    assert found.by_host["count"] == pytest.approx(14 / 18)
    assert found.host_busy == pytest.approx(1)
    assert found.drive_busy["csd"] < 1
    assert not found.together
    freely = split(slow, mixed, [count()], placement=Placement.FREE)
    assert freely.throughput_Bps > found.throughput_Bps
    assert freely.together


@given(st.integers(1, 12), st.integers(0, 12), st.integers(1, 32))
@settings(max_examples=40)
def test_an_even_split_is_what_the_fluid_simulation_finds(csds: int, ssds: int, cores: int) -> None:
    speeds: dict[str, Any] = {"core_Bps": 6.56e9, "drive_read_Bps": 0.5333e9, "port_Bps": 3.2e9}
    speeds |= {"drive_comp_Bps": 3.859e9, "uplink_Bps": 25.6e9, "media_Bps": 6.4e9}
    node = Node(cores=cores, drives=csds + ssds, enabled=csds, **speeds)
    job = Job(tasks=100, task_bytes=1e9)
    cpu = Cpu("host", cores, 0.0, 25.6e9, 64)
    found = split(cpu, [(CSD, csds), (SSD, ssds)], [count()])
    fluid = run_fluid(fleet_of(System(node), job))
    # The port of a drive limits a split where the host reads one kind alone; the fluid has none.
    assert found.throughput_Bps <= fluid.throughput_Bps * (1 + 1e-9)
    if ssds == 0 or found.throughput_Bps * ssds / (csds + ssds) < 0.5 * ssds * 3.2e9:
        assert found.throughput_Bps == pytest.approx(fluid.throughput_Bps, rel=1e-6)


def greedy_Bps(host_s: list[float], drives_s: list[float], share: list[float]) -> float:
    """Two machines: workloads go to the host in order of its advantage, the last one in part."""
    order = sorted(range(len(share)), key=lambda i: host_s[i] / drives_s[i])
    best = 0.0
    for cut in range(len(order)):
        fixed_host = sum(host_s[i] * share[i] for i in order[:cut])
        fixed_drives = sum(drives_s[i] * share[i] for i in order[cut + 1 :])
        a, b = host_s[order[cut]] * share[order[cut]], drives_s[order[cut]] * share[order[cut]]
        part = min(1.0, max(0.0, (fixed_drives + b - fixed_host) / (a + b)))
        best = max(best, 1 / max(fixed_host + part * a, fixed_drives + (1 - part) * b))
    return best


@given(
    st.lists(
        st.tuples(st.floats(0.05, 4), st.floats(0.5, 30), st.floats(1, 9)), min_size=1, max_size=6
    )
)
@settings(max_examples=60)
def test_several_workloads_go_where_they_have_the_advantage(
    loads: list[tuple[float, float, float]],
) -> None:
    demands = [
        count(
            name=f"w{i}",
            required_Bps=share,
            core_s_per_byte={"host": core * 1e-9},
            drive_s_per_byte={"csd": drive * 1e-9},
        )
        for i, (core, drive, share) in enumerate(loads)
    ]
    found = split(HOST, [(CSD, 12)], demands, placement="free")
    total = sum(share for _, _, share in loads)
    best = greedy_Bps(
        [1 / 25.6e9 + core * 1e-9 / 16 for core, _, _ in loads],
        [drive * 1e-9 / 12 for _, drive, _ in loads],
        [share / total for _, _, share in loads],
    )
    assert found.throughput_Bps == pytest.approx(best, rel=1e-6)
    assert found.together


def test_capacity_placement_follows_the_bytes() -> None:
    large = DriveKind("csd", 110, 6e12, 3.2e9)
    found = split(HOST, [(SSD, 4), (large, 4)], [count()], placement="capacity")
    assert found.by_kind["count", "csd"] <= 0.75 + 1e-9
    assert found.by_host["count"] >= 0.25 - 1e-9


def test_overlap_and_overload_move_the_host() -> None:
    serial = split(HOST, [(SSD, 12)], [count()]).throughput_Bps
    pipelined = split(HOST, [(SSD, 12)], [count()], overlap=Overlap.PIPELINED).throughput_Bps
    assert pipelined == pytest.approx(25.6e9)
    assert serial < pipelined
    slowed = split(HOST, [(SSD, 12)], [count()], sd_tx=2.0, sd_comp=2.0).throughput_Bps
    assert slowed == pytest.approx(serial / 2)


def test_impossible_mixes_are_refused() -> None:
    with pytest.raises(ModelError, match="at least one drive"):
        split(HOST, [(SSD, 0)], [count()])
    with pytest.raises(ModelError, match="runs wherever its data lies"):
        split(HOST, [(SSD, 2), (CSD, 2)], [count(core_s_per_byte={})])
    with pytest.raises(ModelError, match="one of count"):
        demands_of({"sort": 1.0}, {"count": count()})
    (half,) = demands_of({"count": 0.5}, {"count": count()})
    assert half.required_Bps == 0.5
