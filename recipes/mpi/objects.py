"""Objects for dft.c: makes them, and compares transforms with NumPy.

objects.py make FOLDER SEED N1 N2 N3     N1 of 180, N2 of 50x50, N3 of 50x50x50 doubles
objects.py check FOLDER                  every object has a transform that is NumPy's to 1e-12
"""

import pathlib
import sys

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
SHAPES = {"1d": (180,), "2d": (50, 50), "3d": (50, 50, 50)}
# Waves of a heartbeat: centre, width and height, in parts of the beat.
WAVES = [
    (0.2, 0.025, 0.15),
    (0.36, 0.01, -0.1),
    (0.4, 0.012, 1.0),
    (0.44, 0.01, -0.25),
    (0.65, 0.05, 0.3),
]
LIMIT = 1e-12


def heartbeat(rng: np.random.Generator) -> Array:
    """One beat of an electrocardiogram: its waves, each a little aside, and noise."""
    time = np.arange(180) / 180
    signal = rng.normal(0, 0.01, 180)
    for centre, width, height in WAVES:
        middle = centre + rng.normal(0, 0.005)
        signal += height * np.exp(-(((time - middle) / width) ** 2) / 2)
    return signal


def brightness(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Brightness that grows with the distance from one dark point."""
    point = rng.uniform(0, 1, len(shape)) * np.array(shape)
    axes = np.indices(shape).reshape(len(shape), -1).T - point
    return np.linalg.norm(axes, axis=1).reshape(shape)


def make(folder: pathlib.Path, seed: int, counts: list[int]) -> None:
    """Make objects of all kinds."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(seed)
    for (kind, shape), count in zip(SHAPES.items(), counts, strict=True):
        for number in range(count):
            data = heartbeat(rng) if kind == "1d" else brightness(rng, shape)
            data.astype("<f8").tofile(folder / f"{kind}-{number:06}")


def check(folder: pathlib.Path) -> None:
    """Compare every transform with NumPy's."""
    worst, count = 0.0, 0
    for kind, shape in SHAPES.items():
        for path in sorted(folder.glob(f"{kind}-*")):
            if path.suffix:
                continue
            expected = np.fft.rfftn(np.fromfile(path, "<f8").reshape(shape))
            found = np.fromfile(f"{path}.dft", "<c16").reshape(expected.shape)
            error = np.abs(found - expected).max() / np.abs(expected).max()
            worst, count = max(worst, float(error)), count + 1
            if error > LIMIT:
                sys.exit(f"{path}: relative error {error}")
    if count == 0:
        sys.exit(f"{folder}: no objects")
    print(f"{count} transforms, largest relative error {worst:.1e}")


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["make", folder, seed, *counts] if len(counts) == len(SHAPES):
            make(pathlib.Path(folder), int(seed), [int(count) for count in counts])
        case ["check", folder]:
            check(pathlib.Path(folder))
        case _:
            sys.exit(__doc__)
