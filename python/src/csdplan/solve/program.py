"""The purchase as a mixed-integer linear program.

Whole numbers: m_k drives of each kind, h_j hosts of each mode. Rates: x_ik of workload i inside
drives of kind k, r_ik read by hosts from kind k, y_ij computed by hosts of mode j, and lambda, the
share of every required throughput that is reached.

A host's *mode* is a CPU and, where load and compute times add, a transfer speed B_j that its
drives can feed: equation 5 says y (1 / B + c / n) <= 1, and B = min(m read, ingest) is what makes
that a product of unknowns. The speeds are the multiples of each kind's read speed up to what the
host takes in, so an array of one kind loses nothing; B_j <= the true speed in every case, so a
purchase found does what it says.

A drive has one medium. The reads of hosts and those inside share that medium's bandwidth (row
``media``). The reads of hosts also cross the drive's port (row ``ports``) and the hosts' intake.

Rates are in GB/s, capacity in TB, so that the solver's tolerances mean something.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from csdplan.model.overlap import Overlap
from csdplan.solve.purchase import Cpu, Request, media_Bps

GB = 1e9
TB = 1e12
#: Transfer speeds considered for one CPU; more are thinned to this many, evenly in the logarithm.
SPEEDS_MAX = 16


@dataclass(frozen=True)
class Mode:
    """One way to use one kind of host.

    Attributes
    ----------
    cpu : int
        Index of the CPU.
    transfer_Bps : float
        B_j [bytes/s]; 0 for a host that only holds drives. The host's full intake if it overlaps.
    """

    cpu: int
    transfer_Bps: float


@dataclass(frozen=True)
class Row:
    """One constraint: lower <= sum of coefficients times variables <= upper."""

    name: str
    terms: dict[int, float]
    lower: float
    upper: float


@dataclass
class Program:
    """Variables and rows, before a solver sees them.

    Attributes
    ----------
    request : Request
        The question.
    modes : tuple of Mode
        The h_j, in order.
    price_usd, cost_usd, power_W : dict
        Coefficients by variable: purchase, purchase and energy, power at work.
    upper : list of float
        Upper bounds; all lower bounds are 0.
    whole : list of bool
        True for variables that must be whole numbers.
    rows : list of Row
        The constraints.
    """

    request: Request
    modes: tuple[Mode, ...]
    price_usd: dict[int, float] = field(default_factory=dict)
    cost_usd: dict[int, float] = field(default_factory=dict)
    power_W: dict[int, float] = field(default_factory=dict)
    upper: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    drive: list[int] = field(default_factory=list)
    host: list[int] = field(default_factory=list)
    network: list[int] = field(default_factory=list)
    inside: dict[tuple[int, int], int] = field(default_factory=dict)
    read: dict[tuple[int, int], int] = field(default_factory=dict)
    computed: dict[tuple[int, int], int] = field(default_factory=dict)
    written: dict[int, int] = field(default_factory=dict)
    scale: int = -1

    def variable(self, upper: float, *, whole: bool = False) -> int:
        """Add a variable from 0 to `upper`; return its index."""
        self.upper.append(upper)
        self.whole.append(whole)
        return len(self.upper) - 1

    def require(self, name: str, terms: dict[int, float], lower: float, upper: float) -> None:
        """Add a row."""
        self.rows.append(Row(name, terms, lower, upper))


def modes_of(request: Request) -> tuple[Mode, ...]:
    """Return every mode of every CPU."""
    found: list[Mode] = []
    for index, cpu in enumerate(request.cpus):
        found.append(Mode(index, 0.0))
        if request.overlap is Overlap.PIPELINED:
            found.append(Mode(index, cpu.ingest_Bps))
        else:
            found += [Mode(index, speed) for speed in _speeds(cpu, request)]
    return tuple(found)


def _speeds(cpu: Cpu, request: Request) -> list[float]:
    multiples: set[float] = {cpu.ingest_Bps}
    for kind in request.drives:
        most = min(int(cpu.ingest_Bps / kind.read_Bps), cpu.slots)
        multiples |= {count * kind.read_Bps for count in range(1, most + 1)}
    speeds = sorted(multiples)
    if len(speeds) <= SPEEDS_MAX:
        return speeds
    wanted = np.geomspace(speeds[0], speeds[-1], SPEEDS_MAX)
    chosen = {speeds[int(np.searchsorted(speeds, goal * (1 - 1e-9)))] for goal in wanted}
    return sorted(chosen)


def program(request: Request) -> Program:
    """Write the request down as a program, every requirement a row of its own name."""
    built = Program(request, modes_of(request))
    limits = request.limits
    drives_max = limits.hosts_max * max(cpu.slots for cpu in request.cpus)
    drives_max = max(drives_max, limits.drives_min)
    for kind in request.drives:
        index = built.variable(drives_max, whole=True)
        built.drive.append(index)
        built.power_W[index] = kind.active_W or 0.0
        built.price_usd[index] = kind.price_usd
        energy_usd = limits.usd_per_W * kind.average_W(limits.busy)
        built.cost_usd[index] = kind.price_usd + energy_usd
    for mode in built.modes:
        cpu = request.cpus[mode.cpu]
        index = built.variable(limits.hosts_max, whole=True)
        built.host.append(index)
        built.power_W[index] = cpu.full_W or 0.0
        built.price_usd[index] = cpu.price_usd
        energy_usd = limits.usd_per_W * cpu.average_W(limits.busy)
        built.cost_usd[index] = cpu.price_usd + energy_usd
    for part in request.network:
        most = -(-(drives_max + limits.hosts_max) // part.ports) if part.ports else limits.hosts_max
        index = built.variable(most, whole=True)
        built.network.append(index)
        built.power_W[index] = part.active_W or 0.0
        built.price_usd[index] = part.price_usd
        # Cards and switches draw as much at rest.
        built.cost_usd[index] = part.price_usd + limits.usd_per_W * (part.active_W or 0.0)
    built.scale = built.variable(1.0)
    _rates(built)
    _demand_rows(built)
    _host_rows(built)
    _drive_rows(built)
    _limit_rows(built)
    _other_rows(built)
    _network_rows(built, drives_max)
    return built


def _rates(built: Program) -> None:
    request = built.request
    for i, demand in enumerate(request.demands):
        for k, kind in enumerate(request.drives):
            built.read[i, k] = built.variable(np.inf)
            if kind.name in demand.drive_s_per_byte:
                built.inside[i, k] = built.variable(np.inf)
        for j, mode in enumerate(built.modes):
            if mode.transfer_Bps and request.cpus[mode.cpu].name in demand.core_s_per_byte:
                built.computed[i, j] = built.variable(np.inf)


def _demand_rows(built: Program) -> None:
    for i, demand in enumerate(built.request.demands):
        computed = {v: 1.0 for (w, _), v in built.computed.items() if w == i}
        inside = {v: 1.0 for (w, _), v in built.inside.items() if w == i}
        required = demand.required_Bps / GB
        reached = {**computed, **inside, built.scale: -required}
        built.require(f"throughput of {demand.name}", reached, 0.0, np.inf)
        read = {v: -1.0 for (w, _), v in built.read.items() if w == i}
        built.require(f"reads of {demand.name}", {**computed, **read}, 0.0, 0.0)


def _host_rows(built: Program) -> None:
    request = built.request
    kinds = zip(built.drive, request.drives, strict=True)
    lanes = {index: kind.read_Bps / GB for index, kind in kinds}
    for j, mode in enumerate(built.modes):
        if not mode.transfer_Bps:
            continue
        cpu = request.cpus[mode.cpu]
        load = {v: GB / mode.transfer_Bps for (_, n), v in built.computed.items() if n == j}
        compute = {
            v: GB * request.demands[i].core_s_per_byte[cpu.name] / cpu.cores
            for (i, n), v in built.computed.items()
            if n == j
        }
        host = {built.host[j]: -1.0}
        if request.overlap is Overlap.PIPELINED:
            built.require(f"intake of {cpu.name}", {**load, **host}, -np.inf, 0.0)
            built.require(f"cores of {cpu.name}", {**compute, **host}, -np.inf, 0.0)
        else:
            busy = {v: load[v] + compute[v] for v in load}
            built.require(f"time of {cpu.name}", {**busy, **host}, -np.inf, 0.0)
            lanes[built.host[j]] = -mode.transfer_Bps / GB
    if request.overlap is Overlap.SERIAL:
        built.require("lanes", lanes, 0.0, np.inf)


def _drive_rows(built: Program) -> None:
    request = built.request
    for k, kind in enumerate(request.drives):
        reads = {v: 1.0 for (_, n), v in built.read.items() if n == k}
        back = {
            v: request.demands[i].returns
            for (i, n), v in built.inside.items()
            if n == k and request.demands[i].returns
        }
        port = {**reads, **back, built.drive[k]: -kind.read_Bps / GB}
        built.require(f"ports of {kind.name}", port, -np.inf, 0.0)
        read_inside = {v: 1.0 for (_, n), v in built.inside.items() if n == k}
        if read_inside:
            media = {built.drive[k]: -media_Bps(kind, request.demands) / GB}
            built.require(f"media of {kind.name}", {**reads, **read_inside, **media}, -np.inf, 0.0)
        inside = {
            v: GB * request.demands[i].drive_s_per_byte[kind.name]
            for (i, n), v in built.inside.items()
            if n == k
        }
        if inside:
            built.require(f"time of {kind.name}", {**inside, built.drive[k]: -1.0}, -np.inf, 0.0)
        stored = _stored(built, k)
        if stored:
            stored[built.drive[k]] = -kind.capacity_bytes / TB
            built.require(f"data on {kind.name}", stored, -np.inf, 0.0)


def _stored(built: Program, k: int) -> dict[int, float]:
    """Return the data that lies on kind k because it is worked on there [TB per GB/s]."""
    found: dict[int, float] = {}
    for i, demand in enumerate(built.request.demands):
        if demand.stored_bytes:
            each = demand.stored_bytes / TB / (demand.required_Bps / GB)
            variables = (built.read[i, k], built.inside.get((i, k)))
            found |= {v: each for v in variables if v is not None}
    return found


def _limit_rows(built: Program) -> None:
    request, limits = built.request, built.request.limits
    kinds = zip(built.drive, request.drives, strict=True)
    capacity = {v: kind.capacity_bytes / TB for v, kind in kinds}
    built.require("capacity", capacity, limits.capacity_bytes / TB, np.inf)
    modes = zip(built.host, built.modes, strict=True)
    slots = {v: float(request.cpus[mode.cpu].slots) for v, mode in modes}
    kinds = zip(built.drive, request.drives, strict=True)
    taken = {v: -float(kind.slots) for v, kind in kinds if kind.slots}
    built.require("slots", {**slots, **taken}, 0.0, np.inf)
    every = dict.fromkeys(built.host, 1.0)
    built.require("one host", every, 1.0, np.inf)
    built.require("hosts", every, 0.0, float(limits.hosts_max))
    if limits.budget_usd is not None:
        spent = built.price_usd if limits.budget_covers == "purchase" else built.cost_usd
        built.require("budget", spent, -np.inf, limits.budget_usd)
    if limits.power_W is not None:
        built.require("power", built.power_W, -np.inf, limits.power_W)


def _other_rows(built: Program) -> None:
    """Add what only some requests ask for: results, writes, endurance, rack, a code's drives."""
    request, limits = built.request, built.request.limits
    kinds = list(zip(built.drive, request.drives, strict=True))
    back = {v: request.demands[i].returns for (i, _), v in built.inside.items()}
    back = {v: share for v, share in back.items() if share}
    if back:
        reads = dict.fromkeys(built.read.values(), 1.0)
        modes = zip(built.host, built.modes, strict=True)
        intake = {v: -request.cpus[mode.cpu].ingest_Bps / GB for v, mode in modes}
        built.require("intake of results", {**reads, **back, **intake}, -np.inf, 0.0)
    if limits.drives_min:
        every = dict.fromkeys(built.drive, 1.0)
        built.require("drives of a code", every, float(limits.drives_min), np.inf)
    if limits.rack_units is not None:
        modes = zip(built.host, built.modes, strict=True)
        units = {v: request.cpus[mode.cpu].rack_units for v, mode in modes}
        units |= {v: kind.rack_units for v, kind in kinds}
        parts = zip(built.network, request.network, strict=True)
        units |= {v: part.rack_units for v, part in parts}
        units = {v: height for v, height in units.items() if height}
        built.require("rack", units or {built.scale: 0.0}, -np.inf, limits.rack_units)
    if limits.write_Bps:
        _write_rows(built)


def _write_rows(built: Program) -> None:
    """Share each drive's time between reads and writes, and bound writes by its endurance."""
    request = built.request
    for k, kind in enumerate(request.drives):
        if kind.write_Bps is None:
            continue
        written = built.written[k] = built.variable(np.inf)
        if np.isfinite(kind.endurance_Bps):
            lasts = {written: 1.0, built.drive[k]: -kind.endurance_Bps / GB}
            built.require(f"endurance of {kind.name}", lasts, -np.inf, 0.0)
        read = [v for table in (built.read, built.inside) for (_, n), v in table.items() if n == k]
        busy = dict.fromkeys(read, GB / media_Bps(kind, request.demands))
        busy |= {written: GB / kind.write_Bps, built.drive[k]: -1.0}
        built.require(f"reads and writes of {kind.name}", busy, -np.inf, 0.0)
    every = dict.fromkeys(built.written.values(), 1.0)
    built.require("writes", every or {built.scale: 0.0}, request.limits.write_Bps / GB, np.inf)


def _network_rows(built: Program, drives_max: int) -> None:
    """Give each drive on the network a port, and the hosts cards that carry what it sends."""
    request = built.request
    networked = [k for k, kind in enumerate(request.drives) if not kind.slots]
    parts = list(zip(built.network, request.network, strict=True))
    if not parts or not networked:
        return
    drives = {built.drive[k]: 1.0 for k in networked}
    cards = {v: 1.0 for v, part in parts if not part.ports}
    built.require("cards in hosts", {**cards, **dict.fromkeys(built.host, -1.0)}, -np.inf, 0.0)
    some = {v: -float(drives_max) for v in cards}
    built.require("cards for network drives", {**drives, **some}, -np.inf, 0.0)
    sent = {v: 1.0 for (_, k), v in built.read.items() if k in networked}
    for (i, k), v in built.inside.items():
        if k in networked and request.demands[i].returns:
            sent[v] = request.demands[i].returns
    carried = {v: -part.link_Bps / GB for v, part in parts if not part.ports}
    built.require("bandwidth of cards", {**sent, **carried}, -np.inf, 0.0)
    ports = {v: -float(part.ports) for v, part in parts if part.ports}
    built.require("ports of switches", {**drives, **cards, **ports}, -np.inf, 0.0)


def matrices(
    built: Program, objective: dict[int, float], *, relaxed: bool = False
) -> dict[str, Any]:
    """Return the keyword arguments of ``scipy.optimize.milp`` that minimize `objective`."""
    from scipy.optimize import Bounds, LinearConstraint  # noqa: PLC0415 - slow to import
    from scipy.sparse import csr_array  # noqa: PLC0415

    count = len(built.upper)
    entries = [(i, v, a) for i, row in enumerate(built.rows) for v, a in row.terms.items()]
    rows, columns, values = zip(*entries, strict=True)
    matrix = csr_array((values, (rows, columns)), shape=(len(built.rows), count))
    cost = np.zeros(count)
    for variable, coefficient in objective.items():
        cost[variable] = coefficient
    lower = [row.lower for row in built.rows]
    upper = [row.upper for row in built.rows]
    return {
        "c": cost,
        "constraints": LinearConstraint(matrix, lower, upper),
        "bounds": Bounds(np.zeros(count), np.array(built.upper)),
        "integrality": np.zeros(count) if relaxed else np.array(built.whole, dtype=np.float64),
    }
