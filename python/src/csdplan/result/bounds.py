"""Bounds of a break-even point in 90 % of cases, from the spreads of the four times.

The draws are few and fixed, so that every answer can have its bounds without being slower.
`result.confidence` is the thorough analysis, and says on which time the answer hangs.
"""

from __future__ import annotations

import numpy as np

from csdplan.model.inputs import FloatArray
from csdplan.profile.workload import HostTimes, Workload
from csdplan.solve.bep import break_even
from csdplan.solve.uncertainty import SPREADS, sigma_measured

_DRAWS = 1001


def draws_of(workload: Workload) -> dict[str, FloatArray]:
    """Return factors of the four times: lognormal, by quartiles or by provenance."""
    rng = np.random.default_rng(1)
    factors = {}
    for name, prov in workload.prov.items():
        sigma = SPREADS[prov]
        if name in workload.quartiles:
            low, high, runs = workload.quartiles[name]
            sigma = sigma_measured(low, high, runs, SPREADS["measured"])
        normal = rng.standard_normal(_DRAWS)
        if sigma > 0:
            factors[name] = np.exp(sigma * normal)
    return factors


def bounds_of(
    workload: Workload,
    time: HostTimes,
    draws: dict[str, FloatArray],
    k_limit: float,
    factors: dict[str, float],
    ssd_store_s: float,
    store: bool,
    sides: dict[str, str],
) -> tuple[int | None, int | None]:
    """Return the 5th and the 95th percentile of the break-even point over the draws."""
    if not draws:
        return None, None
    solution = break_even(
        time.tx_s * draws.get("ssd_tx_s", 1.0),
        time.comp_s * draws.get("ssd_comp_s", 1.0),
        workload.csd_tx_s * draws.get("csd_tx_s", 1.0),
        workload.csd_comp_s * draws.get("csd_comp_s", 1.0),
        k_limit=k_limit,
        host_cores=time.divisor,
        sd_tx=factors["sd_tx"],
        sd_comp=factors["sd_comp"],
        host_part_s=factors["host_part_s"],
        ssd_store_s=ssd_store_s,
        csd_store_s=workload.csd_store_s if store else 0.0,
        **sides,
    )
    # Draws that never break even come last.
    found = np.sort(np.where(solution.devices > 0, solution.devices, np.iinfo(np.int64).max))
    low, high = (int(found[round(share * (_DRAWS - 1))]) for share in (0.05, 0.95))
    most = np.iinfo(np.int64).max
    return None if low == most else low, None if high == most else high


def widest(
    workload: Workload, host_cores: int, k_limit: float, factors: dict[str, float]
) -> tuple[str, int, int] | None:
    """Return the time whose spread alone moves the break-even point furthest, with the bounds.

    Returns None if no spread is known, or none of them moves it between two numbers of drives.
    """
    time = workload.host(host_cores)
    sides = {"ssd_overlap": "serial", "csd_overlap": "serial"}
    found = []
    for name, factor in draws_of(workload).items():
        alone = {name: factor}
        low, high = bounds_of(workload, time, alone, k_limit, factors, 0.0, False, sides)
        if low is not None and high is not None and low < high:
            found.append((name, low, high))
    return max(found, key=lambda one: one[2] - one[1], default=None)
