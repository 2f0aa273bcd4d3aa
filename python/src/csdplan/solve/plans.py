"""Purchases and what a request lacks, as records."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from csdplan.solve.purchase import Limits


class Verdict(StrEnum):
    """Outcome of a request."""

    OPTIMAL = "optimal"
    STOPPED = "stopped"
    INFEASIBLE = "infeasible"


@dataclass(frozen=True)
class Share:
    """Part of a workload that one kind of CPU or drive does.

    Attributes
    ----------
    workload, where : str
        The workload; the CPU that computes it, or the kind of drive.
    in_drive : bool
        True if `where` is a kind of drive.
    rate_Bps : float
        Input per second [bytes/s].
    """

    workload: str
    where: str
    in_drive: bool
    rate_Bps: float


@dataclass(frozen=True)
class Held:
    """Drives of one kind that equal hosts hold, or that stand in boxes on the network.

    Attributes
    ----------
    name : str
        The kind.
    count : int
        Drives of each host, or boxes in all.
    read_Bps, inside_Bps, returned_Bps, written_Bps : float
        Bytes per second that hosts read from one, that it processes, sends back and stores.
    """

    name: str
    count: int
    read_Bps: float = 0.0
    inside_Bps: float = 0.0
    returned_Bps: float = 0.0
    written_Bps: float = 0.0


@dataclass(frozen=True)
class Placed:
    """Equal hosts: what each of them holds, reads and does.

    Attributes
    ----------
    name : str
        The CPU; empty for boxes on the network.
    hosts : int
        Hosts that are so; 0 for boxes.
    drives : tuple of Held
        Drives in the slots of each.
    cards : dict
        Network cards in each, by name.
    network_Bps : float
        Bytes per second that each exchanges with drives on the network over its cards.
    shares : tuple of Share
        Work that each does, on its cores and in its drives.
    taken_Bps, given_Bps : float
        Bytes per second that clients write to each, and get of it, over its cards.
    """

    name: str
    hosts: int
    drives: tuple[Held, ...]
    cards: dict[str, int]
    network_Bps: float
    shares: tuple[Share, ...]
    taken_Bps: float = 0.0
    given_Bps: float = 0.0


@dataclass(frozen=True)
class Requirement:
    """Level reached of one requirement.

    Attributes
    ----------
    name : str
        ``throughput of NAME``, ``capacity``, ``power``, ``budget`` or ``hosts``.
    required, reached : float
        In the unit of the requirement [bytes/s, bytes, W, USD, hosts].
    binds : bool
        True if less of it would be cheaper, with drives and hosts taken as divisible.
    saving_usd : float
        Saving if it were less by the share `LESS` (a limit: more), on the same terms [USD].
    """

    name: str
    required: float
    reached: float
    binds: bool
    saving_usd: float


@dataclass(frozen=True)
class Plan:
    """A purchase.

    Attributes
    ----------
    verdict : Verdict
        ``optimal``, or ``stopped``: the best found, in the time there was or among the ways to
        fill hosts that were tried; `bound_usd` is what a better one could cost.
    hosts, drives : dict
        Number bought of each, by name; without those that are not bought.
    price_usd, energy_usd, cost_usd : float
        Purchase, energy over the years asked for, and both [USD].
    bound_usd : float
        No purchase costs less than this [USD]; `cost_usd` itself if optimal.
    power_W : float or None
        With everything at work [W]; None if unknown.
    capacity_bytes : float
        Of all drives [bytes].
    scale : float
        Share of every required throughput that is reached [1]; at least 1.
    shares : tuple of Share
        Division of the work.
    requirements : tuple of Requirement
        Level reached of each, and the binding ones.
    network : dict
        Number bought of network cards and switches, by name.
    nodes : int
        Nodes of the branch-and-bound tree that the solver needed.
    placed : tuple of Placed
        Which drive and which card is in which host, and what each does.
    enters_usd : dict
        For each part left out, the price below which it is worth buying, with drives and hosts
        taken as divisible; negative if it is not worth its power, slot or host as a gift.
    ties : tuple of str
        Parts left out that are as good as what is bought, at their prices, so taken.
    """

    verdict: Verdict
    hosts: dict[str, int]
    drives: dict[str, int]
    price_usd: float
    energy_usd: float
    cost_usd: float
    bound_usd: float
    power_W: float | None
    capacity_bytes: float
    scale: float
    shares: tuple[Share, ...]
    requirements: tuple[Requirement, ...] = ()
    network: dict[str, int] = field(default_factory=dict)
    nodes: int = 0
    placed: tuple[Placed, ...] = ()
    enters_usd: dict[str, float] = field(default_factory=dict)
    ties: tuple[str, ...] = ()

    @property
    def bought(self) -> dict[str, int]:
        """Number bought of everything, by name: hosts, drives, cards and switches."""
        return {**self.hosts, **self.drives, **self.network}

    def spent_usd(self, limits: Limits) -> float:
        """Return the part of the cost that the budget covers [USD]."""
        return self.price_usd if limits.budget_covers == "purchase" else self.cost_usd


@dataclass(frozen=True)
class Shortfall:
    """A requirement of an infeasible request.

    Attributes
    ----------
    name : str
        As in `Requirement`.
    required : float
        Required level [its unit].
    possible_alone : float or None
        Possible level if this alone gives way [its unit]; None if that is not enough.
    possible_together : float
        Its part if all give way, in the least sum of relative changes [its unit].
    """

    name: str
    required: float
    possible_alone: float | None
    possible_together: float
