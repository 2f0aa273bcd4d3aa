"""Commands about sources: reproduce (published claims) and import (other tools' measurements)."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from csdplan.cli.common import CsvOption, JsonOption, reported, show
from csdplan.errors import ProfileIncomplete
from csdplan.profile.convert import Bandwidth, KernelTimes, profile_of, read_fio
from csdplan.profile.write import as_toml
from csdplan.reproduce import reproduce


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
        typer.Option(help="Write the reference page here, and its figures beside it."),
    ] = None,
    json: JsonOption = False,
    csv: CsvOption = False,
) -> None:
    """Check every published claim that software can check, from profiles and equations."""
    with reported():
        report = reproduce(only or ())
        if document is not None:
            from csdplan.reproduce.document import write  # noqa: PLC0415 - draws figures

            write(document)
    show("reproduce", [report.sheet()], json=json, csv=csv, **report.as_dict())


def import_command(
    name: Annotated[str, typer.Argument(help="The device's name, such as my-ssd.")],
    out: Annotated[Path, typer.Option(help="The profile to write; - is standard output.")],
    kernel: Annotated[
        list[str],
        typer.Option(
            metavar="NAME:BYTES:HOST_S[:DRIVE_S]",
            help="A kernel's working set and compute times, on one host core and in the drive.",
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
    machine: Annotated[str, typer.Option(help="What was measured.")] = "unnamed machine",
    date: Annotated[str | None, typer.Option(help="YYYY-MM-DD of measurement or price.")] = None,
    source: Annotated[str | None, typer.Option(help="Where the numbers come from.")] = None,
) -> None:
    """Make a profile from fio's JSON or a data sheet."""
    with reported():
        found: dict[str, Bandwidth] = {}
        for path, side in ((fio, "ext"), (fio_inside, "int")):
            if path is not None:
                found |= {f"{side}_{key}": value for key, value in read_fio(path).items()}
        measured = bool(found)
        sheet = {"ext_read": read_bps, "ext_write": write_bps, "int_read": inside_bps}
        stated = {key: Bandwidth(value) for key, value in sheet.items() if value is not None}
        if measured and stated:
            raise ProfileIncomplete("give fio's files or a data sheet's numbers, not both")
        device = {
            "cores": drive_cores,
            "link_bw_Bps": link_bps,
            "idle_W": idle_w,
            "active_W": active_w,
            "price_usd": price_usd,
            "capacity_bytes": capacity_bytes,
        }
        meta = {"machine": machine, "date": date, "source": source}
        host = {"cores": host_cores, "ingest_bw_Bps": ingest_bps}
        profile = profile_of(
            name,
            found or stated,
            [_kernel(text) for text in kernel],
            meta={key: value for key, value in meta.items() if value is not None},
            host={key: value for key, value in host.items() if value is not None},
            device={key: value for key, value in device.items() if value is not None},
            prov="measured" if measured else "given",
        )
        text = as_toml(profile)
        if str(out) != "-":
            out.write_text(text, encoding="utf-8")
    typer.echo(
        text if str(out) == "-" else f"{out}: {len(profile.point)} points", nl=str(out) != "-"
    )


def _kernel(text: str) -> KernelTimes:
    parts = text.split(":")
    try:
        name, size, host, *drive = parts
        return KernelTimes(name, int(size), float(host), *(float(value) for value in drive))
    except (TypeError, ValueError) as error:
        raise typer.BadParameter(f"{text!r} is not NAME:BYTES:HOST_S[:DRIVE_S]") from error
