#!/usr/bin/env python3
"""Python compared with Rust in pairs: values of a drive, and an object of an array by fsspec.

The sides take turns within a round, and every second round begins with the other side. A figure is
the median of the rounds' ratios (Rust's seconds over Python's), with quartiles: of the time on the
clock, and of the CPU time of the client's process, which says more on a busy machine. The wheel is
the one that is installed; build it in release form: ``make wheel WHEEL_PROFILE=release``.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import csdstore
import fsspec

ROOT = Path(__file__).resolve().parents[2]
MIB = 1 << 20
THREADS = 8
VALUES = 512
OBJECT_BYTES = 1 << 30
AIM = 0.8
# Kinds of ratios: of time on the clock, and of the client's CPU time.
KINDS = ("clock", "cpu")


def main() -> int:
    """Measure, print a table, and append the record."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--csd", type=Path, default=ROOT / "target/release/csd")
    parser.add_argument("--values", type=Path, default=ROOT / "target/release/bench-values")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--record", type=Path)
    parser.add_argument("--only", choices=("values", "object"))
    options = parser.parse_args()
    results: dict[str, dict[str, Any]] = {}
    if options.only != "object":
        results |= values(options)
    if options.only != "values":
        results |= read_object(options)
    for name, result in results.items():
        ratios = (f"{kind} {result[kind]} {result[f'{kind}_quartiles']}" for kind in KINDS)
        rates = f"{result['rust_MiBps']} and {result['python_MiBps']} MiB/s"
        print(f"{name}: {', '.join(ratios)}; {rates}; aim {AIM}")
    if options.record:
        about = {"rounds": options.rounds, "load": os.getloadavg()[0], "cpus": os.cpu_count()}
        with options.record.open("a") as record:
            record.write(json.dumps({"bench": "python", **about, "results": results}) + "\n")
    return 0


def values(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Compare puts and gets of 1 MiB, 8 in flight."""
    found = {}
    with drive(options.csd) as url, csdstore.connect(url) as kv:
        run = [str(options.values), url]
        for what in ("put", "get"):

            def rust(what: str = what) -> float:
                words = [*run, what, str(VALUES), str(MIB), str(THREADS)]
                done = subprocess.run(words, check=True, capture_output=True)
                return float(json.loads(done.stdout)["seconds"])

            def python(what: str = what) -> float:
                begun = time.perf_counter()
                from_threads(kv, what)
                return time.perf_counter() - begun

            found[f"{what} of 1 MiB, {THREADS} in flight"] = pairs(
                options.rounds, rust, python, VALUES * MIB
            )
    return found


def from_threads(kv: csdstore.Client, what: str) -> None:
    """Store or fetch all values as the program does."""
    value, numbers, lock = bytes([7]) * MIB, iter(range(VALUES)), threading.Lock()

    def work() -> None:
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            if what == "put":
                kv.put_value(f"v{number}", value)
            else:
                assert len(kv.get_value(f"v{number}")) == MIB

    threads = [threading.Thread(target=work) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def read_object(options: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Compare reading an object of 1 GiB by fsspec with `csd get`, both into nothing."""
    with tempfile.TemporaryDirectory() as folder:
        array, source = Path(folder) / "array.toml", Path(folder) / "source"
        csd = [str(options.csd), "--array", str(array)]
        with source.open("wb") as file:
            for _ in range(OBJECT_BYTES // MIB):
                file.write(os.urandom(MIB))
        up = ["array", "up", "--drives", "2", "--media", "memory", "--size", "1G"]
        subprocess.run([*csd, *up], check=True, stdout=subprocess.DEVNULL)
        try:
            subprocess.run([*csd, "put", str(source), "x"], check=True, stdout=subprocess.DEVNULL)
            source.unlink()
            fs = fsspec.filesystem("csd", array=str(array))

            def rust() -> float:
                begun = time.perf_counter()
                subprocess.run([*csd, "get", "x", "-"], check=True, stdout=subprocess.DEVNULL)
                return time.perf_counter() - begun

            def by_file() -> float:
                begun, size = time.perf_counter(), 0
                with fs.open("x", "rb") as file:
                    while piece := file.read(16 * MIB):
                        size += len(piece)
                assert size == OBJECT_BYTES
                return time.perf_counter() - begun

            def at_once() -> float:
                begun = time.perf_counter()
                assert len(fs.cat_file("x")) == OBJECT_BYTES
                return time.perf_counter() - begun

            return {
                "fsspec, file of 1 GiB in parts of 16 MiB": pairs(
                    options.rounds, rust, by_file, OBJECT_BYTES
                ),
                "fsspec, cat_file of 1 GiB": pairs(options.rounds, rust, at_once, OBJECT_BYTES),
            }
        finally:
            subprocess.run([*csd, "array", "down"], check=True, stdout=subprocess.DEVNULL)


@contextmanager
def drive(csd: Path) -> Iterator[str]:
    """Serve a drive in memory."""
    serve = [csd, "drive", "serve", "--media", "memory", "--size", "4G", "--kv", "90%"]
    serve += ["--listen", "127.0.0.1:0", "--json"]
    process = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    try:
        yield json.loads(process.stdout.readline())["result"]["url"] + "?nsid=2"
    finally:
        process.terminate()
        process.wait()


def timed(side: Callable[[], float], who: int) -> tuple[float, float]:
    """Run a side; return its seconds, and those of CPU of this process or of its children."""
    before = resource.getrusage(who)
    seconds = side()
    after = resource.getrusage(who)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return seconds, cpu


def pairs(
    rounds: int, rust: Callable[[], float], python: Callable[[], float], size: int
) -> dict[str, Any]:
    """Run both sides in turns, after a round that does not count."""
    sides = ((rust, resource.RUSAGE_CHILDREN), (python, resource.RUSAGE_SELF))
    found: tuple[list[tuple[float, float]], ...] = ([], [])
    for number in range(rounds + 1):
        for side in (0, 1) if number % 2 else (1, 0):
            found[side].append(timed(*sides[side]))
    result: dict[str, Any] = {}
    for at, kind in enumerate(KINDS):
        ratios = [r[at] / p[at] for r, p in zip(found[0][1:], found[1][1:], strict=True)]
        low, median, high = statistics.quantiles(ratios, n=4)
        result |= {kind: round(median, 2), f"{kind}_quartiles": [round(low, 2), round(high, 2)]}
    for name, side in zip(("rust", "python"), found, strict=True):
        median = statistics.median(seconds for seconds, _ in side[1:])
        result[f"{name}_MiBps"] = round(size / MIB / median)
    return result


if __name__ == "__main__":
    sys.exit(main())
