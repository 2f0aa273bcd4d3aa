"""Cost of ownership: prices, energy and their sum over years (Table 4, and what it leaves out).

Prices are US dollars, capacities bytes, powers watts, energies kilowatt-hours. The paper counts
CPU and drives only; energy and amortisation are ours.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from csdplan.model.inputs import FloatArray, not_negative, positive

#: Hours in a year of 365.25 days.
HOURS_PER_YEAR = 8766.0
#: Power usage effectiveness and share of time at work, unless a question says otherwise [1]. All
#: questions of cost share them.
PUE, BUSY = 1.5, 0.5


def purchase_usd(host_usd: ArrayLike, drives: ArrayLike, drive_usd: ArrayLike) -> FloatArray:
    """Return the price of a host and its drives [USD] (Table 4, "Total Cost").

    Parameters
    ----------
    host_usd, drive_usd : array_like
        Price of the host (the paper: of its CPU), and of one drive [USD]; at least 0.
    drives : array_like
        Number of drives; at least 0.

    References
    ----------
    https://doi.org/10.1145/3623677, section 4.5, Table 4.
    """
    storage = not_negative("drives", drives) * not_negative("drive_usd", drive_usd)
    return np.asarray(not_negative("host_usd", host_usd) + storage)


def per_usd(amount: ArrayLike, total_usd: ArrayLike) -> FloatArray:
    """Return the amount of anything for one dollar (Table 4, "Perf. / $" and "Capacity / $").

    Parameters
    ----------
    amount : array_like
        Performance or capacity, in its own unit; at least 0.
    total_usd : array_like
        Total cost [USD]; greater than 0.
    """
    return np.asarray(not_negative("amount", amount) / positive("total_usd", total_usd))


def average_power_W(
    host_idle_W: ArrayLike,
    host_active_W: ArrayLike,
    host_busy: ArrayLike,
    drives: ArrayLike,
    drive_idle_W: ArrayLike,
    drive_active_W: ArrayLike,
    drive_busy: ArrayLike,
) -> FloatArray:
    """Return the average power of a host and its drives [W].

    Parameters
    ----------
    host_idle_W, drive_idle_W : array_like
        Power at rest, of the host and of one drive [W]; at least 0.
    host_active_W, drive_active_W : array_like
        Power that work adds to the host, and power of one drive at work [W]; at least 0.
    host_busy, drive_busy : array_like
        Share of time at work [1]; at least 0.
    drives : array_like
        Number of drives; at least 0.

    Notes
    -----
    `host_active_W` comes on top of idle power (a profile's core_W times cores), while
    `drive_active_W` replaces it (a data sheet's active power is the whole drive's).
    """
    busy = not_negative("drive_busy", drive_busy)
    each = not_negative("drive_idle_W", drive_idle_W) * (1.0 - busy)
    each = each + not_negative("drive_active_W", drive_active_W) * busy
    host = not_negative("host_active_W", host_active_W) * not_negative("host_busy", host_busy)
    host = host + not_negative("host_idle_W", host_idle_W)
    return np.asarray(host + not_negative("drives", drives) * each)


def energy_usd(
    power_W: ArrayLike, years: ArrayLike, usd_per_kWh: ArrayLike, pue: ArrayLike = 1.0
) -> FloatArray:
    """Return the cost of energy over a number of years [USD].

    Parameters
    ----------
    power_W : array_like
        Average power [W]; at least 0.
    years : array_like
        Years in service; at least 0.
    usd_per_kWh : array_like
        Price of energy [USD/kWh]; at least 0.
    pue : array_like
        Power usage effectiveness, what the site draws for each watt of equipment [1]; greater
        than 0, and in practice at least 1.
    """
    hours = HOURS_PER_YEAR * not_negative("years", years)
    energy_kWh = not_negative("power_W", power_W) / 1000.0 * hours * positive("pue", pue)
    return np.asarray(energy_kWh * not_negative("usd_per_kWh", usd_per_kWh))


def annuity_usd(purchase: ArrayLike, years: ArrayLike, interest: ArrayLike = 0.0) -> FloatArray:
    """Return the yearly instalment that pays a purchase off over its years in service [USD/year].

    Parameters
    ----------
    purchase : array_like
        Price [USD]; at least 0.
    years : array_like
        Years in service; greater than 0.
    interest : array_like
        Yearly interest [1]; at least 0, and 0 gives straight-line depreciation.

    Returns
    -------
    ndarray
        P i / (1 - (1 + i)^-years), or P / years without interest.
    """
    price, term = not_negative("purchase", purchase), positive("years", years)
    rate = not_negative("interest", interest)
    with np.errstate(divide="ignore", invalid="ignore"):
        # expm1 and log1p keep the digits of a small rate, where 1 - (1 + i)^-n cancels.
        factor = np.where(rate > 0, -rate / np.expm1(-term * np.log1p(rate)), 1.0 / term)
    return np.asarray(price * factor)


def price_level_usd(target_usd: ArrayLike, host_usd: ArrayLike, drives: ArrayLike) -> FloatArray:
    """Return the drive price at which a system costs `target_usd` [USD]; negative if none does.

    Parameters
    ----------
    target_usd, host_usd : array_like
        Cost to meet, and the price of everything but the drives [USD]; at least 0.
    drives : array_like
        Number of drives; greater than 0.
    """
    left = not_negative("target_usd", target_usd) - not_negative("host_usd", host_usd)
    return np.asarray(left / positive("drives", drives))
