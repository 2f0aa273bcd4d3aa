"""The break-even point of many configurations in floating point, block by block.

Each row gets an answer together with a bound on its rounding error; a row whose crossing lies
within that bound of a whole number gets no answer and is returned as doubtful. Nothing here
decides a tie, and no row is ever given a wrong answer. Blocks are small enough to stay in a
core's cache, so ten million configurations cost little more than reading them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from csdplan.model.inputs import FloatArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

#: More drives than this are not counted: beyond it a float no longer tells two numbers apart.
DEVICES_MAX = 2**53
#: Rounding errors allowed for in a crossing, in units of the last place of its largest term.
#: The longest chain has fewer than ten operations; the rest is margin, paid in a few more exact
#: decisions.
ROUNDING = 64 * float(np.finfo(np.float64).eps)
#: Rows worked on at a time: a dozen columns of as many floats fit a core's second-level cache.
BLOCK_ROWS = 8192

Quantity = FloatArray | float


@dataclass(frozen=True)
class FloatAnswers:
    """What floating point could settle; arrays have the shape of the broadcast inputs.

    Attributes
    ----------
    devices, closed_form : ndarray of int64
        General and closed-form break-even points; 0 where doubtful.
    ssd_limit_s : ndarray of float64
        S / K + C, what the SSDs' time approaches [s].
    doubtful : ndarray of int64
        Positions, in C order, of the rows without an answer.
    """

    devices: IntArray
    closed_form: IntArray
    ssd_limit_s: FloatArray
    doubtful: IntArray


def settle(inputs: list[FloatArray], shape: tuple[int, ...]) -> FloatAnswers:
    """Settle every row that floating point can; `inputs` are the arguments of `exact.terms`.

    Parameters
    ----------
    inputs : list of ndarray
        Nine checked columns, each of a shape that broadcasts to `shape`.
    shape : tuple of int
        Shape of the answers.
    """
    devices = np.empty(shape, dtype=np.int64)
    closed_form = np.empty(shape, dtype=np.int64)
    ssd_limit_s = np.empty(shape, dtype=np.float64)
    # A quantity that is the same in every row stays a number: half of the work falls away.
    varying = [column.size != 1 for column in inputs]
    fixed = [float(column.reshape(-1)[0]) if column.size == 1 else 0.0 for column in inputs]
    columns = [column for column, varies in zip(inputs, varying, strict=True) if varies]
    operands: list[NDArray[Any]] = [*columns, devices, closed_form, ssd_limit_s]
    modes: list[list[Literal["readonly", "writeonly"]]] = [["readonly"] for _ in columns]
    modes += [["writeonly"]] * 3
    blocks = np.nditer(
        operands,
        flags=["external_loop", "buffered", "zerosize_ok"],
        op_flags=modes,
        order="C",
        buffersize=BLOCK_ROWS,
    )
    doubtful: list[IntArray] = []
    start = 0
    with blocks, np.errstate(all="ignore"):  # overflow and 0/0 mark a row as doubtful
        for block in blocks:
            *given, out_devices, out_closed, out_limit = block
            rest = iter(given)
            row = [
                next(rest) if varies else value
                for varies, value in zip(varying, fixed, strict=True)
            ]
            clear = _block(row, out_devices, out_closed, out_limit)
            if not clear.all():
                rows = np.broadcast_to(~clear, out_devices.shape)
                doubtful.append(np.flatnonzero(rows) + start)
            start += out_devices.size
    found = np.concatenate(doubtful) if doubtful else np.empty(0, dtype=np.int64)
    return FloatAnswers(devices, closed_form, ssd_limit_s, found)


def _block(
    row: list[Quantity], devices: IntArray, closed_form: IntArray, limit_s: FloatArray
) -> BoolArray:
    """Write one block's answers and return which rows are clear; names as in ``exact.smallest``."""
    ssd_tx_s, ssd_comp_s, csd_tx_s, csd_comp_s, host_cores, k_limit, sd_tx, sd_comp, host_part = row
    ssd = np.asarray(_times(sd_tx, ssd_tx_s))
    comp = np.asarray(_times(sd_comp, ssd_comp_s) / host_cores)
    csd = np.asarray(csd_tx_s + csd_comp_s)
    lanes_s = ssd / k_limit
    limit_s[...] = lanes_s + comp
    if isinstance(host_part, float) and host_part == 0:
        return _without_host_part(ssd, comp, csd, k_limit, limit_s, devices, closed_form)
    gain = comp - host_part
    gain_beyond = lanes_s + gain
    before, beyond, closed = (csd - ssd) / gain, csd / gain_beyond, (csd - ssd) / comp
    # A quotient's error: that of its numerator over the denominator, plus the quotient times the
    # denominator's relative error. Both grow where a subtraction cancels.
    before_error = ROUNDING * (csd + ssd + np.abs(before) * (comp + host_part)) / gain
    beyond_error = ROUNDING * beyond * (limit_s + host_part) / gain_beyond
    closed_error = ROUNDING * ((csd + ssd) / comp + np.abs(closed))
    # Rows without a positive gain are left to exact arithmetic.
    clear = is_clear(before, before_error) & is_clear(closed, closed_error)
    clear = clear & (gain > ROUNDING * (comp + host_part))
    first = np.maximum(1.0, np.floor(before) + 1.0)
    early = first <= k_limit
    # Before K the crossing beyond K does not matter; at K both inequalities are one statement.
    clear = np.asarray(clear & (early | is_clear(beyond, beyond_error)))
    general = np.where(early, first, np.floor(beyond) + 1.0)
    _write(devices, general, clear)
    _write(closed_form, np.maximum(1.0, np.ceil(closed)), clear)
    return clear


def _without_host_part(
    ssd: FloatArray,
    comp: FloatArray,
    csd: FloatArray,
    k_limit: Quantity,
    limit_s: FloatArray,
    devices: IntArray,
    closed_form: IntArray,
) -> BoolArray:
    """Do the same for H = 0, the papers' case: the gain is C, and two crossings are one."""
    before = (csd - ssd) / comp
    beyond = csd / limit_s
    floor = np.floor(before)
    first = np.maximum(1.0, floor + 1.0)
    early = first <= k_limit
    clear = is_clear(before, ROUNDING * ((csd + ssd) / comp + np.abs(before)))
    clear = clear & (early | is_clear(beyond, ROUNDING * beyond))
    _write(devices, np.where(early, first, np.floor(beyond) + 1.0), clear)
    # No clear crossing is whole, so its ceiling is one above its floor.
    _write(closed_form, first, clear)
    return clear


def _write(out: IntArray, answer: FloatArray, clear: BoolArray) -> None:
    out[...] = np.where(clear, answer, 0.0)


def _times(factor: Quantity, time_s: Quantity) -> Quantity:
    """Return the product, without the work where a slow-down factor is 1 in every row."""
    return time_s if isinstance(factor, float) and factor == 1 else factor * time_s


def is_clear(crossing: FloatArray, error: FloatArray) -> BoolArray:
    """Return where a crossing is surely not a whole number (false for NaN and infinity)."""
    distance = np.abs(crossing - np.rint(crossing))
    return np.asarray((distance > error) & (np.abs(crossing) < DEVICES_MAX / 2))
