"""The break-even point: the smallest number of drives that beat as many SSDs, for good.

The answer is found analytically and decided exactly. A vectorized float pass (``floats``) settles
every configuration whose crossing lies clear of a whole number by more than the rounding error it
can have; the rest are decided in whole numbers (``integers``). ``exact`` defines what both answer,
one configuration at a time, and holds the proofs. Nothing scans upward to a bound, and no answer
is a stand-in: a configuration that never breaks even says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike

from csdplan.errors import ModelError
from csdplan.model.inputs import FloatArray, limit, not_negative, positive, slow_down, whole
from csdplan.model.overlap import Overlap, overlap_of
from csdplan.solve import floats, integers
from csdplan.solve.crossings import BoolArray, IntArray


class Verdict(StrEnum):
    """Outcome of the search for a break-even point."""

    BREAKS_EVEN = "breaks_even"
    NEVER = "never"
    OUT_OF_RANGE = "out_of_range"


class Difference(StrEnum):
    """Why the closed form and the general answer differ."""

    NONE = "none"
    TIE = "tie"
    K_LIMIT = "k_limit"
    HOST_PART = "host_part"
    STORE = "store"
    OVERLAP = "overlap"


@dataclass(frozen=True)
class Solution:
    """Break-even points of an array of configurations; all fields have the same shape.

    Attributes
    ----------
    devices : ndarray of int64
        Smallest m with T_SSD-array(m') > T_CSD-array(m') for every m' >= m; 0 where there is
        none (see `verdict`).
    closed_form : ndarray of int64
        Equation 8, at least 1; 0 if beyond 2**53. It knows no k_limit, no host's part,
        no store time and no overlap.
    ssd_limit_s, csd_limit_s : ndarray of float64
        Limits of the two arrays' times as devices are added [s]. If the verdict is
        ``never``, the drives' limit is the one to compare: it is not below the SSDs'.
    _never : ndarray of bool
        True where no number of drives is enough.
    _host_part : ndarray of bool
        True where the host has a part of its own in a run on drives.
    _beyond : Difference
        Further omission of the closed form: ``store``, ``overlap`` or ``none``.
    """

    devices: IntArray
    closed_form: IntArray
    ssd_limit_s: FloatArray
    csd_limit_s: FloatArray
    _never: BoolArray
    _host_part: BoolArray
    _beyond: Difference = Difference.NONE

    def verdict(self, *index: int) -> Verdict:
        """Return the verdict on the configuration at `index` (none for a scalar)."""
        if self._never[index]:
            return Verdict.NEVER
        return Verdict.BREAKS_EVEN if self.devices[index] else Verdict.OUT_OF_RANGE

    def difference(self, *index: int) -> Difference:
        """Return why the closed form differs from the general answer at `index`, if it does.

        ``tie``: at the closed form's number both arrays take the same time, and a tie is not a
        win. ``k_limit``: the closed form lets SSDs gain beyond k_limit, so it asks for too many
        drives. ``host_part``, ``store``, ``overlap``: the closed form has no such term.
        """
        general, closed = int(self.devices[index]), int(self.closed_form[index])
        if general == closed:
            return Difference.NONE
        if self._beyond is not Difference.NONE:
            return self._beyond
        if self._host_part[index]:
            return Difference.HOST_PART
        return Difference.TIE if closed and general > closed else Difference.K_LIMIT


def break_even(
    ssd_tx_s: ArrayLike,
    ssd_comp_s: ArrayLike,
    csd_tx_s: ArrayLike,
    csd_comp_s: ArrayLike,
    *,
    k_limit: ArrayLike | None,
    host_cores: ArrayLike = 1,
    sd_tx: ArrayLike = 1.0,
    sd_comp: ArrayLike = 1.0,
    host_part_s: ArrayLike = 0.0,
    ssd_store_s: ArrayLike = 0.0,
    csd_store_s: ArrayLike = 0.0,
    ssd_overlap: Overlap | str = Overlap.SERIAL,
    csd_overlap: Overlap | str = Overlap.SERIAL,
) -> Solution:
    """Find the break-even point of every configuration, with arguments broadcast.

    Parameters
    ----------
    ssd_tx_s, ssd_comp_s : array_like
        T_SSD-tx and sequential T_SSD-comp [s]; greater than 0.
    csd_tx_s, csd_comp_s : array_like
        T_CSD-tx and T_CSD-comp of one drive [s]; greater than 0.
    k_limit : array_like or None
        Bandwidth that the host takes in, as a multiple of one device's; at least 1. None: no
        limit.
    host_cores : array_like
        Host cores at work, n; whole, from 1 up.
    sd_tx, sd_comp : array_like
        Slow-down factors of an overloaded host [1]; at least 1.
    host_part_s : array_like
        The host's part in a run on drives [s]; at least 0, and 0 in the paper.
    ssd_store_s, csd_store_s : array_like
        Time to write the result back, to one SSD and inside one drive [s]; at least 0, and 0 in
        the paper.
    ssd_overlap, csd_overlap : Overlap
        Overlap: each side adds transfer and compute (``serial``, the paper) or takes the longer
        (``pipelined``).

    Returns
    -------
    Solution
        General and closed-form break-even points.

    Notes
    -----
    With `host_part_s` 0 every configuration breaks even somewhere: the drives' time goes to 0,
    and the SSDs' time does not go below T_SSD-comp / n.

    References
    ----------
    https://doi.org/10.1145/3623677, section 3.2.2, equations 5 to 9.
    """
    inputs = [
        positive("ssd_tx_s", ssd_tx_s),
        positive("ssd_comp_s", ssd_comp_s),
        positive("csd_tx_s", csd_tx_s),
        positive("csd_comp_s", csd_comp_s),
        whole("host_cores", host_cores),
        limit("k_limit", k_limit),
        slow_down("sd_tx", sd_tx),
        slow_down("sd_comp", sd_comp),
        not_negative("host_part_s", host_part_s),
        not_negative("ssd_store_s", ssd_store_s),
        not_negative("csd_store_s", csd_store_s),
    ]
    ssd_side, csd_side = (
        overlap_of("ssd_overlap", ssd_overlap),
        overlap_of("csd_overlap", csd_overlap),
    )
    overlaps = ssd_side is Overlap.PIPELINED, csd_side is Overlap.PIPELINED
    shape = _shape(inputs)
    found = floats.settle(inputs, shape, overlaps)
    if found.doubtful.size:
        _decide(inputs, found, overlaps)
    *_, host_part, ssd_store, csd_store = inputs
    beyond = Difference.STORE if ssd_store.any() or csd_store.any() else Difference.NONE
    return Solution(
        devices=found.devices,
        closed_form=found.closed_form,
        ssd_limit_s=found.ssd_limit_s,
        csd_limit_s=np.broadcast_to(host_part, shape),
        _never=found.never,
        _host_part=np.broadcast_to(host_part > 0, shape),
        _beyond=Difference.OVERLAP if any(overlaps) else beyond,
    )


def _shape(columns: list[FloatArray]) -> tuple[int, ...]:
    shapes = [column.shape for column in columns]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise ModelError("arguments", shapes, "shapes that broadcast together") from error


def _decide(
    inputs: list[FloatArray], found: floats.FloatAnswers, overlaps: tuple[bool, bool]
) -> None:
    """Decide the doubtful rows in place, a cache's worth at a time."""
    shape = found.devices.shape
    for start in range(0, found.doubtful.size, floats.BLOCK_ROWS):
        positions = found.doubtful[start : start + floats.BLOCK_ROWS]
        index = np.unravel_index(positions, shape) if shape else ()
        rows = [_picked(column, index, positions.size) for column in inputs]
        answers = integers.settle(rows, overlaps)
        found.devices.reshape(-1)[positions] = answers.devices
        found.closed_form.reshape(-1)[positions] = answers.closed_form
        found.never.reshape(-1)[positions] = answers.never


def _picked(column: FloatArray, index: tuple[IntArray, ...], count: int) -> FloatArray:
    """Return a broadcast column's values at `index`, without building the whole of it."""
    if column.size == 1:
        return np.full(count, column.reshape(-1)[0])
    last = zip(index[len(index) - column.ndim :], column.shape, strict=True)
    return np.asarray(column[tuple(at if length > 1 else 0 for at, length in last)])
