"""Break-even points of erasure coding in drives, closed and exact.

The closed form (equation 8 of the second paper) neglects transfer. With it the host's time
T_SSD-tx / min(M, k) + M T_SSD-ec falls before it rises, so drives may lead at few devices, lose
the lead, and regain it. The break-even point is the smallest M from which on they lead for good;
an early lead is reported separately and is not the answer.

As for ``bep``, floating point settles the configurations that lie clear of its rounding errors,
all at once, and rational arithmetic the rest.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, isqrt

import numpy as np
from numpy.typing import ArrayLike

from csdplan.model.inputs import FloatArray, limit, not_negative, positive
from csdplan.solve.crossings import DEVICES_MAX, ROUNDING, BoolArray, IntArray, is_clear
from csdplan.solve.exact import decimal

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
    csd, ssd, ssd_tx, csd_tx, most = (column.reshape(-1) for column in columns)
    with np.errstate(all="ignore"):  # overflow and 0/0 mark a row as doubtful
        devices, early, clear = _in_floats(ssd_tx, ssd, csd_tx + csd, most)
        closed = csd / ssd
        clear &= is_clear(closed, ROUNDING * closed)
        found = [np.where(clear, one, 0.0) for one in (devices, np.ceil(closed), early)]
    table: list[IntArray] = [one.astype(np.int64) for one in found]
    for row in np.flatnonzero(~clear):
        t = EncodeTerms(
            ssd_tx=decimal(ssd_tx[row]),
            ssd_encode=decimal(ssd[row]),
            csd=decimal(csd_tx[row]) + decimal(csd[row]),
            k_limit=None if np.isinf(most[row]) else decimal(most[row]),
        )
        general, lead = smallest(t)
        paper = ceil(decimal(csd[row]) / decimal(ssd[row]))
        for column, value in zip(table, (general, paper, lead), strict=True):
            column[row] = value if value <= DEVICES_MAX else 0
    return EncodeSolution(*(column.reshape(shape) for column in table))


def _in_floats(
    ssd_tx: FloatArray, ssd: FloatArray, csd: FloatArray, most: FloatArray
) -> tuple[FloatArray, FloatArray, BoolArray]:
    """Return answers, early leads and where both are clear; letters and proof as in `smallest`."""
    x, e, d = ssd_tx, ssd, csd
    beyond = (d - x / most) / e
    past_limit = np.floor(beyond) >= most
    clear = np.isinf(most) | is_clear(beyond, ROUNDING * (d + x / most) / e)
    squares = d * d + 4 * e * x
    discriminant = d * d - 4 * e * x
    always = discriminant < 0
    clear &= past_limit | (np.abs(discriminant) > ROUNDING * squares)
    root = np.sqrt(np.maximum(discriminant, 0.0))
    root_error = ROUNDING * (squares / root + root)
    upper, lower = (d + root) / (2 * e), 2 * x / (d + root)
    upper_clear = is_clear(upper, (root_error + ROUNDING * d) / (2 * e) + ROUNDING * upper)
    # The last M at which drives do not lead, unless they do there as well.
    last = np.where(past_limit, np.floor(beyond), np.minimum(np.floor(upper), np.floor(most)))
    at_last = x / np.minimum(last, most) + e * last
    leads_there = at_last > d
    sure = np.abs(at_last - d) > ROUNDING * (at_last + d)
    clear &= past_limit | always | (upper_clear & ((last < 1) | sure))
    ahead = ~past_limit & (always | (last < 1) | leads_there)
    # Drives that lead at first do so up to the lower root.
    at_first = x + e
    early = ~ahead & (at_first > d)
    clear &= ahead | (np.abs(at_first - d) > ROUNDING * (at_first + d))
    clear &= ~early | is_clear(lower, lower * (root_error / (d + root) + ROUNDING))
    return np.where(ahead, 1.0, last + 1.0), np.where(early, np.floor(lower), 0.0), clear


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
    k_limit : float or None
        K, at least 1; None for no limit.
    """

    ssd_tx: Fraction
    ssd_encode: Fraction
    csd: Fraction
    k_limit: Fraction | None


def leads(t: EncodeTerms, devices: int) -> bool:
    """Return whether `devices` drives are strictly faster than as many SSDs."""
    lanes = Fraction(devices) if t.k_limit is None else min(Fraction(devices), t.k_limit)
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
        last = min(last, floor(t.k_limit))
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
