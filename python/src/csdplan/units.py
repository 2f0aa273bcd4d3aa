"""Numbers as people read them."""

from __future__ import annotations

import re
from math import isfinite

from csdplan.errors import ModelError

_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def bytes_text(count: float) -> str:
    """Return a number of bytes with a decimal unit: 4.8 GB."""
    for size, unit in _SIZES:
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count:g} bytes"


#: Units by what they measure, as factors to the base unit; binary only where named so.
_BYTES = {
    "": 1.0, "B": 1.0, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15,
    "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30, "TiB": 2.0**40, "PiB": 2.0**50,
}  # fmt: skip
UNITS: dict[str, dict[str, float]] = {
    "bytes": _BYTES,
    "Bps": {
        **{f"{unit}/s": factor for unit, factor in _BYTES.items() if unit},
        **{f"{unit}ps": factor for unit, factor in _BYTES.items() if unit},
        "": 1.0, "kbit/s": 125.0, "Mbit/s": 125e3, "Gbit/s": 125e6, "Tbit/s": 125e9,
        "Mb/s": 125e3, "Gb/s": 125e6, "Tb/s": 125e9,
    },
    "W": {"": 1.0, "W": 1.0, "kW": 1e3, "MW": 1e6},
    "USD": {"": 1.0, "USD": 1.0, "$": 1.0, "k": 1e3, "kUSD": 1e3, "M": 1e6, "MUSD": 1e6},
    "share": {"": 1.0, "%": 0.01, "%/year": 0.01, "/year": 1.0},
    "hours": {
        "": 1.0, "s": 1 / 3600, "min": 1 / 60, "h": 1.0, "hours": 1.0, "d": 24.0, "days": 24.0,
    },
    "years": {"": 1.0, "y": 1.0, "year": 1.0, "years": 1.0},
    "U": {"": 1.0, "U": 1.0},
}  # fmt: skip
_NUMBER = re.compile(r"\$?\s*([0-9][0-9_]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)\s*(.*)")


def quantity(name: str, value: object, measures: str) -> float:
    """Return a number with a unit, such as ``500TB`` or ``4.8 GB/s``, in the base unit.

    Parameters
    ----------
    name : str
        Name of the quantity in messages.
    value : object
        Text, or a bare number in the base unit.
    measures : str
        A key of `UNITS`.

    Raises
    ------
    ModelError
        If it is no such quantity; the message lists the units there are.
    """
    units = UNITS[measures]
    known = ", ".join(sorted((unit for unit in units if unit), key=lambda unit: units[unit]))
    expected = f"a number of at least 0 with a unit: {known}"
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ModelError(name, value, expected)
    found = _NUMBER.fullmatch(str(value).strip())
    if found is None or found.group(2) not in units:
        raise ModelError(name, value, expected)
    amount = float(found.group(1).replace("_", "")) * units[found.group(2)]
    if not isfinite(amount):
        raise ModelError(name, value, expected)
    return amount


def as_written(bound: float, value: object, measures: str) -> str:
    """Return a bound of a quantity in the unit in which a person wrote the value: 1000%."""
    found = _NUMBER.fullmatch(str(value).strip())
    unit = found.group(2) if found is not None else ""
    return f"{bound / UNITS[measures].get(unit, 1.0):.6g}{unit}"
