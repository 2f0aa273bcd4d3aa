#!/usr/bin/env python3
"""A folder of many small files: csd compared in pairs with cp, ls and rm on the same disk.

``put``: ``csd put -r`` next to ``cp -r`` and one sync; ``list``: ``csd ls`` next to ``ls -R``;
``get``: ``csd get -r`` next to ``cp -r`` back, both without a sync; ``remove``: ``csd rm -r`` next
to ``rm -r`` and one sync. The drives' media are files in the folder to which cp copies.
``new_file``: the commands that drives answered for one new object, in an empty array and in one
that has all the others.

The sides take turns within a round, and every second round begins with the other side; a figure is
the median of the rounds' ratios, time of csd over time of the other, with quartiles. Each round
begins with a new array.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from compared import MIB, ROOT, record, run, say, show, summary

# Most times of cp, ls and rm, and most further commands.
AIMS = {"put": 5, "list": 3, "get": 5, "remove": 5, "new_file": 0}
# Files in a folder.
FOLDER = 1000
# Space that an object of a file may take, beyond its bytes.
ROOM = 8 << 10


def main() -> int:
    """Measure, print, and append the record."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--csd", type=Path, default=ROOT / "target/release/csd")
    parser.add_argument("--folder", type=Path, default=ROOT / "build", help="of files and media")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--files", type=int, default=100_000)
    parser.add_argument("--bytes", type=int, default=4096, help="of a file")
    parser.add_argument("--drives", type=int, default=1)
    parser.add_argument("--port", type=int, default=9760, help="of the first drive's metrics")
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    options.folder.mkdir(exist_ok=True)
    found: dict[str, list[tuple[float, float]]] = {}
    commands = []
    with tempfile.TemporaryDirectory(prefix="csd-files-", dir=options.folder) as folder:
        make(options, Path(folder) / "files")
        for number in range(options.rounds):
            array = Array(options, Path(folder))
            try:
                commands.append(one_round(array, ours_first=number % 2 == 1, found=found))
            finally:
                array.csd("array", "down", "--delete", "--yes")
            last = {
                name: [round(time_s, 2) for time_s in pairs[-1]] for name, pairs in found.items()
            }
            say(f"round {number + 1}, seconds of files and csd: {last}")
    results: dict[str, object] = {
        name: summary(pairs, ("files", "csd"), (2, 2)) for name, pairs in found.items()
    }
    results["new_file"] = {"commands": commands[-1][0], "further": commands[-1][1]}
    show(results, AIMS)
    record("files", options, ("rounds", "files", "bytes", "drives"), results)
    return 0


def make(options: argparse.Namespace, folder: Path) -> None:
    """Write the files, each with bytes of its own."""
    for number in range(options.files):
        below = folder / f"{number // FOLDER:03}"
        if number % FOLDER == 0:
            below.mkdir(parents=True)
        (below / f"{number:06}.bin").write_bytes(os.urandom(options.bytes))
    os.sync()


class Array:
    """An array with media in files."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options, self.folder = options, folder
        bytes_each = options.files * (options.bytes + ROOM) // MIB
        size = f"{max(256, bytes_each)}M"
        metrics = f"127.0.0.1:{options.port}"
        up = ["--drives", options.drives, "--size", size, "--media", "file", "--metrics", metrics]
        self.csd("array", "up", *up)

    def csd(self, *words: object) -> str:
        """Run the command."""
        return run(self.folder, self.options.csd, *words)

    def commands(self) -> int:
        """Return the commands that the drives have answered."""
        total = 0
        for drive in range(self.options.drives):
            page = urlopen(f"http://127.0.0.1:{self.options.port + drive}/metrics").read().decode()
            counts = re.findall(r"^csd_commands_total\{.*\} (\d+)$", page, re.MULTILINE)
            total += sum(int(count) for count in counts)
        return total


def one_round(
    array: Array, *, ours_first: bool, found: dict[str, list[tuple[float, float]]]
) -> tuple[int, int]:
    """Measure each pair once, and append the times of files and of csd in seconds.

    Returns the commands for a new object in the empty array, and how many more in the full one.
    """
    folder = array.folder
    (folder / "one").write_bytes(b"1")
    in_empty = commands_of_put(array, "empty.bin")

    def pair(name: str, files: Callable[[], None], ours: Callable[[], object]) -> None:
        sides = (ours, files) if ours_first else (files, ours)
        times = {}
        for side in sides:
            os.sync()
            begun = time.perf_counter()
            side()
            times[side] = time.perf_counter() - begun
        found.setdefault(name, []).append((times[files], times[ours]))

    def synced(*words: object) -> None:
        run(folder, *words)
        run(folder, "sync", "-f", ".")

    pair(
        "put",
        lambda: synced("cp", "-r", "files", "copy"),
        lambda: array.csd("put", "-r", "files", "p/"),
    )
    in_full = commands_of_put(array, "full.bin")
    pair("list", lambda: run(folder, "ls", "-R", "copy"), lambda: array.csd("ls", "p/"))
    pair(
        "get",
        lambda: run(folder, "cp", "-r", "copy", "copy-back"),
        lambda: array.csd("get", "-r", "p/", "got"),
    )
    same = subprocess.run(["diff", "-r", "files", "got"], cwd=folder, check=False)
    if same.returncode != 0:
        raise RuntimeError("what was fetched differs from what was put")
    for copy in ("got", "copy-back"):
        shutil.rmtree(folder / copy)
    pair(
        "remove",
        lambda: synced("rm", "-r", "copy"),
        lambda: array.csd("rm", "-r", "p/", "--yes"),
    )
    return in_empty, in_full - in_empty


def commands_of_put(array: Array, name: str) -> int:
    """Return the commands that drives answer for a new object."""
    before = array.commands()
    array.csd("put", "one", name)
    return array.commands() - before


if __name__ == "__main__":
    sys.exit(main())
