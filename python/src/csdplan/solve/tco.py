"""Cost of ownership: the paper's comparison, and the same at equal throughput.

The paper compares systems by benchmark mark and capacity for a dollar, each with its own number of
drives. Those systems need not do the same work in the same time: its CSD systems are sized against
a *slower* host than the SSD system has. `equal_throughput` gives every system the drives that it
needs to be as fast as the first one, and says so where no number of drives is enough.

Prices and powers that are unknown stay unknown (None): nothing is added up around a gap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import ceil

from csdplan.errors import ModelError
from csdplan.model import cost, csd_array_time_s, ssd_array_time_s
from csdplan.model.inputs import positive
from csdplan.solve.exact import decimal


@dataclass(frozen=True)
class System:
    """One system to cost.

    Attributes
    ----------
    name, cpu : str
        Names of the system and of its CPU.
    computes : str
        ``host`` (an SSD system) or ``drives``.
    host_usd, drive_usd : float
        Price of the host, and of one drive [USD].
    drives : int
        Number of drives.
    drive_bytes : float
        Capacity of a drive [bytes].
    mark : float or None
        Benchmark mark of the CPU, in the benchmark's own unit.
    slow_down : float
        The host's compute time over that of the host that the kernel was measured on [1]; below 1
        for a faster host.
    host_idle_W, host_active_W : float or None
        Power of the host at rest, and what its work adds [W].
    drive_idle_W, drive_active_W : float or None
        Power of a drive at rest, and at work [W].
    """

    name: str
    cpu: str
    computes: str
    host_usd: float
    drive_usd: float
    drives: int
    drive_bytes: float
    mark: float | None = None
    slow_down: float = 1.0
    host_idle_W: float | None = None
    host_active_W: float | None = None
    drive_idle_W: float | None = None
    drive_active_W: float | None = None


@dataclass(frozen=True)
class Kernel:
    """Times of the kernel that the systems run.

    Attributes
    ----------
    bytes : int
        Working set [bytes].
    ssd_tx_s, ssd_comp_s : float
        T_SSD-tx and T_SSD(n)-comp of the host that was measured [s].
    csd_tx_s, csd_comp_s : float
        One drive's times [s].
    k_limit : float or None
        Devices that use up the host's ingest bandwidth.
    """

    bytes: int
    ssd_tx_s: float
    ssd_comp_s: float
    csd_tx_s: float
    csd_comp_s: float
    k_limit: float | None


@dataclass(frozen=True)
class Service:
    """Years in service, and the price of energy.

    Attributes
    ----------
    years : float
        Years in service.
    usd_per_kWh : float
        Price of energy [USD/kWh].
    pue : float
        Power usage effectiveness of the site [1].
    busy : float
        Share of time at work, 0 to 1.
    interest : float
        Yearly interest on the purchase [1].
    """

    years: float = 5.0
    usd_per_kWh: float = 0.12
    pue: float = cost.PUE
    busy: float = cost.BUSY
    interest: float = 0.0


@dataclass(frozen=True)
class Cost:
    """Cost and performance of one system. None stands for unknown.

    Attributes
    ----------
    system : System
        The system, with the number of drives that was costed.
    feasible : bool
        False if no number of drives reaches the throughput asked for.
    purchase_usd : float
        Host and drives [USD].
    mark_per_usd, bytes_per_usd : float or None
        Benchmark mark, and capacity [bytes], for a dollar of purchase.
    time_s, throughput_Bps : float or None
        Of the kernel on this system.
    energy_usd : float or None
        Energy over the years in service [USD].
    yearly_usd : float or None
        Instalment and energy for a year [USD/year].
    total_usd : float or None
        Purchase and energy over the years in service [USD].
    """

    system: System
    feasible: bool
    purchase_usd: float
    mark_per_usd: float | None
    bytes_per_usd: float
    time_s: float | None
    throughput_Bps: float | None
    energy_usd: float | None
    yearly_usd: float | None
    total_usd: float | None


def system_time_s(system: System, kernel: Kernel) -> float:
    """Return the time of the kernel on a system (equations 5 and 7) [s]."""
    if system.computes == "drives":
        return float(csd_array_time_s(system.drives, kernel.csd_tx_s, kernel.csd_comp_s))
    time = ssd_array_time_s(
        system.drives,
        kernel.ssd_tx_s,
        system.slow_down * kernel.ssd_comp_s,
        k_limit=kernel.k_limit,
    )
    return float(time)


def cost_of(system: System, kernel: Kernel | None, service: Service) -> Cost:
    """Cost one system as it stands.

    Raises
    ------
    ModelError
        If a price, capacity or share is out of range, or `computes` names no side.
    """
    if system.computes not in {"host", "drives"}:
        raise ModelError(f"{system.name}: computes", system.computes, "host or drives")
    positive(f"{system.name}: slow_down", system.slow_down)
    if not 0 <= service.busy <= 1:
        raise ModelError("busy", service.busy, "a share from 0 to 1")
    purchase = float(cost.purchase_usd(system.host_usd, system.drives, system.drive_usd))
    time_s = None if kernel is None else system_time_s(system, kernel)
    energy = _energy_usd(system, service)
    yearly = float(cost.annuity_usd(purchase, service.years, service.interest))
    return Cost(
        system=system,
        feasible=True,
        purchase_usd=purchase,
        mark_per_usd=None if system.mark is None else float(cost.per_usd(system.mark, purchase)),
        bytes_per_usd=float(cost.per_usd(system.drives * system.drive_bytes, purchase)),
        time_s=time_s,
        throughput_Bps=None if kernel is None or time_s is None else kernel.bytes / time_s,
        energy_usd=energy,
        yearly_usd=None if energy is None else yearly + energy / service.years,
        total_usd=None if energy is None else purchase + energy,
    )


def equal_throughput(
    systems: Sequence[System], kernel: Kernel, service: Service
) -> tuple[Cost, ...]:
    """Cost every system with the drives that it needs to be as fast as the first one.

    Returns
    -------
    tuple of Cost
        In the order of `systems`; the first as it stands. `Cost.feasible` is False where no number
        of drives is enough, and the system is then costed with the drives it came with.
    """
    if not systems:
        raise ModelError("systems", "[]", "at least one system")
    target = _time_exact(systems[0], kernel)
    costs = []
    for system in systems:
        drives = drives_for(system, kernel, target)
        sized = system if drives is None else replace(system, drives=drives)
        costed = cost_of(sized, kernel, service)
        costs.append(costed if drives is not None else replace(costed, feasible=False))
    return (cost_of(systems[0], kernel, service), *costs[1:])


def drives_for(system: System, kernel: Kernel, target_s: Fraction) -> int | None:
    """Return the fewest drives with which a system takes `target_s` or less; None if none do."""
    if system.computes == "drives":
        return max(1, ceil(_drive_exact(kernel) / target_s))
    left = target_s - _host_comp_exact(system, kernel)
    if left <= 0:
        return None
    needed = decimal(kernel.ssd_tx_s) / left
    if kernel.k_limit is not None and needed > decimal(kernel.k_limit):
        return None
    return max(1, ceil(needed))


def level_drive_price_usd(costs: Sequence[Cost]) -> tuple[float | None, ...]:
    """Return the drive price at which each purchase equals the first one's [USD].

    None for the first system and for infeasible ones; negative if not even free drives do.
    """
    target = costs[0].purchase_usd
    prices: list[float | None] = [None]
    for found in costs[1:]:
        level = cost.price_level_usd(target, found.system.host_usd, found.system.drives)
        prices.append(float(level) if found.feasible else None)
    return tuple(prices)


def _energy_usd(system: System, service: Service) -> float | None:
    powers = (
        system.host_idle_W,
        system.host_active_W,
        system.drive_idle_W,
        system.drive_active_W,
    )
    host_idle, host_active, drive_idle, drive_active = powers
    if host_idle is None or host_active is None or drive_idle is None or drive_active is None:
        return None
    # Where the drives compute the host is at rest; SSDs are at work whenever the host is.
    host_busy = service.busy if system.computes == "host" else 0.0
    power = cost.average_power_W(
        host_idle, host_active, host_busy, system.drives, drive_idle, drive_active, service.busy
    )
    return float(cost.energy_usd(power, service.years, service.usd_per_kWh, service.pue))


def _drive_exact(kernel: Kernel) -> Fraction:
    return decimal(kernel.csd_tx_s) + decimal(kernel.csd_comp_s)


def _host_comp_exact(system: System, kernel: Kernel) -> Fraction:
    return decimal(system.slow_down) * decimal(kernel.ssd_comp_s)


def _time_exact(system: System, kernel: Kernel) -> Fraction:
    """Return `system_time_s` without rounding: a tie at the target is wanted, not missed."""
    if system.computes == "drives":
        return _drive_exact(kernel) / system.drives
    lanes = Fraction(system.drives)
    if kernel.k_limit is not None:
        lanes = min(lanes, decimal(kernel.k_limit))
    return decimal(kernel.ssd_tx_s) / lanes + _host_comp_exact(system, kernel)
