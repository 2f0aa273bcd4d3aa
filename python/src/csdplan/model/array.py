"""An array of m devices with the data spread evenly over them.

Equations 5 to 7. SSDs share the host's ingest bandwidth and its cores, so their array stops
gaining at k_limit devices; drives that compute share nothing and gain with every device.
Three terms go beyond the paper: `host_part_s`, the host's share of a run on drives; `store_s`,
the time to write results back; and `overlap`, whether transfer and compute share time.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from csdplan.model.device import csd_time_s, ssd_compute_time_s
from csdplan.model.inputs import (
    FloatArray,
    limit,
    not_negative,
    positive,
    slow_down,
    whole,
)
from csdplan.model.overlap import Overlap, combined_s


def ssd_devices_effective(devices: ArrayLike, k_limit: ArrayLike | None) -> FloatArray:
    """Return the devices that still add transfer bandwidth (equation 6).

    Parameters
    ----------
    devices : array_like
        Devices in the array, m [devices]; whole, from 1 up.
    k_limit : array_like or None
        Bandwidth that the host takes in, as a multiple of what one device reads [devices]; at
        least 1, and not necessarily whole: equation 6 as printed rounds it down. None or
        infinity: the host never limits.

    Returns
    -------
    ndarray
        M_SSD = min(m, k_limit) [devices].

    References
    ----------
    https://doi.org/10.1145/3623677, section 3.2.1, equation 6.
    """
    return np.asarray(np.minimum(whole("devices", devices), limit("k_limit", k_limit)))


def ssd_array_time_s(
    devices: ArrayLike,
    tx_s: ArrayLike,
    comp_s: ArrayLike,
    *,
    k_limit: ArrayLike | None,
    cores: ArrayLike = 1,
    sd_tx: ArrayLike = 1.0,
    sd_comp: ArrayLike = 1.0,
    store_s: ArrayLike = 0.0,
    overlap: Overlap | str = Overlap.SERIAL,
) -> FloatArray:
    """Return the time of a kernel on a host with m SSDs (equation 5).

    Parameters
    ----------
    devices : array_like
        Devices in the array, m [devices]; whole, from 1 up.
    tx_s : array_like
        Transfer time of the whole working set from one SSD, T_SSD-tx [s]; greater than 0.
    comp_s : array_like
        Sequential compute time on one core, T_SSD-comp [s]; greater than 0.
    k_limit : array_like or None
        See `ssd_devices_effective`.
    cores : array_like
        Host cores at work, n [cores]; whole, from 1 up.
    sd_tx, sd_comp : array_like
        Slow-down factors of an overloaded host [1]; at least 1.
    store_s : array_like
        Time to write the whole result back to one SSD [s]; at least 0. It crosses the same link
        as loading, and so divides and slows down with it. The paper leaves it out.
    overlap : Overlap
        ``serial`` as in the paper, or ``pipelined``: the longer of transfer and compute.

    Returns
    -------
    ndarray
        T_SSD(n)-array = sd_tx (T_SSD-tx + T_store) / min(m, k_limit) + sd_comp T_SSD-comp / n
        [s], or the longer of the two terms.

    References
    ----------
    https://doi.org/10.1145/3623677, section 3.2.1, equations 5 and 6.
    """
    moved = positive("tx_s", tx_s) + not_negative("store_s", store_s)
    transfer = slow_down("sd_tx", sd_tx) * moved / ssd_devices_effective(devices, k_limit)
    compute = slow_down("sd_comp", sd_comp) * ssd_compute_time_s(comp_s, cores)
    return combined_s(transfer, compute, overlap)


def csd_array_time_s(
    devices: ArrayLike,
    tx_s: ArrayLike,
    comp_s: ArrayLike,
    *,
    host_part_s: ArrayLike = 0.0,
    store_s: ArrayLike = 0.0,
    overlap: Overlap | str = Overlap.SERIAL,
) -> FloatArray:
    """Return the time of a kernel on an array of m computational storage drives (equation 7).

    Parameters
    ----------
    devices : array_like
        Drives in the array, m [devices]; whole, from 1 up.
    tx_s : array_like
        Transfer time of the whole working set inside one drive, T_CSD-tx [s]; greater than 0.
    comp_s : array_like
        Compute time of the whole working set inside one drive, T_CSD-comp [s]; greater than 0.
    host_part_s : array_like
        Time that the host adds however many drives there are, such as the merging of their
        answers [s]; at least 0. The paper takes it to be 0, and 0 gives equation 7.
    store_s : array_like
        Time to write the whole result back to one drive's media [s]; at least 0.
    overlap : Overlap
        ``serial`` as in the paper, or ``pipelined``: the longer of transfer and compute.

    Returns
    -------
    ndarray
        T_CSD-array = T_CSD / m + host_part [s], T_CSD as in `csd_time_s`.

    References
    ----------
    https://doi.org/10.1145/3623677, section 3.2.1, equation 7.
    """
    one = csd_time_s(tx_s, comp_s, store_s=store_s, overlap=overlap)
    drives = one / whole("devices", devices)
    return np.asarray(drives + not_negative("host_part_s", host_part_s))
