"""Numbers as people read them."""

from __future__ import annotations

_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def bytes_text(count: float) -> str:
    """Return a number of bytes with a decimal unit: 4.8 GB."""
    for size, unit in _SIZES:
        if count >= size:
            return f"{count / size:.4g} {unit}"
    return f"{count:g} bytes"
