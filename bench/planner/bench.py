"""Benchmarks of the planner: time each case on one core, and write a record.

    python bench/planner/bench.py --out bench/planner/records

Each case runs several times; the record holds every run, not only the best. A case may have a
promised time. If one misses it, the output says so and the script exits with 1.
"""

# ruff: noqa: E402 - NumPy must be imported after its threads are limited.
from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# One core: set before NumPy's libraries start their threads.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import csdplan
import numpy as np
from compared import processor
from csdplan import commands
from csdplan.sim import Job, Node, System, fleet_of, run_fluid, simulate
from csdplan.solve import break_even
from csdplan.solve.optimize import optimize, pareto
from csdplan.solve.purchase import Cpu, Demand, DriveKind, Limits, Request

RUNS = 5
ROWS = 10_000_000


def columns() -> None:
    """Solve ten million rows with all six quantities drawn at random."""
    break_even(*_columns(), k_limit=_WHOLE[0], host_cores=_WHOLE[1])


def grid(**more: Any) -> None:
    """Solve ten million combinations of drive speeds, k_limit and cores."""
    compute = np.linspace(0.5, 8, 100).reshape(-1, 1, 1, 1)
    bandwidth = np.linspace(0.5, 4, 100).reshape(1, -1, 1, 1)
    cores, limit = np.arange(1, 33).reshape(1, 1, -1, 1), np.arange(1, 33)
    found = break_even(
        1.5, 0.7317073, 9.0 / bandwidth, 1.243902 / compute, host_cores=cores, k_limit=limit, **more
    )
    assert found.devices.size > ROWS


def decimals(**more: Any) -> None:
    """Solve ten million rows of one decimal, many of them ties for floating point."""
    tenths = np.arange(1, 101) / 10
    found = break_even(
        1.5,
        0.5,
        tenths.reshape(-1, 1, 1, 1),
        tenths.reshape(1, -1, 1, 1),
        host_cores=np.arange(1, 26).reshape(1, 1, -1, 1),
        k_limit=np.arange(1, 41),
        **more,
    )
    assert found.devices.size == ROWS


def pipelined() -> None:
    """Solve ten million rows, transfer and compute overlapped on both sides."""
    break_even(*_columns(), k_limit=_WHOLE[0], host_cores=_WHOLE[1], **_PIPELINED)


def pipelined_grid() -> None:
    """Solve the grid with both sides overlapped and a part of the host's own."""
    grid(host_part_s=0.01, **_PIPELINED)


def pipelined_decimals() -> None:
    """Solve the rows of one decimal with both sides overlapped."""
    decimals(**_PIPELINED)


def fleet() -> None:
    """Simulate 10,000 hosts with 64 drives each as a fluid: skew, stragglers, work stealing."""
    node = Node(16, 64, 64, 6.56e9, 0.5333e9, 3.859e9, 3.2e9, 25.6e9)
    system = System(node, hosts=10_000)
    job = Job(1_000_000, 64e6, skew=0.3, stragglers=6400, straggler_factor=3.0, steal=True)
    run_fluid(fleet_of(system, job), system)


def events() -> None:
    """Simulate 100,000 tasks by events, on 4 hosts of 16 cores and 16 drives."""
    node = Node(16, 16, 16, 6.56e9, 0.5333e9, 3.859e9, 3.2e9, 25.6e9)
    simulate(System(node, hosts=4), Job(100_000, 4e6, task_spread=0.3))


def purchase() -> None:
    """Find the cheapest of 10 CPUs and 6 kinds of drives for 8 workloads, with the limits."""
    assert optimize(_request()) is not None


def front() -> None:
    """Find 8 points of the Pareto front of cost and throughput."""
    assert pareto(_request(), 8)


def plan() -> None:
    """Plan 2 PB and 8 workloads from the whole catalogue, with limits, energy and alternatives."""
    rates = {"count": 200, "vector-add": 60, "array-merge": 40, "page-rank": 80}
    workloads = [f"{kernel}={rate}GB/s" for kernel, rate in rates.items()]
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1, 5):
            path = Path(folder) / f"own{number}.toml"
            path.write_text(
                f'name = "own{number}"\nthroughput = "{10 * number}GB/s"\n'
                f'core = "{number}.5GB/s"\nreturns = 0.0{number}\n'
            )
            workloads.append(f"@{path}")
        limits = {"budget": "3M", "power": "60kW", "write": "5GB/s", "kwh": 0.15, "growth": "10%"}
        found = commands.plan("2PB", protect="rs:8+2", workload=workloads, **limits)
    assert found.facts["verdict"] == "optimal"


def imported() -> None:
    """Start an interpreter that imports the package and its command line."""
    subprocess.run([sys.executable, "-c", "import csdplan.cli"], check=True)


#: By name: the function to run, and its promised time in seconds on one core (None: no promise).
CASES: dict[str, tuple[Callable[[], None], float | None]] = {
    "sweep_columns": (columns, 2.0),
    "sweep_grid": (grid, 2.0),
    "sweep_decimals": (decimals, 2.0),
    "pipelined_columns": (pipelined, 2.0),
    "pipelined_grid": (pipelined_grid, 2.0),
    "pipelined_decimals": (pipelined_decimals, 2.0),
    "fleet": (fleet, 10.0),
    "events": (events, None),
    "optimize": (purchase, 5.0),
    "front": (front, None),
    "plan": (plan, 5.0),
    "import": (imported, 0.5),
}

_PIPELINED: dict[str, Any] = {"ssd_overlap": "pipelined", "csd_overlap": "pipelined"}
_WHOLE: list[np.ndarray] = []
_HELD: list[np.ndarray] = []


def _columns() -> list[np.ndarray]:
    """Return the random columns, drawn once so that only the solver is timed."""
    if not _HELD:
        rng = np.random.default_rng(1)
        _HELD.extend(10.0 ** rng.uniform(-1, 1.3, ROWS) for _ in range(4))
        _WHOLE.extend(rng.integers(1, 64, ROWS) for _ in range(2))
    return _HELD


def _request() -> Request:
    rng = np.random.default_rng(0)
    cpus = tuple(
        Cpu(
            f"cpu-{i}",
            int(rng.integers(8, 97)),
            float(rng.integers(400, 5000)),
            float(rng.choice([16e9, 32e9, 64e9])),
            int(rng.integers(8, 33)),
            float(rng.integers(60, 200)),
            float(rng.integers(2, 6)),
        )
        for i in range(10)
    )
    drives = tuple(
        DriveKind(
            f"drive-{i}",
            float(rng.integers(90, 900)),
            float(rng.choice([2, 4, 8, 16])) * 1e12,
            float(rng.uniform(1.5, 7)) * 1e9,
            float(rng.integers(6, 25)),
        )
        for i in range(6)
    )
    demands = []
    for i in range(8):
        base = rng.uniform(1 / 8e9, 1 / 0.5e9)
        core_s = {cpu.name: float(base * rng.uniform(0.5, 2)) for cpu in cpus}
        drive_s = {kind.name: float(base * rng.uniform(0.5, 20) + 1 / 3e9) for kind in drives[2:]}
        stored = float(rng.uniform(1, 10)) * 1e12
        rate = float(rng.uniform(0.3e9, 2e9))
        demands.append(Demand(f"workload-{i}", rate, core_s, drive_s, stored))
    limits = Limits(capacity_bytes=100e12, power_W=2000.0, energy_usd_per_kWh=0.15, years=5)
    return Request(cpus, drives, tuple(demands), limits)


def timed(run: Callable[[], None]) -> dict[str, list[float]]:
    """Run a case once to warm up, then `RUNS` times; return processor and wall times [s]."""
    run()
    found: dict[str, list[float]] = {"cpu_s": [], "wall_s": []}
    for _ in range(RUNS):
        wall, before = time.perf_counter(), os.times()
        run()
        after = os.times()
        spent = sum(after[:4]) - sum(before[:4])
        found["cpu_s"].append(round(spent, 4))
        found["wall_s"].append(round(time.perf_counter() - wall, 4))
    return found


def machine() -> dict[str, object]:
    """Describe this machine."""
    return {
        "cpu": processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "load_average": os.getloadavg()[0],
    }


def commit() -> str:
    """Return the commit of the tree, marked if it has changes."""
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--abbrev=12"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )
    return found.stdout.strip() or "unknown"


def main() -> int:
    """Run the cases asked for; return 1 if one misses its promise."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", choices=[*CASES, []], help="all, if none is named")
    parser.add_argument("--out", type=Path, help="folder that gets the record")
    asked = parser.parse_args()
    results, missed, tree = {}, False, commit()
    for name in asked.cases or CASES:
        run, promise = CASES[name]
        times = timed(run)
        best = min(times["cpu_s"])
        kept = promise is None or best < promise
        missed |= not kept
        results[name] = {
            "what": (run.__doc__ or "").strip(),
            "promise_cpu_s": promise,
            "best_cpu_s": best,
            "kept": kept,
            **times,
        }
        print(f"{name:16} {best:8.3f} s  (promise: {promise}) {'' if kept else 'MISSED'}")
    now = datetime.now(UTC)
    record = {
        "schema": 1,
        "date": now.isoformat(timespec="seconds"),
        "version": csdplan.__version__,
        "commit": tree,
        "command": " ".join(["python", *sys.argv]),
        "machine": machine(),
        "cases": results,
    }
    if asked.out:
        asked.out.mkdir(parents=True, exist_ok=True)
        path = asked.out / f"{now:%Y-%m-%d-%H%M%S}.json"
        path.write_text(json.dumps(record, indent=2) + "\n")
        print(path)
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
