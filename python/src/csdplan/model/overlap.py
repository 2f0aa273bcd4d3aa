"""Transfer and compute in time: one after the other, or overlapped.

The papers add them (`SERIAL`). A system that streams overlaps them, and then takes as long as the
longer of the two (`PIPELINED`). Time to write a result back is transfer: it crosses the same
media and the same link as loading does, so it is added to loading before the two are combined.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

from csdplan.errors import ModelError
from csdplan.model.inputs import FloatArray, not_negative


class Overlap(StrEnum):
    """Relation of loading and computing in time."""

    SERIAL = "serial"
    PIPELINED = "pipelined"


def overlap_of(argument: str, value: Overlap | str) -> Overlap:
    """Return `value` as an `Overlap`; raise ``ModelError`` if it names none."""
    try:
        return Overlap(value)
    except ValueError as error:
        raise ModelError(argument, value, "serial or pipelined") from error


def combined_s(transfer_s: ArrayLike, compute_s: ArrayLike, overlap: Overlap | str) -> FloatArray:
    """Return the time of a run whose transfer and compute times are known.

    Parameters
    ----------
    transfer_s, compute_s : array_like
        The time that each takes by itself [s]; at least 0.
    overlap : Overlap
        ``serial`` adds them (https://doi.org/10.1145/3623677, equations 1 and 3);
        ``pipelined`` takes the longer, which neglects the filling of the pipeline and so holds
        where the working set is many times the unit that is streamed.

    Returns
    -------
    ndarray
        Time of the run [s].
    """
    transfer, compute = not_negative("transfer_s", transfer_s), not_negative("compute_s", compute_s)
    if overlap_of("overlap", overlap) is Overlap.SERIAL:
        return np.asarray(transfer + compute)
    return np.asarray(np.maximum(transfer, compute))
