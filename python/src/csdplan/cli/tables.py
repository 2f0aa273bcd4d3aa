"""Results as tables for a terminal. Formats cells, and decides nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from csdplan.profile.schema import Profile

if TYPE_CHECKING:
    from csdplan.result.break_even import BepResult

#: Columns of `text_sheet` that hold numbers, and the one that holds the answer.
_NUMBERS, _ANSWER = range(1, 5), 3


def print_bep(console: Console, result: BepResult) -> None:
    """Print one table for each system of `result`."""
    from csdplan.result.sheets import text_sheet  # noqa: PLC0415 - it brings NumPy, for bep alone

    for system in result.systems:
        sheet = text_sheet(result, system)
        table = Table(title=Text(sheet.title, style="bold"), title_justify="left")
        for index, heading in enumerate(sheet.columns):
            table.add_column(heading, justify="right" if index in _NUMBERS else "left")
        for row in sheet.rows:
            cells = [str(value) for value in row]
            table.add_row(
                *cells[:_ANSWER], Text(cells[_ANSWER], style="bold"), *cells[_ANSWER + 1 :]
            )
        console.print(table)
        console.print(Text(sheet.note, style="dim"))
        console.print()


def print_profiles(console: Console, profiles: Iterable[tuple[str, Profile]]) -> None:
    """Print one line for each profile: name, machine, drives, kernels."""
    table = Table(title="Shipped profiles", title_justify="left")
    for heading in ("profile", "machine", "drives that compute", "kernels"):
        table.add_column(heading, overflow="fold")
    for name, profile in profiles:
        drives = sorted({point.device for point in profile.point if point.where == "drive"})
        table.add_row(name, profile.meta.machine, ", ".join(drives), ", ".join(profile.kernels()))
    console.print(table)
