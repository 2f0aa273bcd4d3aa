"""Compares the transform that whole.c has written with NumPy's: whole.py N FILE."""

import sys

import numpy as np

LIMIT = 1e-12


def main() -> None:
    n = int(sys.argv[1])
    values = (np.arange(n**3, dtype=np.int64) * 48271 + 11) % 2147483647 % 1000003 / 1000003
    expected = np.fft.rfftn(values.reshape(n, n, n))
    found = np.fromfile(sys.argv[2], "<c16").reshape(expected.shape)
    error = np.abs(found - expected).max() / np.abs(expected).max()
    if not error <= LIMIT:
        sys.exit(f"relative error {error}")
    print(f"one transform of {n}^3, largest relative error {error:.1e}")


if __name__ == "__main__":
    main()
