#!/usr/bin/env python3
"""Rebuilds compared in pairs with a bare program, and reads next to a rebuild.

``rate``: ``csd repair`` of what an emptied drive held, on drives whose media are files, and
``floor.c``, which reads as many bytes of n files, sends them over loopback and writes one of them,
with as many syncs as the drive has made (the kernel's tracepoint of ext4 counts them). A rebuild
ends when the drive has compared the last rebuilt piece with its digest. ``whole`` is the rate over
the time of the whole repair, in which drives also compare the pieces that nothing was rebuilt from;
without the start of the command, which is what it takes for a short object.

``reads``: the 99th percentile of 4 KiB reads at depth 1 of the drive that is rebuilt, over that
before the rebuild, in memory. Drive and reader are on one CPU; the drive's compute thread, all
other drives and ``csd repair`` are on the other, which is the free core.

The sides take turns within a round, and every second round begins with the other side. A figure is
the median of the rounds' ratios, with quartiles. Needs root, gcc, perf and ext4.
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from compared import MIB, ROOT, cpu_s, record, run, say, show, summary, turns

# Least ratio of rates, and most of percentiles.
AIMS = {"rate": 0.7, "reads": 1.5}
# CPU time of the emptied drive after which its rebuild is under way, seconds.
UNDER_WAY_S = 0.05
SYNCS = "ext4:ext4_sync_file_enter"


def main() -> int:
    """Measure, print, and append the record."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--csd", type=Path, default=ROOT / "target/release/csd")
    parser.add_argument("--reads", type=Path, default=ROOT / "target/release/bench-reads")
    parser.add_argument("--folder", type=Path, default=ROOT / "build", help="of media in files")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--data", type=int, default=4, help="data pieces of a stripe, n")
    parser.add_argument("--parity", type=int, default=2, help="parity pieces of a stripe, k")
    parser.add_argument("--mib", type=int, default=768, help="of the object")
    parser.add_argument("--direct", choices=("on", "off"), default="on")
    parser.add_argument("--window", type=int, default=400, help="of reads, milliseconds")
    parser.add_argument("--only", choices=tuple(AIMS))
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    missing = [tool for tool in ("gcc", "perf") if not shutil.which(tool)]
    if missing or os.geteuid() != 0:
        print(f"SKIPPED: {', '.join(missing) or 'this takes root'}")
        return 0
    options.folder.mkdir(exist_ok=True)
    results = {}
    for name, measure in (("rate", rate), ("reads", reads)):
        if options.only in (None, name):
            with tempfile.TemporaryDirectory(prefix="csd-rebuild-", dir=options.folder) as folder:
                results[name] = measure(options, Path(folder))
            show({name: results[name]}, AIMS)
    record("rebuild", options, ("rounds", "data", "parity", "mib", "direct", "window"), results)
    return 0


class Array:
    """Drives with a long object and a short one, of which the first drive can be emptied."""

    def __init__(self, options: argparse.Namespace, folder: Path, media: str) -> None:
        self.options, self.folder = options, folder
        drives = options.data + options.parity
        # Small drives have short segments, and more syncs for each value.
        least = 256 if media == "memory" else 4096
        size = f"{max(least, 6 * options.mib // options.data)}M"
        up = ["--drives", drives, "--size", size, "--media", media]
        self.csd("array", "up", *up, *(["--direct", options.direct] if media == "file" else []))
        for name, mib in (("long", options.mib), ("short", 1)):
            with (folder / name).open("wb") as source:
                for _ in range(mib):
                    source.write(os.urandom(MIB))
            self.csd("put", name, name, "--protect", f"rs:{options.data}+{options.parity}")

    def csd(self, *words: object) -> float:
        """Run the command; return its time in seconds."""
        begun = time.perf_counter()
        run(self.folder, self.options.csd, *words)
        return time.perf_counter() - begun

    def pid(self, drive: int = 0) -> int:
        """Return a drive's process."""
        text = (self.folder / "csd-array.toml").read_text()
        return int(tomllib.loads(text)["drives"][drive]["pid"])

    def empty(self) -> None:
        """Empty the first drive, and give it its vote back."""
        pid = self.pid()
        os.kill(pid, signal.SIGKILL)
        while Path(f"/proc/{pid}").exists():
            time.sleep(0.02)
        (self.folder / "csd-array/d0.media").unlink(missing_ok=True)
        # Code 4 says that a drive in memory came up empty.
        run(self.folder, self.options.csd, "array", "up", "--recreate", codes=(0, 4))
        self.csd("repair", "short")

    def down(self) -> None:
        """Stop the drives."""
        self.csd("array", "down", "--delete", "--yes")


def rate(options: argparse.Namespace, folder: Path) -> dict[str, object]:
    """Compare rates of the bytes that are rebuilt, in MiB/s."""
    floor = folder / "floor"
    source = Path(__file__).with_name("floor.c")
    run(folder, "gcc", "-O2", "-Wall", "-pthread", "-o", floor, source)
    array = Array(options, folder, "file")
    # Bytes that the last repair has rebuilt, and its syncs.
    rebuilt = {"bytes": 0, "syncs": 0}
    whole: list[float] = []

    def repair() -> float:
        array.empty()
        start_s = statistics.median(array.csd("repair", "short") for _ in range(3))
        counted = folder / "syncs"
        words = ["perf", "stat", "-x,", "-o", counted, "-e", SYNCS, "-p", array.pid(), "--"]
        begun = time.perf_counter()
        said = run(folder, *words, options.csd, "repair", "long", "--json")
        seconds = time.perf_counter() - begun - start_s
        result = json.loads(said)["result"]
        rebuilt["bytes"] = result["rebuilt_bytes"]
        counts = [line for line in counted.read_text().splitlines() if SYNCS in line]
        rebuilt["syncs"] = int(counts[0].split(",")[0])
        whole.append(rebuilt["bytes"] / MIB / seconds)
        return rebuilt["bytes"] / MIB / result["rebuilt_after_s"]

    def bare() -> float:
        (folder / "out").unlink(missing_ok=True)
        moved = rebuilt["bytes"] // MIB * MIB
        direct = int(options.direct == "on")
        files = [folder / f"source{number}" for number in range(options.data)]
        said = run(folder, floor, "out", moved, direct, rebuilt["syncs"], *files)
        return moved / MIB / float(json.loads(said)["seconds"])

    try:
        repair()
        for number in range(options.data):
            with (folder / f"source{number}").open("wb") as source:
                for _ in range(rebuilt["bytes"] // MIB):
                    source.write(os.urandom(MIB))
        os.sync()
        found = turns(options.rounds, bare, repair)
    finally:
        array.down()
    return {**summary(found), "whole": round(statistics.median(whole), 1), **rebuilt}


def reads(options: argparse.Namespace, folder: Path) -> dict[str, object]:
    """Compare percentiles of reads before a rebuild and next to it, in microseconds."""
    array = Array(options, folder, "memory")
    found = []
    try:
        for number in range(-1, options.rounds):
            array.empty()
            pin(array, options)
            read(array, options)
            alone = read(array, options)
            # The start of the command is over when the first chunks have been asked for.
            command = ["taskset", "-c", "1", str(options.csd), "repair", "long", "--json"]
            before = cpu_s(array.pid())
            repair = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL)
            while cpu_s(array.pid()) - before < UNDER_WAY_S and repair.poll() is None:
                time.sleep(0.01)
            # A compute thread that has started since is where its core is.
            pin(array, options)
            next_to_rebuild = read(array, options)
            if repair.poll() is not None:
                raise RuntimeError("the rebuild ended before the reads: take more --mib")
            if repair.wait() != 0:
                raise RuntimeError("the rebuild failed")
            if number >= 0:  # the round before warms up
                found.append((alone, next_to_rebuild))
                say(f"round {number + 1}: p99 {alone}, {next_to_rebuild} us")
    finally:
        array.down()
    return summary(found)


def pin(array: Array, options: argparse.Namespace) -> None:
    """Pin the first drive's core to CPU 0, and everything else to CPU 1."""
    for drive in range(options.data + options.parity):
        for thread in Path(f"/proc/{array.pid(drive)}/task").iterdir():
            name = (thread / "comm").read_text().strip()
            is_core = drive == 0 and "compute" not in name
            os.sched_setaffinity(int(thread.name), {0} if is_core else {1})


def read(array: Array, options: argparse.Namespace) -> float:
    """Read for a while; return the 99th percentile in microseconds."""
    text = (array.folder / "csd-array.toml").read_text()
    address, nqn = tomllib.loads(text)["drives"][0]["url"].removeprefix("nvme+tcp://").split("/")
    words = ["taskset", "-c", "0", options.reads, address, nqn, 4096, options.window]
    return float(json.loads(run(array.folder, *words))["p99_us"])


if __name__ == "__main__":
    sys.exit(main())
