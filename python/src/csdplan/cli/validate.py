"""``csdplan validate``: a plan for this machine next to what it measures."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from csdplan import commands
from csdplan.cli.common import check_forms, reported, show
from csdplan.cli.options import CsvOption, JsonOption, PlotOption, whole_numbers

#: Signals that end a process; not every system has them all.
_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
#: Blanks that clear what a longer line of progress left.
_WIDTH = 79


def validate_command(
    csd: Annotated[
        str | None, typer.Option(help="The csd program. Default: $CSD, or csd on the path.")
    ] = None,
    pace: Annotated[
        str | None,
        typer.Option(
            metavar="PROFILE",
            help="The profile that the drives imitate. Default: one in which drives win by number.",
        ),
    ] = None,
    device: Annotated[
        str | None, typer.Option(help="The device to imitate, if several compute.")
    ] = None,
    kernel: Annotated[
        list[str] | None, typer.Option(help="A kernel. Repeat it. Default: all of the profile.")
    ] = None,
    drives: Annotated[str, typer.Option(metavar="N,N,...", help="Numbers of drives.")] = "1,2,4",
    host_cores: Annotated[
        str, typer.Option(metavar="N,N,...", help="Cores of the host at work.")
    ] = "1,2",
    size: Annotated[str, typer.Option(help="Working set.")] = "16MiB",
    repeat: Annotated[
        int, typer.Option(min=1, max=1000, help="Repetitions that count, after one for warmth.")
    ] = 5,
    short: Annotated[
        bool,
        typer.Option("--short", help="Check that everything runs, in seconds; times say nothing."),
    ] = False,
    dir: Annotated[Path | None, typer.Option(help="Folder for scratch files.")] = None,
    plot: PlotOption = None,
    document: Annotated[
        Path | None, typer.Option(help="Write the reference page here, its figure next to it.")
    ] = None,
    json: JsonOption = False,
    csv: CsvOption = False,
) -> None:
    """Run kernels on paced drives of this machine, and compare with the plan.

    Starts drives in memory that imitate a profile, characterizes this machine as their host, plans
    throughput and break-even points, and measures both with `csd run`. Drives end and scratch files
    are removed whatever happens. Progress goes to standard error.

    Example: csdplan validate --size 32MiB --repeat 7 --plot planned-and-measured.svg
    """
    check_forms(json=json, csv=csv)
    counts = {"drives": whole_numbers(drives), "host_cores": whole_numbers(host_cores)}
    with reported(), _ended_by_signals(), _progress() as progress:
        found = commands.validate(
            csd=csd,
            pace=pace,
            device=device,
            kernel=kernel or (),
            **counts,
            size=size,
            repeat=repeat,
            short=short,
            dir=dir,
            plot=plot or (),
            document=document,
            progress=progress,
        )
    show("validate", found, json=json, csv=csv)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Turn signals that end the process into an exception, so that drives and files go first."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, end) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _progress() -> Iterator[commands.Progress]:
    """Return a function that shows the step, the share done and the time left.

    A terminal has one line, which is overwritten. Elsewhere a line is written each tenth.
    """
    begun, terminal, tenth = time.monotonic(), sys.stderr.isatty(), -1

    def report(done_s: float, all_s: float, step: str) -> None:
        nonlocal tenth
        share = done_s / all_s
        took_s = time.monotonic() - begun
        # Before anything is done, the plan is the best guess.
        left_s = took_s * (1 - share) / share if share else all_s
        text = f"{share:4.0%}, about {left_s:.0f} s left: {step}"
        if terminal:
            print(f"\r{text:<{_WIDTH}.{_WIDTH}}", end="", file=sys.stderr, flush=True)
        elif int(share * 10) > tenth:
            tenth = int(share * 10)
            print(text, file=sys.stderr, flush=True)

    try:
        yield report
    finally:
        if terminal:
            print(f"\r{'':<{_WIDTH}}\r", end="", file=sys.stderr, flush=True)
