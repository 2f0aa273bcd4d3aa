"""Break-even points of erasure coding in drives, closed and exact, and the time model's fit.

The closed form (equation 8 of the second paper) neglects transfer. With it the host's time
T_SSD-tx / min(M, k) + M T_SSD-ec falls before it rises, so drives may lead at few devices, lose
the lead, and regain it. The break-even point is the smallest M from which on they lead for good;
an early lead is reported beside it, never as the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, isqrt

import numpy as np
from numpy.typing import ArrayLike, NDArray

from csdplan.errors import ModelError
from csdplan.model import erasure
from csdplan.model.inputs import limit, not_negative, positive
from csdplan.solve.exact import decimal
from csdplan.solve.floats import DEVICES_MAX, IntArray

#: Extra decimal places of a square root, so that its floor is off by one place at most.
_ROOT_SCALE = 10**20


@dataclass(frozen=True)
class EncodeSolution:
    """Break-even points of erasure coding; all fields have the same shape.

    Attributes
    ----------
    devices : ndarray of int64
        Smallest M with T_SSD-array(M') > T_CSD-array(M') for every M' >= M; 0 if beyond 2**53.
    closed_form : ndarray of int64
        Equation 8, ceil(T_CSD-ec / T_SSD-ec); 0 if beyond 2**53.
    early_lead : ndarray of int64
        The drives also lead at 1 up to this many devices, and then lose the lead; 0 if not.
    """

    devices: IntArray
    closed_form: IntArray
    early_lead: IntArray


def encode_break_even(
    csd_encode_s: ArrayLike,
    ssd_encode_s: ArrayLike,
    *,
    ssd_tx_s: ArrayLike = 0.0,
    csd_tx_s: ArrayLike = 0.0,
    k_limit: ArrayLike | None = None,
) -> EncodeSolution:
    """Find the break-even point of every configuration, with arguments broadcast.

    Parameters
    ----------
    csd_encode_s, ssd_encode_s : array_like
        T_CSD-ec and T_SSD(n)-ec, one encoding [s]; greater than 0.
    ssd_tx_s, csd_tx_s : array_like
        T_SSD-tx and T_CSD-tx [s]; at least 0, and 0 in the paper's closed form.
    k_limit : array_like or None
        Devices that use up the host's ingest bandwidth; the paper has none.

    Returns
    -------
    EncodeSolution
        Exact and closed-form break-even points. Every configuration has one: the host's time
        grows without limit, the drives' does not.

    References
    ----------
    Byun et al., "Provisioning CSD-based Storage Systems with Erasure-coding Offloaded to the CSD",
    2023, section III.2, equations 5 to 8.
    """
    columns = np.broadcast_arrays(
        positive("csd_encode_s", csd_encode_s),
        positive("ssd_encode_s", ssd_encode_s),
        not_negative("ssd_tx_s", ssd_tx_s),
        not_negative("csd_tx_s", csd_tx_s),
        limit("k_limit", k_limit),
    )
    shape = columns[0].shape
    answers: list[tuple[int, int, int]] = []
    for csd, ssd, ssd_tx, csd_tx, most in zip(*(column.flat for column in columns), strict=True):
        t = EncodeTerms(
            ssd_tx=decimal(ssd_tx),
            ssd_encode=decimal(ssd),
            csd=decimal(csd_tx) + decimal(csd),
            k_limit=None if np.isinf(most) else int(most),
        )
        devices, early = smallest(t)
        answers.append((devices, ceil(decimal(csd) / decimal(ssd)), early))
    counted = [[value if value <= DEVICES_MAX else 0 for value in row] for row in answers]
    table: NDArray[np.int64] = np.array(counted, dtype=np.int64).reshape(-1, 3)
    return EncodeSolution(*(table[:, column].reshape(shape) for column in range(3)))


@dataclass(frozen=True)
class EncodeTerms:
    """The inequality X / min(M, K) + E M > D, in seconds.

    Attributes
    ----------
    ssd_tx : Fraction
        X = T_SSD-tx, at least 0.
    ssd_encode : Fraction
        E = T_SSD(n)-ec, greater than 0.
    csd : Fraction
        D = T_CSD-tx + T_CSD-ec, greater than 0.
    k_limit : int or None
        K, at least 1; None for no limit.
    """

    ssd_tx: Fraction
    ssd_encode: Fraction
    csd: Fraction
    k_limit: int | None


def leads(t: EncodeTerms, devices: int) -> bool:
    """Return whether `devices` drives are strictly faster than as many SSDs."""
    lanes = devices if t.k_limit is None else min(devices, t.k_limit)
    return t.ssd_tx / lanes + t.ssd_encode * devices > t.csd


def smallest(t: EncodeTerms) -> tuple[int, int]:
    """Return the smallest M from which on drives lead, and the end of an earlier lead (0: none).

    Proof. The left side is convex in M up to K and rises linearly beyond, so it is unimodal, and
    the M at which drives do not lead are one run of whole numbers. The answer is one beyond its
    last, the early lead ends one before its first.

    - Beyond K the last is floor((D - X / K) / E), if that is K or more.
    - Up to K they satisfy E M^2 - D M + X <= 0: the whole numbers between the two roots. The
      roots are found to twenty places and the nearest whole numbers tried.
    """
    if t.k_limit is not None:
        beyond = floor((t.csd - t.ssd_tx / t.k_limit) / t.ssd_encode)
        if beyond >= t.k_limit:
            return beyond + 1, _early(t, beyond)
    discriminant = t.csd * t.csd - 4 * t.ssd_encode * t.ssd_tx
    if discriminant < 0:
        return 1, 0
    last = floor((t.csd + _root(discriminant)) / (2 * t.ssd_encode))
    last += 0 if leads(t, last + 1) else 1
    if t.k_limit is not None:
        last = min(last, t.k_limit)
    if last < 1 or leads(t, last):
        return 1, 0
    return last + 1, _early(t, last)


def _early(t: EncodeTerms, last: int) -> int:
    """Return the last of the M from 1 at which drives lead before they fall behind at `last`."""
    return _bisect(t, 1, last) if leads(t, 1) else 0


def _bisect(t: EncodeTerms, ahead: int, behind: int) -> int:
    """Return the last M from `ahead` on that leads, knowing that `behind` does not."""
    # Between the two the run of "does not lead" begins once: the left side is unimodal.
    while behind - ahead > 1:
        middle = (ahead + behind) // 2
        if leads(t, middle):
            ahead = middle
        else:
            behind = middle
    return ahead


def _root(value: Fraction) -> Fraction:
    """Return a square root, rounded down at the twentieth place."""
    scaled = value.numerator * value.denominator * _ROOT_SCALE**2
    return Fraction(isqrt(scaled), value.denominator * _ROOT_SCALE)


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
        """Return the modelled time of an encoding [s]."""
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
