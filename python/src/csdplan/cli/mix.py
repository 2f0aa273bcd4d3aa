"""``csdplan mix``: some SSDs, some drives that compute, several workloads at once."""

from __future__ import annotations

from typing import Annotated

import typer

from csdplan import commands
from csdplan.cli.common import reported, show
from csdplan.cli.options import (
    BytesOption,
    CsvOption,
    DeviceOption,
    HostCoresOption,
    JsonOption,
    KLimitOption,
    PlotOption,
    ProfileOption,
    SsdOption,
)
from csdplan.errors import ModelError
from csdplan.model.overlap import Overlap
from csdplan.solve.mix import Placement


def mix_command(
    profile: ProfileOption,
    kernel: Annotated[
        list[str],
        typer.Option(
            metavar="KERNEL[=SHARE]",
            help="A kernel and its share of the input, such as count=3. Repeat it for a mix.",
        ),
    ],
    drives: Annotated[int, typer.Option(min=1, max=4096, help="Devices in all.")] = 16,
    host_cores: HostCoresOption = 4,
    k_limit: KLimitOption = None,
    placement: Annotated[
        Placement, typer.Option(help="Where data lies: even, or free (wherever it is best).")
    ] = Placement.EVEN,
    overlap: Annotated[
        Overlap, typer.Option(help="Whether the host adds load and compute time.")
    ] = Overlap.SERIAL,
    device: DeviceOption = None,
    ssd: SsdOption = None,
    bytes: BytesOption = None,
    plot: PlotOption = None,
    json: JsonOption = False,
    csv: CsvOption = False,
) -> None:
    """Replace SSDs by drives that compute, work split so that host and drives finish together."""
    with reported():
        found = commands.mix(
            profile,
            dict(_share(text) for text in kernel),
            drives=drives,
            host_cores=host_cores,
            k_limit=k_limit,
            placement=placement,
            overlap=overlap,
            device=device,
            ssd=ssd,
            bytes=bytes,
            plot=plot or (),
        )
    show("mix", found, json=json, csv=csv)


def _share(text: str) -> tuple[str, float]:
    name, equals, value = text.partition("=")
    try:
        return name, float(value) if equals else 1.0
    except ValueError as error:
        raise ModelError("kernel", text, "a name, or a name and a share such as count=3") from error
