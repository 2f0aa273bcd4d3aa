"""The purchase as a mixed-integer linear program.

Whole numbers: hosts of each mode, drives of each kind in the slots of each group of hosts, cards in
hosts, boxes and switches. Rates: of each workload on hosts and inside drives, of what hosts read,
and lambda, the share of every required throughput that is reached.

A host computes what its own drives and its own cards bring. So drives, cards and work belong to a
*group*: hosts of one CPU. A group is either some number of equal hosts or none, and then the
program says what each of them does; or all hosts of a CPU taken together, which no real purchase
is better than, and ``place`` finds out if one is as good.

A host's *mode* is, where load and compute times add, a transfer speed B_j that its drives can feed:
equation 5 says y (1 / B + c / n) <= 1, and B = min(m read, ingest) is what makes that a product of
unknowns. The speeds are those of drives of one kind or two, up to what the host takes in. So such
an array loses nothing, unless there are so many speeds that they are thinned; B_j <= the true speed
in every case, so a purchase found does what it says.

A drive has one medium, which its own computing, reads of hosts and writes share. Reads, results and
writes share its port, and all of them cross the host, or its card. A host takes in no more than its
lanes carry, nor than half of what its memory does.

Rates are in GB/s, capacity in TB, so that the solver's tolerances mean something.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Any

import numpy as np

from csdplan.model.overlap import Overlap
from csdplan.solve.purchase import Cpu, DriveKind, Request, port_Bps

GB = 1e9
TB = 1e12
#: Transfer speeds considered for one CPU; more are thinned to this many, evenly in the logarithm.
SPEEDS_MAX = 16
#: Workloads whose data lies anywhere are read together.
ANY = -1


@dataclass(frozen=True)
class Group:
    """Hosts of one CPU that are planned together.

    Attributes
    ----------
    cpu : int
        Index of the CPU.
    size : int
        So many equal hosts, or none. 0: any number, and their drives and work taken together.
    """

    cpu: int
    size: int = 0


@dataclass(frozen=True)
class Mode:
    """One way to use the hosts of a group.

    Attributes
    ----------
    group : int
        Index of the group.
    transfer_Bps : float
        B_j [bytes/s]; 0 for a host that only holds drives. The host's full intake if it overlaps.
    """

    group: int
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
    groups : tuple of Group
        Hosts, in groups.
    modes : tuple of Mode
        Uses of the groups.
    price_usd, cost_usd, power_W : dict
        Coefficients by variable: purchase, purchase and energy, power at work.
    upper : list of float
        Upper bounds; all lower bounds are 0.
    whole : list of bool
        True for variables that must be whole numbers.
    rows : list of Row
        The constraints.
    host : list of int
        Variable of each mode: of so many times `Group.size` hosts.
    drive, card : dict
        Variables by kind or part, and group: in each of its hosts, or in all if taken together.
    box, switch : dict
        Variables of drives on the network by kind, and of switches by part.
    inside, read, computed : dict
        Rates by workload, kind and group (-1 for boxes); by workload (or `ANY`), kind and group;
        by workload and mode.
    sent, written : dict
        Rates by kind and group: results of boxes, and writes.
    """

    request: Request
    groups: tuple[Group, ...]
    modes: tuple[Mode, ...]
    price_usd: dict[int, float] = field(default_factory=dict)
    cost_usd: dict[int, float] = field(default_factory=dict)
    power_W: dict[int, float] = field(default_factory=dict)
    upper: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    host: list[int] = field(default_factory=list)
    drive: dict[tuple[int, int], int] = field(default_factory=dict)
    card: dict[tuple[int, int], int] = field(default_factory=dict)
    box: dict[int, int] = field(default_factory=dict)
    switch: dict[int, int] = field(default_factory=dict)
    inside: dict[tuple[int, int, int], int] = field(default_factory=dict)
    read: dict[tuple[int, int, int], int] = field(default_factory=dict)
    computed: dict[tuple[int, int], int] = field(default_factory=dict)
    sent: dict[tuple[int, int], int] = field(default_factory=dict)
    written: dict[tuple[int, int], int] = field(default_factory=dict)
    scale: int = -1

    def variable(self, upper: float, *, whole: bool = False) -> int:
        """Add a variable from 0 to `upper`; return its index."""
        self.upper.append(upper)
        self.whole.append(whole)
        return len(self.upper) - 1

    def require(self, name: str, terms: dict[int, float], lower: float, upper: float) -> None:
        """Add a row."""
        self.rows.append(Row(name, terms, lower, upper))

    def at_most(self, name: str, terms: dict[int, float], upper: float = 0.0) -> None:
        """Add a row without a lower bound."""
        self.require(name, terms, -np.inf, upper)

    def parts(self) -> dict[int, tuple[str, float]]:
        """Return the part that each variable of a purchase counts, and how many a unit of it is."""
        request = self.request
        found = {
            v: (self.cpu(mode.group).name, self.times(mode.group))
            for mode, v in zip(self.modes, self.host, strict=True)
        }
        for (k, g), v in self.drive.items():
            found[v] = request.drives[k].name, self.times(g)
        for (p, g), v in self.card.items():
            found[v] = request.network[p].name, self.times(g)
        found |= {v: (request.drives[k].name, 1.0) for k, v in self.box.items()}
        found |= {v: (request.network[p].name, 1.0) for p, v in self.switch.items()}
        return found

    def cpu(self, group: int) -> Cpu:
        """Return the CPU of a group."""
        return self.request.cpus[self.groups[group].cpu]

    def times(self, group: int) -> float:
        """Return the hosts that one unit of a group's variables stands for."""
        return float(max(1, self.groups[group].size))

    def hosts_of(self, group: int, each: float = 1.0) -> dict[int, float]:
        """Return `each` for every host of a group, as terms."""
        one = each * self.times(group)
        found = zip(self.modes, self.host, strict=True)
        return {v: one for mode, v in found if mode.group == group}

    def kinds_in(self, group: int) -> list[int]:
        """Return the kinds of drives that hosts of a group have, or reach over their cards."""
        found = range(len(self.request.drives))
        boxes = {} if self.cpu(group).disks else self.box
        return [k for k in found if (k, group) in self.drive or k in boxes]

    @cached_property
    def is_plain(self) -> list[bool]:
        """For each kind, True if hosts' reads are all that uses it: then they need no variable."""
        request = self.request
        anywhere = not any(demand.stored_bytes for demand in request.demands)
        return [
            bool(kind.slots)
            and anywhere
            and not any(kind.name in demand.drive_s_per_byte for demand in request.demands)
            and not (request.limits.write_Bps and kind.write_Bps is not None)
            for kind in request.drives
        ]


def together(request: Request) -> tuple[Group, ...]:
    """Return all hosts of each CPU as one group."""
    return tuple(Group(index) for index in range(len(request.cpus)))


def _modes_of(request: Request, groups: Sequence[Group]) -> tuple[Mode, ...]:
    found: list[Mode] = []
    for index, group in enumerate(groups):
        cpu = request.cpus[group.cpu]
        if request.overlap is Overlap.PIPELINED:
            found.append(Mode(index, cpu.intake_Bps))
        else:
            found += [Mode(index, speed) for speed in (0.0, *_speeds(cpu, request))]
    return tuple(found)


def _speeds(cpu: Cpu, request: Request) -> list[float]:
    found: set[float] = {cpu.intake_Bps}
    ports = sorted({port_Bps(kind, cpu) for kind in request.drives if kind.disk == cpu.disks})
    for one, other in combinations_with_replacement(ports, 2):
        most = min(int(cpu.intake_Bps / one), cpu.slots)
        for count in range(most + 1):
            # The rest of the bays, as far as the host takes in what they read.
            left = min(int((cpu.intake_Bps - count * one) / other), cpu.slots - count)
            found |= {count * one + more * other for more in range(left + 1)}
    speeds = sorted(found - {0.0})
    if len(speeds) <= SPEEDS_MAX:
        return speeds
    wanted = np.geomspace(speeds[0], speeds[-1], SPEEDS_MAX)
    chosen = {speeds[int(np.searchsorted(speeds, goal * (1 - 1e-9)))] for goal in wanted}
    return sorted(chosen)


def begin(request: Request, groups: Sequence[Group]) -> Program:
    """Return the variables of the request, with what they cost, for hosts in these groups."""
    built = Program(request, tuple(groups), _modes_of(request, groups))
    most = request.limits.hosts_max
    for mode in built.modes:
        cpu, size = built.cpu(mode.group), built.groups[mode.group].size
        index = _bought(built, 1 if size else most, built.times(mode.group), cpu.price_usd)
        built.host.append(index)
        _powered(built, index, built.times(mode.group), cpu.full_W, cpu.average_W)
    for k, kind in enumerate(request.drives):
        _drives(built, k, kind)
    for p, part in enumerate(request.network):
        places = [-1] if part.ports else range(len(groups))
        for g in places:
            if part.ports:
                hosts = -(-(drives_max(request) + most) // part.ports)
            else:
                hosts = 1 if groups[g].size else most
            times = 1.0 if part.ports else built.times(g)
            index = _bought(built, hosts, times, part.price_usd)
            if part.ports:
                built.switch[p] = index
            else:
                built.card[p, g] = index
            # Cards and switches draw as much at rest.
            _powered(built, index, times, part.active_W, part.average_W)
    built.scale = built.variable(1.0)
    _rates(built)
    return built


def drives_max(request: Request) -> int:
    """Return the drives of one kind that may be bought at most."""
    limits = request.limits
    return max(limits.hosts_max * max(cpu.slots for cpu in request.cpus), limits.drives_min)


def _drives(built: Program, k: int, kind: DriveKind) -> None:
    most = built.request.limits.hosts_max
    if not kind.slots:
        built.box[k] = _bought(built, drives_max(built.request), 1.0, kind.price_usd)
        _powered(built, built.box[k], 1.0, kind.active_W, kind.average_W)
        return
    for g, group in enumerate(built.groups):
        if built.cpu(g).disks != kind.disk:
            continue
        slots = built.cpu(g).slots // kind.slots * (1 if group.size else most)
        index = built.drive[k, g] = _bought(built, slots, built.times(g), kind.price_usd)
        _powered(built, index, built.times(g), kind.active_W, kind.average_W)


def _bought(built: Program, most: float, times: float, price_usd: float) -> int:
    index = built.variable(most, whole=True)
    built.price_usd[index] = times * price_usd
    return index


def _powered(
    built: Program,
    index: int,
    times: float,
    full_W: float | None,
    average: Callable[[float], float],
) -> None:
    limits = built.request.limits
    built.power_W[index] = times * (full_W or 0.0)
    energy_usd = times * limits.usd_per_W * average(limits.busy)
    built.cost_usd[index] = built.price_usd[index] + energy_usd


def _rates(built: Program) -> None:
    request = built.request
    stored = [i for i, demand in enumerate(request.demands) if demand.stored_bytes]
    readers = [*([ANY] if len(stored) < len(request.demands) else []), *stored]
    for g in range(len(built.groups)):
        for k in built.kinds_in(g):
            kind = request.drives[k]
            if not built.is_plain[k]:
                built.read |= {(i, k, g): built.variable(np.inf) for i in readers}
            if request.limits.write_Bps and kind.write_Bps is not None:
                built.written[k, g] = built.variable(np.inf)
    _work(built)


def _work(built: Program) -> None:
    request = built.request
    for i, demand in enumerate(request.demands):
        for k, kind in enumerate(request.drives):
            if kind.name not in demand.drive_s_per_byte:
                continue
            for g in [-1] if k in built.box else range(len(built.groups)):
                if g < 0 or (k, g) in built.drive:
                    built.inside[i, k, g] = built.variable(np.inf)
        for j, mode in enumerate(built.modes):
            if mode.transfer_Bps and built.cpu(mode.group).name in demand.core_s_per_byte:
                built.computed[i, j] = built.variable(np.inf)
    for k in built.box:
        if any(request.demands[i].returns for i, n, _ in built.inside if n == k):
            built.sent |= {(k, g): built.variable(np.inf) for g in range(len(built.groups))}


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
