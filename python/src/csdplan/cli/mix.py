"""``csdplan mix``: some SSDs, some drives that compute, several workloads at once."""

from __future__ import annotations

from typing import Annotated

import typer

from csdplan.cli.common import CsvOption, JsonOption, PlotOption, reported, show
from csdplan.cli.picked import (
    BytesOption,
    DeviceOption,
    ProfileOption,
    SsdOption,
    picked,
)
from csdplan.errors import ModelError
from csdplan.model.overlap import Overlap
from csdplan.plot.charts import Line, Lines, lines
from csdplan.plot.figure import check_path
from csdplan.result.mixed import mix
from csdplan.solve.mix import Placement

_STEPS = 8


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
    host_cores: Annotated[int, typer.Option(min=1, help="Host cores at work.")] = 4,
    k_limit: Annotated[
        int | None, typer.Option(min=1, help="SSDs that use up the host's ingest bandwidth.")
    ] = None,
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
        for path in plot or []:
            check_path(path)
        shares = dict(_share(text) for text in kernel)
        loads = [picked(profile, name, device=device, ssd=ssd, bytes=bytes) for name in shares]
        found = mix(
            loads,
            shares,
            drives=drives,
            csds=sorted({drives * step // _STEPS for step in range(_STEPS + 1)}),
            cores=host_cores,
            k_limit=k_limit,
            placement=placement,
            overlap=overlap,
        )
        whole = found[0]
        for path in plot or []:
            places = tuple(float(str(count)) for count in whole.column("csds"))
            rates = tuple(float(str(rate)) / 1e9 for rate in whole.column("throughput_Bps"))
            label = f"Host({host_cores}) and drives"
            panel = Lines(
                whole.title,
                "drives that compute",
                "throughput [GB/s]",
                places,
                (Line(label, rates),),
            )
            lines([panel], path)
    warnings = dict.fromkeys(warning for held_load in loads for warning in held_load.warnings)
    show("mix", found, json=json, csv=csv, warnings=list(warnings))


def _share(text: str) -> tuple[str, float]:
    name, equals, value = text.partition("=")
    try:
        return name, float(value) if equals else 1.0
    except ValueError as error:
        raise ModelError("kernel", text, "a name, or a name and a share such as count=3") from error
