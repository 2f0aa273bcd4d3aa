"""Comparison of the kernels with NumPy, networkx, SciPy and google-crc32c.

Run by ``make oracle``, on random, odd and real inputs. Every comparison is exact, except for ranks,
whose additions other libraries order differently: they must agree to 1e-12. Exits with 1 at the
first difference.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import google_crc32c
import networkx
import numpy as np
import scipy.sparse

LANES = 64
# Change of a rank in a step, on average, below which page rank ends: networkx's own default.
TOLERANCE = 1e-6
TYPES = {"i32": "<i4", "i64": "<i8", "f32": "<f4", "f64": "<f8"}


class Oracle:
    """Runs the example over files in a folder of its own."""

    def __init__(self, binary: Path, folder: Path) -> None:
        self.binary, self.folder = binary, folder
        self.cases = 0

    def run(self, kernel: str, *arguments: object, dtype: str) -> tuple[np.ndarray, str]:
        """Result of a kernel; arrays among the arguments travel as files."""
        words = [str(self.binary), kernel]
        for index, argument in enumerate(arguments):
            if isinstance(argument, np.ndarray):
                path = self.folder / f"{index}.raw"
                argument.tofile(path)
                words.append(str(path))
            else:
                words.append(str(argument))
        out = self.folder / "out.raw"
        done = subprocess.run([*words, str(out)], check=True, capture_output=True, text=True)
        self.cases += 1
        return np.fromfile(out, dtype=dtype), done.stdout


def expect(what: str, holds: bool) -> None:
    """Ends the run when ``what`` does not hold."""
    if not holds:
        sys.exit(f"DIFFERENT: {what}")


def same(what: str, found: np.ndarray, expected: np.ndarray) -> None:
    """Equal lengths and values; NaN equals NaN."""
    expect(what, found.shape == expected.shape)
    expect(what, np.array_equal(found, expected, equal_nan=found.dtype.kind == "f"))


def random_array(rng: np.random.Generator, name: str, count: int) -> np.ndarray:
    """Any bit patterns: overflow, infinities, NaN, denormals."""
    dtype = np.dtype(TYPES[name])
    return np.frombuffer(rng.bytes(count * dtype.itemsize), dtype=dtype)


def check_vector_add(oracle: Oracle, rng: np.random.Generator) -> None:
    for name, dtype in TYPES.items():
        for count in (0, 1, 7, 1000, 200_003):
            left, right = random_array(rng, name, count), random_array(rng, name, count)
            with np.errstate(all="ignore"):
                expected = left + right
            found, _ = oracle.run("vector-add", name, left, right, dtype=dtype)
            same(f"vector-add {name} {count}", found, expected)


def merge_inputs(rng: np.random.Generator, dtype: str) -> list[tuple[np.ndarray, np.ndarray]]:
    """Even, skewed, equal, apart, full of duplicates, empty, and the type's ends."""

    def draw(low: float, high: float, count: int) -> np.ndarray:
        return np.sort(rng.integers(int(low), int(high), count).astype(dtype))

    a, b = draw(-1e9, 1e9, 100_000), draw(-1e9, 1e9, 90_000)
    few, none = draw(-20, 20, 50_000), np.array([], dtype=dtype)
    apart = draw(1_500_000_000, 2_000_000_000, 40_000)
    pairs = [(a, b), (b, a), (a, few), (few, few), (a, a), (a, apart), (a, b[:3])]
    pairs += [(none, none), (a, none), (none, few)]
    info = np.finfo(dtype) if np.dtype(dtype).kind == "f" else np.iinfo(dtype)
    ends = np.array([info.min, info.min, 0, info.max], dtype=dtype)
    pairs.append((ends, few))
    if np.dtype(dtype).kind == "f":
        odd = np.array([-np.inf, -info.tiny, -0.0, 0.0, info.smallest_subnormal, np.inf], dtype)
        pairs += [(odd, ends), (odd, few)]
    return pairs


def check_array_merge(oracle: Oracle, rng: np.random.Generator) -> None:
    for name, dtype in TYPES.items():
        for index, (left, right) in enumerate(merge_inputs(rng, dtype)):
            expected = np.union1d(left, right)
            for parts in (1, 3, 8):
                found, _ = oracle.run("array-merge", name, left, right, parts, dtype=dtype)
                same(f"array-merge {name} case {index} in {parts} parts", found, expected)


def lanes_product(matrix: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """The product in f32 by the order of additions that the kernel promises."""
    lanes = np.zeros((matrix.shape[0], LANES), dtype=np.float32)
    for start in range(0, matrix.shape[1], LANES):
        part = matrix[:, start : start + LANES] * vector[start : start + LANES]
        lanes[:, : part.shape[1]] += part
    while lanes.shape[1] > 1:
        half = lanes.shape[1] // 2
        lanes = lanes[:, :half] + lanes[:, half:]
    return lanes[:, 0]


def check_dense(oracle: Oracle, rng: np.random.Generator) -> None:
    for rows, columns in ((1, 1), (5, 63), (7, 64), (9, 65), (300, 1000), (3, 100_001)):
        matrix = rng.standard_normal((rows, columns)).astype(np.float32)
        vector = rng.random(columns).astype(np.float32)
        found, _ = oracle.run("dense", columns, matrix, vector, dtype="<f4")
        what = f"dense {rows} x {columns}"
        same(f"{what}, bit for bit", found, lanes_product(matrix, vector))
        exact = matrix.astype(np.float64) @ vector.astype(np.float64)
        expect(f"{what}, near f64", np.allclose(found, exact, rtol=1e-4, atol=1e-3))


def graphs(rng: np.random.Generator) -> dict[str, tuple[int, np.ndarray]]:
    """Small and odd graphs: edges as pairs of u32."""
    loops = np.array([[0, 0], [1, 1], [1, 1], [1, 2]])
    star = np.array([[leaf, 0] for leaf in range(1, 50)])
    power = (rng.pareto(1.2, (20_000, 2)) * 10).astype(np.int64) % 3000
    cases = {
        "one node": (1, np.zeros((0, 2))),
        "no edges": (9, np.zeros((0, 2))),
        "loops and parallel edges": (4, loops),
        "star": (50, star),
        "star turned": (50, star[:, ::-1]),
        "random": (500, rng.integers(0, 500, (4000, 2))),
        "heavy rows": (3000, power),
    }
    return {name: (nodes, edges.astype("<u4")) for name, (nodes, edges) in cases.items()}


def packages() -> tuple[int, np.ndarray, str] | None:
    """Dependencies of Debian's packages, from this machine's own lists."""
    lists = sorted(Path("/var/lib/apt/lists").glob("*_Packages*"))
    helper = "/usr/lib/apt/apt-helper"
    texts = []
    if lists and os.access(helper, os.X_OK):
        for path in lists:
            done = subprocess.run([helper, "cat-file", str(path)], capture_output=True, text=True)
            texts.append(done.stdout if done.returncode == 0 else "")
    source = f"{len(lists)} package lists"
    if not any(texts):
        status = Path("/var/lib/dpkg/status")
        if not status.exists():
            return None
        texts, source = [status.read_text(encoding="utf-8", errors="replace")], str(status)
    numbers: dict[str, int] = {}
    edges = []
    for block in "\n\n".join(texts).split("\n\n"):
        name = re.search(r"^Package: (\S+)", block, re.M)
        if not name:
            continue
        package = numbers.setdefault(name[1], len(numbers))
        for field in re.findall(r"^(?:Pre-)?Depends: (.*)", block, re.M):
            for wanted in re.split(r"[,|]", field):
                target = wanted.split()[0].split(":")[0]
                edges.append((package, numbers.setdefault(target, len(numbers))))
    return len(numbers), np.array(edges, dtype="<u4").reshape(-1, 2), source


def power_iteration(nodes: int, edges: np.ndarray) -> np.ndarray:
    """Page rank by SciPy's sparse product, stopping as networkx does."""
    ones = np.ones(len(edges))
    shape = (nodes, nodes)
    matrix = scipy.sparse.csr_array((ones, (edges[:, 1], edges[:, 0])), shape=shape)
    degrees = np.bincount(edges[:, 0], minlength=nodes)
    ranks = np.full(nodes, 1 / nodes)
    for _ in range(100):
        passed = np.divide(ranks, degrees, out=np.zeros(nodes), where=degrees > 0)
        spread = ranks[degrees == 0].sum() / nodes
        last, ranks = ranks, 0.85 * (matrix @ passed + spread) + 0.15 / nodes
        if np.abs(ranks - last).sum() < nodes * TOLERANCE:
            return ranks
    raise AssertionError("the ranks did not settle")


def check_sparse(oracle: Oracle, rng: np.random.Generator) -> None:
    cases = graphs(rng)
    found = packages()
    if found is None:
        print("no package lists on this machine: the real graph is left out")
    else:
        nodes, edges, source = found
        print(f"Debian's dependencies from {source}: {nodes} packages, {len(edges)} edges")
        cases["Debian"] = (nodes, edges)
    for name, (nodes, edges) in cases.items():
        graph = networkx.MultiDiGraph()
        graph.add_nodes_from(range(nodes))
        graph.add_edges_from(edges.tolist())
        expected = networkx.pagerank(graph, tol=TOLERANCE)
        expected = np.array([expected[node] for node in range(nodes)])
        whole, steps = oracle.run("sparse", nodes, edges, 1, dtype="<f8")
        print(f"page-rank, {name}: {steps.strip()} steps")
        for what, other in (("networkx", expected), ("SciPy", power_iteration(nodes, edges))):
            close = np.allclose(whole, other, rtol=1e-12, atol=1e-15)
            expect(f"page-rank {name} beside {what}", close)
        for parts in (2, 4, 7):
            ranks, _ = oracle.run("sparse", nodes, edges, parts, dtype="<f8")
            same(f"page-rank {name} in {parts} parts, bit for bit", ranks, whole)
    empty, _ = oracle.run("sparse", 0, np.zeros((0, 2), "<u4"), 2, dtype="<f8")
    expect("page-rank of nothing", len(empty) == 0)


def check_verify(oracle: Oracle, rng: np.random.Generator) -> None:
    for page in (1, 512, 4096, 5000, 65_536):
        for count in (0, 1, page, 3 * page + 1, 200_000):
            data = rng.bytes(min(count, 40 * page))
            expected = [
                google_crc32c.value(data[at : at + page]) for at in range(0, len(data), page)
            ]
            for unroll in (1, 3, 8):
                raw = np.frombuffer(data, np.uint8)
                found, _ = oracle.run("verify", page, unroll, raw, dtype="<u4")
                what = f"verify {len(data)} bytes in pages of {page}"
                same(what, found, np.array(expected, dtype="<u4"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--oracle", type=Path, required=True, help="the built example")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    checks = (check_vector_add, check_array_merge, check_dense, check_sparse, check_verify)
    with tempfile.TemporaryDirectory() as folder:
        oracle = Oracle(arguments.oracle, Path(folder))
        for check in checks:
            before = oracle.cases
            check(oracle, rng)
            print(f"{check.__name__.removeprefix('check_')}: {oracle.cases - before} runs equal")


if __name__ == "__main__":
    main()
