"""Checks that every quantity passes before an equation sees it.

Each returns the argument as a float64 array and raises ``ModelError`` naming the argument, its
first offending value and what was expected. Nothing is clipped, rounded or replaced in silence. The
checks compare extremes and make no arrays of flags, because sweeps have millions of rows.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from csdplan.errors import ModelError

FloatArray = NDArray[np.float64]

#: Beyond this a float no longer tells a whole number from the next.
WHOLE_MAX = 2.0**53
_PART = 1 << 16
#: No quantity is as small or as large, and three of them multiplied or divided stay finite.
_SMALLEST, _LARGEST = 1e-100, 1e100


def positive(argument: str, value: ArrayLike) -> FloatArray:
    """Return `value` as floats; every element must be finite and greater than zero."""
    numbers = _finite(argument, value)
    if not _least(numbers) >= _SMALLEST:
        _refuse(argument, numbers, numbers >= _SMALLEST, "a number greater than 0")
    return numbers


def not_negative(argument: str, value: ArrayLike) -> FloatArray:
    """Return `value` as floats; every element must be finite and at least zero."""
    numbers = _finite(argument, value)
    if not _least(numbers) >= 0:
        _refuse(argument, numbers, numbers >= 0, "a number of at least 0")
    return numbers


def slow_down(argument: str, value: ArrayLike) -> FloatArray:
    """Return a slow-down factor as floats; equation 4 defines it for values of at least 1."""
    numbers = _finite(argument, value)
    if not _least(numbers) >= 1:
        _refuse(argument, numbers, numbers >= 1, "a slow-down factor of at least 1")
    return numbers


def whole(argument: str, value: ArrayLike) -> FloatArray:
    """Return a number of things as floats; every element must be a whole number from 1 up."""
    numbers = _finite(argument, value)
    if not (_least(numbers) >= 1 and _most(numbers) <= WHOLE_MAX and _is_whole(numbers)):
        sound = (numbers >= 1) & (numbers == np.floor(numbers)) & (numbers <= WHOLE_MAX)
        _refuse(argument, numbers, sound, "a whole number from 1 to 2**53")
    return numbers


def limit(argument: str, value: ArrayLike | None) -> FloatArray:
    """Return a limit as floats: a number of at least 1; None or infinity means no limit."""
    if value is None:
        return np.asarray(np.inf)
    numbers = _real(argument, value)
    # NaN passes through a minimum, and no comparison with it holds.
    if not _least(numbers) >= 1:
        _refuse(argument, numbers, numbers >= 1, "a number of at least 1")
    return numbers


def _finite(argument: str, value: ArrayLike) -> FloatArray:
    numbers = _real(argument, value)
    # NaN passes through a minimum, and no comparison with it holds.
    if not (_least(numbers) >= -_LARGEST and _most(numbers) <= _LARGEST):
        sound = np.isfinite(numbers)
        if sound.all():
            _refuse(argument, numbers, np.abs(numbers) <= _LARGEST, f"at most {_LARGEST:g}")
        _refuse(argument, numbers, sound, "a finite number")
    return numbers


def _real(argument: str, value: ArrayLike) -> FloatArray:
    # Ragged lists raise ValueError here; text and objects arrive with a kind of their own.
    try:
        raw = np.asarray(value)
    except ValueError as error:
        raise ModelError(argument, value, "a number or an array of numbers") from error
    if raw.dtype.kind not in "iuf":
        raise ModelError(argument, value, "a number or an array of numbers")
    return raw.astype(np.float64, copy=False)


def _least(numbers: FloatArray) -> float:
    return float(np.min(numbers)) if numbers.size else 1.0


def _most(numbers: FloatArray) -> float:
    return float(np.max(numbers)) if numbers.size else 1.0


def _is_whole(numbers: FloatArray) -> bool:
    """Return whether every number is whole, a cache's worth at a time."""
    flat = numbers.reshape(-1)
    parts = (flat[start : start + _PART] for start in range(0, flat.size, _PART))
    return all(bool(np.array_equal(part, np.floor(part))) for part in parts)


def _refuse(argument: str, numbers: FloatArray, sound: NDArray[np.bool_], expected: str) -> None:
    """Raise for the first element that is not sound."""
    worst = float(numbers[np.logical_not(sound)].flat[0])
    raise ModelError(argument, worst, expected)
