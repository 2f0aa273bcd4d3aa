"""Gains of more compute units: inside one drive, and when drives help a host.

Throughput of a drive with several units follows from how much of its time is compute; the shares
that a published gain implies are `compute_speed_up` and `serial_share`. `augmented_speed_up` is
for hosts that keep working while drives add to them, as Hadoop and MPI run on such drives.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from csdplan.model.inputs import FloatArray, not_negative, positive, whole


def compute_speed_up(tx_s: ArrayLike, comp_s: ArrayLike, gain: ArrayLike) -> FloatArray:
    """Return the speed-up of a drive's units together over one, from the gain in throughput.

    Parameters
    ----------
    tx_s, comp_s : array_like
        Transfer and compute time with all units at work [s]; greater than 0.
    gain : array_like
        Throughput with all units over throughput with one [1]; greater than 0.

    Returns
    -------
    ndarray
        s with gain = (T_tx + s T_comp) / (T_tx + T_comp) [1]. More than the number of units is
        impossible without cache effects: then the gain and the two times contradict each other.
    """
    transfer, compute = positive("tx_s", tx_s), positive("comp_s", comp_s)
    return np.asarray((positive("gain", gain) * (transfer + compute) - transfer) / compute)


def serial_share(units: ArrayLike, gain: ArrayLike) -> FloatArray:
    """Return the share of the work that does not divide over units, by Amdahl's law.

    Parameters
    ----------
    units : array_like
        Units at work; whole, from 2 up for a meaningful answer.
    gain : array_like
        Speed-up over one unit [1]; greater than 0.

    Returns
    -------
    ndarray
        s = (units / gain - 1) / (units - 1) [1]; within 0 to 1 unless the gain is superlinear
        (below 0) or a loss (above 1).
    """
    count = whole("units", units)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((count / positive("gain", gain) - 1.0) / (count - 1.0))


def augmented_speed_up(
    drives: ArrayLike, ratio: ArrayLike, host_share_per_drive: ArrayLike = 0.0
) -> FloatArray:
    """Return the speed-up of a host that N drives help, all finishing together.

    Parameters
    ----------
    drives : array_like
        Drives at work, N; at least 0.
    ratio : array_like
        One drive's throughput over that of the whole host alone, r [1]; greater than 0.
    host_share_per_drive : array_like
        Share of the host that serving one drive costs, such as routing its packets [1]; at
        least 0.

    Returns
    -------
    ndarray
        (1 - N h) + N r [1]. Valid while N h is below 1 and tasks are many and small, so that no
        straggler shows.
    """
    count = not_negative("drives", drives)
    lost = count * not_negative("host_share_per_drive", host_share_per_drive)
    return np.asarray(np.maximum(0.0, 1.0 - lost) + count * positive("ratio", ratio))


def augmented_energy_ratio(
    drives: ArrayLike, speed_up: ArrayLike, drive_power_share: ArrayLike
) -> FloatArray:
    """Return the energy of the host alone over energy with N drives helping, idle power deducted.

    Parameters
    ----------
    drives : array_like
        Drives at work, N; at least 0.
    speed_up : array_like
        Speed-up of the work [1]; greater than 0.
    drive_power_share : array_like
        Active power of one drive over that of the host, both without idle power [1]; at least 0.

    Returns
    -------
    ndarray
        speed_up / (1 + N p) [1]. It cannot exceed the speed-up while the host stays as busy as
        before: drives add power, they do not take the host's away.
    """
    count = not_negative("drives", drives)
    added = count * not_negative("drive_power_share", drive_power_share)
    return np.asarray(positive("speed_up", speed_up) / (1.0 + added))
