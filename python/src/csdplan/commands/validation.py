"""A plan for this machine next to what it measures: validate."""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

from csdplan.commands.tables import Tables, draw, plot_files
from csdplan.document import validated as page
from csdplan.errors import ModelError
from csdplan.options import Option, PlotOption, documented
from csdplan.result.validated import (
    break_even_sheet,
    compare,
    misses_sheet,
    terminal_sheets,
    throughput_sheet,
)
from csdplan.texts import whole_numbers
from csdplan.trial import KERNELS, Csd, Progress, Setting, load_pace, measure
from csdplan.units import quantity

#: Working sets are whole multiples of this, as ``csd characterize`` takes them [bytes].
_GRAIN_BYTES = 1 << 16
_LARGEST_BYTES = 1 << 30
_MOST_DRIVES = 16


@documented
def validate(
    *,
    csd: Annotated[
        str | Path | None, Option("The csd program. Default: $CSD, or csd on the path.", type=str)
    ] = None,
    pace: Annotated[
        str | Path | None,
        Option(
            "The profile that the drives imitate. Default: one in which drives win by number.",
            doc="The profile that the drives imitate; it needs ``host.ingest_bw_Bps``, and points "
            "and ``ext_read_Bps`` of a drive. By default one in which drives win by number.",
            metavar="PROFILE",
            type=str,
        ),
    ] = None,
    device: Annotated[str | None, Option("The device to imitate, if several compute.")] = None,
    kernel: Annotated[
        Sequence[str], Option("A kernel. Repeat it. Default: all of the profile.", type=list[str])
    ] = (),
    drives: Annotated[
        Sequence[int], Option("Numbers of drives.", metavar="N,N,...", parse=whole_numbers)
    ] = (1, 2, 4),
    host_cores: Annotated[
        Sequence[int], Option("Cores of the host at work.", metavar="N,N,...", parse=whole_numbers)
    ] = (1, 2),
    size: Annotated[
        str | float, Option("Working set.", doc="Working set, such as ``16MiB`` [bytes].")
    ] = "16MiB",
    repeat: Annotated[
        int, Option("Repetitions that count, after one for warmth.", min=1, max=1000)
    ] = 5,
    short: Annotated[
        bool,
        Option(
            "Check that everything runs, in seconds; times say nothing.",
            doc="Check that everything runs: 1 MiB, 1 and 2 drives, one repetition.",
        ),
    ] = False,
    dir: Annotated[str | Path | None, Option("Folder for scratch files.")] = None,
    plot: PlotOption = (),
    document: Annotated[
        str | Path | None, Option("Write the reference page here, its figure next to it.")
    ] = None,
    progress: Annotated[
        Progress | None,
        Option(
            "Called with work done and all work, both as planned [s], and the step that begins.",
            python_only=True,
        ),
    ] = None,
) -> Tables:
    """Plan for this machine, measure, and compare.

    Starts drives on this machine, each paced to a profile, characterizes the machine as their host,
    plans every kernel, and runs it in the drives and on the host. Drives end and scratch files are
    removed also if it fails. Returns the sheets ``throughput``, ``break_even`` and, if some
    measurement is far from its plan, ``misses``. Runs that fail twice are left out, with a warning;
    fact ``lost`` lists them.

    Raises
    ------
    OSError
        If there is no program, nothing can be measured, or answers differ.
    """
    if short:
        size, drives, repeat = "1MiB", (1, 2), 1
    files = plot_files(plot)
    paced = load_pace(pace, device)
    setting = Setting(
        _kernels(kernel, paced.kernels()),
        _counts("drives", drives, _MOST_DRIVES),
        _counts("host_cores", host_cores, max(2, os.cpu_count() or 1)),
        _size(size),
        _counts("repeat", [repeat], 1000)[0],
    )
    program = Csd(csd)
    before = os.getloadavg()[0]
    with TemporaryDirectory(prefix="csdplan-validate-", dir=dir) as folder:
        measured = measure(program, setting, paced, Path(folder), progress or _silent)
    host = measured.host
    found = compare(setting, paced, host, measured.samples)
    sheets = {
        "throughput": throughput_sheet(found),
        "break_even": break_even_sheet(found, setting),
        "misses": misses_sheet(found),
    }
    misses = found.misses()
    if not misses:
        del sheets["misses"]
    facts: dict[str, object] = {
        "machine": host.meta.machine,
        "csd": program.version(),
        "date": datetime.now(UTC).date().isoformat(),
        "pace": paced.name,
        "bytes": setting.size_bytes,
        "repeat": setting.repeat,
        "load_before": round(before, 1),
        "load_after": round(os.getloadavg()[0], 1),
        "intake_Bps": paced.intake_Bps,
        "read_Bps": paced.read_Bps,
        "lost": list(measured.lost),
    }
    warnings: tuple[str, ...] = ()
    if short:
        warnings = ("short: this run shows that everything works; its times say nothing",)
    elif misses:
        warnings = (f"{len(misses)} of {len(found.rows)} measurements are far from their plan",)
    # A run that is repeated warns each time.
    warnings += tuple(dict.fromkeys(program.warnings))
    warnings += tuple(f"not measured: {text}" for text in measured.lost)
    panels = page.panels(found, setting)
    draw(panels, files)
    tables = Tables(sheets, warnings, terminal_sheets(found, setting), facts)
    if document is not None:
        page.write(Path(document), panels, tables.sheets, facts)
    return tables


def _silent(done_s: float, all_s: float, step: str) -> None:
    """Report no progress."""


def _kernels(wanted: Sequence[str], paced: Sequence[str]) -> tuple[str, ...]:
    known = [name for name in KERNELS if name in paced]
    if unknown := [name for name in wanted if name not in known]:
        raise ModelError("kernel", ", ".join(unknown), f"one of {', '.join(known) or 'none'}")
    if not known:
        raise ModelError("pace", "no kernel", f"points of one of {', '.join(KERNELS)}")
    return tuple(name for name in known if not wanted or name in wanted)


def _counts(name: str, values: Sequence[int], most: int) -> tuple[int, ...]:
    if not values or min(values) < 1 or max(values) > most:
        raise ModelError(name, ",".join(map(str, values)), f"whole numbers from 1 to {most}")
    return tuple(sorted(set(values)))


def _size(size: str | float) -> int:
    found = quantity("size", size, "bytes")
    if found % _GRAIN_BYTES or not _GRAIN_BYTES <= found <= _LARGEST_BYTES:
        raise ModelError("size", size, "a whole multiple of 64KiB up to 1GiB, such as 16MiB")
    return int(found)
