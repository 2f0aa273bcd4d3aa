"""The papers' ratio parameters, and the closed form's crossing in them (equations 10 to 13).

`R_tx` has two definitions in the paper, which agree only if the host's SSD is the very drive that
computes. They have two names here: `transfer_ratio_own` (the drive's bandwidths, section 2.3) and
`transfer_ratio_host` (the times that equations 11 to 13 really divide). Newport's are 0.43 and
about 0.17, because the paper's host reads a SmartSSD; only the second may enter the equations.

Crossings are real numbers. Rounding to devices, and the general answer, are in ``solve``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from csdplan.model.inputs import FloatArray, positive, slow_down, whole

#: Below this share of compute time on one host core a kernel is called I/O-intensive (4.2.2).
CTR_SPLIT = 0.5


def transfer_ratio_own(internal_Bps: ArrayLike, external_Bps: ArrayLike) -> FloatArray:
    """Divide internal by external bandwidth of one drive: R_tx of section 2.3 [1].

    Parameters
    ----------
    internal_Bps, external_Bps : array_like
        Media to the drive's own memory, and media to the host [bytes/s]; greater than 0.

    References
    ----------
    https://doi.org/10.1145/3623677, section 2.3.
    """
    internal = positive("internal_Bps", internal_Bps)
    return np.asarray(internal / positive("external_Bps", external_Bps))


def transfer_ratio_host(ssd_tx_s: ArrayLike, csd_tx_s: ArrayLike) -> FloatArray:
    """Divide T_SSD-tx by T_CSD-tx: R_tx of equations 11 to 13 [1].

    Parameters
    ----------
    ssd_tx_s, csd_tx_s : array_like
        Transfer time from the SSD that the host really reads, and inside the drive that computes
        [s]; greater than 0.

    References
    ----------
    https://doi.org/10.1145/3623677, section 3.2.2.
    """
    return np.asarray(positive("ssd_tx_s", ssd_tx_s) / positive("csd_tx_s", csd_tx_s))


def compute_ratio(ssd_comp_s: ArrayLike, csd_comp_s: ArrayLike, cores: ArrayLike = 1) -> FloatArray:
    """Return R_(n)comp = T_SSD(n)-comp / T_CSD-comp [1].

    Parameters
    ----------
    ssd_comp_s, csd_comp_s : array_like
        Compute time on one host core, and in the drive [s]; greater than 0.
    cores : array_like
        Host cores at work, n; whole, from 1 up.

    References
    ----------
    https://doi.org/10.1145/3623677, section 3.2.2.
    """
    host = positive("ssd_comp_s", ssd_comp_s) / whole("cores", cores)
    return np.asarray(host / positive("csd_comp_s", csd_comp_s))


def ssd_ratio(ssd_tx_s: ArrayLike, ssd_comp_s: ArrayLike, cores: ArrayLike = 1) -> FloatArray:
    """Return R_(n)SSD = T_SSD-tx / T_SSD(n)-comp [1].

    Parameters
    ----------
    ssd_tx_s, ssd_comp_s : array_like
        Transfer time of one SSD, compute time on one core [s]; greater than 0.
    cores : array_like
        Host cores at work, n; whole, from 1 up.

    References
    ----------
    https://doi.org/10.1145/3623677, section 3.2.2.
    """
    host = positive("ssd_comp_s", ssd_comp_s) / whole("cores", cores)
    return np.asarray(positive("ssd_tx_s", ssd_tx_s) / host)


def compute_time_ratio(tx_s: ArrayLike, comp_s: ArrayLike) -> FloatArray:
    """Return CTR, the share of compute in a serial run on one device [1].

    Parameters
    ----------
    tx_s, comp_s : array_like
        Transfer and compute time [s]; greater than 0.

    Returns
    -------
    ndarray
        T_comp / (T_tx + T_comp); the paper calls a kernel I/O-intensive where it is below
        `CTR_SPLIT` on the host, and compute-intensive otherwise.

    References
    ----------
    https://doi.org/10.1145/3623677, section 4.2.2.
    """
    compute = positive("comp_s", comp_s)
    return np.asarray(compute / (positive("tx_s", tx_s) + compute))


def crossing_by_times(
    ssd_tx_s: ArrayLike,
    ssd_comp_s: ArrayLike,
    csd_tx_s: ArrayLike,
    csd_comp_s: ArrayLike,
    *,
    cores: ArrayLike = 1,
    sd_tx: ArrayLike = 1.0,
    sd_comp: ArrayLike = 1.0,
) -> FloatArray:
    """Return the devices at which both arrays take equal time without k_limit (equations 8 to 10).

    Parameters
    ----------
    ssd_tx_s, ssd_comp_s, csd_tx_s, csd_comp_s : array_like
        The four times [s]; greater than 0.
    cores : array_like
        Host cores at work, n; whole, from 1 up.
    sd_tx, sd_comp : array_like
        Slow-down factors of an overloaded host [1]; at least 1.

    Returns
    -------
    ndarray
        (T_CSD-tx + T_CSD-comp - sd_tx T_SSD-tx) / (sd_comp T_SSD(n)-comp) [devices], a real
        number, negative where one drive already wins. Valid up to k_limit.

    References
    ----------
    https://doi.org/10.1145/3623677, section 3.2.2, equations 8 to 10.
    """
    drive = positive("csd_tx_s", csd_tx_s) + positive("csd_comp_s", csd_comp_s)
    transfer = slow_down("sd_tx", sd_tx) * positive("ssd_tx_s", ssd_tx_s)
    compute = positive("ssd_comp_s", ssd_comp_s) / whole("cores", cores)
    return np.asarray((drive - transfer) / (slow_down("sd_comp", sd_comp) * compute))


def crossing_by_ratios(
    r_tx: ArrayLike,
    r_comp: ArrayLike,
    r_ssd: ArrayLike,
    *,
    sd_tx: ArrayLike = 1.0,
    sd_comp: ArrayLike = 1.0,
) -> FloatArray:
    """Compute `crossing_by_times` divided through (equations 11 to 13).

    Parameters
    ----------
    r_tx : array_like
        `transfer_ratio_host` [1]; greater than 0. Not `transfer_ratio_own`.
    r_comp, r_ssd : array_like
        `compute_ratio` and `ssd_ratio` for the same n [1]; greater than 0.
    sd_tx, sd_comp : array_like
        Slow-down factors of an overloaded host [1]; at least 1.

    Returns
    -------
    ndarray
        ((1 / R_tx - sd_tx) R_SSD + 1 / R_comp) / sd_comp [devices], a real number. Valid up to
        k_limit.

    References
    ----------
    https://doi.org/10.1145/3623677, equations 11 and 12 (section 3.2.2), 13 (section 4.4).
    """
    ratio = 1.0 / positive("r_tx", r_tx) - slow_down("sd_tx", sd_tx)
    crossing = ratio * positive("r_ssd", r_ssd) + 1.0 / positive("r_comp", r_comp)
    return np.asarray(crossing / slow_down("sd_comp", sd_comp))
