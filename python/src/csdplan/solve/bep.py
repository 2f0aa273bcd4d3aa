"""The break-even point: the smallest number of drives that beat as many SSDs, for good.

The answer is found analytically and decided exactly. A vectorised float pass settles every
configuration whose crossing lies clear of a whole number by more than the rounding error it can
have; the rest go, one by one, to the rational arithmetic of ``exact``. Nothing scans upward to a
bound, and no answer is a stand-in: a configuration that never breaks even says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import ArrayLike, NDArray

from csdplan.model.inputs import FloatArray, limit, not_negative, positive, slow_down, whole
from csdplan.solve import exact

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

#: More drives than this are not counted: beyond it a float no longer tells two numbers apart.
DEVICES_MAX = 2**53
#: Rounding errors allowed for in a crossing, in units of the last place of its largest term.
#: The longest chain has fewer than ten operations; the rest is margin, paid in a few more exact
#: decisions.
_ROUNDING = 64 * float(np.finfo(np.float64).eps)


class Verdict(StrEnum):
    """What became of the search for a break-even point."""

    BREAKS_EVEN = "breaks_even"
    NEVER = "never"
    OUT_OF_RANGE = "out_of_range"


class Difference(StrEnum):
    """Why the closed form and the general answer differ."""

    NONE = "none"
    TIE = "tie"
    K_LIMIT = "k_limit"
    HOST_PART = "host_part"


@dataclass(frozen=True)
class Solution:
    """Break-even points of an array of configurations; all fields have the same shape.

    Attributes
    ----------
    devices : ndarray of int64
        Smallest m with T_SSD-array(m') > T_CSD-array(m') for every m' >= m; 0 where there is
        none (see `verdict`).
    closed_form : ndarray of int64
        Equation 8, at least 1; 0 if beyond `DEVICES_MAX`.
    ssd_limit_s, csd_limit_s : ndarray of float64
        What the two arrays' times approach as devices are added [s]. Where the verdict is
        ``never``, the drives' limit is the one to compare: it is not below the SSDs'.
    _never : ndarray of bool
        True where no number of drives is enough.
    _host_part : ndarray of bool
        True where the host has a part of its own in a run on drives.
    """

    devices: IntArray
    closed_form: IntArray
    ssd_limit_s: FloatArray
    csd_limit_s: FloatArray
    _never: BoolArray
    _host_part: BoolArray

    def verdict(self, *index: int) -> Verdict:
        """Return what became of the configuration at `index` (none for a scalar)."""
        if self._never[index]:
            return Verdict.NEVER
        return Verdict.BREAKS_EVEN if self.devices[index] else Verdict.OUT_OF_RANGE

    def difference(self, *index: int) -> Difference:
        """Return why the closed form differs from the general answer at `index`, if it does.

        ``tie``: at the closed form's number both arrays take the same time, and a tie is not a
        win. ``k_limit``: the closed form lets SSDs gain beyond k_limit, so it asks for too many
        drives. ``host_part``: the closed form has no such term.
        """
        general, closed = int(self.devices[index]), int(self.closed_form[index])
        if general == closed:
            return Difference.NONE
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
) -> Solution:
    """Find the break-even point of every configuration, with arguments broadcast.

    Parameters
    ----------
    ssd_tx_s, ssd_comp_s : array_like
        T_SSD-tx and sequential T_SSD-comp [s]; greater than 0.
    csd_tx_s, csd_comp_s : array_like
        T_CSD-tx and T_CSD-comp of one drive [s]; greater than 0.
    k_limit : array_like or None
        Devices that use up the host's ingest bandwidth; whole, from 1 up. None: no limit.
    host_cores : array_like
        Host cores at work, n; whole, from 1 up.
    sd_tx, sd_comp : array_like
        Slow-down factors of an overloaded host [1]; at least 1.
    host_part_s : array_like
        The host's part in a run on drives [s]; at least 0, and 0 in the paper.

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
    inputs = np.broadcast_arrays(
        positive("ssd_tx_s", ssd_tx_s),
        positive("ssd_comp_s", ssd_comp_s),
        positive("csd_tx_s", csd_tx_s),
        positive("csd_comp_s", csd_comp_s),
        whole("host_cores", host_cores),
        limit("k_limit", k_limit),
        slow_down("sd_tx", sd_tx),
        slow_down("sd_comp", sd_comp),
        not_negative("host_part_s", host_part_s),
    )
    flat = [np.ascontiguousarray(column).reshape(-1) for column in inputs]
    shape = inputs[0].shape
    with np.errstate(all="ignore"):  # overflow and 0/0 mark a row as doubtful, below
        devices, closed, doubtful = _by_floats(*flat)
        ssd_limit = flat[6] * flat[0] / flat[5] + flat[7] * flat[1] / flat[4]
    never = np.zeros(devices.shape, dtype=np.bool_)
    for row in np.flatnonzero(doubtful):
        t = exact.terms(*(float(column[row]) for column in flat))
        answer = exact.smallest(t)
        never[row] = answer is None
        devices[row] = _counted(answer)
        closed[row] = _counted(exact.closed_form(t))
    return Solution(
        devices=devices.reshape(shape),
        closed_form=closed.reshape(shape),
        ssd_limit_s=ssd_limit.reshape(shape),
        csd_limit_s=np.array(flat[8]).reshape(shape),
        _never=never.reshape(shape),
        _host_part=(flat[8] > 0).reshape(shape),
    )


def _by_floats(
    ssd_tx_s: FloatArray,
    ssd_comp_s: FloatArray,
    csd_tx_s: FloatArray,
    csd_comp_s: FloatArray,
    host_cores: FloatArray,
    k_limit: FloatArray,
    sd_tx: FloatArray,
    sd_comp: FloatArray,
    host_part_s: FloatArray,
) -> tuple[IntArray, IntArray, BoolArray]:
    """Return general and closed-form answers, and which rows floats cannot be trusted with.

    The names are those of ``exact.smallest``. Rows without a positive gain are left to it.
    """
    ssd = sd_tx * ssd_tx_s
    comp = sd_comp * ssd_comp_s / host_cores
    csd = csd_tx_s + csd_comp_s
    gain = comp - host_part_s
    gain_beyond = ssd / k_limit + gain
    before, beyond, closed = (csd - ssd) / gain, csd / gain_beyond, (csd - ssd) / comp
    # A quotient's error: that of its numerator over the denominator, plus the quotient times the
    # denominator's relative error. Both grow where a subtraction cancels.
    before_error = _ROUNDING * (csd + ssd + np.abs(before) * (comp + host_part_s)) / gain
    beyond_error = _ROUNDING * beyond * (ssd / k_limit + comp + host_part_s) / gain_beyond
    closed_error = _ROUNDING * ((csd + ssd) / comp + np.abs(closed))
    clear = _clear(before, before_error) & _clear(beyond, beyond_error)
    clear &= _clear(closed, closed_error) & (gain > _ROUNDING * (comp + host_part_s))
    first = np.maximum(1.0, np.floor(before) + 1.0)
    general = np.where(first <= k_limit, first, np.floor(beyond) + 1.0)
    whole_general = np.where(clear, general, 0.0).astype(np.int64)
    whole_closed = np.where(clear, np.maximum(1.0, np.ceil(closed)), 0.0).astype(np.int64)
    return whole_general, whole_closed, np.logical_not(clear)


def _clear(crossing: FloatArray, error: FloatArray) -> BoolArray:
    """Return where a crossing is surely not a whole number (false for NaN and infinity)."""
    distance = np.abs(crossing - np.rint(crossing))
    return np.asarray((distance > error) & (np.abs(crossing) < DEVICES_MAX / 2))


def _counted(devices: int | None) -> int:
    return devices if devices is not None and devices <= DEVICES_MAX else 0
