"""Some SSDs, some drives that compute, several workloads at once: mix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

from csdplan.commands.choose import choose
from csdplan.commands.tables import Tables, draw, plot_files
from csdplan.model.overlap import Overlap
from csdplan.options import (
    BytesOption,
    DeviceOption,
    HostCoresOption,
    KLimitOption,
    Option,
    PlotOption,
    ProfileOption,
    SsdOption,
    documented,
)
from csdplan.plot import figures
from csdplan.result import mixed
from csdplan.result.break_even import core_warnings
from csdplan.solve.mix import Placement
from csdplan.texts import shares

#: Steps from no drive to all of them.
STEPS = 8


def steps(least: int, most: int) -> list[int]:
    """Return about nine whole numbers from `least` to `most`, both among them."""
    return sorted({least + (most - least) * step // STEPS for step in range(STEPS + 1)})


@documented
def mix(
    profile: ProfileOption,
    kernel: Annotated[
        Mapping[str, float],
        Option(
            "A kernel and its share of the input, such as count=3. Repeat it for a mix.",
            metavar="KERNEL[=SHARE]",
            type=list[str],
            parse=shares,
        ),
    ],
    *,
    drives: Annotated[int, Option("Devices in all.", min=1, max=4096)] = 16,
    csds: Annotated[
        Sequence[int] | None,
        Option(
            "Numbers of devices that compute; by default steps from none to all.", python_only=True
        ),
    ] = None,
    host_cores: HostCoresOption = 4,
    k_limit: KLimitOption = None,
    placement: Annotated[
        Placement | str, Option("Where data lies: even, or free (wherever it is best).")
    ] = Placement.EVEN,
    overlap: Annotated[
        Overlap | str,
        Option(
            "Whether the host adds load and compute time.",
            doc="``serial`` if the host adds load and compute time, or ``pipelined``.",
        ),
    ] = Overlap.SERIAL,
    device: DeviceOption = None,
    ssd: SsdOption = None,
    bytes: BytesOption = None,
    plot: PlotOption = (),
) -> Tables:
    """Replace SSDs by drives that compute, under several workloads at once.

    Returns the sheets ``throughput``, a row for each number of drives that compute, and
    ``shares``, a row for each number and workload.
    """
    files = plot_files(plot)
    workloads = [choose(profile, name, device=device, ssd=ssd, bytes=bytes) for name in kernel]
    whole, divided = mixed.mix(
        workloads,
        kernel,
        drives=drives,
        csds=steps(0, drives) if csds is None else csds,
        cores=host_cores,
        k_limit=k_limit,
        placement=placement,
        overlap=overlap,
    )
    draw([figures.mixed(whole, host_cores)], files)
    texts = [text for workload in workloads for text in workload.warnings]
    warnings = dict.fromkeys([*texts, *core_warnings(workloads[0], [host_cores])])
    return Tables({"throughput": whole, "shares": divided}, tuple(warnings))
