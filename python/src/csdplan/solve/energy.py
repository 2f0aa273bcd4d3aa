"""Energy of a job on a purchase: what its parts draw while they work, and while they wait.

A part draws its power at rest for the whole time, and what work adds for the time of its own work:
cores by the core-seconds of the job, drives by the seconds in which they compute or are read.
"""

from __future__ import annotations

from dataclasses import dataclass

from csdplan.errors import ModelError
from csdplan.solve.plans import Plan
from csdplan.solve.purchase import Cpu, DriveKind, Request


@dataclass(frozen=True)
class Energy:
    """Energy of a job.

    Attributes
    ----------
    workload : str
        The workload.
    bytes : float
        Its input.
    time_s : float
        Time of the job, at the throughput that is required [s].
    cores_J, drives_J : float
        Energy that the work of cores, and of drives, adds to their rest [J].
    rest_J : float
        Energy of everything at rest over this time, the network as at work [J].
    """

    workload: str
    bytes: float
    time_s: float
    cores_J: float
    drives_J: float
    rest_J: float

    @property
    def work_J(self) -> float:
        """Energy that the work adds to rest [J]: the net energy of the papers."""
        return self.cores_J + self.drives_J

    @property
    def all_J(self) -> float:
        """All energy of the time of the job [J]."""
        return self.work_J + self.rest_J


def energy_of(request: Request, plan: Plan, job_bytes: float) -> list[Energy]:
    """Return the energy of a job of each workload of a purchase, all of them at work at once.

    Parameters
    ----------
    request, plan : Request and Plan
        The question with watts, and its purchase.
    job_bytes : float
        Input of the job [bytes].

    Notes
    -----
    Energy at rest is divided among workloads that run at once by their input.

    Raises
    ------
    ModelError
        If a part's power is unknown.
    """
    cpus = {cpu.name: cpu for cpu in request.cpus}
    kinds = {kind.name: kind for kind in request.drives}
    rest_W = _rest_W(request, plan, cpus, kinds)
    read = sum(share.rate_Bps for share in plan.shares if not share.in_drive)
    reading_J = _reading_J(plan, kinds)
    every = sum(demand.required_Bps for demand in request.demands)
    found = []
    for demand in request.demands:
        shares = [share for share in plan.shares if share.workload == demand.name]
        total = sum(share.rate_Bps for share in shares)
        cores_J = drives_J = 0.0
        for share in shares:
            mine = job_bytes * share.rate_Bps / total
            if share.in_drive:
                kind = kinds[share.where]
                drives_J += mine * demand.drive_s_per_byte[share.where] * _added_W(kind)
                continue
            cores_J += (
                mine * demand.core_s_per_byte[share.where] * (cpus[share.where].core_W or 0.0)
            )
            drives_J += mine * reading_J / read
        time_s = job_bytes / demand.required_Bps
        at_rest = rest_W * time_s * demand.required_Bps / every
        found.append(Energy(demand.name, job_bytes, time_s, cores_J, drives_J, at_rest))
    return found


def _rest_W(
    request: Request, plan: Plan, cpus: dict[str, Cpu], kinds: dict[str, DriveKind]
) -> float:
    total = 0.0
    for name, count in plan.hosts.items():
        idle_W = cpus[name].idle_W
        if idle_W is None:
            raise ModelError("watts", name, "a host whose power is known")
        total += count * idle_W
    for name, count in plan.drives.items():
        kind = kinds[name]
        if kind.active_W is None:
            raise ModelError("watts", name, "a drive whose power is known")
        total += count * (kind.active_W - _added_W(kind))
    network = {part.name: part.active_W or 0.0 for part in request.network}
    return total + sum(count * network[name] for name, count in plan.network.items())


def _added_W(kind: DriveKind) -> float:
    """Return what work adds to a drive's power; a drive without a power at rest draws all of it."""
    return 0.0 if kind.idle_W is None else (kind.active_W or 0.0) - kind.idle_W


def _reading_J(plan: Plan, kinds: dict[str, DriveKind]) -> float:
    """Return what reads of hosts add to the drives' power, over a second [J]."""
    total = 0.0
    for placed in plan.placed:
        for held in placed.drives:
            kind = kinds[held.name]
            busy = held.read_Bps / kind.read_Bps
            total += max(1, placed.hosts) * held.count * busy * _added_W(kind)
    return total
