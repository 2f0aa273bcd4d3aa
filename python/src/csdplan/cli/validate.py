"""``csdplan validate``: signals that end it, and its progress."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import typer

from csdplan import commands
from csdplan.cli.common import reported, show
from csdplan.trial import Progress

#: Exit code of a run of which a part is missing.
_IN_PART = 4
#: Signals that end a process; not every system has them all.
_SIGNALS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
#: Blanks that clear what a longer line of progress left.
_WIDTH = 79


def validate(*, json: bool, csv: bool, **values: Any) -> None:
    """Measure, with progress on standard error, and print."""
    with reported(), _ended_by_signals(), _progress() as progress:
        found = commands.validate(progress=progress, **values)
    show("validate", found, json=json, csv=csv)
    if found.facts["lost"]:
        raise typer.Exit(_IN_PART)


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
def _progress() -> Iterator[Progress]:
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
