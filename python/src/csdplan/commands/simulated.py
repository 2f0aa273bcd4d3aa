"""A job of many tasks on one host or a fleet: simulate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Annotated

from csdplan.commands.choose import choose, profile_of
from csdplan.commands.jobs import Question, simulate_job
from csdplan.commands.mixed import steps
from csdplan.commands.tables import Tables, draw, plot_files
from csdplan.errors import ModelError
from csdplan.model.overlap import Overlap
from csdplan.options import (
    BytesOption,
    DeviceOption,
    HostComputeOption,
    HostTransferOption,
    Option,
    PlotOption,
    ProfileLike,
    SsdOption,
    documented,
    options_of,
)
from csdplan.plot import figures
from csdplan.result.break_even import core_warnings
from csdplan.result.simulated import node_of, simulation
from csdplan.sim import Job, Layout, System
from csdplan.texts import whole_numbers_or_zero

#: Results that are shorter move for less time than a clock of floats can tell.
_LEAST_RATIO = 1e-9
#: Options that have no meaning for a job of phases, and those that have none without one.
_OF_TASKS = (
    "kernel", "hosts", "tasks", "nic_Bps", "network_Bps", "layout", "overlap", "skew",
    "task_spread", "stragglers", "straggler_factor", "result_ratio", "dispatch_s", "steal",
    "sd_tx", "sd_comp", "fluid", "ssd", "bytes",
)  # fmt: skip
_OF_JOBS = ("check", "input", "block", "reduces", "replication", "slots", "drive_cores")


@documented
def simulate(
    profile: Annotated[
        ProfileLike | None, Option("A shipped profile's name, or a TOML file.", type=str)
    ] = None,
    kernel: Annotated[str | None, Option("The kernel, such as count or page-rank.")] = None,
    *,
    job: Annotated[
        Sequence[str],
        Option(
            "A record of csd meter, with the job's log: a job of phases. Repeat it, for several "
            "sizes of input. Or a job by hand, in TOML.",
            metavar="FILE[,log=FILE]",
            type=list[str],
        ),
    ] = (),
    check: Annotated[
        str | None,
        Option("A record that the job's model must foretell.", metavar="FILE[,log=FILE]"),
    ] = None,
    input: Annotated[
        str | float | None,
        Option("Input of the job; by default the largest record's.", metavar="SIZE"),
    ] = None,
    block: Annotated[
        str | float | None,
        Option("Input of one map; by default the largest record's.", metavar="SIZE"),
    ] = None,
    reduces: Annotated[
        int | None,
        Option("Reduce tasks of the job; by default the records'.", min=0, max=1_000_000),
    ] = None,
    replication: Annotated[
        int | None, Option("Copies of each block, by default 2.", min=1, max=64)
    ] = None,
    slots: Annotated[
        int | None, Option("Tasks that a drive runs at once, by default 2.", min=1, max=256)
    ] = None,
    drive_cores: Annotated[
        float | None,
        Option("CPU of a drive, in host cores; by default the records'.", min=1e-6, max=1e4),
    ] = None,
    drives: Annotated[int, Option("Drives of each host.", min=1, max=4096)] = 16,
    host_cores: Annotated[
        int, Option("Cores of each host that pull tasks; 0 for none.", min=0, max=4096)
    ] = 4,
    enabled: Annotated[
        Sequence[int] | None,
        Option(
            "Drives that compute; the others serve as SSDs.",
            doc="Drives that compute, by default steps from none to all; the others serve as SSDs.",
            metavar="N,N,...",
            parse=whole_numbers_or_zero,
        ),
    ] = None,
    hosts: Annotated[int, Option("Hosts.", min=1, max=100_000)] = 1,
    tasks: Annotated[int, Option("Tasks of the job, over all hosts.", min=1)] = 1600,
    k_limit: Annotated[
        float | None,
        Option(
            "SSDs that saturate the switch.",
            doc="SSDs that saturate the switch; by default the profile's.",
            min=1,
        ),
    ] = None,
    nic_Bps: Annotated[
        float, Option("Each host's link to the network.", flag="--nic", metavar="BYTES/S")
    ] = 1.25e9,
    network_Bps: Annotated[
        float | None, Option("Bandwidth of the whole network.", flag="--network", metavar="BYTES/S")
    ] = None,
    memory_Bps: Annotated[
        float | None,
        Option("Bandwidth of each host's memory.", flag="--memory", metavar="BYTES/S"),
    ] = None,
    layout: Annotated[
        Layout | str,
        Option(
            "Placement of a task's bytes.",
            doc="Placement of a task's bytes: ``spread`` over drives, or ``whole`` on one.",
        ),
    ] = Layout.SPREAD,
    overlap: Annotated[
        Overlap | str,
        Option(
            "Whether loading and computing share time.",
            doc="``serial`` or ``pipelined``: whether loading and computing share time.",
        ),
    ] = Overlap.SERIAL,
    skew: Annotated[
        float, Option("Drive i holds data in proportion to i to the minus SKEW.")
    ] = 0.0,
    task_spread: Annotated[
        float, Option("Relative spread of the tasks' compute times.", max=10)
    ] = 0.0,
    stragglers: Annotated[int, Option("Drives that are slow.", min=0)] = 0,
    straggler_factor: Annotated[float, Option("How many times slower they are.", max=1e6)] = 3.0,
    result_ratio: Annotated[
        float, Option("Bytes that drives send back for each byte of input.", max=1e3)
    ] = 0.0,
    dispatch_s: Annotated[
        float, Option("Time of each pull.", flag="--dispatch", metavar="SECONDS", max=86_400)
    ] = 0.0,
    steal: Annotated[bool, Option("Idle drives fetch tasks of others on their host.")] = False,
    sd_tx: HostTransferOption = 1.0,
    sd_comp: HostComputeOption = 1.0,
    fluid: Annotated[bool, Option("The limit of many small tasks: for fleets.")] = False,
    seed: Annotated[int, Option("Seed of all that is random.", min=0)] = 1,
    device: DeviceOption = None,
    ssd: SsdOption = None,
    bytes: BytesOption = None,
    plot: PlotOption = (),
) -> Tables:
    """Simulate a job whose tasks host cores and drives pull one by one.

    Returns the sheet ``simulate``: a row for each number of drives that compute, with columns as
    `csdplan.result.simulated.COLUMNS`; with `job` those of `csdplan.result.phased.COLUMNS`.
    """
    given = dict(locals())
    if job:
        _refuse(given, _OF_TASKS, "nothing with --job")
        names = (one.name for one in fields(Question))
        return simulate_job(Question(**{name: given[name] for name in names}))
    _refuse(given, _OF_JOBS, "nothing without --job")
    if profile is None or kernel is None:
        lacking = "profile" if profile is None else "kernel"
        raise ModelError(lacking, "absent", "a profile and a kernel, or a job (--job)")
    files = plot_files(plot)
    if 0 < result_ratio < _LEAST_RATIO:
        raise ModelError("result_ratio", result_ratio, f"0, or at least {_LEAST_RATIO:g}")
    name, source = profile_of(profile)
    workload = choose(profile, kernel, device=device, ssd=ssd, bytes=bytes)
    node = node_of(
        workload, cores=host_cores, drives=drives, enabled=drives, k_limit=k_limit, profile=source
    )
    node = replace(node, nic_Bps=nic_Bps, memory_Bps=memory_Bps, sd_tx=sd_tx, sd_comp=sd_comp)
    system = System(node, hosts, network_Bps)
    work = Job(
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
    found = simulation(workload, system, work, counts, fluid=fluid)
    draw([figures.simulated(found)], files)
    warnings = [*workload.warnings, *core_warnings(workload, [host_cores])]
    if found.column("net_energy_J")[0] is None:
        warnings.append(f"{name}: energy is unknown: it needs core_W, idle_W and active_W")
    return Tables({"simulate": found}, tuple(warnings))


def _refuse(given: Mapping[str, object], names: Sequence[str], expected: str) -> None:
    """Refuse options that were given, but have no meaning here."""
    for one in options_of(simulate):
        if one.name in names and given[one.name] != one.default:
            raise ModelError(one.name, given[one.name], expected)
