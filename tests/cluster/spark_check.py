"""Checks what spark_jobs.py has made.

spark_check.py sort FOLDER       lines on standard input are those of the text in FOLDER, in order
spark_check.py make FILE         makes a table for the job `table`
spark_check.py table FILE        rows on standard input are the aggregates that pandas finds
spark_check.py local FOLDER      all tasks that read HDFS were NODE_LOCAL, by Spark's own event logs
spark_check.py lost FOLDER       an executor was lost, by the event logs
"""

import io
import json
import pathlib
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

ROWS = 100_000


def sort(folder: pathlib.Path) -> None:
    expected = sorted(line for path in folder.iterdir() for line in path.read_text().splitlines())
    found = sys.stdin.read().splitlines()
    if not expected or found != expected:
        sys.exit(f"{len(found)} lines instead of {len(expected)}, or in another order")
    print(f"{len(found)} lines, in order")


def make(path: pathlib.Path) -> None:
    rng = np.random.default_rng(5)
    kinds = np.array([f"kind-{number}" for number in range(50)])
    frame = pd.DataFrame(
        {
            "kind": rng.choice(kinds, ROWS),
            "amount": rng.integers(-1_000_000_000_000, 1_000_000_000_000, ROWS),
            "weight": rng.normal(0, 1, ROWS),
        }
    )
    frame.to_csv(path, index=False)


def table(path: pathlib.Path) -> None:
    # Every part of the output has the names of the columns.
    lines = sys.stdin.read().splitlines()
    head = "kind,count,sum,min,max,mean"
    text = "\n".join([head, *(line for line in lines if line != head)])
    found = pd.read_csv(io.StringIO(text)).set_index("kind").sort_index()
    expected = (
        pd.read_csv(path)
        .groupby("kind")
        .agg(
            count=("amount", "size"),
            sum=("amount", "sum"),
            min=("amount", "min"),
            max=("amount", "max"),
            mean=("weight", "mean"),
        )
    )
    pd.testing.assert_frame_equal(found, expected, check_exact=False, rtol=1e-12, atol=1e-12)
    whole = ["count", "sum", "min", "max"]
    pd.testing.assert_frame_equal(found[whole], expected[whole], check_exact=True)
    print(f"{len(found)} groups are those of pandas")


def events(folder: pathlib.Path) -> Iterator[dict[str, Any]]:
    for path in folder.iterdir():
        for line in path.read_text().splitlines():
            yield json.loads(line)


def local(folder: pathlib.Path) -> None:
    places: dict[str, int] = {}
    for event in events(folder):
        if event["Event"] != "SparkListenerTaskEnd":
            continue
        done = event["Task End Reason"]["Reason"] == "Success"
        if done and event["Task Metrics"]["Input Metrics"]["Bytes Read"]:
            place = event["Task Info"]["Locality"]
            places[place] = places.get(place, 0) + 1
    if list(places) != ["NODE_LOCAL"]:
        sys.exit(f"places of tasks: {places}")
    print(f"{places['NODE_LOCAL']} tasks read HDFS, all NODE_LOCAL")


def lost(folder: pathlib.Path) -> None:
    count = sum(event["Event"] == "SparkListenerExecutorRemoved" for event in events(folder))
    if not count:
        sys.exit("no executor was lost")


def main() -> None:
    jobs = {"sort": sort, "make": make, "table": table, "local": local, "lost": lost}
    if len(sys.argv) != 3 or sys.argv[1] not in jobs:
        sys.exit(__doc__)
    jobs[sys.argv[1]](pathlib.Path(sys.argv[2]))


if __name__ == "__main__":
    main()
