"""Crossings of two arrays' times in floating point, with a bound on the rounding error.

Every function takes a block of rows and says of each: the break-even point, whether there is none,
and whether that is clear. A row whose crossing lies within its rounding error of a whole number,
or whose sign of a difference is in doubt, is not clear, and its answer means nothing. No clear
row has a wrong answer. The letters and the proofs are those of ``exact.smallest``.
"""

from __future__ import annotations

from dataclasses import dataclass

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

Quantity = FloatArray | float


@dataclass(frozen=True)
class Block:
    """Rows of S, C, D, H and K of ``exact.Terms``, and S / K.

    Attributes
    ----------
    ssd, comp, csd : ndarray
        S, C and D [s].
    host_part : ndarray or float
        H [s]; the number 0 if it is 0 in every row.
    k_limit : ndarray or float
        K; infinite for no limit.
    lane : ndarray
        S / K [s].
    """

    ssd: FloatArray
    comp: FloatArray
    csd: FloatArray
    host_part: Quantity
    k_limit: Quantity
    lane: FloatArray


@dataclass(frozen=True)
class Found:
    """Answers of a block: break-even points, whether there is none, and whether that is clear."""

    devices: FloatArray
    never: BoolArray | bool
    clear: BoolArray


def is_clear(crossing: FloatArray, error: FloatArray) -> BoolArray:
    """Return where a crossing is surely not a whole number (false for NaN and infinity)."""
    distance = np.abs(crossing - np.rint(crossing))
    return np.asarray((distance > error) & (np.abs(crossing) < DEVICES_MAX / 2))


def serial(t: Block) -> Found:
    """Find the crossings of hosts that do not overlap: S / min(m, K) + C > D / m + H."""
    gain, size = t.comp - t.host_part, t.comp + t.host_part
    gain_beyond = t.lane + gain
    before, beyond = (t.csd - t.ssd) / gain, t.csd / gain_beyond
    # A quotient's error: that of its numerator over the denominator, plus the quotient times the
    # denominator's relative error. Both grow where a subtraction cancels.
    before_error = ROUNDING * (t.csd + t.ssd + np.abs(before) * size) / gain
    beyond_error = ROUNDING * beyond * (t.lane + size) / gain_beyond
    beyond_clear = is_clear(beyond, beyond_error)
    after = np.floor(beyond) + 1.0
    first = np.maximum(1.0, np.floor(before) + 1.0)
    early = first <= t.k_limit
    # Before K the crossing beyond K does not matter; at K both inequalities are one statement.
    clear = is_clear(before, before_error) & (early | beyond_clear) & (gain > ROUNDING * size)
    devices = np.where(early, first, after)
    loses = gain < -ROUNDING * size
    if not loses.any():
        return Found(devices, never=False, clear=np.asarray(clear))
    # Without a gain: ahead at K is ahead from 1 on; else only what lies beyond K is left.
    unlimited = np.isinf(t.k_limit)
    limit = np.where(unlimited, 1.0, t.k_limit)
    ahead, ahead_error = t.ssd - t.csd + gain * limit, ROUNDING * (t.ssd + t.csd + size * limit)
    rest_error = ROUNDING * (t.lane + size)
    hopeless = unlimited | ((ahead < -ahead_error) & (gain_beyond < -rest_error))
    late = (ahead < -ahead_error) & (gain_beyond > rest_error) & beyond_clear
    late &= ~_just_beyond(after, t.k_limit)
    settled = hopeless | (~unlimited & (ahead > ahead_error)) | late
    return Found(
        devices=np.where(loses, np.where(late, after, 1.0), devices),
        never=np.asarray(loses & hopeless),
        clear=np.asarray(clear | (loses & settled)),
    )


def _just_beyond(first: FloatArray, k_limit: Quantity) -> BoolArray:
    """Return where `first` follows a K that is not whole: drives may lead below it as well."""
    below = np.floor(k_limit)
    return np.asarray((below != k_limit) & (first == below + 1.0))


def pipelined_alone(t: Block) -> Found:
    """Find the crossings of hosts that overlap, where H is 0: max(S / min(m, K), C) > D / m.

    One drive wins, for good, if S > D. Otherwise the host's transfer never decides up to K, and
    beyond it the longer of S / K and C does.
    """
    before, beyond = t.csd / t.comp, t.csd / np.maximum(t.lane, t.comp)
    first = np.floor(before) + 1.0
    inside = first <= t.k_limit
    clear = is_clear(before, ROUNDING * before) & (inside | is_clear(beyond, ROUNDING * beyond))
    apart = np.abs(t.ssd - t.csd) > ROUNDING * (t.ssd + t.csd)
    ahead = t.ssd > t.csd
    devices = np.where(inside, first, np.floor(beyond) + 1.0)
    return Found(np.where(ahead, 1.0, devices), never=False, clear=apart & (ahead | clear))


def pipelined(t: Block) -> Found:
    """Find the crossings of hosts that overlap: max(S / min(m, K), C) > D / m + H."""
    gain, size = t.comp - t.host_part, t.comp + t.host_part
    unlimited = np.isinf(t.k_limit)
    limit = np.where(unlimited, 1.0, t.k_limit)
    by_load, by_comp = t.ssd - t.host_part * limit - t.csd, gain * limit - t.csd
    load_error = ROUNDING * (t.ssd + t.host_part * limit + t.csd)
    comp_error = ROUNDING * (size * limit + t.csd)
    ahead_at_limit = unlimited | (by_load > load_error) | (by_comp > comp_error)
    behind_at_limit = ~unlimited & (by_load < -load_error) & (by_comp < -comp_error)
    # Behind at K: only what lies beyond it is left.
    top = np.maximum(t.lane, t.comp)
    rest, rest_error = top - t.host_part, ROUNDING * (top + t.host_part)
    beyond = t.csd / rest
    late = (rest > rest_error) & is_clear(beyond, beyond * rest_error / rest)
    late &= ~_just_beyond(np.floor(beyond) + 1.0, t.k_limit)
    hopeless = rest < -rest_error
    # Ahead at K: what counts is the last m at which computing alone does not decide.
    gains, loses = gain > ROUNDING * size, gain < -ROUNDING * size
    crossing = t.csd / gain
    last = np.floor(crossing)
    margin = t.ssd - t.host_part * last - t.csd
    margin_error = ROUNDING * (t.ssd + t.host_part * last + t.csd)
    at_once = (last < 1) | (margin > margin_error) | (last >= t.k_limit)
    sure = is_clear(crossing, ROUNDING * crossing * size / gain)
    sure = sure & (at_once | (margin < -margin_error))
    # Without a host's part one drive is enough if S > D, whatever its other crossings.
    simple = (t.host_part == 0) & (t.ssd - t.csd > ROUNDING * (t.ssd + t.csd))
    devices = np.where(gains, np.where(at_once, 1.0, last + 1.0), 1.0)
    devices = np.where(behind_at_limit, np.floor(beyond) + 1.0, devices)
    clear = (ahead_at_limit & ((gains & sure) | loses)) | (behind_at_limit & (late | hopeless))
    return Found(
        devices=np.where(simple, 1.0, devices),
        never=np.asarray((ahead_at_limit & loses & unlimited) | (behind_at_limit & hopeless)),
        clear=np.asarray(clear | simple),
    )
