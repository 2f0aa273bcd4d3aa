"""The limit of many small tasks: whole fleets at once, without events.

As tasks shrink, workers that pull them finish together wherever the rules let them help each
other. So a run's time is the smallest T within which all work fits, and fitting is monotone in T:
bisection finds it for every host at once. No task sizes, no dispatch and no order of events remain.
The work is divided as it is done soonest. Workers that pull do the same where they wait for nothing
but themselves; where many cores crowd a drive's port or media, pulling takes longer, and the time
found is a lower bound. So it is for help between hosts: every link on its way bounds it, but
readers that wait for each other at one source do not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from csdplan.errors import ModelError
from csdplan.model.inputs import FloatArray
from csdplan.sim.fleet import Fleet
from csdplan.sim.outcome import drive_active_s, net_energy_J, total_energy_J
from csdplan.sim.system import System

#: Halvings of the interval; 2**-50 of the longest possible time is far below what matters.
_HALVINGS = 50
#: Steps of the search for a time that is enough, and its growth: up to 10**24 seconds.
_DOUBLINGS, _GROWTH = 80, 2.0

#: Relative errors allowed for where two rounded numbers meet, and where their sums do.
_ROUNDING, _FULL = 1e-12, 1e-9

BoolArray = NDArray[np.bool_]


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


def run_fluid(fleet: Fleet, system: System | None = None) -> FleetOutcome:
    """Find the time of a fleet; with `system`, also its energy from that system's watts.

    Raises
    ------
    ModelError
        If some data lies where nothing that may fetch it computes.
    """
    unknown = np.full(len(fleet.host_Bps), np.inf)
    alone_s, steps = _bisect(lambda time: _flow(fleet, time).fits, unknown)
    time_s = float(alone_s.max())
    if fleet.remote and len(alone_s) > 1:
        bound = np.array([time_s])
        together_s, more = _bisect(lambda time: np.array([_fits_together(fleet, time[0])]), bound)
        time_s, steps = float(together_s[0]), steps + more
    if not np.isfinite(time_s):
        raise ModelError("enabled", "too few", "a core or a drive that can reach all the data")
    return _outcome(fleet, time_s, alone_s, steps, system)


@dataclass(frozen=True)
class _Flow:
    """Bytes that fit into a time, for each host [bytes].

    Attributes
    ----------
    own : ndarray, (H, D)
        The most that drives do of their own data.
    excess, crossed : ndarray, (H,)
        Data that they leave, and results that they send over the switch.
    spare : ndarray, (H,)
        Data of others that idle drives could process.
    left : ndarray, (H,)
        Work that exceeds the host's own capacity (negative: spare capacity).
    unread : ndarray, (H,)
        Bytes that media or ports cannot deliver (negative or 0: bandwidth left).
    """

    own: FloatArray
    excess: FloatArray
    crossed: FloatArray
    spare: FloatArray
    left: FloatArray
    unread: FloatArray

    @property
    def fits(self) -> BoolArray:
        """Return, for each host, True if it is done by itself."""
        return np.asarray((self.left <= 0) & (self.unread <= 0))


def _flow(fleet: Fleet, time_s: FloatArray) -> _Flow:
    own, summed = _inside(fleet, time_s)
    ratio = fleet.result_ratio
    excess, crossed = fleet.host_bytes - summed, ratio * summed
    lanes = fleet.uplink_Bps * time_s - crossed
    by_cores = np.minimum(fleet.host_Bps * time_s, lanes)
    spare = np.zeros_like(excess)
    if fleet.steal:
        # A drive that does x of its own data at speed v has T - x / v left for others'. What it
        # fetches crosses the switch, and two ports, and its results follow.
        worked = np.einsum("hd,hd->h", own, fleet.stolen_for_own)
        spare = np.maximum(fleet.all_stolen_Bps * time_s - worked, 0.0)
        ports = fleet.work_bytes.shape[1] * fleet.port_Bps * time_s - excess - crossed
        most = np.minimum(lanes - by_cores, np.maximum(ports, 0.0)) / (1.0 + ratio)
        spare = np.minimum(spare, np.maximum(ports, 0.0) / (1.0 + ratio))
        by_cores = by_cores + np.minimum(np.minimum(excess, spare), most)
    return _Flow(own, excess, crossed, spare, excess - by_cores, _unread(fleet, time_s, own))


def _unread(fleet: Fleet, time_s: FloatArray, own: FloatArray) -> FloatArray:
    """Return the bytes that media or ports cannot deliver, once drives have done their own.

    Every byte is read from media once, by its own drive or by another reader. A port carries the
    reads of others and the drive's results.
    """
    work, ratio = fleet.work_bytes, fleet.result_ratio
    media, port = fleet.media_Bps * time_s, fleet.port_Bps * time_s
    if fleet.whole:
        over_media = work.max(axis=1) - media
        over_port = (work + (ratio - 1.0) * own).max(axis=1) - port
    else:
        drives = work.shape[1]
        over_media = fleet.host_bytes - drives * media
        over_port = fleet.host_bytes - own.sum(axis=1) - drives * port
        if ratio:
            over_port = over_port + drives * ratio * own.max(axis=1)
    # Drives that a port holds up fill it to the last byte, or to one that was rounded.
    return np.asarray(np.maximum(over_media, over_port - _FULL * fleet.host_bytes))


def _inside(fleet: Fleet, time_s: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the most that drives, and those of a host together, do of their data [bytes]."""
    could = fleet.drive_Bps * time_s[:, None]
    np.minimum(fleet.work_bytes, could, out=could)
    ratio = fleet.result_ratio
    if fleet.whole:
        if ratio > 1:
            # A byte done inside costs its port more than one that is read.
            free = fleet.port_Bps[:, None] * time_s[:, None] - fleet.work_bytes
            np.minimum(could, np.maximum(free, 0.0) / (ratio - 1.0), out=could)
        summed = could.sum(axis=1)
    else:
        summed = could.sum(axis=1)
        _hold_up(fleet, time_s, (could, summed), fleet.media_Bps, 1.0)
        if ratio:
            _hold_up(fleet, time_s, (could, summed), fleet.port_Bps, ratio)
    if ratio > 1:
        # Nor do drives do what would take the switch from cores, which need less of it.
        most = np.maximum(fleet.uplink_Bps - fleet.host_Bps, 0.0) * time_s / ratio
        part = np.divide(most, summed, out=np.ones_like(summed), where=summed > most)
        could *= part[:, None]
        summed = summed * part
    return could, summed


def _hold_up(
    fleet: Fleet,
    time_s: FloatArray,
    done: tuple[FloatArray, FloatArray],
    each_Bps: FloatArray,
    weight: float,
) -> None:
    """Reduce what drives do, and its sum, to what their media or ports let through; in place.

    The data that drives leave is read from all drives of the host evenly, and a drive gets what
    that leaves of its bandwidth B, at `weight` for each byte: w b = B T - R / D for each, and R is
    the work W less the sum of min(c, b) over drives that could do c. The largest such b is found
    in closed form, by how many drives it holds up.
    """
    could, summed = done
    drives, work, budget = could.shape[1], fleet.host_bytes, each_Bps * time_s
    most = (budget - (work - summed) / drives) / weight
    # No drive does more than the fastest could; only where that is too much is each one looked at.
    suspect = np.flatnonzero(most < np.minimum(fleet.fastest_Bps * time_s, fleet.most_work_bytes))
    short = suspect[most[suspect] < could[suspect].max(axis=1)]
    if not short.size:
        return
    # Of the drives, in order, all but the j largest do what they could: D (B T - w b) = R.
    order = np.sort(could[short], axis=1)
    before = np.cumsum(order, axis=1) - order
    held_up = np.arange(drives, 0, -1)
    with np.errstate(divide="ignore", invalid="ignore"):
        level = (drives * budget[short, None] + before - work[short, None]) / (
            weight * drives - held_up
        )
        below = np.pad(order, ((0, 0), (1, 0)))[:, :-1]
        fits = (level <= order * (1 + _ROUNDING)) & (level >= below * (1 - _ROUNDING))
    # If all are held up at any level, nothing but the bandwidth in all counts.
    found = np.where(fits, level, 0.0).max(axis=1)
    could[short] = np.minimum(could[short], np.maximum(found, 0.0)[:, None])
    summed[short] = could[short].sum(axis=1)


def _fits_together(fleet: Fleet, time_s: float) -> bool:
    """Return whether the fleet is done within `time_s`, hosts with time to spare helping."""
    times = np.full(len(fleet.host_Bps), time_s)
    flow = _flow(fleet, times)
    wanting = np.maximum(flow.left, 0.0)
    nic = fleet.nic_Bps * time_s
    # A host's time to spare, as a share of the whole, is what of its own rate it has not used.
    could = fleet.host_Bps * time_s
    share = np.divide(-flow.left, could, out=np.zeros_like(wanting), where=could > 0)
    over = np.clip(share, 0.0, 1.0) * fleet.remote_Bps * time_s
    helped = float(np.minimum(over, nic).sum())
    asked = float(wanting.sum())
    # What others read, and all results, cross the switch; where results are larger than their
    # input, least crosses it if everything is read.
    crossing = np.minimum(flow.excess + flow.crossed, fleet.host_bytes)
    delivered = (crossing <= fleet.uplink_Bps * time_s) & (flow.unread <= 0)
    reachable = bool(np.all((wanting <= nic) & delivered))
    return reachable and asked <= min(helped, fleet.network_Bps * time_s)


def _outcome(
    fleet: Fleet, time_s: float, alone_s: FloatArray, steps: int, system: System | None
) -> FleetOutcome:
    flow = _flow(fleet, np.full(len(alone_s), time_s))
    own, excess, spare = flow.own, flow.excess, flow.spare
    busy = np.divide(own, fleet.drive_Bps, out=np.zeros_like(own), where=fleet.drive_Bps > 0)
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
        remote_bytes=float(np.maximum(flow.left, 0.0).sum()),
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
