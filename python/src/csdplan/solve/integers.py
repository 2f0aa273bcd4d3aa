"""Break-even points of doubtful rows in whole numbers, many rows at once.

Quantities that a person types have few digits, so sweeps over them tie often. Such a row is
scaled to whole numbers and decided by integer division, exactly as ``exact`` decides it one by
one: in 64 bits if it fits, as most do, else in Python's arbitrary-precision integers, about ten
times slower. A float stands for the shortest decimal that reads back as it, here as there.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from csdplan.model.inputs import FloatArray
from csdplan.solve.crossings import DEVICES_MAX, BoolArray, IntArray

#: A decimal of up to 15 digits is the only one of that length that reads back as its float, so
#: it is the shortest one.
_DIGITS_MAX = 10**15
_DECIMALS_MAX = 12
#: Room for one addition below the largest signed 64-bit number.
_FITS = 2.0**61

#: Whole numbers: 64-bit ones, or Python's as objects.
Wholes = NDArray[Any]


@dataclass(frozen=True)
class WholeAnswers:
    """Answers of the rows handed in, all arrays of one length.

    Attributes
    ----------
    devices, closed_form : ndarray of int64
        Break-even points; 0 if there is none, or beyond `DEVICES_MAX`.
    never : ndarray of bool
        True where no number of drives is enough.
    """

    devices: IntArray
    closed_form: IntArray
    never: BoolArray


def settle(rows: list[FloatArray], overlaps: tuple[bool, bool] = (False, False)) -> WholeAnswers:
    """Decide the rows of eleven flat columns, in the order of the arguments of `exact.terms`.

    `overlaps` says whether the host overlaps transfer and compute, and whether the drives do.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows does not fit
        short, fits = _short(rows)
    answers = _answers(short, overlaps)
    left = np.flatnonzero(~fits)
    if left.size:
        rest = _answers(_long([column[left] for column in rows]), overlaps)
        answers.devices[left] = rest.devices
        answers.closed_form[left] = rest.closed_form
        answers.never[left] = rest.never
    return answers


@dataclass(frozen=True)
class _Scaled:
    """Rows in whole numbers.

    Attributes
    ----------
    times : list of ndarray
        The seven times, each row times one power of ten.
    factors : list of ndarray
        The two slow-down factors, each row times `unit`.
    cores, unit : ndarray
        n; what the factors were multiplied by.
    limit, part : ndarray
        K as a fraction, where there is one.
    unbounded : ndarray of bool
        True where there is no K.
    """

    times: list[Wholes]
    factors: list[Wholes]
    cores: Wholes
    limit: Wholes
    part: Wholes
    unit: Wholes
    unbounded: BoolArray


def _short(rows: list[FloatArray]) -> tuple[_Scaled, BoolArray]:
    """Return the rows in 64 bits, and which of them fit; the others become ones."""
    times, factors, cores, k_limit = _sorted(rows)
    whole_times, _, times_ok = _scaled(times)
    whole_factors, unit, factors_ok = _scaled(factors)
    unbounded = np.isinf(k_limit)
    bounded = np.where(unbounded, 1.0, k_limit)
    # Sizes first, in floats, so that no product can overflow.
    tx, comp, csd_tx, csd_comp, host_part, store, csd_store = whole_times
    size = cores * unit * (csd_tx + csd_comp + host_part + csd_store)
    size = size + cores * whole_factors[0] * (tx + store) + whole_factors[1] * comp
    fits = times_ok & factors_ok & (size * bounded < _FITS) & (bounded == np.floor(bounded))

    def whole(column: FloatArray) -> IntArray:
        return np.where(fits, column, 1.0).astype(np.int64)

    scaled = _Scaled(
        times=[whole(time) for time in whole_times],
        factors=[whole(factor) for factor in whole_factors],
        cores=whole(cores),
        limit=whole(bounded),
        part=np.ones(bounded.shape, dtype=np.int64),
        unit=whole(unit),
        unbounded=unbounded,
    )
    return scaled, fits


def _long(rows: list[FloatArray]) -> _Scaled:
    """Return the rows in whole numbers of any length."""
    times, factors, cores, k_limit = _sorted(rows)
    unbounded = np.isinf(k_limit)
    whole_factors, unit = _lengthened(factors)
    (limit,), part = _lengthened([np.where(unbounded, 1.0, k_limit)])
    return _Scaled(
        times=_lengthened(times)[0],
        factors=whole_factors,
        cores=_objects(cores),
        limit=limit,
        part=part,
        unit=unit,
        unbounded=unbounded,
    )


def _sorted(
    rows: list[FloatArray],
) -> tuple[list[FloatArray], list[FloatArray], FloatArray, FloatArray]:
    """Return the times, the factors, n and K of eleven columns."""
    tx, comp, csd_tx, csd_comp, cores, k_limit, sd_tx, sd_comp, host_part, store, csd_store = rows
    times = [tx, comp, csd_tx, csd_comp, host_part, store, csd_store]
    return times, [sd_tx, sd_comp], cores, k_limit


def _answers(given: _Scaled, overlaps: tuple[bool, bool]) -> WholeAnswers:
    tx, comp, csd_tx, csd_comp, host_part, store, csd_store = given.times
    sd_tx, sd_comp = given.factors
    # Everything times cores and both scales: the letters are those of ``exact.Terms``.
    load, drive = given.cores * sd_tx, given.cores * given.unit
    s, c = load * (tx + store), sd_comp * comp
    moved = csd_tx + csd_store
    d = drive * (np.maximum(moved, csd_comp) if overlaps[1] else moved + csd_comp)
    smallest = _smallest_pipelined if overlaps[0] else _smallest
    k = _Limit(given.limit, given.part, given.unbounded)
    devices, never = smallest(s, c, d, drive * host_part, k)
    closed = np.maximum(1, -((load * tx - drive * (csd_tx + csd_comp)) // c))
    return WholeAnswers(
        devices=_counted(np.where(never, 0, devices)), closed_form=_counted(closed), never=never
    )


def _counted(devices: Wholes) -> IntArray:
    return np.where(devices <= DEVICES_MAX, devices, 0).astype(np.int64)


@dataclass(frozen=True)
class _Limit:
    """K = whole / part of each row, and which rows have none."""

    whole: Wholes
    part: Wholes
    unbounded: BoolArray

    @property
    def below(self) -> Wholes:
        """The largest whole number that is at most K."""
        return np.asarray(self.whole // self.part)

    def just_before(self, first: Wholes) -> BoolArray:
        """Return where K is not whole and `first` is the next whole number."""
        return np.asarray((self.below * self.part != self.whole) & (first == self.below + 1))


def _smallest(s: Wholes, c: Wholes, d: Wholes, h: Wholes, k: _Limit) -> tuple[Wholes, BoolArray]:
    """Return the answers and which rows have none; the proof stands at ``exact.smallest``."""
    gain = c - h
    gains = gain > 0
    first = np.maximum(1, (d - s) // np.where(gains, gain, 1) + 1)
    early = gains & (k.unbounded | (first <= k.below))
    # Without a gain: ahead at K is ahead from 1; without a limit only S > D at gain 0 is.
    ahead = (s - d) * k.part + gain * k.whole > 0
    at_limit = ~gains & np.where(k.unbounded, (gain == 0) & (s > d), ahead)
    beyond = s * k.part + k.whole * gain
    late = ~early & ~at_limit & ~k.unbounded & (beyond > 0)
    after = d * k.whole // np.where(late, beyond, 1) + 1
    # Behind at a K that is not whole, and ahead at the whole numbers on both sides of it.
    at_limit |= late & ~gains & k.just_before(after) & (s - d + gain * k.below > 0)
    answer = np.where(early, first, np.where(at_limit, 1, after))
    return answer, ~(early | at_limit | late)


def _smallest_pipelined(
    s: Wholes, c: Wholes, d: Wholes, h: Wholes, k: _Limit
) -> tuple[Wholes, BoolArray]:
    """Do the same for hosts that overlap; the proof stands at ``exact._smallest_pipelined``."""
    gain = c - h
    ahead = k.unbounded | (s * k.part - h * k.whole > d * k.part) | (gain * k.whole > d * k.part)
    # Behind at K: max(S / K, C) - H, times K.
    rest = np.maximum(s * k.part, c * k.whole) - h * k.whole
    late = ~ahead & (rest > 0)
    after = d * k.whole // np.where(late, rest, 1) + 1
    after = np.where(k.just_before(after) & (s - h * k.below > d), 1, after)
    # Ahead at K with a gain: the last m at which computing alone does not decide.
    gains = gain > 0
    last = d // np.where(gains, gain, 1)
    # S - H m > D, without a product that might not fit.
    spare = s - d - 1
    at_once = (last < 1) | (~k.unbounded & (last * k.part >= k.whole))
    at_once |= (spare >= 0) & ((h == 0) | (last <= spare // np.where(h > 0, h, 1)))
    early = np.where(gains & ~at_once, last + 1, 1)
    # Gain is C if H is 0, and C is not: without a gain and without a limit, transfer does not last.
    never = np.where(ahead, ~gains & k.unbounded, ~late)
    return np.where(ahead, early, after), never


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
        kept = columns if every else [column[rows] for column in columns]
        whole = [np.rint(column * power) for column in kept]
        fits = np.ones(rows.shape, dtype=np.bool_)
        for column, number in zip(kept, whole, strict=True):
            # The quotient of two exact numbers is rounded once, as reading the decimal is.
            fits &= (number < _DIGITS_MAX) & (number / power == column)
        chosen = rows[fits]
        for target, number in zip(scaled, whole, strict=True):
            target[chosen] = number[fits]
        unit[chosen] = power
        found[chosen] = True
    return scaled, unit, found


def _lengthened(columns: list[FloatArray]) -> tuple[list[Wholes], Wholes]:
    """Return each row times one power of ten that makes it whole, and that power."""
    read = [_decimals(column) for column in columns]
    decimals = np.max([places for _, places in read], axis=0)
    powers = _objects(np.arange(decimals.max() + 1))
    powers = 10**powers
    return [digits * powers[decimals - places] for digits, places in read], powers[decimals]


def _decimals(column: FloatArray) -> tuple[Wholes, IntArray]:
    """Return digits and decimal places of each number's shortest decimal; a value is read once."""
    values, where = np.unique(column, return_inverse=True)
    digits, places = [], []
    for value in values.tolist():
        exponent = int(Decimal(repr(value)).as_tuple().exponent)
        places.append(max(0, -exponent))
        digits.append(int(Decimal(repr(value)).scaleb(places[-1])))
    return np.array(digits, dtype=object)[where], np.array(places, dtype=np.int64)[where]


def _objects(column: NDArray[Any]) -> Wholes:
    """Return whole numbers as Python's."""
    return np.array([int(value) for value in column.tolist()], dtype=object)
