"""Protection of data as a person writes it: copies, and codes of data and parity."""

from __future__ import annotations

import re

from csdplan.errors import ModelError
from csdplan.solve.durability import DATA_MAX, PARITY_MAX

_PROTECTION = re.compile(r"replica:([0-9]{1,4})|rs:([0-9]{1,4})\+([0-9]{1,4})")
#: Blocks of a stripe: a code over bytes has no more, and nobody keeps as many copies.
_BLOCKS_MAX = 256


def protection(text: str) -> tuple[float, int]:
    """Return the share of flash that holds data, and the drives needed, of ``rs:8+2`` and so on.

    Raises
    ------
    ModelError
        If the text names no protection.
    """
    found = _PROTECTION.fullmatch(text)
    if text == "none":
        return 1.0, 1
    if found is not None:
        copies, data, code = (int(one or 0) for one in found.groups())
        if 1 < copies <= _BLOCKS_MAX:
            return 1.0 / copies, copies
        if data and code and data + code <= _BLOCKS_MAX:
            return data / (data + code), data + code
    expected = "none, replica:N (2 or more copies) or rs:K+M (K data, M code blocks)"
    raise ModelError("protect", text, f"{expected}, at most {_BLOCKS_MAX} in all")


def code_of(text: str) -> tuple[int, int]:
    """Return N and K of ``rs:N+K``, within what ``csd put --protect`` takes.

    Raises
    ------
    ModelError
        If the text is no such code.
    """
    found = _PROTECTION.fullmatch(text)
    data, parity = (int(found.group(2) or 0), int(found.group(3) or 0)) if found else (0, 0)
    if not (1 <= data <= DATA_MAX and 1 <= parity <= PARITY_MAX):
        expected = f"rs:N+K, N from 1 to {DATA_MAX} and K from 1 to {PARITY_MAX}"
        raise ModelError("protect", text, expected)
    return data, parity
