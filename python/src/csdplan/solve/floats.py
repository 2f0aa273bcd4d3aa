"""The break-even point of many configurations in floating point, block by block.

Each row gets an answer, or is returned as doubtful; ``crossings`` says when. Nothing here decides
a tie, and no row is ever given a wrong answer. Blocks are small enough to stay in a core's cache,
so ten million configurations cost little more than reading them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from csdplan.model.inputs import FloatArray
from csdplan.solve import crossings
from csdplan.solve.crossings import ROUNDING, Block, BoolArray, IntArray, Quantity, is_clear

#: Rows worked on at a time: a dozen columns of as many floats fit a core's second-level cache.
BLOCK_ROWS = 8192

_Modes = list[Literal["readonly", "writeonly"]]


@dataclass(frozen=True)
class FloatAnswers:
    """Answers that floating point could decide; arrays have the shape of the broadcast inputs.

    Attributes
    ----------
    devices, closed_form : ndarray of int64
        General and closed-form break-even points; 0 where doubtful.
    ssd_limit_s : ndarray of float64
        Limit of the SSDs' time [s].
    never : ndarray of bool
        True where no number of drives is enough; false where doubtful.
    doubtful : ndarray of int64
        Positions, in C order, of the rows without an answer.
    """

    devices: IntArray
    closed_form: IntArray
    ssd_limit_s: FloatArray
    never: BoolArray
    doubtful: IntArray


def settle(
    inputs: list[FloatArray], shape: tuple[int, ...], overlaps: tuple[bool, bool] = (False, False)
) -> FloatAnswers:
    """Settle every row that floating point can; `inputs` are the arguments of `exact.terms`.

    Parameters
    ----------
    inputs : list of ndarray
        Eleven checked columns, each of a shape that broadcasts to `shape`.
    shape : tuple of int
        Shape of the answers.
    overlaps : tuple of bool
        True if the host overlaps transfer and compute, and likewise for the drives.
    """
    devices = np.empty(shape, dtype=np.int64)
    closed_form = np.empty(shape, dtype=np.int64)
    ssd_limit_s = np.empty(shape, dtype=np.float64)
    never = np.zeros(shape, dtype=np.bool_)
    # A quantity that is the same in every row stays a number: half of the work falls away.
    varying = [column.size != 1 for column in inputs]
    fixed = [float(column.reshape(-1)[0]) if column.size == 1 else 0.0 for column in inputs]
    columns = [column for column, varies in zip(inputs, varying, strict=True) if varies]
    operands: list[NDArray[Any]] = [*columns, devices, closed_form, ssd_limit_s, never]
    modes: list[_Modes] = [["readonly"] for _ in columns]
    modes += [["writeonly"]] * 4
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
            *given, out_devices, out_closed, out_limit, out_never = block
            rest = iter(given)
            row = [
                next(rest) if varies else value
                for varies, value in zip(varying, fixed, strict=True)
            ]
            clear = _block(row, overlaps, _Out(out_devices, out_closed, out_limit, out_never))
            unclear = np.broadcast_to(np.logical_not(clear), out_devices.shape)
            doubtful.append(np.flatnonzero(unclear) + start)
            start += out_devices.size
    found = np.concatenate(doubtful) if doubtful else np.empty(0, dtype=np.int64)
    return FloatAnswers(devices, closed_form, ssd_limit_s, never, found)


@dataclass(frozen=True)
class _Out:
    """Output arrays of one block."""

    devices: IntArray
    closed_form: IntArray
    limit_s: FloatArray
    never: BoolArray


def _block(row: list[Quantity], overlaps: tuple[bool, bool], out: _Out) -> BoolArray:
    """Write one block's answers and return which rows are clear."""
    tx, comp_s, csd_tx, csd_comp, cores, k_limit, sd_tx, sd_comp, host_part, store, csd_store = row
    ssd = np.asarray(_times(sd_tx, tx))
    comp = np.asarray(_times(sd_comp, comp_s) / cores)
    csd = np.asarray(csd_tx + csd_comp)
    no_host_part, no_store = _is_zero(host_part), _is_zero(store) and _is_zero(csd_store)
    out.never[...] = False
    if no_host_part and no_store and not any(overlaps):
        return _of_the_papers(ssd, comp, csd, k_limit, out)
    # The closed form knows neither store nor overlap.
    closed = (csd - ssd) / comp
    clear = is_clear(closed, ROUNDING * ((csd + ssd) / comp + np.abs(closed)))
    moved = csd_tx + csd_store
    full = np.asarray(_times(sd_tx, tx + store))
    t = Block(
        ssd=full,
        comp=comp,
        csd=np.asarray(np.maximum(moved, csd_comp) if overlaps[1] else moved + csd_comp),
        host_part=host_part,
        k_limit=k_limit,
        lane=full / k_limit,
    )
    if overlaps[0]:
        found = crossings.pipelined_alone(t) if no_host_part else crossings.pipelined(t)
    else:
        found = crossings.serial(t)
    clear = clear & found.clear
    out.limit_s[...] = np.maximum(t.lane, comp) if overlaps[0] else t.lane + comp
    out.never[...] = found.never & clear
    _write(out.devices, np.where(found.never, 0.0, found.devices), clear)
    _write(out.closed_form, np.maximum(1.0, np.ceil(closed)), clear)
    return clear


def _of_the_papers(
    ssd: FloatArray, comp: FloatArray, csd: FloatArray, k_limit: Quantity, out: _Out
) -> BoolArray:
    """Do the same for the papers' case, where the gain is C and two crossings are one."""
    out.limit_s[...] = ssd / k_limit + comp
    before = (csd - ssd) / comp
    beyond = csd / out.limit_s
    first = np.maximum(1.0, np.floor(before) + 1.0)
    early = first <= k_limit
    clear = is_clear(before, ROUNDING * ((csd + ssd) / comp + np.abs(before)))
    clear = clear & (early | is_clear(beyond, ROUNDING * beyond))
    _write(out.devices, np.where(early, first, np.floor(beyond) + 1.0), clear)
    # No clear crossing is whole, so its ceiling is one above its floor.
    _write(out.closed_form, first, clear)
    return clear


def _write(out: IntArray, answer: FloatArray, clear: BoolArray) -> None:
    out[...] = np.where(clear, answer, 0.0)


def _is_zero(quantity: Quantity) -> bool:
    return isinstance(quantity, float) and quantity == 0


def _times(factor: Quantity, time_s: Quantity) -> Quantity:
    """Return the product, without the work where a slow-down factor is 1 in every row."""
    return time_s if isinstance(factor, float) and factor == 1 else factor * time_s
