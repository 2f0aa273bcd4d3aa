"""Outcome of a run: time, throughput, utilization, energy."""

from __future__ import annotations

from dataclasses import dataclass

from csdplan.sim.system import Node


@dataclass(frozen=True)
class Outcome:
    """One run.

    Attributes
    ----------
    time_s : float
        From start to the end of the last task [s].
    throughput_Bps : float
        Input of the job over `time_s` [bytes/s].
    host_bytes, drive_bytes : float
        Input that hosts and drives computed [bytes].
    core_busy_s, drive_busy_s : float
        Time that cores and computing drives were at work, summed over all of them [s].
    core_utilization, drive_utilization, uplink_utilization : float
        Busy shares of all cores, of all computing drives and of the switches' uplinks [1];
        0 where there are none.
    last_drive_s, last_core_s : float
        When the last drive and the last core finished its last task [s]; 0 if it had none.
    net_energy_J, energy_J : float or None
        Energy above idle, and in all [J]; None if the watts it needs are unknown.
    """

    time_s: float
    throughput_Bps: float
    host_bytes: float
    drive_bytes: float
    core_busy_s: float
    drive_busy_s: float
    core_utilization: float
    drive_utilization: float
    uplink_utilization: float
    last_drive_s: float
    last_core_s: float
    net_energy_J: float | None
    energy_J: float | None


def drive_active_s(
    node: Node, hosts: int, time_s: float, busy_s: float, read_bytes: float
) -> float:
    """Return the time that drives draw active power, summed over all of them [s].

    A drive is active while it computes and while a host reads from it. Hosts read evenly from all
    drives; one that does both at once is active once.

    Parameters
    ----------
    node : Node
        Each host.
    hosts : int
        Number of hosts.
    time_s : float
        Time of the run [s].
    busy_s : float
        Time that computing drives were at work, summed [s].
    read_bytes : float
        Bytes that were read over the drives' ports [bytes].
    """
    computing, others = hosts * node.enabled, hosts * (node.drives - node.enabled)
    each_s = read_bytes / node.port_Bps / (computing + others)
    both_s = min(busy_s + computing * each_s, computing * time_s)
    return both_s + others * min(each_s, time_s)


def net_energy_J(node: Node, core_busy_s: float, drive_busy_s: float) -> float | None:
    """Return active power times busy time, above idle [J].

    A working core adds `core_W`; a drive that computes or serves reads takes `drive_active_W` in
    place of `drive_idle_W`. A core counts as working while it loads as well as while it computes.
    Watts are needed only of what was at work: None if one of those is unknown.
    """
    energy = 0.0
    if core_busy_s > 0:
        if node.core_W is None:
            return None
        energy += node.core_W * core_busy_s
    if drive_busy_s > 0:
        if node.drive_active_W is None or node.drive_idle_W is None:
            return None
        energy += (node.drive_active_W - node.drive_idle_W) * drive_busy_s
    return energy


def idle_power_W(node: Node, hosts: int) -> float | None:
    """Return what hosts and drives take at rest, together [W]; None if unknown."""
    if node.idle_W is None or node.drive_idle_W is None:
        return None
    return hosts * (node.idle_W + node.drives * node.drive_idle_W)


def total_energy_J(node: Node, hosts: int, time_s: float, net_J: float | None) -> float | None:
    """Return net energy and idle power over the run, together [J]; None if either is unknown."""
    idle_W = idle_power_W(node, hosts)
    return None if idle_W is None or net_J is None else net_J + idle_W * time_s
