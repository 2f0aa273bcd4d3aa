"""``csdplan simulate``: runs of many tasks, beside the closed forms."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from csdplan.cli.common import CsvOption, JsonOption, PlotOption, reported, show
from csdplan.cli.picked import (
    BytesOption,
    DeviceOption,
    KernelOption,
    ProfileOption,
    SsdOption,
    picked,
)
from csdplan.errors import ModelError
from csdplan.model.overlap import Overlap
from csdplan.plot.charts import Line, Lines, lines
from csdplan.plot.figure import check_path
from csdplan.profile import load
from csdplan.result.sheet import Sheet
from csdplan.result.simulated import node_of, simulation
from csdplan.sim import Job, Layout, System

#: Without --enabled so many numbers of drives are tried, with none and all among them.
_STEPS = 8


def simulate_command(
    profile: ProfileOption,
    kernel: KernelOption,
    drives: Annotated[int, typer.Option(min=1, max=4096, help="Drives of each host.")] = 16,
    host_cores: Annotated[
        int, typer.Option(min=0, max=4096, help="Cores of each host that pull tasks; 0 for none.")
    ] = 4,
    enabled: Annotated[
        str | None,
        typer.Option(metavar="N,N,...", help="Drives that compute; the others serve as SSDs."),
    ] = None,
    hosts: Annotated[int, typer.Option(min=1, max=100_000, help="Hosts.")] = 1,
    tasks: Annotated[int, typer.Option(min=1, help="Tasks of the job, over all hosts.")] = 1600,
    k_limit: Annotated[
        int | None, typer.Option(min=1, help="SSDs that saturate the switch.")
    ] = None,
    nic: Annotated[
        float, typer.Option(metavar="BYTES/S", help="Each host's link to the network.")
    ] = 1.25e9,
    network: Annotated[
        float | None, typer.Option(metavar="BYTES/S", help="What the network carries in all.")
    ] = None,
    layout: Annotated[Layout, typer.Option(help="How a task's bytes lie.")] = Layout.SPREAD,
    overlap: Annotated[
        Overlap, typer.Option(help="Whether loading and computing share time.")
    ] = Overlap.SERIAL,
    skew: Annotated[
        float, typer.Option(help="Drive i holds data in proportion to i to the minus SKEW.")
    ] = 0.0,
    task_spread: Annotated[
        float, typer.Option(help="Relative spread of the tasks' compute times.")
    ] = 0.0,
    stragglers: Annotated[int, typer.Option(min=0, help="Drives that are slow.")] = 0,
    straggler_factor: Annotated[float, typer.Option(help="How many times slower they are.")] = 3.0,
    result_ratio: Annotated[
        float, typer.Option(help="Bytes that drives send back for each byte of input.")
    ] = 0.0,
    dispatch: Annotated[float, typer.Option(metavar="SECONDS", help="Time of each pull.")] = 0.0,
    steal: Annotated[
        bool, typer.Option("--steal", help="Idle drives fetch tasks of others on their host.")
    ] = False,
    sd_tx: Annotated[float, typer.Option(help="Slow-down of the host's transfer.")] = 1.0,
    sd_comp: Annotated[float, typer.Option(help="Slow-down of the host's compute.")] = 1.0,
    fluid: Annotated[
        bool, typer.Option("--fluid", help="The limit of many small tasks: for fleets.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all that is random.")] = 1,
    device: DeviceOption = None,
    ssd: SsdOption = None,
    bytes: BytesOption = None,
    plot: PlotOption = None,
    json: JsonOption = False,
    csv: CsvOption = False,
) -> None:
    """Simulate a job whose tasks host cores and drives pull one by one.

    Prints throughput, utilization and energy against the number of drives that compute, beside
    the throughput that the closed forms give.
    """
    with reported():
        for path in plot or []:
            check_path(path)
        held = load(profile)
        resolved = picked(profile, kernel, device=device, ssd=ssd, bytes=bytes)
        node = node_of(
            resolved, cores=host_cores, drives=drives, enabled=drives, k_limit=k_limit, profile=held
        )
        system = System(replace(node, nic_Bps=nic, sd_tx=sd_tx, sd_comp=sd_comp), hosts, network)
        job = Job(
            tasks=tasks,
            task_bytes=hosts * resolved.bytes / tasks,
            layout=layout,
            overlap=overlap,
            skew=skew,
            task_spread=task_spread,
            stragglers=stragglers,
            straggler_factor=straggler_factor,
            result_ratio=result_ratio,
            dispatch_s=dispatch,
            steal=steal,
            seed=seed,
        )
        found = simulation(resolved, system, job, _enabled(enabled, system), fluid=fluid)
        for path in plot or []:
            lines([_drawn(found)], path)
    warnings = list(resolved.warnings)
    if found.column("net_energy_J")[0] is None:
        warnings.append(f"{profile}: energy is unknown: it needs core_W, idle_W and active_W")
    show("simulate", [found], json=json, csv=csv, warnings=warnings)


def _enabled(text: str | None, system: System) -> list[int]:
    node = system.node
    if text is None:
        least = 0 if node.cores else node.drives
        steps = range(_STEPS + 1)
        return sorted({least + (node.drives - least) * step // _STEPS for step in steps})
    parts = [part.strip() for part in text.split(",")]
    digits_max = 5
    if not all(part.isascii() and part.isdecimal() and len(part) <= digits_max for part in parts):
        raise ModelError("enabled", text, "a list of whole numbers such as 0,4,16")
    return [int(part) for part in parts]


def _drawn(found: Sheet) -> Lines:
    def series(name: str) -> tuple[float | None, ...]:
        values = found.column(name)
        return tuple(value / 1e9 if isinstance(value, float) else None for value in values)

    places = tuple(float(str(value)) for value in found.column("enabled_drives"))
    return Lines(
        title=found.title.split(" on ", 1)[0] + ": simulated, and by the closed forms",
        across="drives that compute",
        up="throughput [GB/s]",
        places=places,
        lines=(
            Line("simulated", series("throughput_Bps")),
            Line("closed forms", series("closed_form_Bps")),
        ),
    )
