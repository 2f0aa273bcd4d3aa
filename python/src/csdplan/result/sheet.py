"""A rectangular table of plain values, which tables, CSV, JSON and figures read.

A sheet holds text, numbers, booleans and None (unknown, or no such number), never NaN or
infinity, and every row has a value for every column. Units stand at the end of column names.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Value = str | int | float | bool | None


@dataclass(frozen=True)
class Sheet:
    """One table.

    Attributes
    ----------
    title : str
        Title.
    columns : tuple of str
        Names, units last.
    rows : tuple of tuple
        Values, one for each column.
    note : str
        Statement that the reader must know, or empty.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    note: str = ""

    def column(self, name: str) -> list[Value]:
        """Return one column's values."""
        index = self.columns.index(name)
        return [row[index] for row in self.rows]

    def as_dict(self) -> dict[str, object]:
        """Return the sheet as JSON types: rows as objects keyed by column."""
        return {"title": self.title, "rows": rows_of(self), "note": self.note}


def rows_of(sheet: Sheet | None) -> list[dict[str, Value]]:
    """Return the rows of a sheet, each as its values by column; none if there is no sheet."""
    if sheet is None:
        return []
    return [dict(zip(sheet.columns, row, strict=True)) for row in sheet.rows]


def sheet_of(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[Value]], note: str = ""
) -> Sheet:
    """Build a sheet, checking that rows and columns agree and that all numbers are finite."""
    checked = tuple(tuple(row) for row in rows)
    for row in checked:
        assert len(row) == len(columns), "a sheet's rows are as long as its columns"
        for value in row:
            assert not isinstance(value, float) or math.isfinite(value), (
                "a sheet's numbers are finite"
            )
    return Sheet(title, tuple(columns), checked, note)


def as_csv(sheet: Sheet) -> str:
    """Return a sheet as comma-separated values, a line of column names first."""
    target = io.StringIO()
    writer = csv.writer(target, lineterminator="\n")
    writer.writerow(sheet.columns)
    writer.writerows(sheet.rows)
    return target.getvalue()
