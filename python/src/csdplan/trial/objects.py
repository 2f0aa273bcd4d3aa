"""Inputs of the built-in kernels, and the words of a run over them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from csdplan.trial.program import Csd

#: An input's name, its values, and the words of its put.
Input = tuple[str, NDArray[np.generic], list[str]]

#: Values that count looks through; one in a hundred matches, as in ``csd characterize``.
_VALUES = 100
_SEED = 17
#: Size of chunks: small, so that a short working set has several on each of four drives.
_CHUNK = "256K"
#: Steps of page rank: the vector of the first is the input of the second.
_STEPS = 2


@dataclass(frozen=True)
class Kernel:
    """A kernel's inputs and run.

    Attributes
    ----------
    inputs : callable
        From a random generator and the size of a working set [bytes] to inputs.
    words : tuple of str
        Words of a run, after the kernel's name.
    passes : int
        Times that a run reads its input.
    output : str or None
        Object that a run writes.
    by_parts : bool
        True if the host takes whole parts, each of one drive, and not single chunks.
    """

    inputs: Callable[[np.random.Generator, int], list[Input]]
    words: tuple[str, ...]
    passes: int = 1
    output: str | None = None
    by_parts: bool = False


def _count(random: np.random.Generator, size: int) -> list[Input]:
    return [("count", random.integers(0, _VALUES, size // 4, dtype=np.int32), [])]


def _add(random: np.random.Generator, size: int) -> list[Input]:
    left, right = random.integers(0, 2**30, (2, size // 8), dtype=np.int32)
    return [("left", left, []), ("right", right, ["--align", "left"])]


def _merge(random: np.random.Generator, size: int) -> list[Input]:
    first, second = np.sort(random.integers(0, 2**30, (2, size // 8), dtype=np.int32))
    ranges, aligned = ["--layout", "range"], ["--align", "first"]
    return [("first", first, ranges), ("second", second, aligned)]


def _rank(random: np.random.Generator, size: int) -> list[Input]:
    nodes = isqrt(size // 4)
    matrix = random.random((nodes, nodes), dtype=np.float32)
    return [("matrix", matrix, ["--layout", "rows"])]


def _pages(random: np.random.Generator, size: int) -> list[Input]:
    return [("pages", random.integers(0, 2**31, size // 4, dtype=np.int32), [])]


def _sum(random: np.random.Generator, size: int) -> list[Input]:
    return [("numbers", random.integers(0, 2**30, size // 4, dtype=np.int32), [])]


#: Parts that a host core reads at once; a part lies on one drive.
PARTS_AT_ONCE = 2

KERNELS = {
    "count": Kernel(_count, ("count", "--equal", "7")),
    "vector-add": Kernel(_add, ("left", "right", "--output", "sum"), output="sum"),
    "array-merge": Kernel(
        _merge, ("first", "second", "--output", "merged"), output="merged", by_parts=True
    ),
    "page-rank": Kernel(
        _rank,
        ("matrix", "--iterations", str(_STEPS), "--tolerance", "1e-30"),
        passes=_STEPS,
        by_parts=True,
    ),
    "verify": Kernel(_pages, ("pages",)),
    "summarize": Kernel(_sum, ("numbers",)),
}


def put_inputs(csd: Csd, array: Path, kernel: str, size_bytes: int, folder: Path) -> int:
    """Store a kernel's inputs as objects, and return the bytes that a run reads."""
    stored = 0
    inputs = KERNELS[kernel].inputs(np.random.default_rng(_SEED), size_bytes)
    for name, values, words in inputs:
        path = folder / f"{name}.npy"
        np.save(path, values)
        try:
            csd.run(array, "put", path, name, "--chunk", _CHUNK, *words)
        finally:
            path.unlink()
        stored += values.nbytes
    return stored * KERNELS[kernel].passes
