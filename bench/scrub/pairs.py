#!/usr/bin/env python3
"""Scrubs compared in pairs with fio, and puts with page checksums with puts without.

``scrub``: ``csd scrub`` of one object on one drive, whose medium is a file, and fio reading as many
bytes of that file. Both are timed by the clock around what they read: the scrub by two objects of
which one is short, so that the start of ``csd`` cancels out, fio by its own figure. Both read past
the page cache (``--direct on``) or from it.

``put``: ``csd put`` with ``--page-bytes 4K`` and with ``--page-bytes 0``, timed as a whole.

The sides take turns within a round, and every second round begins with the other side. A figure is
the median of the rounds' ratios, with quartiles. Needs fio.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from compared import MIB, ROOT, record, show, summary, turns

# Least ratio: scrub over fio, put with over put without.
AIMS = {"scrub": 0.85, "put": 0.95}
SHORT_BYTES = MIB
NAMES = ("floor_mib_s", "ours_mib_s")


def main() -> int:
    """Measure, print a table, and append the record."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--csd", type=Path, default=ROOT / "target/release/csd")
    parser.add_argument("--folder", type=Path, default=ROOT / "build", help="of the medium")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--mib", type=int, default=768, help="of the object")
    parser.add_argument("--on", choices=("kv", "block"), default="kv")
    parser.add_argument("--direct", choices=("on", "off"), default="on")
    parser.add_argument("--depth", type=int, default=1, help="of fio's reads")
    parser.add_argument("--only", choices=tuple(AIMS))
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    if not shutil.which("fio"):
        print("SKIPPED: fio is not installed")
        return 0
    options.folder.mkdir(exist_ok=True)
    found = {}
    with tempfile.TemporaryDirectory(prefix="csd-scrub-", dir=options.folder) as folder:
        bench = Bench(options, Path(folder))
        try:
            bench.start()
            if options.only != "put":
                found["scrub"] = turns(options.rounds, bench.fio, bench.scrub)
            if options.only != "scrub":
                puts = (lambda: bench.put("0"), lambda: bench.put("4K"))
                found["put"] = turns(options.rounds, *puts)
        finally:
            bench.csd("array", "down")
    results = {name: summary(pairs, NAMES, (0, 3)) for name, pairs in found.items()}
    show(results, AIMS)
    record("scrub", options, ("rounds", "mib", "on", "direct", "depth"), results)
    return 0


class Bench:
    """An array of one drive on a file, with a long object and a short one."""

    def __init__(self, options: argparse.Namespace, folder: Path) -> None:
        self.options = options
        self.folder = folder
        self.bytes = options.mib * MIB
        self.source = folder / "source"
        self.medium = folder / "csd-array/d0.media"

    def csd(self, *words: str) -> float:
        """Run the command; return its time in seconds."""
        begun = time.perf_counter()
        command = [str(self.options.csd), *words]
        subprocess.run(command, cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        return time.perf_counter() - begun

    def start(self) -> None:
        """Start the drive, and put the objects."""
        with self.source.open("wb") as source:
            for _ in range(self.options.mib):
                source.write(os.urandom(MIB))
        (self.folder / "short").write_bytes(os.urandom(SHORT_BYTES))
        size = f"{5 * self.options.mib}M"
        up = ["array", "up", "--drives", "1", "--size", size, "--media", "file"]
        self.csd(*up, "--direct", self.options.direct)
        for name, file in (("long", "source"), ("short", "short")):
            self.csd("put", file, name, "--on", self.options.on)

    def fio(self) -> float:
        """Return MiB/s of fio over the medium's file."""
        command = ["fio", "--name=read", f"--filename={self.medium}", "--rw=read", "--bs=1M"]
        command += [f"--size={self.bytes}", "--readonly", "--output-format=json"]
        command += ["--ioengine=io_uring", f"--iodepth={self.options.depth}", "--invalidate=0"]
        command += [f"--direct={int(self.options.direct == 'on')}"]
        done = subprocess.run(command, check=True, capture_output=True)
        return float(json.loads(done.stdout)["jobs"][0]["read"]["bw_bytes"]) / MIB

    def scrub(self) -> float:
        """Return MiB/s of a scrub, without the start of the command."""
        start_s = statistics.median(self.csd("scrub", "short") for _ in range(5))
        bytes_read = self.bytes - SHORT_BYTES
        return bytes_read / MIB / (self.csd("scrub", "long") - start_s)

    def put(self, page_bytes: str) -> float:
        """Return MiB/s of a put."""
        put = ["put", "source", "again", "--on", self.options.on, "--page-bytes", page_bytes]
        took_s = self.csd(*put)
        self.csd("rm", "again")
        return self.options.mib / took_s


if __name__ == "__main__":
    sys.exit(main())
