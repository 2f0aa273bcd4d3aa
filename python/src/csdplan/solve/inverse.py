"""Inverse questions: what would have to change for the break-even point to be C or less.

Without a host's part, C drives and every larger number beat as many SSDs exactly if one drive's
time for all the data is below ``C x T_SSD-array(C)``; everything here follows from that. Answers
are *thresholds*: the multiplier or factor must exceed them strictly, since a tie is no win. Where
no value is enough the threshold is NaN, and `Threshold.attainable` says so.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from csdplan.model.array import ssd_array_time_s
from csdplan.model.inputs import FloatArray, not_negative, positive, slow_down, whole
from csdplan.model.overlap import Overlap, overlap_of


@dataclass(frozen=True)
class Threshold:
    """Threshold that a quantity must exceed.

    Attributes
    ----------
    value : ndarray of float64
        The threshold; 0 where any positive value does, NaN where none does.
    attainable : ndarray of bool
        True if a finite value is enough.
    """

    value: FloatArray
    attainable: NDArray[np.bool_]


def drive_time_limit_s(
    devices: ArrayLike,
    ssd_tx_s: ArrayLike,
    ssd_comp_s: ArrayLike,
    *,
    k_limit: ArrayLike | None,
    host_cores: ArrayLike = 1,
    sd_tx: ArrayLike = 1.0,
    sd_comp: ArrayLike = 1.0,
    ssd_store_s: ArrayLike = 0.0,
    ssd_overlap: Overlap | str = Overlap.SERIAL,
) -> FloatArray:
    """Return the upper bound of one drive's time for a break-even point of at most `devices` [s].

    Parameters
    ----------
    devices : array_like
        The break-even point wanted, C; whole, from 1 up.
    ssd_tx_s, ssd_comp_s, k_limit, host_cores, sd_tx, sd_comp, ssd_store_s, ssd_overlap
        As in `solve.break_even`.

    Returns
    -------
    ndarray
        C T_SSD-array(C) [s].

    Notes
    -----
    In every case the difference of the two times changes sign once as m grows (the proof stands at
    ``exact.smallest`` for H = 0), so "at C" and "from C on" are the same statement.
    """
    ssd = ssd_array_time_s(
        devices,
        ssd_tx_s,
        ssd_comp_s,
        k_limit=k_limit,
        cores=host_cores,
        sd_tx=sd_tx,
        sd_comp=sd_comp,
        store_s=ssd_store_s,
        overlap=ssd_overlap,
    )
    return np.asarray(whole("devices", devices) * ssd)


def compute_multiplier(
    limit_s: ArrayLike,
    csd_tx_s: ArrayLike,
    csd_comp_s: ArrayLike,
    *,
    bandwidth: ArrayLike = 1.0,
    csd_store_s: ArrayLike = 0.0,
    csd_overlap: Overlap | str = Overlap.SERIAL,
) -> Threshold:
    """Return the factor by which a drive must compute faster: the iso-BEP curve over `bandwidth`.

    Parameters
    ----------
    limit_s : array_like
        `drive_time_limit_s` of the wanted break-even point [s]; greater than 0.
    csd_tx_s, csd_comp_s, csd_store_s : array_like
        The drive's times as they are [s].
    bandwidth : array_like
        Multiplier of the drive's internal bandwidth [1]; greater than 0.
    csd_overlap : Overlap
        As in `solve.break_even`.

    Returns
    -------
    Threshold
        Multiplier of the drive's computational power that must be exceeded. Not attainable where
        transfer alone takes the limit or more.
    """
    moved = positive("csd_tx_s", csd_tx_s) + not_negative("csd_store_s", csd_store_s)
    kept = moved / positive("bandwidth", bandwidth)
    return _multiplier(limit_s, positive("csd_comp_s", csd_comp_s), kept, csd_overlap)


def bandwidth_multiplier(
    limit_s: ArrayLike,
    csd_tx_s: ArrayLike,
    csd_comp_s: ArrayLike,
    *,
    compute: ArrayLike = 1.0,
    csd_store_s: ArrayLike = 0.0,
    csd_overlap: Overlap | str = Overlap.SERIAL,
) -> Threshold:
    """Return the factor of internal bandwidth that a drive needs: `compute_multiplier` mirrored.

    Parameters
    ----------
    limit_s, csd_tx_s, csd_comp_s, csd_store_s, csd_overlap
        As in `compute_multiplier`.
    compute : array_like
        Multiplier of the drive's computational power [1]; greater than 0.
    """
    moved = positive("csd_tx_s", csd_tx_s) + not_negative("csd_store_s", csd_store_s)
    kept = positive("csd_comp_s", csd_comp_s) / positive("compute", compute)
    return _multiplier(limit_s, moved, kept, csd_overlap)


def _multiplier(
    limit_s: ArrayLike, quickened_s: FloatArray, kept_s: FloatArray, overlap: Overlap | str
) -> Threshold:
    """Return the factor by which one part of a drive's time must shrink while the other stays."""
    limit = positive("limit_s", limit_s)
    serial = overlap_of("csd_overlap", overlap) is Overlap.SERIAL
    return _threshold(quickened_s, limit - kept_s if serial else np.where(kept_s < limit, limit, 0))


def host_compute_slow_down(
    devices: ArrayLike,
    csd_s: ArrayLike,
    ssd_tx_s: ArrayLike,
    ssd_comp_s: ArrayLike,
    *,
    k_limit: ArrayLike | None,
    host_cores: ArrayLike = 1,
    sd_tx: ArrayLike = 1.0,
) -> Threshold:
    """Return the slow-down of the host's compute beyond which `devices` drives are enough.

    Parameters
    ----------
    devices : array_like
        The break-even point wanted, C; whole, from 1 up.
    csd_s : array_like
        One drive's time for all the data [s]; greater than 0.
    ssd_tx_s, ssd_comp_s, k_limit, host_cores, sd_tx
        As in `solve.break_even`; neither side overlaps.

    Returns
    -------
    Threshold
        sd_comp that must be exceeded; below 1 where the host is slow enough as it is. Always
        attainable.
    """
    count = whole("devices", devices)
    comp = positive("ssd_comp_s", ssd_comp_s) / whole("host_cores", host_cores)
    # T_SSD-array with the compute term taken off again: what transfer alone takes.
    array = ssd_array_time_s(
        count, ssd_tx_s, ssd_comp_s, k_limit=k_limit, cores=host_cores, sd_tx=sd_tx
    )
    needed = positive("csd_s", csd_s) / count - (array - comp)
    return _threshold(np.maximum(needed, 0.0), comp)


def host_transfer_slow_down(
    devices: ArrayLike,
    csd_s: ArrayLike,
    ssd_tx_s: ArrayLike,
    ssd_comp_s: ArrayLike,
    *,
    k_limit: ArrayLike | None,
    host_cores: ArrayLike = 1,
    sd_comp: ArrayLike = 1.0,
) -> Threshold:
    """Return the slow-down of the host's transfer beyond which `devices` drives are enough.

    Parameters
    ----------
    devices, csd_s, ssd_tx_s, ssd_comp_s, k_limit, host_cores
        As in `host_compute_slow_down`.
    sd_comp : array_like
        Slow-down of the host's compute [1]; at least 1.
    """
    count = whole("devices", devices)
    comp = positive("ssd_comp_s", ssd_comp_s) / whole("host_cores", host_cores)
    array = ssd_array_time_s(count, ssd_tx_s, ssd_comp_s, k_limit=k_limit, cores=host_cores)
    needed = positive("csd_s", csd_s) / count - slow_down("sd_comp", sd_comp) * comp
    return _threshold(np.maximum(needed, 0.0), array - comp)


def _threshold(needed: ArrayLike, available: ArrayLike) -> Threshold:
    """Return needed / available, not attainable where nothing is available."""
    top, bottom = np.broadcast_arrays(
        np.asarray(needed, dtype=np.float64), np.asarray(available, dtype=np.float64)
    )
    attainable = np.asarray(bottom > 0)
    value = np.full(top.shape, np.nan)
    np.divide(top, bottom, out=value, where=attainable)
    return Threshold(value, attainable)
