"""A job on other drives: time with its range, tasks, bytes and energy by class."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from csdplan.jobs.model import Model
from csdplan.sim import Cluster, Phased, closed_form_s, simulate_phases


@dataclass(frozen=True)
class Foretold:
    """A job on a host and its drives.

    Attributes
    ----------
    run : Phased
        The simulated run.
    low_s, high_s : float or None
        Range of its time, by the spread of the runs that the model is from [s].
    closed_form_s : float
        Time if all work divides evenly, without shuffle [s].
    cpu_s : dict
        CPU time by class: host, os, drives, tunnels [s].
    routing_s : float
        CPU time of the host for routing, part of tunnels [s].
    energy_J : dict or None
        Energy beyond rest by class [J]; None without watts.
    """

    run: Phased
    low_s: float | None
    high_s: float | None
    closed_form_s: float
    cpu_s: dict[str, float]
    routing_s: float
    energy_J: dict[str, float] | None

    @property
    def net_energy_J(self) -> float | None:
        """Energy of all classes beyond rest [J]."""
        return None if self.energy_J is None else sum(self.energy_J.values())


def foretold(model: Model, cluster: Cluster, *, seed: int = 1) -> Foretold:
    """Return what a job takes; the cluster's drives and slots are those of the model."""
    cluster = replace(
        cluster,
        drive_cores=model["drive_cores"],
        slots=int(model["slots"]),
        routing_byte_s=model["routing_byte_s"],
    )
    job = model.phases(drives=cluster.drives, seed=seed)
    run = simulate_phases(cluster, job)
    routing_s = model["routing_byte_s"] * run.tunnel_bytes
    inside_s = model["tunnel_inside_byte_s"] * run.tunnel_bytes
    size = job.input_bytes
    cpu_s = {
        "host": model["host_fixed_s"] + model["host_byte_s"] * size + run.host_cpu_s,
        "os": model["os_fixed_s"] + run.drive_cpu_s,
        "drives": model["drives_byte_s"] * size,
        "tunnels": routing_s + inside_s,
    }
    energy_J = None
    if "host_core_W" in model.numbers and "drive_core_W" in model.numbers:
        host_W, drive_W = model["host_core_W"], model["drive_core_W"]
        energy_J = {
            "host": host_W * cpu_s["host"],
            "os": drive_W * cpu_s["os"],
            "drives": drive_W * cpu_s["drives"],
            "tunnels": host_W * routing_s + drive_W * inside_s,
        }
    low_s, high_s = None, None
    if model.wall is not None:
        # The second term is the time of tasks on drives of one core.
        tasks_s = (run.time_s - job.begin_s) / float(model.wall.coefficients[1])
        low_s, high_s = model.wall.range_at(np.array([1.0, tasks_s]))
    closed_s = closed_form_s(cluster, job)
    return Foretold(run, low_s, high_s, closed_s, cpu_s, routing_s, energy_J)
