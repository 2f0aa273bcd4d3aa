"""Plans of erasure coding, and of cost, as sheets."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from csdplan.errors import ProfileIncomplete
from csdplan.model.inputs import not_negative, positive
from csdplan.result.sheet import Sheet, sheet
from csdplan.solve.ec import encode_break_even
from csdplan.solve.ec_fit import EncodeFit
from csdplan.solve.tco import Cost, level_drive_price_usd


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
        f"times modelled, off their points by up to {ssd.relative_error_max:.0%} (host) and "
        f"{csd.relative_error_max:.0%} (drive); early_lead_devices: drives also lead up to there, "
        "then fall behind until devices"
    )
    return sheet("Break-even point of erasure coding", columns, rows, note)


def cost_sheet(title: str, costs: Sequence[Cost], note: str = "") -> Sheet:
    """Tabulate costs, a row for each system; None where a number is unknown."""
    if not costs:
        raise ProfileIncomplete("no system to cost")
    prices = level_drive_price_usd(costs)
    base = costs[0].purchase_usd
    rows = [
        (
            found.system.name,
            found.system.cpu,
            found.system.computes,
            found.system.drives,
            _reaches(found, costs[0]),
            found.purchase_usd,
            1 - found.purchase_usd / base,
            found.time_s,
            None
            if found.throughput_Bps is None
            else found.throughput_Bps / 1e6 / found.purchase_usd,
            found.mark_per_usd,
            found.bytes_per_usd / 1e9,
            price,
            found.energy_usd,
            found.total_usd,
            found.yearly_usd,
        )
        for found, price in zip(costs, prices, strict=True)
    ]
    columns = (
        "system",
        "cpu",
        "computes",
        "drives",
        "reaches_throughput",
        "purchase_usd",
        "saved",
        "time_s",
        "MBps_per_usd",
        "mark_per_usd",
        "GB_per_usd",
        "level_drive_usd",
        "energy_usd",
        "total_usd",
        "yearly_usd",
    )
    return sheet(title, columns, rows, note)


def _reaches(found: Cost, base: Cost) -> bool | None:
    """Return whether a system is as fast as the first one; None if no kernel was given."""
    if found.time_s is None or base.time_s is None:
        return None
    # A tie is enough, and the last place of a quotient decides nothing.
    return found.feasible and found.time_s <= base.time_s * (1 + 1e-12)


def price_sensitivity(costs: Sequence[Cost], drive_usd: Sequence[float]) -> Sheet:
    """Tabulate each system's purchase as the price of *its* drives changes.

    The first system, to which the others are compared, keeps its price.
    """
    not_negative("drive_usd", list(drive_usd))
    base = costs[0].purchase_usd
    rows = []
    for price in drive_usd:
        for found in costs[1:]:
            total = found.system.host_usd + found.system.drives * price
            rows.append((found.system.name, price, total, 1 - total / base, total < base))
    columns = ("system", "drive_usd", "purchase_usd", "saved", "cheaper")
    return sheet("Purchase as the price of computational drives changes", columns, rows)
