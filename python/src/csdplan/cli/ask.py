"""``csdplan plan`` and ``csdplan catalogue``: a purchase as a person asks for it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from csdplan import commands
from csdplan.cli.common import check_forms, reported, show
from csdplan.cli.options import CsvOption, JsonOption

#: Exit code of a question that nothing satisfies: the run failed, the use was right.
_INFEASIBLE = 1


def plan_command(
    store: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Data to keep, such as 500TB.")
    ] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=RATE|@FILE",
            help="A kernel and its input, such as count=120GB/s, or a file with name, throughput, "
            "core (bytes per second of one core) and returns. Repeat it.",
        ),
    ] = None,
    usable: Annotated[
        bool,
        typer.Option(
            "--usable/--raw", help="Coding, file system and spare space come on top, or do not."
        ),
    ] = True,
    protect: Annotated[
        str | None, typer.Option(metavar="CODE", help="none, replica:3 or rs:8+2.")
    ] = None,
    budget: Annotated[
        str | None, typer.Option(metavar="USD", help="For the purchase, such as 400k.")
    ] = None,
    power: Annotated[
        str | None, typer.Option(metavar="POWER", help="With all at work, such as 12kW.")
    ] = None,
    write: Annotated[
        str | None,
        typer.Option(metavar="RATE", help="Client data written, within the drives' endurance."),
    ] = None,
    filesystem: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Share of the file system. Default: 2%.")
    ] = None,
    spare: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Share of flash kept free. Default: 0%.")
    ] = None,
    compression: Annotated[
        str | None,
        typer.Option(metavar="RATIO", help="Ratio of the data, for drives that compress."),
    ] = None,
    growth: Annotated[
        str | None, typer.Option(metavar="SHARE", help="Growth a year, such as 20%.")
    ] = None,
    years: Annotated[
        str | None, typer.Option(metavar="YEARS", help="Years in service. Default: 5.")
    ] = None,
    rack: Annotated[
        str | None, typer.Option(metavar="HEIGHT", help="Rack units at most, such as 20U.")
    ] = None,
    kwh: Annotated[
        str | None, typer.Option(metavar="USD", help="Price of a kWh; then energy is a cost.")
    ] = None,
    hosts_max: Annotated[
        int | None, typer.Option(min=1, max=4096, help="Hosts at most. Default: 64.")
    ] = None,
    overlap: Annotated[
        str | None, typer.Option(help="pipelined (default) or serial: how hosts work.")
    ] = None,
    ask: Annotated[
        Path | None, typer.Option(help="A file with these values, TOML or JSON.")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Consider this part of its kind alone. Repeat it.")
    ] = None,
    without: Annotated[list[str] | None, typer.Option(help="Leave out this part.")] = None,
    profile: Annotated[
        str | None,
        typer.Option(
            help="Profile whose host points give the times of one core. Default: newport."
        ),
    ] = None,
    prices: Annotated[
        Path | None, typer.Option(help="Your prices, before the shipped ones.")
    ] = None,
    time_limit: Annotated[
        float, typer.Option(metavar="SECONDS", help="Limit of each of the solver's runs.")
    ] = 20.0,
    json: JsonOption = False,
    csv: CsvOption = False,
) -> None:
    """Plan a purchase from the catalogue: what to buy, what binds, how sure it is.

    Try: csdplan plan --store 500TB --protect rs:8+2 --budget 400k --workload count=120GB/s

    If nothing can be bought, the command says which requirement is in the way and exits with 1.
    """
    if overlap not in {None, "serial", "pipelined"}:
        raise typer.BadParameter(f"--overlap {overlap}: expected serial or pipelined")
    check_forms(json=json, csv=csv)
    with reported():
        found = commands.plan(
            store,
            workload=workload or (),
            usable=usable,
            protect=protect,
            budget=budget,
            power=power,
            write=write,
            filesystem=filesystem,
            spare=spare,
            compression=compression,
            growth=growth,
            years=years,
            rack=rack,
            kwh=kwh,
            hosts_max=hosts_max,
            overlap=overlap,
            ask=ask,
            only=only or (),
            without=without or (),
            profile=profile,
            prices=prices,
            time_limit_s=time_limit,
        )
    if not (json or csv):
        typer.echo(f"{found.facts['answer']}\n")
    show("plan", found, json=json, csv=csv)
    if found.facts["verdict"] == "infeasible":
        raise typer.Exit(_INFEASIBLE)


def catalogue_command(
    kind: Annotated[
        list[str] | None,
        typer.Option(help="ssd, csd, network-drive, cpu, server, nic or switch. Repeat it."),
    ] = None,
    prices: Annotated[
        Path | None, typer.Option(help="Your prices, before the shipped ones.")
    ] = None,
    json: JsonOption = False,
    csv: CsvOption = False,
) -> None:
    """List the hardware that plan chooses from, each number with its source."""
    with reported():
        found = commands.catalogue(kind or (), prices=prices)
    show("catalogue", found, json=json, csv=csv)
