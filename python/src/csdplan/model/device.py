"""One device: an SSD with a host that computes, or a drive that computes itself.

Equations 1 to 4, and the same with time to store the result and with transfer and compute side
by side. The functions know nothing of arrays, profiles or break-even points.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from csdplan.model.inputs import FloatArray, not_negative, positive, slow_down, whole
from csdplan.model.overlap import Overlap, combined_s


def ssd_compute_time_s(comp_s: ArrayLike, cores: ArrayLike = 1) -> FloatArray:
    """Return the compute time of a kernel on `cores` host cores (equation 2).

    Parameters
    ----------
    comp_s : array_like
        Sequential compute time on one core, T_SSD-comp [s]; greater than 0.
    cores : array_like
        Host cores at work, n [cores]; whole, from 1 up. The equation holds up to the number of
        cores that the host has; the caller knows that number and must say when it is exceeded.

    Returns
    -------
    ndarray
        T_SSD(n)-comp = T_SSD-comp / n [s].

    Notes
    -----
    The kernel is taken to divide evenly over the cores, without a serial part.

    References
    ----------
    https://doi.org/10.1145/3623677, section 3.2.1, equation 2.
    """
    return np.asarray(positive("comp_s", comp_s) / whole("cores", cores))


def ssd_time_s(
    tx_s: ArrayLike,
    comp_s: ArrayLike,
    *,
    cores: ArrayLike = 1,
    sd_tx: ArrayLike = 1.0,
    sd_comp: ArrayLike = 1.0,
    store_s: ArrayLike = 0.0,
    overlap: Overlap | str = Overlap.SERIAL,
) -> FloatArray:
    """Return the time of a kernel on a host with one SSD (equations 1 and 4).

    Parameters
    ----------
    tx_s : array_like
        Transfer time from the SSD to the host, T_SSD-tx [s]; greater than 0.
    comp_s : array_like
        Sequential compute time on one core, T_SSD-comp [s]; greater than 0.
    cores : array_like
        Host cores at work, n [cores]; whole, from 1 up.
    sd_tx, sd_comp : array_like
        Slow-down factors of an overloaded host [1]; at least 1, and 1 gives equation 1.
    store_s : array_like
        Time to write the result back [s]; at least 0. The paper leaves it out.
    overlap : Overlap
        ``serial`` as in the paper, or ``pipelined``: the longer of transfer and compute.

    Returns
    -------
    ndarray
        T_SSD(n) = sd_tx (T_SSD-tx + T_store) + sd_comp T_SSD(n)-comp [s], or their maximum.

    References
    ----------
    https://doi.org/10.1145/3623677, section 3.2.1, equations 1 and 4.
    """
    moved = positive("tx_s", tx_s) + not_negative("store_s", store_s)
    compute = slow_down("sd_comp", sd_comp) * ssd_compute_time_s(comp_s, cores)
    return combined_s(slow_down("sd_tx", sd_tx) * moved, compute, overlap)


def csd_time_s(
    tx_s: ArrayLike,
    comp_s: ArrayLike,
    *,
    store_s: ArrayLike = 0.0,
    overlap: Overlap | str = Overlap.SERIAL,
) -> FloatArray:
    """Return the time of a kernel inside one computational storage drive (equation 3).

    Parameters
    ----------
    tx_s : array_like
        Transfer time from the media to the drive's own memory, T_CSD-tx [s]; greater than 0.
    comp_s : array_like
        Compute time in the drive, all its working units together, T_CSD-comp [s]; greater
        than 0.
    store_s : array_like
        Time to write the result back to the media [s]; at least 0. The paper leaves it out.
    overlap : Overlap
        ``serial`` as in the paper, or ``pipelined``: the longer of transfer and compute.

    Returns
    -------
    ndarray
        T_CSD = T_CSD-tx + T_store + T_CSD-comp [s], or the longer of transfer and compute.

    Notes
    -----
    The host's load does not appear: the drive uses none of the host's resources.

    References
    ----------
    https://doi.org/10.1145/3623677, section 3.2.1, equation 3.
    """
    moved = positive("tx_s", tx_s) + not_negative("store_s", store_s)
    return combined_s(moved, positive("comp_s", comp_s), overlap)
