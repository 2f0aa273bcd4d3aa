"""The time model of erasure coding, fitted to measured points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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


def fit_encode_time(points: Sequence[EncodePoint]) -> EncodeFit:
    """Fit the time model to measured points by least squares of the relative error.

    Raises
    ------
    ModelError
        If there are fewer than two points, if all have the same work, or if the best fit has a
        negative coefficient, so that the model does not describe them.
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
    if base < 0 or slope < 0:
        found = f"base {base:.3g} s, slope {slope:.3g} s"
        raise ModelError("points", found, "times that grow with the work from a base of 0 or more")
    error = np.abs((base + slope * work) / measured - 1.0)
    return EncodeFit(float(base), float(slope), float(error.max()))
