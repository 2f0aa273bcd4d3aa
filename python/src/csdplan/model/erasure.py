"""Erasure coding offloaded to drives: M blocks on M devices (equations 5 to 8 of the second paper).

The SSD system encodes all M blocks on the host, one after another; the CSD system encodes one
block in each drive. So the host's time *grows* with M, and may also fall at first, while transfer
still divides: the comparison is not monotone, and ``solve.ec`` says what follows from that.

T_ec is the time of one (n, k) Reed-Solomon encoding. `encode_time_s` is a model of it, with two
parameters fitted from measured points.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from csdplan.model.array import ssd_devices_effective
from csdplan.model.inputs import FloatArray, not_negative, positive, whole

#: The block size at which `encode_time_s` states its coefficient [bytes].
BLOCK_REFERENCE_BYTES = 64_000_000


def ssd_encode_array_time_s(
    devices: ArrayLike,
    tx_s: ArrayLike,
    encode_s: ArrayLike,
    *,
    k_limit: ArrayLike | None = None,
) -> FloatArray:
    """Return the time of a host that encodes M blocks from M SSDs (equation 5).

    Parameters
    ----------
    devices : array_like
        Devices, and blocks, M; whole, from 1 up.
    tx_s : array_like
        Transfer time T_SSD-tx [s]; at least 0, and 0 gives the paper's simplification.
    encode_s : array_like
        T_SSD(n)-ec, one encoding on n host cores [s]; greater than 0.
    k_limit : array_like or None
        Devices that use up the host's ingest bandwidth. The paper's equation has none.

    Returns
    -------
    ndarray
        T_SSD-tx / min(M, k_limit) + M T_SSD(n)-ec [s].

    References
    ----------
    Byun et al., "Provisioning CSD-based Storage Systems with Erasure-coding Offloaded to the CSD",
    2023, section III.2, equation 5.
    """
    count = whole("devices", devices)
    transfer = not_negative("tx_s", tx_s) / ssd_devices_effective(count, k_limit)
    return np.asarray(transfer + count * positive("encode_s", encode_s))


def csd_encode_array_time_s(tx_s: ArrayLike, encode_s: ArrayLike) -> FloatArray:
    """Return the time of M drives that encode one block each (equation 6).

    Parameters
    ----------
    tx_s : array_like
        Transfer time inside a drive, T_CSD-tx [s]; at least 0.
    encode_s : array_like
        T_CSD-ec, one encoding in a drive [s]; greater than 0.

    Returns
    -------
    ndarray
        T_CSD-tx + T_CSD-ec [s], whatever M.

    References
    ----------
    Byun et al., "Provisioning CSD-based Storage Systems with Erasure-coding Offloaded to the CSD",
    2023, section III.2, equation 6.
    """
    return np.asarray(not_negative("tx_s", tx_s) + positive("encode_s", encode_s))


def encode_crossing(csd_encode_s: ArrayLike, ssd_encode_s: ArrayLike) -> FloatArray:
    """Return the devices at which both systems take equal time without transfer (equations 7, 8).

    Parameters
    ----------
    csd_encode_s, ssd_encode_s : array_like
        T_CSD-ec and T_SSD(n)-ec [s]; greater than 0.

    Returns
    -------
    ndarray
        T_CSD-ec / T_SSD(n)-ec [devices], a real number; equation 8 rounds it up.

    References
    ----------
    Byun et al., "Provisioning CSD-based Storage Systems with Erasure-coding Offloaded to the CSD",
    2023, section III.2, equations 7 and 8.
    """
    return np.asarray(
        positive("csd_encode_s", csd_encode_s) / positive("ssd_encode_s", ssd_encode_s)
    )


def encode_time_s(
    blocks: ArrayLike, block_bytes: ArrayLike, base_s: ArrayLike, per_block2_s: ArrayLike
) -> FloatArray:
    """Return the time of one encoding as a function of its size.

    Parameters
    ----------
    blocks : array_like
        n + k, blocks after encoding, at a fixed ratio n / k; whole, from 1 up.
    block_bytes : array_like
        Size of one block [bytes]; greater than 0.
    base_s : array_like
        Time of an encoding independent of its size [s]; at least 0.
    per_block2_s : array_like
        Time for each squared block at `BLOCK_REFERENCE_BYTES` [s]; at least 0.

    Returns
    -------
    ndarray
        base + per_block2 blocks^2 (block_bytes / reference) [s].

    Notes
    -----
    Encoding multiplies an n x k matrix with blocks: n k block_bytes multiplications, which at a
    fixed n / k is proportional to (n + k)^2. Valid within the range of the points it was fitted
    to; caches and memory are not modeled.
    """
    size = positive("block_bytes", block_bytes) / BLOCK_REFERENCE_BYTES
    work = whole("blocks", blocks) ** 2 * size
    return np.asarray(
        not_negative("base_s", base_s) + not_negative("per_block2_s", per_block2_s) * work
    )
