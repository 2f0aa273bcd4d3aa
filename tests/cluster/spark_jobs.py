"""Jobs of Spark on HDFS, run by recipes/spark/run: spark_jobs.py JOB IN OUT [GATES].

words    counts words of text: `WORD<tab>COUNT`
sort     sorts lines of text
table    aggregates the column `amount` of a CSV by `kind`
wait     as words, but tasks on files wait once: each makes GATES/waits-N on its drive, and goes on
         when GATES/open is there
"""

import operator
import os
import pathlib
import sys
import time
from collections.abc import Iterator

from pyspark.sql import SparkSession
from pyspark.sql import functions as column

POLL_S = 0.2


def words(session: SparkSession, source: str, target: str, gates: str = "") -> None:
    """Count words."""

    def split(number: int, lines: Iterator[str]) -> Iterator[str]:
        if gates:
            wait(pathlib.Path(gates), number)
        for line in lines:
            yield from line.split()

    lines = session.sparkContext.textFile(source)
    counts = lines.mapPartitionsWithIndex(split).map(lambda word: (word, 1))
    counts = counts.reduceByKey(operator.add, 2)
    counts.map(lambda pair: f"{pair[0]}\t{pair[1]}").saveAsTextFile(target)


def wait(gates: pathlib.Path, number: int) -> None:
    """Say that a task is there, and waits until it may go on."""
    gates.mkdir(exist_ok=True)
    (gates / f"waits-{number}").touch()
    while not os.path.exists(gates / "open"):
        time.sleep(POLL_S)


def sort(session: SparkSession, source: str, target: str) -> None:
    """Sort lines, each with all that it has."""
    lines = session.sparkContext.textFile(source)
    lines.sortBy(lambda line: line, numPartitions=4).saveAsTextFile(target)


def table(session: SparkSession, source: str, target: str) -> None:
    """Aggregate a table."""
    frame = session.read.csv(source, header=True, schema="kind string, amount long, weight double")
    found = frame.groupBy("kind").agg(
        column.count("*").alias("count"),
        column.sum("amount").alias("sum"),
        column.min("amount").alias("min"),
        column.max("amount").alias("max"),
        column.avg("weight").alias("mean"),
    )
    found.write.csv(target, header=True)


def main() -> None:
    job, source, target, *gates = sys.argv[1:]
    session = SparkSession.builder.appName(job).getOrCreate()
    match job:
        case "words" | "wait":
            words(session, source, target, *gates)
        case "sort":
            sort(session, source, target)
        case "table":
            table(session, source, target)
        case _:
            sys.exit(__doc__)
    session.stop()


if __name__ == "__main__":
    main()
