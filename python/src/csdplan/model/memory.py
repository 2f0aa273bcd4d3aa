"""The memory of a host, which everything that it takes in crosses twice."""

from __future__ import annotations

#: Times that a byte crosses the memory of a host: written to it, and read again.
CROSSINGS = 2.0


def through_Bps(memory_Bps: float) -> float:
    """Return the bytes per second that a host takes in, or passes on, through its memory.

    Parameters
    ----------
    memory_Bps : float
        Bytes per second that the memory takes and gives together; may be infinite.
    """
    return memory_Bps / CROSSINGS
