"""A job of many tasks on one host or a fleet: simulate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from csdplan.commands.choose import ProfileLike, choose, profile_of
from csdplan.commands.mixed import steps
from csdplan.commands.tables import Paths, Tables, draw, plot_files
from csdplan.model.overlap import Overlap
from csdplan.plot import figures
from csdplan.result.break_even import core_warnings
from csdplan.result.simulated import node_of, simulation
from csdplan.sim import Job, Layout, System


def simulate(
    profile: ProfileLike,
    kernel: str,
    *,
    drives: int = 16,
    host_cores: int = 4,
    enabled: Sequence[int] | None = None,
    hosts: int = 1,
    tasks: int = 1600,
    k_limit: float | None = None,
    nic_Bps: float = 1.25e9,
    network_Bps: float | None = None,
    layout: Layout | str = Layout.SPREAD,
    overlap: Overlap | str = Overlap.SERIAL,
    skew: float = 0.0,
    task_spread: float = 0.0,
    stragglers: int = 0,
    straggler_factor: float = 3.0,
    result_ratio: float = 0.0,
    dispatch_s: float = 0.0,
    steal: bool = False,
    sd_tx: float = 1.0,
    sd_comp: float = 1.0,
    fluid: bool = False,
    seed: int = 1,
    device: str | None = None,
    ssd: str | None = None,
    bytes: int | None = None,
    plot: Paths = (),
) -> Tables:
    """Simulate a job whose tasks host cores and drives pull one by one.

    Returns the sheet ``simulate``: a row for each number of drives that compute, with columns as
    `csdplan.result.simulated.COLUMNS`.

    Parameters
    ----------
    profile, kernel, device, ssd, bytes, plot
        As in `bep`.
    drives, host_cores, hosts : int
        Drives and cores of each host, and number of hosts.
    enabled : sequence of int, optional
        Drives that compute, on each host; by default steps from none to all.
    tasks : int
        Tasks of the job, which has one working set for each host.
    k_limit : float, optional
        SSDs that saturate the switch; by default the profile's.
    nic_Bps, network_Bps : float, optional
        Bandwidth of each host's link, and of the whole network if it is limited [bytes/s].
    layout : str
        Placement of a task's bytes: ``spread`` over drives, or ``whole`` on one.
    overlap : str
        ``serial`` or ``pipelined``: whether loading and computing share time.
    skew : float
        Drive i holds data in proportion to i to the power of -skew [1].
    task_spread : float
        Relative spread of the tasks' compute times [1].
    stragglers, straggler_factor : int, float
        Number of slow drives, and how many times slower they are [1].
    result_ratio : float
        Bytes that drives send back for each byte of input [1].
    dispatch_s : float
        Time of each pull [s].
    steal : bool
        True if idle drives fetch tasks of other drives on their host.
    sd_tx, sd_comp : float
        Slow-down factors of the host's transfer and compute [1]; at least 1.
    fluid : bool
        True for the limit of many small tasks, for fleets.
    seed : int
        Seed of all that is random.
    """
    files = plot_files(plot)
    name, source = profile_of(profile)
    workload = choose(profile, kernel, device=device, ssd=ssd, bytes=bytes)
    node = node_of(
        workload, cores=host_cores, drives=drives, enabled=drives, k_limit=k_limit, profile=source
    )
    system = System(
        replace(node, nic_Bps=nic_Bps, sd_tx=sd_tx, sd_comp=sd_comp), hosts, network_Bps
    )
    job = Job(
        tasks=tasks,
        task_bytes=hosts * workload.bytes / max(1, tasks),
        layout=Layout(layout),
        overlap=Overlap(overlap),
        skew=skew,
        task_spread=task_spread,
        stragglers=stragglers,
        straggler_factor=straggler_factor,
        result_ratio=result_ratio,
        dispatch_s=dispatch_s,
        steal=steal,
        seed=seed,
    )
    # Without host cores some drive must compute, or nothing does.
    counts = steps(0 if host_cores else drives, drives) if enabled is None else list(enabled)
    found = simulation(workload, system, job, counts, fluid=fluid)
    draw([figures.simulated(found)], files)
    warnings = [*workload.warnings, *core_warnings(workload, [host_cores])]
    if found.column("net_energy_J")[0] is None:
        warnings.append(f"{name}: energy is unknown: it needs core_W, idle_W and active_W")
    return Tables({"simulate": found}, tuple(warnings))
