"""Break-even points of erasure coding as a sheet."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from csdplan.model.inputs import positive
from csdplan.result.sheet import Sheet, sheet_of
from csdplan.solve.ec import encode_break_even
from csdplan.solve.ec_fit import EncodeFit


def encode_plan(
    ssd: EncodeFit,
    csd: EncodeFit,
    *,
    blocks: Sequence[int],
    block_MB: Sequence[float],
    drive_power: Sequence[float] = (1.0,),
    host_power: Sequence[float] = (1.0,),
    ssd_tx_s: float = 0.0,
    csd_tx_s: float = 0.0,
    k_limit: int | None = None,
) -> Sheet:
    """Tabulate break-even points of erasure coding over size and computational power.

    Parameters
    ----------
    ssd, csd : EncodeFit
        Time models of the host and of a drive.
    blocks : sequence of int
        n + k, at a fixed n / k.
    block_MB : sequence of float
        Block sizes [MB].
    drive_power, host_power : sequence of float
        Multipliers of computational power [1]; greater than 0.
    ssd_tx_s, csd_tx_s, k_limit
        As in `solve.ec.encode_break_even`.

    Returns
    -------
    Sheet
        A row for each combination.
    """
    positive("drive_power", list(drive_power)), positive("host_power", list(host_power))
    settings = list(product(blocks, block_MB, drive_power, host_power))
    counts, sizes, drives, hosts = np.array(settings, dtype=float).reshape(-1, 4).T
    host_s = ssd.time_s(counts, sizes * 1e6) / hosts
    drive_s = csd.time_s(counts, sizes * 1e6) / drives
    found = encode_break_even(
        drive_s, host_s, ssd_tx_s=ssd_tx_s, csd_tx_s=csd_tx_s, k_limit=k_limit
    )
    answers = (host_s, drive_s, found.devices, found.closed_form, found.early_lead)
    listed = zip(*(column.tolist() for column in answers), strict=True)
    rows = [(*setting, *answer) for setting, answer in zip(settings, listed, strict=True)]
    columns = (
        "blocks",
        "block_MB",
        "drive_power",
        "host_power",
        "host_s",
        "drive_s",
        "devices",
        "closed_form_devices",
        "early_lead_devices",
    )
    note = (
        f"times modeled, off their points by up to {ssd.relative_error_max:.0%} (host) and "
        f"{csd.relative_error_max:.0%} (drive); early_lead_devices: drives also lead up to there, "
        "then fall behind until devices"
    )
    return sheet_of("Break-even point of erasure coding", columns, rows, note)
