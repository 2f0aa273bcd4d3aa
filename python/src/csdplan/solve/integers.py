"""Break-even points of doubtful rows in whole numbers, many rows at once.

Quantities that a person types have few digits, so sweeps over them tie often. Such a row is
scaled to whole numbers and decided by 64-bit integer division, exactly as ``exact`` decides it
one by one. A row that does not fit 63 bits, or whose shortest decimals are too long, is left
undecided; none is decided wrongly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from csdplan.model.inputs import FloatArray
from csdplan.solve.floats import DEVICES_MAX, BoolArray, IntArray

#: A decimal of up to 15 digits is the only one of that length that reads back as its float, so
#: it is the shortest one: the decimal that ``exact`` takes the float for.
_DIGITS_MAX = 10**15
_DECIMALS_MAX = 12
#: Room for one addition below the largest signed 64-bit number.
_FITS = 2.0**61


@dataclass(frozen=True)
class WholeAnswers:
    """Answers of the rows handed in, all arrays of one length.

    Attributes
    ----------
    devices, closed_form : ndarray of int64
        Break-even points; 0 if there is none, beyond `DEVICES_MAX`, or undecided.
    never : ndarray of bool
        True where no number of drives is enough.
    decided : ndarray of bool
        False where the row must go to ``exact``.
    """

    devices: IntArray
    closed_form: IntArray
    never: BoolArray
    decided: BoolArray


def settle(rows: list[FloatArray]) -> WholeAnswers:
    """Decide the rows of nine flat columns, in the order of the arguments of `exact.terms`."""
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows does not fit
        return _settle(rows)


def _settle(rows: list[FloatArray]) -> WholeAnswers:
    ssd_tx_s, ssd_comp_s, csd_tx_s, csd_comp_s, cores, k_limit, sd_tx, sd_comp, host_part_s = rows
    times, _, times_ok = _scaled([ssd_tx_s, ssd_comp_s, csd_tx_s, csd_comp_s, host_part_s])
    factors, unit, factors_ok = _scaled([sd_tx, sd_comp])
    unbounded = np.isinf(k_limit)
    bounded = np.where(unbounded, 1.0, k_limit)
    # Sizes first, in floats, so that no product below can overflow.
    size = cores * unit * (times[2] + times[3] + times[4]) + cores * factors[0] * times[0]
    size = (size + factors[1] * times[1]) * bounded
    decided = times_ok & factors_ok & (size < _FITS)
    chosen = [np.where(decided, column, 1.0).astype(np.int64) for column in (cores, bounded, unit)]
    whole_cores, limit, whole_unit = chosen
    t = [np.where(decided, time, 1.0).astype(np.int64) for time in times]
    f = [np.where(decided, factor, 1.0).astype(np.int64) for factor in factors]
    # Everything times cores and both scales: the letters are those of ``exact.Terms``.
    s, c = whole_cores * f[0] * t[0], f[1] * t[1]
    d, h = whole_cores * whole_unit * (t[2] + t[3]), whole_cores * whole_unit * t[4]
    devices, never = _smallest(s, c - h, d, limit, unbounded)
    closed = np.maximum(1, -((s - d) // c))
    return WholeAnswers(
        devices=np.where(decided & ~never & (devices <= DEVICES_MAX), devices, 0),
        closed_form=np.where(decided & (closed <= DEVICES_MAX), closed, 0),
        never=never & decided,
        decided=decided,
    )


def _smallest(
    s: IntArray, gain: IntArray, d: IntArray, limit: IntArray, unbounded: BoolArray
) -> tuple[IntArray, BoolArray]:
    """Return the answers and which rows have none; the proof stands at ``exact.smallest``."""
    gains = gain > 0
    first = np.maximum(1, (d - s) // np.where(gains, gain, 1) + 1)
    early = gains & (unbounded | (first <= limit))
    # Without a gain: ahead at K is ahead from 1; without a limit only S > D at gain 0 is.
    at_limit = ~gains & np.where(unbounded, (gain == 0) & (s > d), s - d + gain * limit > 0)
    beyond = s + limit * gain
    late = ~early & ~at_limit & ~unbounded & (beyond > 0)
    after = d * limit // np.where(late, beyond, 1) + 1
    answer = np.where(early, first, np.where(at_limit, 1, after))
    return answer, ~(early | at_limit | late)


def _scaled(columns: list[FloatArray]) -> tuple[list[FloatArray], FloatArray, BoolArray]:
    """Return each row times one power of ten that makes it whole, that power, and if it exists."""
    scaled = [np.zeros(column.shape) for column in columns]
    unit = np.ones(columns[0].shape)
    found = np.zeros(columns[0].shape, dtype=np.bool_)
    for decimals in range(_DECIMALS_MAX + 1):
        rows = np.flatnonzero(~found)
        if not rows.size:
            break
        power = 10.0**decimals
        # Often all rows are left, or none: then nothing needs to be picked out.
        every = rows.size == found.size
        held = columns if every else [column[rows] for column in columns]
        whole = [np.rint(column * power) for column in held]
        fits = np.ones(rows.shape, dtype=np.bool_)
        for column, number in zip(held, whole, strict=True):
            # The quotient of two exact numbers is rounded once, as reading the decimal is.
            fits &= (number < _DIGITS_MAX) & (number / power == column)
        chosen = rows[fits]
        for target, number in zip(scaled, whole, strict=True):
            target[chosen] = number[fits]
        unit[chosen] = power
        found[chosen] = True
    return scaled, unit, found
