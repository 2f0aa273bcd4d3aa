"""Times of erasure coding: measured where they were measured, from a fitted model elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from csdplan.errors import ModelError
from csdplan.model import erasure
from csdplan.model.inputs import positive


@dataclass(frozen=True)
class EncodePoint:
    """One measured encoding.

    Attributes
    ----------
    blocks : int
        n + k, blocks after encoding.
    block_bytes : float
        Size of a block [bytes].
    time_s : float
        Time of the encoding [s].
    """

    blocks: int
    block_bytes: float
    time_s: float


@dataclass(frozen=True)
class EncodeFit:
    """The time model's coefficients, and how well they describe their points.

    Attributes
    ----------
    base_s, per_block2_s : float
        See `model.erasure.encode_time_s` [s].
    relative_error_max : float
        Largest |model / measured - 1| over the points [1].
    """

    base_s: float
    per_block2_s: float
    relative_error_max: float

    def time_s(self, blocks: ArrayLike, block_bytes: ArrayLike) -> NDArray[np.float64]:
        """Return the modeled time of an encoding [s]."""
        return erasure.encode_time_s(blocks, block_bytes, self.base_s, self.per_block2_s)


class Origin(StrEnum):
    """Origin of a time: measured at this very size, or modeled inside or outside the sizes."""

    GIVEN = "given"
    MEASURED = "measured"
    FITTED = "fitted"
    EXTRAPOLATED = "extrapolated"


@dataclass(frozen=True)
class EncodeTimes:
    """Times of one side: its points, and the model fitted to them, if they allow one.

    Attributes
    ----------
    points : tuple of EncodePoint
        The measured points, each size once.
    fit : EncodeFit or None
        The model; None if the points have one size only.
    """

    points: tuple[EncodePoint, ...]
    fit: EncodeFit | None

    def time_s(self, blocks: int, block_bytes: float) -> tuple[float, Origin]:
        """Return the time of an encoding, and its origin [s].

        Raises
        ------
        ModelError
            If this size was not measured and the points allow no model.
        """
        for point in self.points:
            if (point.blocks, point.block_bytes) == (blocks, block_bytes):
                return point.time_s, Origin.MEASURED
        if self.fit is None:
            measured = self.points[0]
            size = f"{measured.blocks} blocks of {measured.block_bytes / 1e6:g} MB"
            asked = f"{blocks} blocks of {block_bytes / 1e6:g} MB"
            raise ModelError("points", asked, f"the measured size, {size}, or points of two sizes")
        amount = _work(blocks, block_bytes)
        known = [_work(point.blocks, point.block_bytes) for point in self.points]
        between = min(known) <= amount <= max(known)
        # Rounding of the fit must not decide a tie: twelve digits are more than any clock has.
        time_s = float(f"{float(self.fit.time_s(blocks, block_bytes)):.12g}")
        return time_s, Origin.FITTED if between else Origin.EXTRAPOLATED


def encode_times(points: Sequence[EncodePoint]) -> EncodeTimes:
    """Return the times of one side; from one measured size up.

    Raises
    ------
    ModelError
        If there is no point, a size stands twice with different times, or times fall as the work
        grows, so that the model does not describe them.
    """
    if not points:
        raise ModelError("points", "none", "at least one measured point")
    by_size: dict[tuple[int, float], EncodePoint] = {}
    for point in points:
        positive("time_s", point.time_s)
        known = by_size.setdefault((point.blocks, point.block_bytes), point)
        if known.time_s != point.time_s:
            size = f"{point.blocks} blocks of {point.block_bytes / 1e6:g} MB"
            raise ModelError("points", f"{size} twice", "one time for each size")
    one_each = tuple(by_size.values())
    sizes = {_work(point.blocks, point.block_bytes) for point in one_each}
    return EncodeTimes(one_each, fit_encode_time(one_each) if len(sizes) > 1 else None)


def _work(blocks: int, block_bytes: float) -> float:
    return float(erasure.encode_time_s(blocks, block_bytes, 0.0, 1.0))


def fit_encode_time(points: Sequence[EncodePoint]) -> EncodeFit:
    """Fit the time model to measured points by least squares of the relative error.

    No coefficient is negative: where the best base would be, the base is 0.

    Raises
    ------
    ModelError
        If there are fewer than two points, if all have the same work, or if times fall as the
        work grows, so that the model does not describe them.
    """
    work = np.array(
        [float(erasure.encode_time_s(p.blocks, p.block_bytes, 0.0, 1.0)) for p in points]
    )
    measured = positive("time_s", [p.time_s for p in points])
    if len(set(work.tolist())) < 2:  # noqa: PLR2004 - a line needs two places
        raise ModelError("points", len(points), "points of at least two different sizes")
    # Dividing each row by its time makes the residuals relative.
    rows = np.stack([np.ones_like(work), work], axis=1) / measured[:, None]
    (base, slope), *_ = np.linalg.lstsq(rows, np.ones_like(work), rcond=None)
    # Equal times at several sizes are a sound line; its slope comes out as rounding of 0.
    least = 1e-12 * float(measured.max())
    base = 0.0 if abs(base) < least else base
    slope = 0.0 if abs(slope) * float(work.max()) < least else slope
    if base < 0 < slope:
        # No time is left at no work: of the lines without a base, the best one.
        base = 0.0
        slope = float(rows[:, 1].sum() / (rows[:, 1] ** 2).sum())
    if base < 0 or slope < 0:
        found = f"base {base:.3g} s, slope {slope:.3g} s"
        raise ModelError("points", found, "times that grow with the work from a base of 0 or more")
    error = np.abs((base + slope * work) / measured - 1.0)
    return EncodeFit(float(base), float(slope), float(error.max()))
