"""Break-even points of erasure coding as a sheet."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import numpy as np

from csdplan.model.inputs import positive
from csdplan.result.sheet import Sheet, sheet_of
from csdplan.solve.ec import encode_break_even
from csdplan.solve.ec_fit import EncodeTimes, Origin


def encode_plan(
    ssd: EncodeTimes | float,
    csd: EncodeTimes | float,
    *,
    blocks: Sequence[int],
    block_MB: Sequence[float],
    drive_power: Sequence[float] = (1.0,),
    host_power: Sequence[float] = (1.0,),
    ssd_tx_s: float = 0.0,
    csd_tx_s: float = 0.0,
    k_limit: float | None = None,
) -> Sheet:
    """Tabulate break-even points of erasure coding over size and computational power.

    Parameters
    ----------
    ssd, csd : EncodeTimes or float
        Times of the host and of a drive; as numbers [s] for one size that is not named.
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
    given = not (isinstance(ssd, EncodeTimes) and isinstance(csd, EncodeTimes))
    places: list[tuple[int | None, float | None]] = (
        [(None, None)] if given else [*product(blocks, block_MB)]
    )
    settings = [
        (*place, *powers) for place in places for powers in product(drive_power, host_power)
    ]
    host, drive = ([_time(side, *place) for place in places] for side in (ssd, csd))
    each = len(settings) // len(places)
    hosts, drives = (np.array([setting[i] for setting in settings], dtype=float) for i in (3, 2))
    host_s = np.repeat([time for time, _ in host], each) / hosts
    drive_s = np.repeat([time for time, _ in drive], each) / drives
    origins = [
        _origin(h, d) for (_, h), (_, d) in zip(host, drive, strict=True) for _ in range(each)
    ]
    found = encode_break_even(
        drive_s, host_s, ssd_tx_s=ssd_tx_s, csd_tx_s=csd_tx_s, k_limit=k_limit
    )
    answers = (host_s, drive_s, found.devices, found.closed_form, found.early_lead)
    listed = zip(*(column.tolist() for column in answers), strict=True)
    rows = [
        (*setting, *answer, origin)
        for setting, answer, origin in zip(settings, listed, origins, strict=True)
    ]
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
        "times_from",
    )
    note = (
        f"{_accuracy(ssd, csd, origins)}early_lead_devices: drives also lead up to there, then "
        "fall behind until devices"
    )
    return sheet_of("Break-even point of erasure coding", columns, rows, note)


def _time(
    side: EncodeTimes | float, blocks: int | None, block_MB: float | None
) -> tuple[float, Origin]:
    if isinstance(side, EncodeTimes):
        assert blocks is not None, "a size is named unless the times are given"
        assert block_MB is not None, "a size is named unless the times are given"
        return side.time_s(blocks, block_MB * 1e6)
    return float(positive("time", side)), Origin.GIVEN


def _origin(host: Origin, drive: Origin) -> str:
    return host.value if host is drive else f"{host.value}, {drive.value}"


def _accuracy(ssd: EncodeTimes | float, csd: EncodeTimes | float, origins: Sequence[str]) -> str:
    """Say how far the models are off, if any time comes from them."""
    if {*origins} <= {Origin.GIVEN.value, Origin.MEASURED.value}:
        return ""
    off = [
        f"{side.fit.relative_error_max:.0%} ({name})"
        for name, side in (("host", ssd), ("drive", csd))
        if isinstance(side, EncodeTimes) and side.fit is not None
    ]
    return f"fitted times are off their points by up to {' and '.join(off)}; "
