"""Comparison of the erasure code with libisal: parity, decoding, and sampled minors of the matrix.

Run by ``make oracle``. Debian's package is libisal2; ``LIBISAL`` names another shared library.
Without the library the comparison is left out, with a line that says so.
"""

import argparse
import ctypes
import ctypes.util
import os
import tempfile
from pathlib import Path

import numpy as np
from check import Oracle, expect, same

SHAPES = ((1, 1), (2, 1), (4, 2), (5, 3), (8, 4), (16, 8), (20, 13), (32, 16))
LENGTHS = (1, 31, 64, 257, 4096, 20_011)


class Isal:
    """The functions of libisal that the comparison needs, over arrays of bytes."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self.library = library

    def matrix(self, data: int, parity: int) -> np.ndarray:
        """All rows of the code, one a piece."""
        rows = np.zeros((data + parity, data), np.uint8)
        self.library.gf_gen_cauchy1_matrix(pointer(rows), data + parity, data)
        return rows

    def invert(self, matrix: np.ndarray) -> np.ndarray | None:
        """Inverse of a square matrix; ``None`` if it is singular."""
        matrix, inverse = np.ascontiguousarray(matrix), np.zeros_like(matrix)
        code = self.library.gf_invert_matrix(pointer(matrix), pointer(inverse), len(matrix))
        return inverse if code == 0 else None

    def multiply(self, rows: np.ndarray, pieces: np.ndarray) -> np.ndarray:
        """Product of a matrix and pieces of one length."""
        rows, pieces = np.ascontiguousarray(rows), np.ascontiguousarray(pieces)
        (count, columns), length = rows.shape, pieces.shape[1]
        tables = np.zeros(32 * count * columns, np.uint8)
        out = np.zeros((count, length), np.uint8)
        self.library.ec_init_tables(columns, count, pointer(rows), pointer(tables))
        sources, targets = pointers(pieces), pointers(out)
        self.library.ec_encode_data(length, columns, count, pointer(tables), sources, targets)
        return out


def pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def pointers(rows: np.ndarray) -> ctypes.Array:
    return (ctypes.c_void_p * len(rows))(*(row.ctypes.data for row in rows))


def load() -> Isal | None:
    name = os.environ.get("LIBISAL") or ctypes.util.find_library("isal")
    return Isal(ctypes.CDLL(name)) if name else None


def numbers(values: np.ndarray) -> str:
    return ",".join(str(value) for value in values)


def check_pieces(isal: Isal, oracle: Oracle, rng: np.random.Generator) -> None:
    """Parity and decoded pieces, byte for byte."""
    for data, parity in SHAPES:
        matrix = isal.matrix(data, parity)
        for length in LENGTHS:
            what = f"rs:{data}+{parity} of {length} bytes"
            pieces = rng.integers(0, 256, (data, length), np.uint8)
            # Pieces end anywhere; the library gets them padded.
            lengths = rng.integers(0, length + 1, data)
            lengths[rng.integers(data)] = length
            for piece, end in zip(pieces, lengths, strict=True):
                piece[end:] = 0
            raw = np.concatenate([p[:end] for p, end in zip(pieces, lengths, strict=True)])
            expected = isal.multiply(matrix[data:], pieces)
            found, _ = oracle.run("encode", data, parity, numbers(lengths), raw, dtype=np.uint8)
            same(f"parity of {what}", found, expected.ravel())
            stripe = np.concatenate([pieces, expected])
            order = rng.permutation(data + parity)
            sources, wanted = order[:data], order[data:]
            given = numbers(sources), numbers(wanted), stripe[sources]
            found, _ = oracle.run("decode", data, parity, *given, dtype=np.uint8)
            same(f"decoding of {what}", found, stripe[wanted].ravel())
            inverse = isal.invert(matrix[sources])
            expect(f"{what} from {sources}", inverse is not None)
            lost = [index for index, piece in enumerate(wanted) if piece < data]
            if lost and inverse is not None:
                decoded = isal.multiply(inverse[wanted[lost]], stripe[sources])
                same(f"libisal's decoding of {what}", found.reshape(parity, -1)[lost], decoded)


def check_minors(isal: Isal, rng: np.random.Generator, count: int) -> None:
    """Square parts of the largest matrix can be inverted."""
    matrix = isal.matrix(32, 16)[32:]
    for _ in range(count):
        size = rng.integers(1, 17)
        rows, columns = rng.permutation(16)[:size], rng.permutation(32)[:size]
        minor = matrix[np.ix_(rows, columns)]
        expect(f"minor {rows} x {columns}", isal.invert(minor) is not None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--oracle", type=Path, required=True, help="the built example")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    isal = load()
    if isal is None:
        print("SKIPPED: no libisal (Debian: libisal2): the erasure code was compared with nothing")
        return
    rng = np.random.default_rng(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        oracle = Oracle(arguments.oracle, Path(folder))
        check_pieces(isal, oracle, rng)
        check_minors(isal, rng, 1000)
        print(f"erasure: {oracle.cases} runs equal, 1000 minors not singular")


if __name__ == "__main__":
    main()
