#!/usr/bin/env python3
"""Write Parquet files as other programs write them, for the random comparison of queries.

PyArrow writes every type with every encoding and compression that it has; DuckDB and Polars, and
PySpark if it is installed, write the same table in their own way.

Usage: files.py --out FOLDER [--rows 5000]
"""

import argparse
import datetime
import decimal
import random
from pathlib import Path

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq

try:
    from pyspark.sql import SparkSession
except ImportError:
    SparkSession = None

SEED = 1
WORDS = ["", "a", "A", "größer", "100%", "a_b", "it's", "日本", "zz\nz"]


def sometimes(rng: random.Random, values: list[object], share: float) -> list[object]:
    """Return the values with this share of them missing."""
    return [None if rng.random() < share else value for value in values]


def columns(rng: random.Random, rows: int) -> dict[str, pa.Array]:
    """Return columns of every type that Parquet has a form for."""
    each = range(rows)
    numbers = [rng.randrange(-100, 100) for _ in each]
    eighths = [rng.choice([float("nan"), -0.0, 0.0, rng.randrange(-8000, 8000) / 8]) for _ in each]
    texts = [rng.choice(WORDS) + rng.choice(["", str(rng.randrange(1000))]) for _ in each]
    days = [datetime.date(1970, 1, 1) + datetime.timedelta(97 * n) for n in numbers]
    times = [datetime.time(n % 24, n % 60, 7, 123_000) for n in numbers]
    instants = [datetime.datetime(1970, 1, 1) + datetime.timedelta(97 * n) for n in numbers]
    decimals = [decimal.Decimal(n) / 4 for n in numbers]
    table: dict[str, pa.Array] = {}

    def add(name: str, values: list[object], of: pa.DataType) -> None:
        table[name] = pa.array(sometimes(rng, values, rng.choice([0, 0.1, 0.5])), of)

    for width in (8, 16, 32, 64):
        add(f"int{width}", numbers, getattr(pa, f"int{width}")())
        add(f"uint{width}", [abs(n) for n in numbers], getattr(pa, f"uint{width}")())
    add("bool", [n > 0 for n in numbers], pa.bool_())
    add("float", eighths, pa.float32())
    add("double", eighths, pa.float64())
    add("text", texts, pa.string())
    add("large_text", texts, pa.large_string())
    add("bytes", [text.encode() for text in texts], pa.binary())
    add("fixed", [text.encode()[:2].ljust(3, b"x") for text in texts], pa.binary(3))
    add("words", [rng.choice(WORDS) for _ in each], pa.dictionary(pa.int16(), pa.string()))
    add("day", days, pa.date32())
    add("day64", days, pa.date64())
    add("time_ms", times, pa.time32("ms"))
    add("time_us", times, pa.time64("us"))
    for unit in ("ms", "us", "ns"):
        add(f"at_{unit}", instants, pa.timestamp(unit))
        add(f"at_{unit}_utc", instants, pa.timestamp(unit, "UTC"))
    add("at_berlin", instants, pa.timestamp("us", "Europe/Berlin"))
    add("decimal9", decimals, pa.decimal128(9, 2))
    add("decimal38", decimals, pa.decimal128(38, 10))
    add("decimal256", decimals, pa.decimal256(50, 3))
    add("list", [list(range(abs(n) % 4)) for n in numbers], pa.list_(pa.int64()))
    add(
        "row",
        [{"x": n, "name": t} for n, t in zip(numbers, texts, strict=True)],
        pa.struct([("x", pa.int32()), ("name", pa.string())]),
    )
    add(
        "map",
        [[(t, n)] for n, t in zip(numbers, texts, strict=True)],
        pa.map_(pa.string(), pa.int64()),
    )
    table["none"] = pa.nulls(rows, pa.int32())
    table["id"] = pa.array(each, pa.int64())
    return table


def by_pyarrow(table: pa.Table, out: Path) -> None:
    """Write the table with PyArrow's encodings, compressions and versions."""
    for codec in ("none", "snappy", "gzip", "brotli", "lz4", "zstd"):
        pq.write_table(
            table, out / f"pyarrow-{codec}.parquet", compression=codec, row_group_size=1500
        )
    for version in ("1.0", "2.4", "2.6"):
        pq.write_table(
            table,
            out / f"pyarrow-version-{version}.parquet",
            version=version,
            data_page_version="2.0" if version == "2.6" else "1.0",
            row_group_size=700,
            coerce_timestamps=None if version == "2.6" else "us",
            allow_truncated_timestamps=True,
        )
    encodings = {
        "delta": {
            "int32": "DELTA_BINARY_PACKED",
            "int64": "DELTA_BINARY_PACKED",
            "text": "DELTA_BYTE_ARRAY",
            "bytes": "DELTA_LENGTH_BYTE_ARRAY",
        },
        "split": {
            "float": "BYTE_STREAM_SPLIT",
            "double": "BYTE_STREAM_SPLIT",
            "int32": "BYTE_STREAM_SPLIT",
            "fixed": "BYTE_STREAM_SPLIT",
            "bool": "RLE",
        },
    }
    for name, encoding in encodings.items():
        pq.write_table(
            table,
            out / f"pyarrow-{name}.parquet",
            use_dictionary=False,
            column_encoding=encoding,
            write_statistics=False,
            row_group_size=900,
        )
    pq.write_table(
        table,
        out / "pyarrow-plain.parquet",
        use_dictionary=False,
        store_schema=False,
        write_page_index=True,
        row_group_size=4000,
    )
    pq.write_table(
        table.select(["at_ns", "int32", "id"]),
        out / "pyarrow-int96.parquet",
        use_deprecated_int96_timestamps=True,
    )


def by_others(table: pa.Table, out: Path) -> None:
    """Write the table with DuckDB, Polars and, if it is there, PySpark."""
    plain = table.drop_columns(["decimal256"])
    duckdb.sql("from plain").write_parquet(str(out / "duckdb.parquet"), row_group_size=2048)
    flat = plain.drop_columns(["map", "day64", "time_ms", "time_us"])
    polars.from_arrow(flat).write_parquet(out / "polars.parquet", row_group_size=1000)
    if SparkSession is None:
        print("skipped: pyspark is not installed")
        return
    spark = SparkSession.builder.master("local[1]").getOrCreate()
    source = str(out / "pyarrow-version-1.0.parquet")
    kept = [name for name in flat.column_names if name not in ("uint64", "row")]
    folder = out / "spark"
    spark.read.parquet(source).select(kept).coalesce(1).write.mode("overwrite").parquet(str(folder))
    next(folder.glob("*.parquet")).rename(out / "spark.parquet")
    spark.stop()


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder that gets the files")
    parser.add_argument("--rows", type=int, default=5000)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    table = pa.table(columns(random.Random(SEED), options.rows))
    by_pyarrow(table, options.out)
    by_others(table, options.out)
    print(f"{len(list(options.out.glob('*.parquet')))} files in {options.out}")


if __name__ == "__main__":
    main()
