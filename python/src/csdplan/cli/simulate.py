"""``csdplan simulate``: runs of many tasks, next to the closed forms."""

from __future__ import annotations

from typing import Annotated

import typer

from csdplan import commands
from csdplan.cli.common import reported, show
from csdplan.cli.options import (
    BytesOption,
    CsvOption,
    DeviceOption,
    JsonOption,
    KernelOption,
    PlotOption,
    ProfileOption,
    SsdOption,
    whole_numbers,
)
from csdplan.model.overlap import Overlap
from csdplan.sim import Layout


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
        float | None, typer.Option(min=1, help="SSDs that saturate the switch.")
    ] = None,
    nic: Annotated[
        float, typer.Option(metavar="BYTES/S", help="Each host's link to the network.")
    ] = 1.25e9,
    network: Annotated[
        float | None, typer.Option(metavar="BYTES/S", help="Bandwidth of the whole network.")
    ] = None,
    layout: Annotated[Layout, typer.Option(help="Placement of a task's bytes.")] = Layout.SPREAD,
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

    Prints throughput, utilization and energy against the number of drives that compute, and the
    throughput of the closed forms.
    """
    counts = None if enabled is None else whole_numbers(enabled, least=0)
    with reported():
        found = commands.simulate(
            profile,
            kernel,
            drives=drives,
            host_cores=host_cores,
            enabled=counts,
            hosts=hosts,
            tasks=tasks,
            k_limit=k_limit,
            nic_Bps=nic,
            network_Bps=network,
            layout=layout,
            overlap=overlap,
            skew=skew,
            task_spread=task_spread,
            stragglers=stragglers,
            straggler_factor=straggler_factor,
            result_ratio=result_ratio,
            dispatch_s=dispatch,
            steal=steal,
            sd_tx=sd_tx,
            sd_comp=sd_comp,
            fluid=fluid,
            seed=seed,
            device=device,
            ssd=ssd,
            bytes=bytes,
            plot=plot or (),
        )
    show("simulate", found, json=json, csv=csv)
