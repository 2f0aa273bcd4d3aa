"""Answers of commands: sheets by name, warnings, and figures as files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from csdplan.options import Paths, paths_of
from csdplan.result.sheet import Sheet

if TYPE_CHECKING:
    from csdplan.plot import Panel
    from csdplan.result import BepResult


@dataclass(frozen=True)
class Tables:
    """Answer of a command.

    Attributes
    ----------
    sheets : mapping of str to Sheet
        The sheets by name, in the order in which they are printed.
    warnings : tuple of str
        Statements that the reader must know.
    terminal : tuple of Sheet or None
        The sheets in a shape for reading on a terminal, where it differs from that for programs.
    facts : mapping of str to object
        Further facts for JSON output, such as the verdict of an optimization.
    """

    sheets: Mapping[str, Sheet]
    warnings: tuple[str, ...] = ()
    terminal: tuple[Sheet, ...] | None = None
    facts: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class BepTables(Tables):
    """Answer of ``bep``.

    Attributes
    ----------
    result : BepResult
        The whole result, which JSON output shows.
    """

    result: BepResult = field(kw_only=True)


def plot_files(plot: Paths) -> list[Path]:
    """Return the files that figures are written to.

    Raises
    ------
    PlotError
        If a file's suffix names no format that can be written.
    """
    from csdplan.plot import check_paths  # noqa: PLC0415 - for commands with figures alone

    paths = paths_of(plot)
    check_paths(paths)
    return paths


def draw(panels: Iterable[Panel], files: Sequence[Path]) -> None:
    """Write a figure of `panels` to each of `files`."""
    from csdplan.plot import write  # noqa: PLC0415 - for commands with figures alone

    shown = list(panels)
    for file in files:
        write(shown, file)
