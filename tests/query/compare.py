#!/usr/bin/env python3
"""Compare `csd query` with DuckDB over the same Parquet files: the 22 queries of TPC-H.

Each query runs in the drives and on the host, whose answers must have the same bits (`--check`),
and its rows must be DuckDB's: decimals and integers exactly, numbers that one of both has as
floating-point to 1e-9, or to the last digit of the other's decimal.

Usage: compare.py --csd PATH [--scale 0.1] [--drives 4] [--only 1,6]
"""

import argparse
import datetime
import decimal
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
import pyarrow.parquet

HERE = Path(__file__).resolve().parent
TABLES = ["customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier"]


def number(value: object) -> object:
    """Return an integer or a decimal as a decimal; others as they are."""
    if isinstance(value, int) and not isinstance(value, bool):
        return decimal.Decimal(value)
    return value


def equal(ours: object, theirs: object) -> bool:
    """Return true if two values are the same for the comparison."""
    ours, theirs = number(ours), number(theirs)
    kinds = (decimal.Decimal, float)
    if isinstance(ours, kinds) and isinstance(theirs, kinds):
        if isinstance(ours, decimal.Decimal) and isinstance(theirs, decimal.Decimal):
            return ours == theirs
        places = [
            float(decimal.Decimal(1).scaleb(value.as_tuple().exponent))
            for value in (ours, theirs)
            if isinstance(value, decimal.Decimal)
        ]
        a, b = float(ours), float(theirs)
        return abs(a - b) <= max([1e-9 * max(abs(a), abs(b)), *places])
    if isinstance(ours, datetime.datetime) and isinstance(theirs, datetime.date):
        return ours.replace(tzinfo=None) == datetime.datetime.combine(theirs, datetime.time())
    return ours == theirs


def key(row: tuple) -> tuple:
    """Return what rows are sorted by: their exact columns."""
    return tuple(str(number(value)) for value in row if not isinstance(value, float))


def difference(ours: list[tuple], theirs: list[tuple]) -> str | None:
    """Return the first difference of two answers, whose rows may come in any order."""
    if len(ours) != len(theirs):
        return f"{len(ours)} rows, and DuckDB has {len(theirs)}"
    for mine, yours in zip(sorted(ours, key=key), sorted(theirs, key=key), strict=True):
        if len(mine) != len(yours) or not all(map(equal, mine, yours)):
            return f"{mine} is not {yours}"
    return None


def rows(table: pyarrow.Table) -> list[tuple]:
    """Return the rows of a table."""
    return list(zip(*[column.to_pylist() for column in table.columns], strict=True))


class Array:
    """Drives that serve tables while the object is open."""

    def __init__(self, csd: str, folder: Path, drives: int) -> None:
        self.csd, self.folder = csd, folder
        self.run("array", "up", "--drives", str(drives), "--size", "4G")

    def run(self, *words: str) -> str:
        """Run a command of csd; fail with what it says."""
        done = subprocess.run(
            [self.csd, *words], cwd=self.folder, capture_output=True, text=True, check=False
        )
        if done.returncode != 0:
            raise RuntimeError(f"csd {' '.join(words)[:200]}: {done.returncode}: {done.stderr}")
        return done.stdout

    def __enter__(self) -> "Array":
        return self

    def __exit__(self, *_: object) -> None:
        self.run("array", "down")


def main() -> int:
    """Run the comparison; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--csd", required=True, help="the program, built with the feature query")
    parser.add_argument("--scale", default="0.1", help="scale of TPC-H [default: 0.1]")
    parser.add_argument("--drives", type=int, default=4)
    parser.add_argument("--only", default="", help="numbers of queries, with commas")
    parser.add_argument("--data", help="folder with the files; made if it is missing")
    options = parser.parse_args()
    only = {int(word) for word in options.only.split(",") if word}
    with tempfile.TemporaryDirectory(prefix="csd-query-") as name:
        folder = Path(name)
        data = Path(options.data) if options.data else folder / "data"
        if not data.exists():
            generator = Path(sys.executable).parent / "tpchgen-cli"
            words = [generator, "parquet", "-s", options.scale, "--output-dir", data]
            subprocess.run(words, check=True)
        database = duckdb.connect()
        csd = str(Path(options.csd).resolve())
        with Array(csd, folder, options.drives) as array:
            for table in TABLES:
                path = data / f"{table}.parquet"
                database.sql(f"create view {table} as select * from '{path}'")
                array.run("put", str(path), table)
            failed = compare(array, database, folder, only)
            if not only:
                failed += not long_answers_agree(array, database, folder)
            print(f"{failed} failed")
            return 1 if failed else 0


def compare(array: Array, database: duckdb.DuckDBPyConnection, folder: Path, only: set[int]) -> int:
    """Run each query both ways; return the number that failed."""
    failed = 0
    for path in sorted((HERE / "tpch").glob("q*.sql")):
        number_of = int(path.stem[1:])
        if only and number_of not in only:
            continue
        sql = path.read_text()
        answer = folder / f"{path.stem}.parquet"
        began = time.monotonic()
        try:
            array.run("query", sql, "--check", "--parquet", str(answer))
            ours = rows(pyarrow.parquet.read_table(answer))
            wrong = difference(ours, database.sql(sql).fetchall())
        except RuntimeError as error:
            wrong = str(error)
        took = time.monotonic() - began
        failed += wrong is not None
        print(f"{path.stem}: {wrong or f'{len(ours)} rows, equal'} ({took:.1f} s)", flush=True)
    return failed


def long_answers_agree(array: Array, database: duckdb.DuckDBPyConnection, folder: Path) -> bool:
    """Return true if answers that are longer than their room in a drive are right.

    The host does those row groups, and says so.
    """
    answer = folder / "all.parquet"
    sql = "select * from orders"
    array.run("query", sql, "--check", "--parquet", str(answer))
    told = json.loads(array.run("query", sql, "--explain", "--json"))["result"]["runs"][0]
    by_host = [why for scan in told["scans"] for why in scan["host_does"]]
    count = "select count(*) from"
    missing = database.sql(f"{count} (from orders except all from '{answer}')").fetchall()
    more = database.sql(f"{count} (from '{answer}' except all from orders)").fetchall()
    agree = missing == more == [(0,)] and any("more than" in why for why in by_host)
    rows_of_both = f"{missing[0][0]} rows missing, {more[0][0]} more"
    print(f"all of orders: {rows_of_both}, {len(by_host)} row groups by the host")
    return agree


if __name__ == "__main__":
    sys.exit(main())
