"""Cost of ownership: the systems of a scenario compared in three sheets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from csdplan.errors import ProfileIncomplete
from csdplan.model.inputs import not_negative
from csdplan.profile.workload import Workload
from csdplan.result.sheet import Sheet, sheet_of
from csdplan.solve.tco import (
    Cost,
    Kernel,
    Service,
    System,
    cost_of,
    equal_throughput,
    level_drive_price_usd,
)

#: Drive prices that are tried unless the user names others [USD].
DRIVE_USD = (80.0, 110.0, 150.0, 200.0, 300.0)


@dataclass(frozen=True)
class Tco:
    """Costs of a scenario's systems.

    Attributes
    ----------
    as_is : tuple of Cost
        Each system as the scenario configures it.
    equal : tuple of Cost
        Each system with as many drives as it needs for the first system's throughput.
    drive_usd : tuple of float
        Prices of a computational drive to try [USD].
    """

    as_is: tuple[Cost, ...]
    equal: tuple[Cost, ...]
    drive_usd: tuple[float, ...] = DRIVE_USD

    def sheets(self) -> tuple[Sheet, Sheet, Sheet]:
        """Return the costs as configured, at equal throughput, and over the drives' price."""
        return (
            cost_sheet("As configured", self.as_is, "saved: against the first system's purchase"),
            cost_sheet("At the first system's throughput", self.equal, "drives counted again"),
            price_sensitivity(self.equal, self.drive_usd),
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Statements about numbers that are unknown."""
        unknown = [cost.system.name for cost in self.as_is if cost.energy_usd is None]
        return (f"power unknown, so no energy: {', '.join(unknown)}",) if unknown else ()


def tco(
    systems: Sequence[System],
    kernel: Kernel,
    service: Service,
    drive_usd: Sequence[float] = DRIVE_USD,
) -> Tco:
    """Return the costs of a scenario's systems.

    Parameters
    ----------
    systems : sequence of System
        The systems; the others are compared with the first one.
    kernel : Kernel
        The kernel that all of them run.
    service : Service
        Years in service and the price of energy.
    drive_usd : sequence of float
        Prices of a computational drive to try [USD].
    """
    return Tco(
        as_is=tuple(cost_of(system, kernel, service) for system in systems),
        equal=tuple(equal_throughput(systems, kernel, service)),
        drive_usd=tuple(drive_usd),
    )


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
    return sheet_of(title, columns, rows, note)


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
    not_negative("prices_usd", list(drive_usd))
    base = costs[0].purchase_usd
    rows = []
    for price in drive_usd:
        for found in costs[1:]:
            total = found.system.host_usd + found.system.drives * price
            rows.append((found.system.name, price, total, 1 - total / base, total < base))
    columns = ("system", "drive_usd", "purchase_usd", "saved", "cheaper")
    return sheet_of("Purchase as the price of computational drives changes", columns, rows)


@dataclass(frozen=True)
class Comparison:
    """SSDs on a host, and the prices of both sides.

    Attributes
    ----------
    host_cores : int
        Host cores at work.
    ssds : int
        SSDs to compare with.
    k_limit : float or None
        Overrides the profile's own.
    sd_tx, sd_comp : float
        Slow-down factors of the host [1].
    host_usd, csd_host_usd : float
        Price of the host of the SSDs, and of that of the drives that compute [USD].
    ssd_usd, csd_usd : float
        Price of an SSD, and of a drive that computes [USD].
    drive_bytes : float
        Capacity of a drive [bytes].

    The defaults are the published prices of October 2022, for drives of 2 TB.
    """

    host_cores: int = 4
    ssds: int = 8
    k_limit: float | None = None
    sd_tx: float = 1.0
    sd_comp: float = 1.0
    host_usd: float = 1828.0
    csd_host_usd: float = 485.0
    ssd_usd: float = 100.0
    csd_usd: float = 110.0
    drive_bytes: float = 2e12


def compared(workload: Workload, asked: Comparison) -> tuple[Cost, Cost, Cost]:
    """Return the costs of the SSDs, of as many drives, and of drives that are as fast.

    The last one is not feasible if no number of drives is as fast as the SSDs.
    """
    host = workload.host(asked.host_cores)
    kernel = Kernel(
        bytes=workload.bytes,
        ssd_tx_s=host.tx_s * asked.sd_tx,
        ssd_comp_s=host.comp_s / host.divisor * asked.sd_comp,
        csd_tx_s=workload.csd_tx_s,
        csd_comp_s=workload.csd_comp_s,
        k_limit=asked.k_limit or workload.k_limit,
    )
    cores = f"{asked.host_cores} core{'' if asked.host_cores == 1 else 's'}"
    plain = System(
        f"{asked.ssds} SSDs on a host with {cores}",
        cpu="",
        computes="host",
        host_usd=asked.host_usd,
        drive_usd=asked.ssd_usd,
        drives=asked.ssds,
        drive_bytes=asked.drive_bytes,
    )
    same = replace(
        plain,
        name="as many drives that compute",
        computes="drives",
        host_usd=asked.csd_host_usd,
        drive_usd=asked.csd_usd,
    )
    service = Service()
    fast = replace(same, name="drives as fast as the SSDs")
    equal = equal_throughput([plain, fast], kernel, service)
    return equal[0], cost_of(same, kernel, service), equal[1]


def purchase_sheet(costs: Sequence[Cost]) -> Sheet:
    """Tabulate purchases alone, a row for each system; None where the throughput is unknown."""
    rows = [
        (
            cost.system.name,
            cost.system.drives,
            cost.system.host_usd,
            cost.system.drives * cost.system.drive_usd,
            cost.purchase_usd,
            None if cost.throughput_Bps is None else cost.throughput_Bps / 1e9,
        )
        for cost in costs
    ]
    columns = ("system", "drives", "host_usd", "drives_usd", "purchase_usd", "throughput_GBps")
    note = "purchase only; csdplan tco and csdplan optimize add energy where watts are known"
    return sheet_of("What each system costs, and how fast it is", columns, rows, note)
