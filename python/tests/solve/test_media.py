"""Nothing planned or simulated reads more than media, links and switches carry.

The check of purchases is a linear program written down here, by hand: it shares no code with the
optimizer. ``CSDPLAN_PURCHASES=10000 pytest tests/solve/test_media.py`` tries ten thousand
purchases; without the variable it is some hundreds.
"""

import os
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import csdplan as cp
from csdplan import ModelError
from csdplan.model.overlap import Overlap
from csdplan.sim import Job, Layout, Node, System, bound_Bps, fleet_of, run_fluid, simulate
from csdplan.sim.events import _begin, _core, _drive
from csdplan.solve.mix import Placement, split
from csdplan.solve.optimize import Plan, optimize, pareto
from csdplan.solve.purchase import Cpu, Demand, DriveKind, Limits, Request

GB, TB = 1e9, 1e12
PURCHASES = int(os.environ.get("CSDPLAN_PURCHASES", "300"))
#: HiGHS accepts rows that are broken by no more than this, relatively.
TOLERANCE = 1e-5


def random_request(rng: np.random.Generator) -> Request:
    """Draw a request whose drives read inside slower, as fast as, or faster than outside."""
    cpus = tuple(
        Cpu(f"c{i}", int(rng.integers(1, 65)), float(rng.integers(5, 60) * 50), intake, 24)
        for i, intake in enumerate(rng.choice([8e9, 16e9, 32e9, 64e9], rng.integers(1, 3)))
    )
    kinds = []
    for i in range(int(rng.integers(1, 4))):
        read = float(rng.uniform(0.5, 7)) * GB
        media = None if rng.random() < 0.5 else read * float(rng.uniform(1, 2))
        kinds.append(DriveKind(f"k{i}", float(rng.integers(80, 900)), 4 * TB, read, None, media))
    demands = tuple(
        Demand(
            f"w{i}",
            float(np.exp(rng.uniform(-1, 4.5))) * GB,
            {cpu.name: float(np.exp(rng.uniform(-3, 1))) / GB for cpu in cpus},
            {k.name: float(np.exp(rng.uniform(-2, 2))) / GB for k in kinds if rng.random() < 0.8},
        )
        for i in range(int(rng.integers(1, 4)))
    )
    overlap = Overlap.SERIAL if rng.random() < 0.5 else Overlap.PIPELINED
    return Request(cpus, tuple(kinds), demands, Limits(hosts_max=8), overlap)


def media_of(kind: DriveKind, demands: tuple[Demand, ...]) -> float:
    """Return the most that one drive's media deliver, worked out by hand."""
    if kind.media_Bps is not None:
        return kind.media_Bps
    inside = [1 / d.drive_s_per_byte[kind.name] for d in demands if kind.name in d.drive_s_per_byte]
    return max([kind.read_Bps, *inside])


def carried(asked: Request, hosts: dict[str, int], drives: dict[str, int]) -> float:
    """Return the greatest scale that the hardware carries, whatever its schedule.

    Unknowns, in GB/s: x[i, k] of workload i inside kind k, r[i, k] read by hosts, y[i, j] computed
    by CPU j; and the scale. Only conservation: media, ports, intakes, cores, drives' time.
    """
    cpus, kinds, demands = asked.cpus, asked.drives, asked.demands
    n, m, c = len(demands), len(kinds), len(cpus)
    width = 2 * n * m + n * c + 1

    def x(i: int, k: int) -> int:
        return i * m + k

    def r(i: int, k: int) -> int:
        return n * m + i * m + k

    def y(i: int, j: int) -> int:
        return 2 * n * m + i * c + j

    rows: list[tuple[dict[int, float], float]] = []
    for k, kind in enumerate(kinds):
        have = drives.get(kind.name, 0)
        both = {v: 1.0 for i in range(n) for v in (x(i, k), r(i, k))}
        rows.append((both, have * media_of(kind, demands) / GB))
        rows.append(({r(i, k): 1.0 for i in range(n)}, have * kind.read_Bps / GB))
        busy = {x(i, k): d.drive_s_per_byte.get(kind.name, 0.0) * GB for i, d in enumerate(demands)}
        rows.append((busy, float(have)))
    for j, cpu in enumerate(cpus):
        have = hosts.get(cpu.name, 0)
        rows.append(({y(i, j): 1.0 for i in range(n)}, have * cpu.ingest_Bps / GB))
        work = {y(i, j): d.core_s_per_byte[cpu.name] * GB for i, d in enumerate(demands)}
        rows.append((work, float(have * cpu.cores)))
    equal: list[dict[int, float]] = []
    for i, demand in enumerate(demands):
        read = {r(i, k): -1.0 for k in range(m)}
        equal.append({**read, **{y(i, j): 1.0 for j in range(c)}})
        done = {x(i, k): -1.0 for k in range(m)} | {y(i, j): -1.0 for j in range(c)}
        rows.append(({**done, width - 1: demand.required_Bps / GB}, 0.0))
    above = np.zeros((len(rows), width))
    for row, (terms, _) in enumerate(rows):
        for v, a in terms.items():
            above[row, v] = a
    same = np.zeros((len(equal), width))
    for row, terms in enumerate(equal):
        for v, a in terms.items():
            same[row, v] = a
    runs = [k.name in d.drive_s_per_byte for d in demands for k in kinds]
    bounds: list[tuple[float, float | None]] = [(0.0, None if able else 0.0) for able in runs]
    bounds += [(0.0, None)] * (width - len(bounds))
    goal = np.zeros(width)
    goal[-1] = -1.0
    sides = [side for _, side in rows]
    found = linprog(goal, above, sides, same, np.zeros(len(equal)), bounds, method="highs")
    return float(found.x[-1])


def read_in_all(asked: Request, plan: Plan) -> tuple[float, float]:
    """Return the bytes per second that a plan processes, and what its drives' media deliver."""
    done = sum(share.rate_Bps for share in plan.shares)
    media = sum(media_of(k, asked.demands) * plan.drives.get(k.name, 0) for k in asked.drives)
    return done, media


def test_no_purchase_promises_more_than_its_hardware_carries() -> None:
    rng = np.random.default_rng(20261122)
    bought = contended = 0
    while bought < PURCHASES:
        asked = random_request(rng)
        plan = optimize(asked, explain=False)
        if plan is None:
            continue
        bought += 1
        done, media = read_in_all(asked, plan)
        assert done <= media * (1 + TOLERANCE)
        assert plan.scale <= carried(asked, plan.hosts, plan.drives) * (1 + TOLERANCE)
        contended += any(share.in_drive for share in plan.shares)
    assert contended > PURCHASES / 20, "the requests exercise work in drives"


def test_no_front_promises_more_than_its_hardware_carries() -> None:
    rng = np.random.default_rng(7)
    for _ in range(5):
        asked = random_request(rng)
        for plan in pareto(asked, 3):
            assert plan.scale <= carried(asked, plan.hosts, plan.drives) * (1 + TOLERANCE)


@given(st.integers(0, 100_000), st.sampled_from(list(Placement)), st.sampled_from(list(Overlap)))
@settings(max_examples=150)
def test_no_mix_reads_more_than_its_media(seed: int, placement: Placement, how: Overlap) -> None:
    asked = random_request(np.random.default_rng(seed))
    counts = np.random.default_rng(seed).integers(1, 12, len(asked.drives))
    held = [(kind, int(count)) for kind, count in zip(asked.drives, counts, strict=True)]
    found = split(asked.cpus[0], held, asked.demands, placement=placement, overlap=how)
    media = sum(media_of(kind, asked.demands) * count for kind, count in held)
    assert found.throughput_Bps <= media * (1 + TOLERANCE)
    alone = Request((asked.cpus[0],), asked.drives, asked.demands)
    limit = carried(alone, {asked.cpus[0].name: 1}, {k.name: n for k, n in held})
    total = sum(demand.required_Bps for demand in asked.demands)
    assert found.throughput_Bps <= limit * total * (1 + TOLERANCE)


nodes = st.builds(
    Node,
    cores=st.integers(1, 32),
    drives=st.just(6),
    enabled=st.integers(0, 6),
    core_Bps=st.floats(0.05e9, 9e9),
    drive_read_Bps=st.floats(0.2e9, 6e9),
    drive_comp_Bps=st.floats(0.1e9, 9e9),
    port_Bps=st.floats(0.5e9, 6e9),
    uplink_Bps=st.floats(1e9, 40e9),
)
jobs = st.builds(
    Job,
    tasks=st.integers(1, 120),
    task_bytes=st.just(8e6),
    layout=st.sampled_from(list(Layout)),
    overlap=st.sampled_from(list(Overlap)),
    skew=st.sampled_from([0.0, 0.7]),
    stragglers=st.integers(0, 2),
    straggler_factor=st.just(2.0),
    result_ratio=st.sampled_from([0.0, 0.3, 1.0, 2.0]),
    steal=st.booleans(),
)


@given(nodes, jobs)
@settings(max_examples=150)
def test_no_run_reads_more_than_its_media_and_links(node: Node, job: Job) -> None:
    run = _begin(System(node), job)
    for _ in range(node.cores):
        run.env.process(_core(run, 0))
    for drive in range(node.enabled):
        run.env.process(_drive(run, drive))
    run.env.run()
    time_s = run.books.end_s
    media = max(node.drive_read_Bps, node.port_Bps)
    assert job.total_bytes / time_s <= node.drives * media * (1 + TOLERANCE)
    assert job.total_bytes / time_s <= bound_Bps(System(node), job) * (1 + TOLERANCE)
    for link, bytes in run.links.carried_bytes.items():
        assert bytes <= run.links._capacity_Bps[link] * time_s * (1 + TOLERANCE)
    # A port has one rate for all that crosses it, whatever links the simulation makes of it.
    crossed = run.books.read_bytes + job.result_ratio * run.books.drive_bytes
    assert crossed <= node.drives * node.port_Bps * time_s * (1 + TOLERANCE)
    assert crossed <= node.uplink_Bps * time_s * (1 + TOLERANCE)


@given(nodes, jobs)
@settings(max_examples=150)
def test_no_fleet_reads_more_than_its_media(node: Node, job: Job) -> None:
    found = run_fluid(fleet_of(System(node), job))
    media = max(node.drive_read_Bps, node.port_Bps)
    assert found.throughput_Bps <= node.drives * media * (1 + TOLERANCE)
    read = found.host_bytes / node.drives
    busy = found.drive_busy_s * fleet_of(System(node), job).drive_Bps
    if not job.steal and job.layout is Layout.SPREAD:
        assert float(busy.max()) + read <= media * found.time_s * (1 + TOLERANCE)
        sent = job.result_ratio * float(busy.max())
        assert sent + read <= node.port_Bps * found.time_s * (1 + TOLERANCE)
    crossed = found.host_bytes + job.result_ratio * found.drive_bytes
    assert crossed <= node.drives * node.port_Bps * found.time_s * (1 + TOLERANCE)


@pytest.mark.parametrize("layout", list(Layout))
def test_a_port_carries_reads_and_results_together(layout: Layout) -> None:
    """Four ports of 1 GB/s, results as large as their input: each byte crosses them once."""
    of = Node(48, 4, 4, 1e10, 1e10, 1e10, 1e9, 1e11)
    job = Job(1600, 1e7, layout, Overlap.PIPELINED, result_ratio=1.0)
    assert simulate(System(of), job).throughput_Bps == pytest.approx(4e9, rel=0.01)
    assert run_fluid(fleet_of(System(of), job)).throughput_Bps == pytest.approx(4e9, rel=1e-6)
    assert bound_Bps(System(of), job) == pytest.approx(4e9, rel=1e-6)


def test_no_run_of_whole_tasks_exceeds_its_bound() -> None:
    """The host reads the drive that does not compute: the other's media are its own."""
    of = Node(8, 2, 1, 9e9, 1e9, 1e12, 1e9, 1e9)
    job = Job(400, 1e7, Layout.WHOLE, Overlap.PIPELINED)
    assert simulate(System(of), job).throughput_Bps > 1.9e9
    assert bound_Bps(System(of), job) == pytest.approx(2e9, rel=1e-6)


def test_eight_smartssds_give_no_more_than_they_read() -> None:
    """Their media deliver 3.2 GB/s each, to the drive and to the host together."""
    options: dict[str, Any] = {"host_cores": 48, "drives": 8}
    table = cp.simulate("smartssd", "count", enabled=[8], **options)
    assert table["throughput_Bps"].iloc[0] <= 8 * 3.2e9
    assert table["closed_form_Bps"].iloc[0] == pytest.approx(8 * 3.2e9)
    fluid = cp.simulate("smartssd", "count", enabled=[8], fluid=True, **options)
    assert fluid["throughput_Bps"].iloc[0] <= 8 * 3.2e9 * (1 + TOLERANCE)
    mixed = cp.mix("smartssd", {"count": 1.0}, **options)["throughput"]
    assert mixed["throughput_Bps"].max() <= 8 * 3.2e9 * (1 + TOLERANCE)


def test_the_bound_knows_where_data_lies() -> None:
    """Six of sixteen drives run out of data of their own; the host reads what is left."""
    table = cp.simulate("catalina", "dft", drives=16, host_cores=4, enabled=[6])
    row = table.iloc[0]
    assert row["throughput_Bps"] <= row["bound_Bps"] * (1 + TOLERANCE)
    assert row["bound_Bps"] < 0.7 * row["closed_form_Bps"]


def test_drives_that_a_host_reads_draw_active_power() -> None:
    """Sixteen SSDs at full read, 4 W above idle each, and a core of 10 W."""
    of = Node(1, 16, 0, 1e12, 1e9, 1e9, 1e9, 16e9, idle_W=50.0, core_W=10.0)
    of = replace(of, drive_idle_W=3.0, drive_active_W=7.0)
    found = simulate(System(of), Job(tasks=160, task_bytes=1e8, overlap=Overlap.PIPELINED))
    assert found.net_energy_J == pytest.approx((10 + 16 * 4) * found.time_s, rel=0.02)
    fluid = run_fluid(fleet_of(System(of), Job(tasks=160, task_bytes=1e8)), System(of))
    assert fluid.net_energy_J == pytest.approx((10 + 16 * 4) * fluid.time_s, rel=0.03)


def test_media_slower_than_their_reader_are_refused() -> None:
    with pytest.raises(ModelError, match="media_Bps of k"):
        DriveKind("k", 1.0, 1.0, 3e9, media_Bps=2e9)
    with pytest.raises(ModelError, match="media_Bps"):
        Node(1, 1, 1, 1e9, 3e9, 1e9, 1e9, 8e9, media_Bps=2e9)
