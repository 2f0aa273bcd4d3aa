"""The optimizer's input: products and requirements, as plain numbers.

Speeds are of one kernel on one part, as seconds per byte; where they come from is the caller's
business. A drive that cannot run a workload has no entry for it: it serves it as an SSD.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from csdplan.errors import ModelError
from csdplan.model.cost import BUSY, HOURS_PER_YEAR, PUE
from csdplan.model.inputs import not_negative, positive
from csdplan.model.memory import through_Bps
from csdplan.model.overlap import Overlap
from csdplan.solve.clients import Clients

#: Lanes of PCIe of a drive bay.
BAY_LANES = 4


@dataclass(frozen=True)
class Cpu:
    """One kind of host.

    Attributes
    ----------
    name : str
        Its name.
    cores : int
        Cores that work.
    price_usd : float
        Price of the host without drives [USD]; at least 0.
    ingest_Bps : float
        Bytes per second that it takes in from all drives together.
    slots : int
        Drives that it has room for.
    idle_W, core_W : float or None
        Power at rest without drives, and what one working core adds [W].
    rack_units : float
        Height in a rack [U].
    bay_Bps, card_Bps : float
        Bytes per second of the lanes of one drive bay, and of a card's slot.
    memory_Bps : float
        Bytes per second that its memory takes and gives together.
    most : int or None
        How many there are; None: as many as are wanted.
    disks : bool
        True if its bays are for hard drives, and for nothing else.
    """

    name: str
    cores: int
    price_usd: float
    ingest_Bps: float
    slots: int
    idle_W: float | None = None
    core_W: float | None = None
    rack_units: float = 0.0
    bay_Bps: float = float("inf")
    card_Bps: float = float("inf")
    memory_Bps: float = float("inf")
    most: int | None = None
    disks: bool = False

    def __post_init__(self) -> None:
        positive(f"cores of {self.name}", self.cores)
        positive(f"slots of {self.name}", self.slots)
        positive(f"ingest_Bps of {self.name}", self.ingest_Bps)
        if not self.memory_Bps > 0:
            raise ModelError(f"memory_Bps of {self.name}", self.memory_Bps, "more than 0")
        _watts_and_price(self.name, self.price_usd, self.idle_W, self.core_W)

    @property
    def intake_Bps(self) -> float:
        """Bytes per second that it takes in: each is written to its memory, and read again."""
        return min(self.ingest_Bps, through_Bps(self.memory_Bps))

    @property
    def full_W(self) -> float | None:
        """Power with every core at work [W]; None if unknown."""
        if self.idle_W is None or self.core_W is None:
            return None
        return self.idle_W + self.cores * self.core_W

    def average_W(self, busy: float) -> float:
        """Return the power with all cores at work for the share `busy` of time [W]; 0: unknown."""
        if self.idle_W is None or self.core_W is None:
            return 0.0
        return self.idle_W + busy * self.cores * self.core_W


@dataclass(frozen=True)
class DriveKind:
    """One kind of drive, computing or not.

    Attributes
    ----------
    name : str
        Its name.
    price_usd : float
        Price [USD]; at least 0.
    capacity_bytes : float
        Capacity [bytes].
    read_Bps : float
        Bytes per second that a host reads from one.
    active_W : float or None
        Power at work [W].
    media_Bps : float or None
        Bytes per second that its media deliver to all readers together, inside and outside; at
        least `read_Bps`. None: no more than the fastest of its readers takes.
    idle_W : float or None
        Power at rest [W]; None: as at work.
    slots : int
        Slots of a host that one takes; 0 for a drive with a box of its own on the network.
    rack_units : float
        Height in a rack, beyond the slot [U].
    write_Bps : float or None
        Bytes per second that one stores; None: unknown, so that none are planned onto it.
    endurance_Bps : float
        Bytes per second that one may be written over its time of use; infinite if unlimited.
    lanes : int
        Lanes of PCIe that it has; a bay has `BAY_LANES`.
    most : int or None
        How many there are; None: as many as are wanted.
    disk : bool
        True for a hard drive, which holds cold data.
    """

    name: str
    price_usd: float
    capacity_bytes: float
    read_Bps: float
    active_W: float | None = None
    media_Bps: float | None = None
    idle_W: float | None = None
    slots: int = 1
    rack_units: float = 0.0
    write_Bps: float | None = None
    endurance_Bps: float = float("inf")
    lanes: int = BAY_LANES
    most: int | None = None
    disk: bool = False

    def __post_init__(self) -> None:
        positive(f"capacity_bytes of {self.name}", self.capacity_bytes)
        positive(f"read_Bps of {self.name}", self.read_Bps)
        positive(f"lanes of {self.name}", self.lanes)
        if self.media_Bps is not None and not self.media_Bps >= self.read_Bps:
            raise ModelError(
                f"media_Bps of {self.name}",
                self.media_Bps,
                f"at least the {self.read_Bps:g} that a host reads",
            )
        _watts_and_price(self.name, self.price_usd, self.active_W, self.idle_W)

    def average_W(self, busy: float) -> float:
        """Return the power at work for the share `busy` of time, else at rest [W]; 0 if unknown."""
        if self.active_W is None:
            return 0.0
        idle_W = self.active_W if self.idle_W is None else self.idle_W
        return busy * self.active_W + (1 - busy) * idle_W


@dataclass(frozen=True)
class NetworkPart:
    """A network card of a host, or a switch.

    Attributes
    ----------
    name : str
        Its name.
    price_usd : float
        Price [USD]; at least 0.
    link_Bps : float
        Bandwidth of the card, or of one port [bytes/s].
    ports : int
        Ports of a switch; 0 for a card.
    active_W : float or None
        Power at work [W].
    rack_units : float
        Height in a rack [U].
    most : int or None
        How many there are; None: as many as are wanted.
    """

    name: str
    price_usd: float
    link_Bps: float
    ports: int = 0
    active_W: float | None = None
    rack_units: float = 0.0
    most: int | None = None

    def __post_init__(self) -> None:
        positive(f"link_Bps of {self.name}", self.link_Bps)
        not_negative(f"ports of {self.name}", self.ports)
        _watts_and_price(self.name, self.price_usd, self.active_W)

    def average_W(self, busy: float) -> float:
        """Return the power, at rest as at work [W]; 0 if unknown."""
        return self.active_W or 0.0


@dataclass(frozen=True)
class Demand:
    """One workload.

    Attributes
    ----------
    name : str
        Its name.
    required_Bps : float
        Input that it must get through per second.
    core_s_per_byte : mapping of str to float
        Compute time of one core, by CPU [s/byte]. A CPU without an entry cannot run it.
    drive_s_per_byte : mapping of str to float
        Load and compute time inside one drive, by kind [s/byte].
    stored_bytes : float
        Size of its data; each byte is worked on where it lies. 0: not counted against drives.
    returns : float
        Bytes of result for each byte of input [1]: a drive sends them to its host, and hosts to
        their clients, if there are any.
    """

    name: str
    required_Bps: float
    core_s_per_byte: Mapping[str, float]
    drive_s_per_byte: Mapping[str, float]
    stored_bytes: float = 0.0
    returns: float = 0.0

    def __post_init__(self) -> None:
        positive(f"required_Bps of {self.name}", self.required_Bps)
        not_negative(f"stored_bytes of {self.name}", self.stored_bytes)
        not_negative(f"returns of {self.name}", self.returns)
        for side, times in (("core", self.core_s_per_byte), ("drive", self.drive_s_per_byte)):
            for part, time in times.items():
                positive(f"{side}_s_per_byte of {self.name} on {part}", time)


@dataclass(frozen=True)
class Limits:
    """Limits of the whole purchase.

    Attributes
    ----------
    capacity_bytes, cold_bytes : float
        Capacity of all drives but hard drives, and of all hard drives, at least [bytes].
    budget_usd, power_W : float or None
        Money, and power with everything at work, at most.
    budget_covers : str
        ``purchase``: the budget is for the purchase; ``total``: for purchase and energy.
    hosts_max : int
        Hosts at most.
    energy_usd_per_kWh, years : float
        Price of energy and time of use; their product with the average power is a cost.
    pue, busy : float
        Power usage effectiveness of the site, and share of time at work [1], as in `tco`.
    rack_units : float or None
        Height of everything, at most [U].
    write_Bps : float
        Bytes per second that drives store at peak, all copies and codes counted.
    written_Bps : float or None
        The same on average over the years, which wears drives out; by default `write_Bps`.
    drives_min : int
        Drives at least, such as those that a code needs; of hard drives as many again.
    """

    capacity_bytes: float = 0.0
    budget_usd: float | None = None
    power_W: float | None = None
    hosts_max: int = 1
    energy_usd_per_kWh: float = 0.0
    years: float = 0.0
    budget_covers: str = "purchase"
    pue: float = PUE
    busy: float = BUSY
    rack_units: float | None = None
    write_Bps: float = 0.0
    written_Bps: float | None = None
    drives_min: int = 0
    cold_bytes: float = 0.0

    def __post_init__(self) -> None:
        not_negative("capacity_bytes", self.capacity_bytes)
        not_negative("cold_bytes", self.cold_bytes)
        not_negative("energy_usd_per_kWh", self.energy_usd_per_kWh)
        not_negative("years", self.years)
        positive("hosts_max", self.hosts_max)
        not_negative("write_Bps", self.write_Bps)
        if self.written_Bps is not None and not 0 <= self.written_Bps <= self.write_Bps:
            raise ModelError("written_Bps", self.written_Bps, "at most write_Bps, the peak")
        not_negative("drives_min", self.drives_min)
        if self.budget_covers not in {"purchase", "total"}:
            raise ModelError("budget_covers", self.budget_covers, "purchase or total")
        if not self.pue >= 1:
            raise ModelError("pue", self.pue, "at least 1")
        if not 0 <= self.busy <= 1:
            raise ModelError("busy", self.busy, "a share from 0 to 1")
        for name in ("budget_usd", "power_W", "rack_units"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))

    @property
    def usd_per_W(self) -> float:
        """Cost of energy over the time of use for each watt drawn on average [USD/W]."""
        return self.energy_usd_per_kWh * self.years * HOURS_PER_YEAR * self.pue / 1000.0

    @property
    def write_average(self) -> float:
        """Average of what is stored over the peak [1]."""
        if self.written_Bps is None or not self.write_Bps:
            return 1.0
        return self.written_Bps / self.write_Bps

    @property
    def needs_watts(self) -> bool:
        """True if an answer depends on power."""
        return self.power_W is not None or self.usd_per_W > 0


@dataclass(frozen=True)
class Request:
    """A question to the optimizer.

    Attributes
    ----------
    cpus, drives, demands : tuple
        Products on offer, and throughput required of them.
    limits : Limits
        Limits of the purchase.
    overlap : Overlap
        ``serial`` if hosts add load and compute time, as the papers do; else they overlap. Drives'
        times are as given.
    network : tuple of NetworkPart
        Cards and switches that drives on the network need, and clients; empty if theirs are not
        bought.
    clients : Clients or None
        What hosts do for clients; None: how clients reach them is not planned.
    """

    cpus: tuple[Cpu, ...]
    drives: tuple[DriveKind, ...]
    demands: tuple[Demand, ...]
    limits: Limits = field(default_factory=Limits)
    overlap: Overlap = Overlap.SERIAL
    network: tuple[NetworkPart, ...] = ()
    clients: Clients | None = None

    def __post_init__(self) -> None:
        if self.clients is not None and not self.network:
            raise ModelError("network", "[]", "cards and switches, through which clients come")
        for name in ("cpus", "drives", "demands", "network"):
            items: Sequence[Cpu | DriveKind | Demand | NetworkPart] = getattr(self, name)
            if not items and name != "network":
                raise ModelError(name, "[]", "at least one")
            names = [item.name for item in items]
            if len(set(names)) < len(names):
                raise ModelError(name, ", ".join(names), "names that differ")
        if self.limits.needs_watts:
            unknown = [cpu.name for cpu in self.cpus if cpu.full_W is None]
            unknown += [kind.name for kind in self.drives if kind.active_W is None]
            unknown += [part.name for part in self.network if part.active_W is None]
            if unknown:
                keys = "idle_W and core_W of a CPU, active_W of all else"
                raise ModelError("watts", "absent", f"the watts of {', '.join(unknown)} ({keys})")


def media_Bps(kind: DriveKind, demands: Sequence[Demand]) -> float:
    """Return the bytes per second that the media of one drive deliver to all readers together.

    Where `DriveKind.media_Bps` is unknown, this is the rate of the fastest known reader: a host,
    or a workload inside. No reader is then slowed down by itself, and together they get no more
    than one of them is known to get.
    """
    if kind.media_Bps is not None:
        return kind.media_Bps
    inside = [
        1.0 / demand.drive_s_per_byte[kind.name]
        for demand in demands
        if kind.name in demand.drive_s_per_byte
    ]
    return max([kind.read_Bps, *inside])


def port_Bps(kind: DriveKind, cpu: Cpu) -> float:
    """Return the bytes per second of a drive's port in a bay of a host."""
    return min(kind.read_Bps, cpu.bay_Bps * min(kind.lanes, BAY_LANES) / BAY_LANES)


def _watts_and_price(name: str, price_usd: float, *watts: float | None) -> None:
    not_negative(f"price_usd of {name}", price_usd)
    for value in watts:
        if value is not None:
            not_negative(f"watts of {name}", value)
