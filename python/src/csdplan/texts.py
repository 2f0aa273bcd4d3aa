"""Values of options, from the texts that a person writes: lists, ranges and pairs.

Faults are ``ValueError``, with a message for the person.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite

from csdplan.errors import ModelError
from csdplan.profile.convert import KernelTimes
from csdplan.units import quantity

#: A range has at most this many steps.
_STEPS_MAX = 10**6
#: A whole number in a list option has at most this many digits.
_DIGITS_MAX = 7


def whole_numbers(text: str, *, least: int = 1) -> list[int]:
    """Parse a list of whole numbers such as ``1,4,16``, each at least `least`, without repeats."""
    parts = [part.strip() for part in text.split(",")]
    # isdecimal takes other scripts' digits, and int() refuses texts of thousands of digits.
    plain = (part.isascii() and part.isdecimal() for part in parts)
    if not all(plain):
        raise ValueError(f"{text!r} is not a list of whole numbers such as 1,4,16")
    if max(map(len, parts)) > _DIGITS_MAX:
        raise ValueError(f"{text!r}: a number has at most {_DIGITS_MAX} digits")
    numbers = [int(part) for part in parts]
    if min(numbers) < least:
        raise ValueError(f"{text!r}: every number is at least {least}")
    return list(dict.fromkeys(numbers))


def whole_numbers_or_zero(text: str) -> list[int]:
    """Parse a list of whole numbers such as ``0,4,16``, without repeats."""
    return whole_numbers(text, least=0)


def numbers(text: str) -> list[float]:
    """Parse a list such as ``1,2.5,4`` or a range such as ``1:8:0.5`` (first, last, step)."""
    expected = f"{text!r} is not a list such as 1,2.5,4 or a range such as 1:8:0.5"
    try:
        if ":" not in text:
            return [float(part) for part in text.split(",")]
        first, last, step = (float(part) for part in text.split(":"))
    except ValueError as error:
        raise ValueError(expected) from error
    if not (isfinite(first) and isfinite(last) and isfinite(step)):
        raise ValueError(expected)
    if step == 0 or (last - first) / step < 0:
        raise ValueError(f"{text!r}: steps of {step:g} do not lead from {first:g} to {last:g}")
    steps = (last - first) / step
    if steps > _STEPS_MAX:
        raise ValueError(f"{text!r}: more than {_STEPS_MAX} values")
    # Each place is computed by itself, so that no error adds up. Twelve digits are more than
    # anybody types, and fewer than rounding spoils.
    return [float(f"{first + index * step:.12g}") for index in range(int(steps + 1e-9) + 1)]


def shares(texts: Sequence[str]) -> dict[str, float]:
    """Parse kernels and their shares, such as ``count=3``; a kernel alone has the share 1."""
    expected = "a name, or a name and a share such as count=3"
    pairs = ((text, *text.partition("=")) for text in texts)
    return {
        name: _number("kernel", text, value, expected) if equals else 1.0
        for text, name, equals, value in pairs
    }


def spreads(texts: Sequence[str]) -> dict[str, float]:
    """Parse relative spreads by provenance, such as ``inferred=0.05``."""
    pairs = ((text, *text.partition("=")) for text in texts)
    return {
        name: _number("spread", text, value, "such as inferred=0.05")
        for text, name, _, value in pairs
    }


def bounds(texts: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Parse bounds of quantities, such as ``k_limit=6:10``."""
    found = {}
    for text in texts:
        name, _, both = text.partition("=")
        low, _, high = both.partition(":")
        expected = "such as k_limit=6:10"
        found[name] = (
            _number("vary", text, low, expected),
            _number("vary", text, high, expected),
        )
    return found


def kernel_times(texts: Sequence[str]) -> list[KernelTimes]:
    """Parse kernels with working sets and times, such as ``count:4.8GB:0.7:1.2``."""
    return [_kernel(text) for text in texts]


def underscored(text: str) -> str:
    """Return a quantity's name as Python spells it: ``k-limit`` is ``k_limit``."""
    return text.replace("-", "_")


def overlap_name(text: str) -> str:
    """Check the name of an overlap."""
    if text not in {"serial", "pipelined"}:
        raise ValueError(f"--overlap {text}: expected serial or pipelined")
    return text


def _number(option: str, text: str, value: str, expected: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise ModelError(option, text, expected) from error


def _kernel(text: str) -> KernelTimes:
    parts = text.split(":")
    try:
        name, size, host, *drive = parts
        count = quantity("BYTES", size, "bytes")
        if count != int(count):
            raise ValueError(f"{size} is no whole number of bytes")
        return KernelTimes(name, int(count), float(host), *(float(value) for value in drive))
    except (TypeError, ValueError) as error:
        raise ValueError(f"{text!r} is not NAME:BYTES:HOST_S[:DRIVE_S]") from error
