"""One device: an SSD with a host that computes, or a drive that computes itself.

Equations 1 to 4. The functions know nothing of arrays, profiles or break-even points.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from csdplan.model.inputs import FloatArray, positive, slow_down, whole


def ssd_compute_time_s(comp_s: ArrayLike, cores: ArrayLike = 1) -> FloatArray:
    """Compute time of a kernel on `cores` host cores (equation 2).

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
) -> FloatArray:
    """Time of a kernel on a host with one SSD (equations 1 and 4).

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

    Returns
    -------
    ndarray
        T_SSD(n) = sd_tx T_SSD-tx + sd_comp T_SSD(n)-comp [s].

    References
    ----------
    https://doi.org/10.1145/3623677, section 3.2.1, equations 1 and 4.
    """
    transfer = slow_down("sd_tx", sd_tx) * positive("tx_s", tx_s)
    compute = slow_down("sd_comp", sd_comp) * ssd_compute_time_s(comp_s, cores)
    return np.asarray(transfer + compute)


def csd_time_s(tx_s: ArrayLike, comp_s: ArrayLike) -> FloatArray:
    """Time of a kernel inside one computational storage drive (equation 3).

    Parameters
    ----------
    tx_s : array_like
        Transfer time from the media to the drive's own memory, T_CSD-tx [s]; greater than 0.
    comp_s : array_like
        Compute time in the drive, all its working units together, T_CSD-comp [s]; greater
        than 0.

    Returns
    -------
    ndarray
        T_CSD = T_CSD-tx + T_CSD-comp [s].

    Notes
    -----
    The host's load does not appear: the drive uses none of the host's resources.

    References
    ----------
    https://doi.org/10.1145/3623677, section 3.2.1, equation 3.
    """
    return np.asarray(positive("tx_s", tx_s) + positive("comp_s", comp_s))
