"""The limit of many small tasks: whole fleets at once, without events.

As tasks shrink, workers that pull them finish together wherever the rules let them help each
other. So a run's time is the smallest T within which all work fits, and fitting is monotone in T:
bisection finds it for every host at once. No task sizes, no dispatch and no order of events remain.
Within a host that is the limit itself. Help between hosts is bounded by every link on its way, but
readers that wait for each other at one source are not: there the time found is a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from csdplan.errors import ModelError
from csdplan.model.inputs import FloatArray, not_negative, positive
from csdplan.sim.expected import drive_Bps, host_Bps
from csdplan.sim.outcome import drive_active_s, net_energy_J, total_energy_J
from csdplan.sim.system import Job, System, shares, slowness

#: Halvings of the interval; 2**-50 of the longest possible time is far below what matters.
_HALVINGS = 50
#: Steps of the search for a time that is enough, and its growth: up to 10**24 seconds.
_DOUBLINGS, _GROWTH = 80, 2.0

#: Relative error allowed for where two rounded numbers meet.
_ROUNDING = 1e-12

BoolArray = NDArray[np.bool_]


@dataclass(frozen=True)
class Fleet:
    """Hosts and drives of a fleet; H hosts with D drives each.

    Attributes
    ----------
    work_bytes : ndarray, (H, D)
        Input that lies on each drive [bytes].
    drive_Bps : ndarray, (H, D)
        Rate of each drive on its own data [bytes/s]; 0 if it does not compute.
    stolen_Bps : ndarray, (H, D)
        Rate of each drive on data that it must fetch [bytes/s].
    host_Bps : ndarray, (H,)
        Rate of each host's cores, limited by the switch [bytes/s].
    remote_Bps : ndarray, (H,)
        Rate of each host's cores on data that they fetch from other hosts [bytes/s].
    reads_Bps : ndarray, (H,)
        Rate of all readers together from each host's drives [bytes/s].
    media_Bps : ndarray, (H,)
        Rate of the media of each of a host's drives, for all readers together [bytes/s].
    uplink_Bps, nic_Bps : ndarray, (H,)
        The switch towards the host, and the host's link to the network [bytes/s].
    network_Bps : float
        Bandwidth of the whole network [bytes/s]; may be infinite.
    result_ratio : float
        Bytes that a drive sends to its host for each byte of input [1].
    steal, remote : bool
        As in `Job`.
    """

    work_bytes: FloatArray
    drive_Bps: FloatArray
    stolen_Bps: FloatArray
    host_Bps: FloatArray
    remote_Bps: FloatArray
    reads_Bps: FloatArray
    media_Bps: FloatArray
    uplink_Bps: FloatArray
    nic_Bps: FloatArray
    network_Bps: float
    result_ratio: float = 0.0
    steal: bool = False
    remote: bool = True

    def __post_init__(self) -> None:
        if self.work_bytes.ndim != 2:  # noqa: PLR2004 - hosts by drives
            raise ModelError("work_bytes", self.work_bytes.shape, "an array of hosts by drives")
        hosts = (self.work_bytes.shape[0],)
        for name in ("work_bytes", "drive_Bps", "stolen_Bps", "host_Bps", "remote_Bps"):
            not_negative(name, getattr(self, name))
        for name in ("reads_Bps", "media_Bps", "uplink_Bps", "nic_Bps"):
            positive(name, getattr(self, name))
        for name in ("drive_Bps", "stolen_Bps"):
            if getattr(self, name).shape != self.work_bytes.shape:
                raise ModelError(name, getattr(self, name).shape, "the shape of work_bytes")
        for name in (
            "host_Bps",
            "remote_Bps",
            "reads_Bps",
            "media_Bps",
            "uplink_Bps",
            "nic_Bps",
        ):
            if getattr(self, name).shape != hosts:
                raise ModelError(name, getattr(self, name).shape, "one value for each host")
        positive("work_bytes in all", float(self.work_bytes.sum()))

    @cached_property
    def host_bytes(self) -> FloatArray:
        """Input that lies on all drives of each host [bytes]."""
        return np.asarray(self.work_bytes.sum(axis=1))

    @cached_property
    def most_work_bytes(self) -> FloatArray:
        """Input on the fullest drive of each host [bytes]."""
        return np.asarray(self.work_bytes.max(axis=1))

    @cached_property
    def fastest_Bps(self) -> FloatArray:
        """Speed of the fastest drive of each host, on its own data [bytes/s]."""
        return np.asarray(self.drive_Bps.max(axis=1))

    @cached_property
    def all_stolen_Bps(self) -> FloatArray:
        """Speed of all computing drives of each host together, on others' data [bytes/s]."""
        return np.asarray(np.where(self.drive_Bps > 0, self.stolen_Bps, 0.0).sum(axis=1))

    @cached_property
    def stolen_for_own(self) -> FloatArray:
        """Speed of each drive on others' data over that on its own [1]; 0 if it computes none."""
        none = np.zeros_like(self.drive_Bps)
        return np.divide(self.stolen_Bps, self.drive_Bps, out=none, where=self.drive_Bps > 0)


@dataclass(frozen=True)
class FleetOutcome:
    """One run of a fleet.

    Attributes
    ----------
    time_s : float
        When the last byte is done [s].
    throughput_Bps : float
        Work over `time_s` [bytes/s].
    alone_s : ndarray, (H,)
        When each host would be done without help from others [s]; infinite if it never would.
    drive_busy_s : ndarray, (H, D)
        Time that each drive worked [s].
    host_bytes, drive_bytes, remote_bytes : float
        Input computed by host cores and by drives; and what of it crossed the network [bytes].
    drive_utilization : float
        Busy share of the computing drives [1].
    steps : int
        Times that the search tried, for all hosts at once and for the fleet as a whole.
    net_energy_J, energy_J : float or None
        Energy above idle, and in all [J]; None if watts are unknown.
    """

    time_s: float
    throughput_Bps: float
    alone_s: FloatArray
    drive_busy_s: FloatArray
    host_bytes: float
    drive_bytes: float
    remote_bytes: float
    drive_utilization: float
    steps: int
    net_energy_J: float | None = None
    energy_J: float | None = None


def fleet_of(system: System, job: Job) -> Fleet:
    """Return the fleet of a system and a job, with the same shares and stragglers as in events.

    `job.tasks`, `job.task_spread` and `job.dispatch_s` have no meaning in the limit, other than
    through the bytes in all.
    """
    node, hosts = system.node, system.hosts
    shape = (hosts, node.drives)
    drives = hosts * node.drives
    slow = slowness(drives, job.stragglers, job.straggler_factor, job.seed).reshape(shape)
    enabled = np.arange(node.drives) < node.enabled
    results_s = job.result_ratio / node.port_Bps
    own = 1.0 / (slow / drive_Bps(node, job.overlap) + results_s)
    fetched = 1.0 / (1.0 / node.port_Bps + slow / node.drive_comp_Bps + results_s)
    # What comes from other hosts passes their switch and two links to the network.
    over_network = replace(node, uplink_Bps=min(node.uplink_Bps, node.nic_Bps))
    return Fleet(
        work_bytes=shares(drives, job.skew, job.seed).reshape(shape) * job.total_bytes,
        drive_Bps=np.where(enabled, own, 0.0),
        stolen_Bps=np.where(enabled, fetched, 0.0),
        host_Bps=np.full(hosts, host_Bps(node, job.overlap)),
        remote_Bps=np.full(hosts, host_Bps(over_network, job.overlap)),
        reads_Bps=np.full(hosts, min(node.drives * node.port_Bps, node.uplink_Bps)),
        media_Bps=np.full(hosts, node.all_readers_Bps),
        uplink_Bps=np.full(hosts, node.uplink_Bps),
        nic_Bps=np.full(hosts, node.nic_Bps),
        network_Bps=np.inf if system.network_Bps is None else system.network_Bps,
        result_ratio=job.result_ratio,
        steal=job.steal,
        remote=job.remote,
    )


def run_fluid(fleet: Fleet, system: System | None = None) -> FleetOutcome:
    """Find the time of a fleet; with `system`, also its energy from that system's watts.

    Raises
    ------
    ModelError
        If some data lies where nothing that may fetch it computes.
    """
    unknown = np.full(len(fleet.host_Bps), np.inf)
    alone_s, steps = _bisect(lambda time: _left(fleet, time) <= 0, unknown)
    time_s = float(alone_s.max())
    if fleet.remote and len(alone_s) > 1:
        bound = np.array([time_s])
        together_s, more = _bisect(lambda time: np.array([_fits_together(fleet, time[0])]), bound)
        time_s, steps = float(together_s[0]), steps + more
    if not np.isfinite(time_s):
        raise ModelError("enabled", "too few", "a core or a drive that can reach all the data")
    return _outcome(fleet, time_s, alone_s, steps, system)


def _left(fleet: Fleet, time_s: FloatArray) -> FloatArray:
    """Return the work that exceeds a host's own capacity in `time_s` (negative: spare capacity)."""
    excess, spare, crossed = _excess(fleet, time_s)
    unread = _unread(fleet, time_s)
    if fleet.steal:
        helped = np.minimum(excess, spare)
        lanes = fleet.uplink_Bps * time_s - crossed
        left = excess - np.minimum(helped + fleet.host_Bps * time_s, np.maximum(lanes, 0.0))
    else:
        left = excess - np.minimum(fleet.host_Bps * time_s, fleet.uplink_Bps * time_s - crossed)
    return np.maximum(left, unread)


def _unread(fleet: Fleet, time_s: FloatArray) -> FloatArray:
    """Return the data of each host that its media cannot even deliver (negative: bandwidth left).

    Every byte is read once, by its own drive or by another reader.
    """
    drives = fleet.work_bytes.shape[1]
    return np.asarray(fleet.host_bytes - drives * fleet.media_Bps * time_s)


def _inside(fleet: Fleet, time_s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the most that drives, and those of a host together, do of their data [bytes].

    The data that drives leave is read from all media of the host evenly, and a drive gets what
    its media have left: b = M T - R / D for each, and R is the work W less the sum of min(c, b)
    over drives that could do c. The largest such b is found in closed form, by how many drives it
    holds up.
    """
    could = fleet.drive_Bps * time_s[:, None]
    np.minimum(fleet.work_bytes, could, out=could)
    summed = could.sum(axis=1)
    drives = could.shape[1]
    work = fleet.host_bytes
    budget = fleet.media_Bps * time_s
    most = budget - (work - summed) / drives
    # No drive does more than the fastest could; only where that is too much is each one looked at.
    suspect = np.flatnonzero(most < np.minimum(fleet.fastest_Bps * time_s, fleet.most_work_bytes))
    short = suspect[most[suspect] < could[suspect].max(axis=1)]
    if not short.size:
        return could, summed
    # Of the drives, in order, all but the j largest do what they could: D (M T - b) = R.
    order = np.sort(could[short], axis=1)
    before = np.cumsum(order, axis=1) - order
    held_up = np.arange(drives, 0, -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        level = (drives * budget[short, None] + before - work[short, None]) / (drives - held_up)
    level[:, 0] = 0.0  # all are held up, and nothing but the media's bandwidth counts
    below = np.pad(order, ((0, 0), (1, 0)))[:, :-1]
    fits = (level <= order * (1 + _ROUNDING)) & (level >= below * (1 - _ROUNDING))
    found = np.where(fits, level, 0.0).max(axis=1)
    could[short] = np.minimum(could[short], np.maximum(found, 0.0)[:, None])
    summed[short] = could[short].sum(axis=1)
    return could, summed


def _excess(fleet: Fleet, time_s: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return three amounts for each host [bytes].

    Data that its drives leave, rates at which its idle drives could process others' data, and
    the results that its drives send over the switch.
    """
    done, summed = _inside(fleet, time_s)
    excess = fleet.host_bytes - summed
    crossed = fleet.result_ratio * summed
    if not fleet.steal:
        return excess, np.zeros_like(excess), crossed
    # A drive that does x of its own data at speed v has T - x / v left for others'.
    worked = np.einsum("hd,hd->h", done, fleet.stolen_for_own)
    spare = np.maximum(fleet.all_stolen_Bps * time_s - worked, 0.0)
    return excess, spare, crossed


def _fits_together(fleet: Fleet, time_s: float) -> bool:
    """Return whether the fleet is done within `time_s`, hosts with time to spare helping."""
    times = np.full(len(fleet.host_Bps), time_s)
    left = _left(fleet, times)
    wanting = np.maximum(left, 0.0)
    nic = fleet.nic_Bps * time_s
    # A host's time to spare, as a share of the whole, is what of its own rate it has not used.
    could = fleet.host_Bps * time_s
    share = np.divide(-left, could, out=np.zeros_like(left), where=could > 0)
    over = np.clip(share, 0.0, 1.0) * fleet.remote_Bps * time_s
    helped = float(np.minimum(over, nic).sum())
    asked = float(wanting.sum())
    excess, spare, _ = _excess(fleet, times)
    read = excess - np.minimum(excess, spare)
    delivered = (read <= fleet.reads_Bps * time_s) & (_unread(fleet, times) <= 0)
    reachable = bool(np.all((wanting <= nic) & delivered))
    return reachable and asked <= min(helped, fleet.network_Bps * time_s)


def _outcome(
    fleet: Fleet, time_s: float, alone_s: FloatArray, steps: int, system: System | None
) -> FleetOutcome:
    times = np.full(len(alone_s), time_s)
    own, _ = _inside(fleet, times)
    busy = np.divide(own, fleet.drive_Bps, out=np.zeros_like(own), where=fleet.drive_Bps > 0)
    excess, spare, _ = _excess(fleet, times)
    helped = np.minimum(excess, spare)
    stolen = float(helped.sum())
    if stolen > 0:
        # Idle drives of one host share what there is to fetch by the time they have left.
        part = np.divide(helped, spare, out=np.zeros_like(spare), where=spare > 0)
        busy = busy + np.where(fleet.drive_Bps > 0, time_s - busy, 0.0) * part[:, None]
    by_hosts = float(excess.sum()) - stolen
    total = float(fleet.work_bytes.sum())
    computing = int(np.count_nonzero(fleet.drive_Bps))
    utilization = float(busy.sum()) / (computing * time_s) if computing else 0.0
    net_J = energy_J = None
    if system is not None:
        node = system.node
        rate = float(fleet.host_Bps[0])
        core_busy_s = by_hosts / rate * node.cores if rate else 0.0
        read = by_hosts + stolen
        active_s = drive_active_s(node, system.hosts, time_s, float(busy.sum()), read)
        net_J = net_energy_J(node, core_busy_s, active_s)
        energy_J = total_energy_J(node, system.hosts, time_s, net_J)
    return FleetOutcome(
        time_s=time_s,
        throughput_Bps=total / time_s,
        alone_s=alone_s,
        drive_busy_s=busy,
        host_bytes=by_hosts,
        drive_bytes=float(own.sum()) + stolen,
        remote_bytes=float(np.maximum(_left(fleet, times), 0.0).sum()),
        drive_utilization=utilization,
        steps=steps,
        net_energy_J=net_J,
        energy_J=energy_J,
    )


def _bisect(fits: Callable[[FloatArray], BoolArray], upper: FloatArray) -> tuple[FloatArray, int]:
    """Return the smallest times that fit, elementwise (infinite where none does), and the steps.

    Parameters
    ----------
    fits : callable
        Returns True for times that are enough; monotone in time.
    upper : ndarray
        Times known to be enough; infinite where none is known, and then one is searched for.
    """
    known = np.isfinite(upper)
    high = np.where(known, upper, 1.0)
    enough, steps = known, 0
    while not enough.all() and steps <= _DOUBLINGS:
        enough, steps = known | fits(high), steps + 1
        high = np.where(enough, high, high * _GROWTH)
    low = np.zeros_like(high)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        good, steps = fits(middle), steps + 1
        low, high = np.where(good, low, middle), np.where(good, middle, high)
    return np.where(enough, high, np.inf), steps
