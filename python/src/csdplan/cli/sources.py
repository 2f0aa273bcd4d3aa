"""Commands about sources: reproduce (published claims) and import (other tools' measurements)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from csdplan import commands
from csdplan.cli.common import reported, show
from csdplan.cli.options import CsvOption, JsonOption
from csdplan.profile.convert import KernelTimes
from csdplan.profile.write import as_toml
from csdplan.units import quantity


def add_to(app: typer.Typer) -> None:
    """Register the commands."""
    app.command("reproduce")(reproduce_command)
    app.command("import")(import_command)


def reproduce_command(
    only: Annotated[
        list[str] | None, typer.Option(help="Only claims whose id begins so. Repeatable.")
    ] = None,
    document: Annotated[
        Path | None,
        typer.Option(help="Write the reference page here, and its figures next to it."),
    ] = None,
    json: JsonOption = False,
    csv: CsvOption = False,
) -> None:
    """Check every published claim that software can check, from profiles and equations."""
    with reported():
        found = commands.reproduce(only or (), document=document)
    show("reproduce", found, json=json, csv=csv)


def import_command(
    name: Annotated[str, typer.Argument(help="The device's name, such as my-ssd.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The profile to write; - is standard output.")
    ],
    kernel: Annotated[
        list[str],
        typer.Option(
            metavar="NAME:BYTES:HOST_S[:DRIVE_S]",
            help="A kernel's working set, such as 4.8GB, and compute times on one host core and in "
            "the drive.",
        ),
    ],
    host_cores: Annotated[int, typer.Option(min=1, help="Cores of the host.")],
    fio: Annotated[
        Path | None, typer.Option(help="fio's JSON, run on the host: bandwidth outside.")
    ] = None,
    fio_inside: Annotated[
        Path | None, typer.Option(help="fio's JSON, run in the drive: bandwidth inside.")
    ] = None,
    read_bps: Annotated[float | None, typer.Option(help="Data sheet: read (bytes/s).")] = None,
    write_bps: Annotated[float | None, typer.Option(help="Data sheet: write (bytes/s).")] = None,
    inside_bps: Annotated[
        float | None, typer.Option(help="Data sheet: read inside (bytes/s).")
    ] = None,
    ingest_bps: Annotated[int | None, typer.Option(help="The host's ingest (bytes/s).")] = None,
    link_bps: Annotated[int | None, typer.Option(help="The drive's link (bytes/s).")] = None,
    drive_cores: Annotated[int | None, typer.Option(min=1, help="Cores of the drive.")] = None,
    capacity_bytes: Annotated[int | None, typer.Option(min=1, help="Capacity.")] = None,
    idle_w: Annotated[float | None, typer.Option(help="The drive at rest (W).")] = None,
    active_w: Annotated[float | None, typer.Option(help="The drive at work (W).")] = None,
    price_usd: Annotated[float | None, typer.Option(help="The drive's price (USD).")] = None,
    machine: Annotated[
        str, typer.Option(help="Name of the machine that was measured.")
    ] = "unnamed machine",
    date: Annotated[str | None, typer.Option(help="YYYY-MM-DD of measurement or price.")] = None,
    source: Annotated[str | None, typer.Option(help="Source of the numbers.")] = None,
) -> None:
    """Make a profile from fio's JSON or a data sheet."""
    kernels = [_kernel(text) for text in kernel]
    with reported():
        profile = commands.import_profile(
            name,
            kernels,
            host_cores,
            out=None if str(out) == "-" else out,
            fio=fio,
            fio_inside=fio_inside,
            read_Bps=read_bps,
            write_Bps=write_bps,
            inside_Bps=inside_bps,
            ingest_Bps=ingest_bps,
            link_Bps=link_bps,
            drive_cores=drive_cores,
            capacity_bytes=capacity_bytes,
            idle_W=idle_w,
            active_W=active_w,
            price_usd=price_usd,
            machine=machine,
            date=date,
            source=source,
        )
    if str(out) == "-":
        typer.echo(as_toml(profile), nl=False)
    else:
        typer.echo(f"{out}: {len(profile.point)} points")


def _kernel(text: str) -> KernelTimes:
    parts = text.split(":")
    try:
        name, size, host, *drive = parts
        count = quantity("BYTES", size, "bytes")
        if count != int(count):
            raise ValueError(f"{size} is no whole number of bytes")
        return KernelTimes(name, int(count), float(host), *(float(value) for value in drive))
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(f"{text!r} is not NAME:BYTES:HOST_S[:DRIVE_S]") from error
