"""Break-even points beyond the papers' equations: results written back, transfer overlapped.

Same method as ``floats`` and ``exact`` together: a pass over blocks in floating point with a bound
on its rounding error, and rational arithmetic for every row that lies too near a whole number, or
that the pass does not cover. The proofs stand at ``exact.smallest``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from csdplan.model.inputs import FloatArray
from csdplan.solve import exact
from csdplan.solve.blocks import Slices, blocks, part
from csdplan.solve.floats import DEVICES_MAX, ROUNDING, BoolArray, IntArray, is_clear


@dataclass(frozen=True)
class ExtendedAnswers:
    """General answers, in the shape of the broadcast inputs.

    Attributes
    ----------
    devices : ndarray of int64
        Break-even points; 0 if there is none, or beyond `DEVICES_MAX`.
    ssd_limit_s : ndarray of float64
        What the SSDs' time approaches [s].
    never : ndarray of bool
        True where no number of drives is enough.
    """

    devices: IntArray
    ssd_limit_s: FloatArray
    never: BoolArray


@dataclass(frozen=True)
class _Terms:
    """S, C, D, H and K of ``exact.Terms`` as floats."""

    ssd: FloatArray
    comp: FloatArray
    csd: FloatArray
    host_part: FloatArray
    k_limit: FloatArray


def settle(
    inputs: list[FloatArray], shape: tuple[int, ...], pipelined: tuple[bool, bool]
) -> ExtendedAnswers:
    """Settle every row; `inputs` are the first eleven arguments of `exact.terms`, checked.

    Parameters
    ----------
    inputs : list of ndarray
        Each of a shape that broadcasts to `shape`.
    shape : tuple of int
        Shape of the answers.
    pipelined : tuple of bool
        Whether the host overlaps transfer and compute, and whether the drives do.
    """
    columns = [
        column.reshape((1,) * (len(shape) - column.ndim) + column.shape) for column in inputs
    ]
    answers = ExtendedAnswers(
        devices=np.empty(shape, np.int64),
        ssd_limit_s=np.empty(shape, np.float64),
        never=np.zeros(shape, np.bool_),
    )
    for at in blocks(shape):
        _block(answers, at, [part(column, at) for column in columns], pipelined)
    return answers


def _block(
    answers: ExtendedAnswers, at: Slices, columns: list[FloatArray], pipelined: tuple[bool, bool]
) -> None:
    # The ellipsis makes even a block without axes a view to write into.
    here: Any = (*at, ...)
    devices, never, limit_s = answers.devices[here], answers.never[here], answers.ssd_limit_s[here]
    with np.errstate(all="ignore"):  # overflow and 0/0 mark a row as doubtful
        t = _terms(columns, pipelined)
        found, clear = _pipelined(t) if pipelined[0] else _serial(t)
        devices[...] = np.where(clear, found, 0.0)
        lane = t.ssd / t.k_limit
        limit_s[...] = np.maximum(lane, t.comp) if pipelined[0] else lane + t.comp
    doubtful = np.broadcast_to(np.logical_not(clear), devices.shape)
    rows = [np.broadcast_to(column, devices.shape) for column in columns]
    for index in map(tuple, np.argwhere(doubtful)):
        given = [float(row[index]) for row in rows]
        terms = exact.terms(*given, ssd_pipelined=pipelined[0], csd_pipelined=pipelined[1])
        answer = exact.smallest(terms)
        never[index] = answer is None
        devices[index] = answer if answer and answer <= DEVICES_MAX else 0


def _terms(columns: list[FloatArray], pipelined: tuple[bool, bool]) -> _Terms:
    tx, comp, csd_tx, csd_comp, cores, k_limit, sd_tx, sd_comp, host_part, store, csd_store = (
        columns
    )
    moved = csd_tx + csd_store
    return _Terms(
        ssd=np.asarray(sd_tx * (tx + store)),
        comp=np.asarray(sd_comp * comp / cores),
        csd=np.asarray(np.maximum(moved, csd_comp) if pipelined[1] else moved + csd_comp),
        host_part=host_part,
        k_limit=k_limit,
    )


def _serial(t: _Terms) -> tuple[FloatArray, BoolArray]:
    """Follow ``exact.smallest``; rows without a positive gain are left to it."""
    gain, size, lane = t.comp - t.host_part, t.comp + t.host_part, t.ssd / t.k_limit
    gain_beyond = lane + gain
    before, beyond = (t.csd - t.ssd) / gain, t.csd / gain_beyond
    # A quotient's error: that of its numerator over the denominator, plus the quotient times the
    # denominator's relative error. Both grow where a subtraction cancels.
    before_error = ROUNDING * (t.csd + t.ssd + np.abs(before) * size) / gain
    beyond_error = ROUNDING * beyond * (lane + size) / gain_beyond
    first = np.maximum(1.0, np.floor(before) + 1.0)
    inside = first <= t.k_limit
    clear = is_clear(before, before_error) & (inside | is_clear(beyond, beyond_error))
    clear = clear & (gain > ROUNDING * size)
    return np.where(inside, first, np.floor(beyond) + 1.0), clear


def _pipelined(t: _Terms) -> tuple[FloatArray, BoolArray]:
    """Follow ``exact.smallest`` for hosts that overlap; rows with a host's part are left to it.

    Without a host's part one drive wins, for good, if S > D. Otherwise the host's transfer never
    decides up to K, and beyond it the longer of S / K and C does.
    """
    ahead = t.ssd > t.csd
    before, beyond = t.csd / t.comp, t.csd / np.maximum(t.ssd / t.k_limit, t.comp)
    first = np.floor(before) + 1.0
    inside = first <= t.k_limit
    clear = is_clear(before, ROUNDING * before) & (inside | is_clear(beyond, ROUNDING * beyond))
    apart = np.abs(t.ssd - t.csd) > ROUNDING * (t.ssd + t.csd)
    clear = apart & (ahead | clear) & (t.host_part == 0)
    devices = np.where(inside, first, np.floor(beyond) + 1.0)
    return np.where(ahead, 1.0, devices), clear
