"""Libraries read and write an array's objects as they stand; each is skipped if it is missing."""

from typing import Any

import pytest
from conftest import Array

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def options(stored: Array) -> dict[str, Any]:
    """Return the storage options that name the array."""
    return {"array": str(stored.file)}


def test_pandas(options: dict[str, Any]) -> None:
    """Reads and writes Parquet and CSV by URL."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"n": range(1000), "word": [f"w{n}" for n in range(1000)]})
    frame.to_csv("csd://frames/a.csv", index=False, storage_options=options)
    assert pandas.read_csv("csd://frames/a.csv", storage_options=options).equals(frame)
    pytest.importorskip("pyarrow")
    frame.to_parquet("csd://frames/a.parquet", storage_options=options)
    url = "csd://frames/a.parquet"
    assert pandas.read_parquet(url, storage_options=options).equals(frame)
    some = pandas.read_parquet(url, columns=["n"], storage_options=options)
    assert some.equals(frame[["n"]])


def test_pyarrow(options: dict[str, Any]) -> None:
    """Reads and writes tables and partitioned datasets."""
    pyarrow = pytest.importorskip("pyarrow")
    dataset = pytest.importorskip("pyarrow.dataset")
    parquet = pytest.importorskip("pyarrow.parquet")
    fs = fsspec.filesystem("csd", **options)
    table = pyarrow.table({"n": list(range(500_000)), "part": [n % 3 for n in range(500_000)]})
    parquet.write_table(table, "one.parquet", filesystem=fs, row_group_size=50_000)
    assert parquet.read_table("one.parquet", filesystem=fs).equals(table)
    with fs.open("one.parquet") as file:
        group = parquet.ParquetFile(file).read_row_group(7)
    assert group.equals(table.slice(350_000, 50_000))
    dataset.write_dataset(table, "many", filesystem=fs, format="parquet", partitioning=["part"])
    back = dataset.dataset("many", filesystem=fs, partitioning=["part"])
    assert back.count_rows() == table.num_rows
    assert back.count_rows(filter=dataset.field("part") == 1) == 166_667


def test_duckdb(options: dict[str, Any], tmp_path: Any) -> None:
    """Queries and copies, also of an object that has taken another's name."""
    duckdb = pytest.importorskip("duckdb")
    fs = fsspec.filesystem("csd", **options)
    connection = duckdb.connect()
    connection.register_filesystem(fs)
    for last in (1000, 2000):
        connection.execute(
            f"copy (select range as n, 'w' || range as word from range({last})) "
            "to 'csd://numbers.parquet' (format parquet)"
        )
        found = connection.execute("select count(*), sum(n) from 'csd://numbers.parquet'")
        assert found.fetchall() == [(last, last * (last - 1) // 2)]
        fs.rm("numbers.parquet")
    # The name of the second is a pattern that the first matches.
    fs.pipe({"a1.csv": b"n,m\n1,2\n3,4\n", "a[1].csv": b"n,m\n1,7\n"})
    for name, sum_ in (("a1.csv", 6), ("a[1].csv", 7)):
        found = connection.execute(f"select sum(m) from 'csd://{name}'")
        assert found.fetchall() == [(sum_,)]


def test_dask(options: dict[str, Any]) -> None:
    """Reads and writes a table in several objects."""
    pandas = pytest.importorskip("pandas")
    dask = pytest.importorskip("dask.dataframe")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame({"n": range(10_000)})
    parts = dask.from_pandas(frame, npartitions=4)
    parts.to_parquet("csd://parts", storage_options=options)
    back = dask.read_parquet("csd://parts", storage_options=options)
    assert back.npartitions == 4
    assert int(back.n.sum().compute()) == int(frame.n.sum())
    lines = dask.from_pandas(frame, npartitions=2)
    lines.to_csv("csd://lines/*.csv", index=False, storage_options=options)
    read = dask.read_csv("csd://lines/*.csv", storage_options=options)
    assert int(read.n.sum().compute()) == int(frame.n.sum())
