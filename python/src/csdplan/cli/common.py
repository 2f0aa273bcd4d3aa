"""Error reporting, and the three ways to print an answer.

A command computes its tables, then hands them to `show`: tables on the terminal, one JSON object
with ``--json``, or rows of CSV with ``--csv``. This module formats and reports; it computes
nothing and knows no command.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from csdplan.commands import Tables
from csdplan.errors import CsdplanError, ExtraMissing
from csdplan.result import as_json
from csdplan.result.sheet import Sheet, Value, as_csv

#: A table of more columns than this, and of no more rows than that, is printed turned over.
_WIDE, _SHORT = 10, 5


def console() -> Console:
    """Return a console for tables; names and units come with square brackets of their own."""
    return Console(markup=False, emoji=False, highlight=False)


@contextmanager
def reported() -> Iterator[None]:
    """Turn faults into a message on standard error, and exit code 2 (input) or 1 (all others)."""
    try:
        yield
    except CsdplanError as error:
        typer.echo(f"csdplan: {error}", err=True)
        raise typer.Exit(2) from error
    except ExtraMissing as error:
        typer.echo(f"csdplan: {error}", err=True)
        raise typer.Exit(1) from error
    except OSError as error:
        plain = error.strerror if error.filename is None else f"{error.filename}: {error.strerror}"
        typer.echo(f"csdplan: {plain or error}", err=True)
        raise typer.Exit(1) from error


def check_forms(*, json: bool, csv: bool) -> None:
    """Refuse two forms of output at once."""
    if json and csv:
        raise typer.BadParameter("--json and --csv exclude each other")


def show(command: str, tables: Tables, *, json: bool, csv: bool = False) -> None:
    """Print an answer as tables, as one JSON object, or as CSV (one block for each sheet)."""
    sheets = list(tables.sheets.values())
    if json:
        body: dict[str, object] = {**tables.facts, "tables": [sheet.as_dict() for sheet in sheets]}
        typer.echo(as_json(command, body, tables.warnings))
        return
    if csv:
        typer.echo("\n".join(as_csv(sheet) for sheet in sheets), nl=False)
    else:
        for sheet in tables.terminal or sheets:
            print_sheet(console(), sheet)
    warn(tables)


def warn(tables: Tables) -> None:
    """Print an answer's warnings on standard error."""
    for warning in tables.warnings:
        typer.echo(f"warning: {warning}", err=True)


def print_sheet(target: Console, sheet: Sheet) -> None:
    """Print one sheet as a table, with its note below; a wide and short one is turned over."""
    # A column in which nothing is known takes room and says nothing.
    known = [i for i in range(len(sheet.columns)) if any(row[i] is not None for row in sheet.rows)]
    shown = [_shown(sheet.columns[i], [row[i] for row in sheet.rows]) for i in known]
    headings, columns = [heading for heading, _ in shown], [values for _, values in shown]
    if len(headings) > _WIDE and len(sheet.rows) <= _SHORT:
        names = [str(value) for value in columns[0]]
        columns = [list(headings[1:]), *zip(*columns[1:], strict=True)]  # type: ignore[list-item]
        headings = [headings[0], *names]
    table = Table(title=Text(sheet.title, style="bold"), title_justify="left")
    cells = [[_cell(value) for value in values] for values in columns]
    # Where the table is too wide its headings stand word below word, then blanks give way: a
    # number that is broken in two is worse than either.
    if _width(headings, cells, blanks=2) > target.width:
        headings = [heading.replace(" ", "\n") for heading in headings]
        table.padding = (0, 1) if _width(headings, cells, blanks=2) <= target.width else 0
    for heading, values in zip(headings, columns, strict=True):
        numeric = all(not isinstance(value, str) for value in values)
        table.add_column(heading, justify="right" if numeric else "left", overflow="fold")
    for row in zip(*cells, strict=True):
        table.add_row(*(Text(text) for text in row))
    target.print(table)
    if sheet.note:
        target.print(Text(sheet.note, style="dim"))
    target.print()


def _width(headings: Sequence[str], cells: Sequence[Sequence[str]], *, blanks: int) -> int:
    """Return how wide a table is in which nothing is broken, with a line between columns."""
    lines = [heading.split("\n") for heading in headings]
    widths = [
        max(len(text) for text in (*heading, *texts))
        for heading, texts in zip(lines, cells, strict=True)
    ]
    return sum(width + blanks + 1 for width in widths) + 1


def _shown(name: str, values: list[Value]) -> tuple[str, list[Value]]:
    """Return a column as people read it: words for its name, and bandwidths in GB/s."""
    if not name.endswith("_Bps"):
        return name.replace("_", " "), values
    scaled: list[Value] = [
        value / 1e9 if isinstance(value, float | int) else value for value in values
    ]
    return name.removesuffix("_Bps").replace("_", " ") + " [GB/s]", scaled


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        # From 10,000 on digits, not powers of ten; whole numbers keep all of theirs.
        return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"  # noqa: PLR2004
    return str(value)
