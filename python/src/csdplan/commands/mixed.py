"""Some SSDs, some drives that compute, several workloads at once: mix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from csdplan.commands.choose import ProfileLike, choose
from csdplan.commands.tables import Paths, Tables, draw, plot_files
from csdplan.model.overlap import Overlap
from csdplan.plot import figures
from csdplan.result import mixed
from csdplan.result.break_even import core_warnings
from csdplan.solve.mix import Placement

#: Steps from no drive to all of them.
STEPS = 8


def steps(least: int, most: int) -> list[int]:
    """Return about nine whole numbers from `least` to `most`, both among them."""
    return sorted({least + (most - least) * step // STEPS for step in range(STEPS + 1)})


def mix(
    profile: ProfileLike,
    kernel: Mapping[str, float],
    *,
    drives: int = 16,
    csds: Sequence[int] | None = None,
    host_cores: int = 4,
    k_limit: float | None = None,
    placement: Placement | str = Placement.EVEN,
    overlap: Overlap | str = Overlap.SERIAL,
    device: str | None = None,
    ssd: str | None = None,
    bytes: int | None = None,
    plot: Paths = (),
) -> Tables:
    """Replace SSDs by drives that compute, under several workloads at once.

    Returns the sheets ``throughput``, a row for each number of drives that compute, and
    ``shares``, a row for each number and workload.

    Parameters
    ----------
    profile, device, ssd, bytes, plot
        As in `bep`.
    kernel : mapping of str to float
        Share of each kernel in the input, relative to the others.
    drives, host_cores : int
        Devices in all; host cores at work.
    csds : sequence of int, optional
        Numbers of devices that compute; by default steps from none to all.
    k_limit : float, optional
        SSDs that use up the host's ingest bandwidth; by default the profile's.
    placement : str
        Data ``even`` over devices, or ``free``: wherever it is best.
    overlap : str
        ``serial`` if the host adds load and compute time, or ``pipelined``.
    """
    files = plot_files(plot)
    workloads = [choose(profile, name, device=device, ssd=ssd, bytes=bytes) for name in kernel]
    whole, shares = mixed.mix(
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
    return Tables({"throughput": whole, "shares": shares}, tuple(warnings))
