"""Speed of array merge against std::set_union + unique, and of page rank's product against SciPy's.

Rounds alternate between the two of a pair, so that other work on the machine slows both. A round's
time is the least of several in one process, because a process that slept before is interrupted
less. Prints medians of these and of the rounds' ratios. ``make oracle-speed`` runs it.
"""

import argparse
import datetime
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse
from check import packages

PATTERNS = ("even", "skewed", "many duplicates", "apart", "runs", "equal")


def lines(*command: object) -> dict[str, float]:
    """Names and numbers that a program prints."""
    words = [str(word) for word in command]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    rows = (line.rsplit(" ", 1) for line in done.stdout.splitlines())
    return {name: float(value) for name, value in rows}


def merge(speed: Path, folder: Path, elements: int, rounds: int) -> None:
    union = folder / "set_union"
    source = Path(__file__).with_name("set_union.cc")
    subprocess.run(["g++", "-O3", "-march=native", "-o", union, source], check=True)
    pairs = [(lines(speed, "merge", elements), lines(union, elements)) for _ in range(rounds)]
    ratios = []
    for index, pattern in enumerate(PATTERNS):
        ours = [a[str(index)] for a, _ in pairs]
        theirs = [b[str(index)] for _, b in pairs]
        ratio = statistics.median(b / a for a, b in zip(ours, theirs, strict=True))
        ratios.append(ratio)
        medians = (statistics.median(ours), statistics.median(theirs))
        print(f"array-merge i32, {pattern:15}: {medians[0]:.3f} ns an element, "
              f"std::set_union + unique {medians[1]:.3f}, ratio {ratio:.2f}")
    mean = statistics.geometric_mean(ratios)
    print(f"array-merge: geometric mean {mean:.2f}, worst {min(ratios):.2f}")


def sparse(
    speed: Path, folder: Path, name: str, nodes: int, edges: np.ndarray, rounds: int
) -> None:
    path = folder / "edges.raw"
    edges.astype("<u4").tofile(path)
    ones = np.ones(len(edges))
    matrix = scipy.sparse.csr_array((ones, (edges[:, 1], edges[:, 0])), shape=(nodes, nodes))
    vector = np.full(nodes, 0.5)
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append(lines(speed, "sparse", nodes, path))
        times = []
        for _ in range(max(9, 30_000_000 // matrix.nnz)):
            start = time.perf_counter_ns()
            matrix @ vector
            times.append((time.perf_counter_ns() - start) / matrix.nnz)
        theirs.append(min(times))
    for version in ours[0]:
        found = [round_[version] for round_ in ours]
        ratio = statistics.median(b / a for a, b in zip(found, theirs, strict=True))
        print(f"page-rank sparse, {name}, {version:8}: {statistics.median(found):.3f} ns an edge, "
              f"SciPy {statistics.median(theirs):.3f}, ratio {ratio:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--speed", type=Path, required=True, help="the built bench-kernels")
    parser.add_argument("--elements", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    rng = np.random.default_rng(1)
    graphs = {"random, degree 10": (1_000_000, rng.integers(0, 1_000_000, (10_000_000, 2)))}
    debian = packages()
    if debian is not None:
        graphs["Debian"] = debian[:2]
    load = "{:.1f}, {:.1f}, {:.1f}".format(*os.getloadavg())
    date = datetime.datetime.now(datetime.UTC).isoformat(" ", "minutes")
    print(f"{date}, {os.cpu_count()} processors, load averages {load}")
    with tempfile.TemporaryDirectory() as folder:
        merge(arguments.speed, Path(folder), arguments.elements, arguments.rounds)
        for name, (nodes, edges) in graphs.items():
            sparse(arguments.speed, Path(folder), name, nodes, edges, arguments.rounds)


if __name__ == "__main__":
    main()
