#!/usr/bin/env python3
"""Jobs on drives compared in pairs with the same jobs on their floor (``floor.py``).

``dft``: the transforms of recipes/mpi by host and two drives. ``allreduce``: 4 MiB over the three.
``netpipe``: NetPIPE's curves from host to drive and from drive to drive. ``hadoop``: WordCount,
Sort and TeraSort. Sides take turns within a round, and every second round begins with the other
side. Each round is recorded at once. ``table.py`` prints what the record has. Needs root, what
`csd os` and the recipes need, and for ``netpipe`` Debian's netpipe-openmpi.
"""

import argparse
import re
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from clusters import (
    RECIPES,
    Cluster,
    Drives,
    Floor,
    add_options,
    is_done,
    keep,
    metered,
    missing,
    work,
)
from compared import run, say
from jobs import JOBS, Hadoop, Transforms, explained_bytes, shuffle, transforms_s

DRIVES, CPUS = 2, 0.9
ALL_REDUCE_BYTES = 4 << 20
Sides = dict[str, Cluster]


def main() -> int:
    """Measure, and append each round to the record."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add_options(parser)
    parser.add_argument("--only", choices=[*MEASURES], action="append")
    parser.add_argument("--objects", default="2000,2000,400", help="of each kind, on each machine")
    parser.add_argument("--sums", type=int, default=50, help="all-reduces of one run")
    parser.add_argument("--longest", type=int, default=4 << 20, help="bytes of NetPIPE's messages")
    parser.add_argument("--input", type=int, default=200_000_000, help="bytes of each job")
    parser.add_argument("--block", type=int, default=32 << 20, help="of HDFS, bytes")
    parser.add_argument("--jobs", default=",".join(JOBS))
    options = parser.parse_args()
    if lacking := missing("mpicc", "mpirun"):
        print(f"SKIPPED: {lacking}")
        return 0
    with work(options) as (folder, stack):
        drives = Drives(options.csd, folder, "drives")
        drives.up(stack, options, DRIVES, CPUS)
        floor = Floor(options.csd, folder, "floor")
        floor.up(stack, options, drives)
        sides: Sides = {"floor": floor, "drives": drives}
        for name, measure in MEASURES.items():
            if name in (options.only or MEASURES):
                measure(options, folder, sides, stack)
    return 0


def order(sides: Sides, number: int) -> list[str]:
    """Return the sides in the order of a round."""
    return list(sides) if number % 2 == 0 else list(sides)[::-1]


def dft(options: argparse.Namespace, folder: Path, sides: Sides, _stack: ExitStack) -> None:
    """Compare the transforms."""
    one, two, three = map(int, options.objects.split(","))
    program = Transforms.compile(folder)
    made = {name: Transforms(cluster, program) for name, cluster in sides.items()}
    for one_side in made.values():
        one_side.make(lambda _name: (one, two, three))
        one_side.cluster.run(RECIPES / "mpi/up", 1)
    for number in range(options.rounds):
        if is_done(options, "floors: dft", round=number + 1):
            continue
        found: dict[str, object] = {"round": number + 1}
        for name in order(sides, number):
            made[name].clear()
            ran = metered(sides[name], RECIPES / "mpi/run", program, made[name].objects)
            count, seconds = transforms_s(ran.said)
            found[name] = ran.figures() | {"objects": count, "transforms_s": seconds}
        keep(options, "floors: dft", ("objects",), found)
    for name, one_side in made.items():
        for machine in ("host", *sides[name].names):
            say(f"{name}, {machine}: {one_side.check(machine).strip()}")


def allreduce(options: argparse.Namespace, folder: Path, sides: Sides, _stack: ExitStack) -> None:
    """Compare sums over all ranks."""
    program = folder / "allreduce"
    run(None, "mpicc", "-O2", "-o", program, Path(__file__).with_name("allreduce.c"))
    for cluster in sides.values():
        cluster.run(RECIPES / "mpi/up", 1)
    for number in range(options.rounds):
        if is_done(options, "floors: allreduce", round=number + 1):
            continue
        found: dict[str, object] = {"round": number + 1}
        for name in order(sides, number):
            words = (program, ALL_REDUCE_BYTES, options.sums)
            ran = metered(sides[name], RECIPES / "mpi/run", *words)
            (seconds,) = re.findall(r"^3 ranks, median of \d+: ([\d.]+) s$", ran.said, re.MULTILINE)
            found[name] = ran.figures() | {"all_reduce_s": float(seconds)}
        keep(options, "floors: allreduce", ("sums",), found)


def netpipe(options: argparse.Namespace, folder: Path, sides: Sides, _stack: ExitStack) -> None:
    """Compare NetPIPE's curves: bytes, and seconds of one way."""
    program = shutil.which("NPopenmpi")
    if program is None:
        say("SKIPPED netpipe: no NPopenmpi (apt-get install netpipe-openmpi)")
        return
    for between, ranks in (("host to drive", 1), ("drive to drive", 0)):
        for cluster in sides.values():
            cluster.run(RECIPES / "mpi/up", ranks)
        for number in range(options.rounds):
            if is_done(options, "floors: netpipe", round=number + 1, between=between):
                continue
            found: dict[str, object] = {"round": number + 1, "between": between}
            for name in order(sides, number):
                words = (program, "-o", "/tmp/np.out", "-u", options.longest, "-p", 0)
                said = sides[name].run(
                    "env", "MPIRUN_OPTIONS=-np 2", "sh", "-c", 'exec "$@" 2>&1', "sh",
                    RECIPES / "mpi/run", *words,
                )  # fmt: skip
                found[name] = {"curve": curve(said)}
            keep(options, "floors: netpipe", ("longest",), found)


def curve(said: str) -> list[tuple[int, float]]:
    """Return the bytes of messages, and the seconds of one way, as NetPIPE prints them."""
    lines = re.findall(r"^\s*\d+:\s+(\d+) bytes\s.*\sin\s+([\d.]+) usec\s*$", said, re.MULTILINE)
    if not lines:
        raise RuntimeError(said[-2000:])
    return [(int(size), float(us) / 1e6) for size, us in lines]


def hadoop(options: argparse.Namespace, _folder: Path, sides: Sides, stack: ExitStack) -> None:
    """Compare the jobs of Hadoop."""
    names = options.jobs.split(",")
    made = {name: Hadoop(cluster, options.block) for name, cluster in sides.items()}
    for one in made.values():
        one.up(stack)
        one.make_inputs(names, options.input)
    for number in range(options.rounds):
        for job in names:
            if is_done(options, "floors: hadoop", round=number + 1, job=job):
                continue
            found: dict[str, object] = {"round": number + 1, "job": job}
            for name in order(sides, number):
                done = made[name].run(job, options.input)
                found[name] = done.figures()
                if name == "drives":
                    moved = made[name].moved(done)
                    found["explained_bytes"] = explained_bytes(done, moved, DRIVES)
                    found["shuffle"] = shuffle(done)
            keep(options, "floors: hadoop", ("input", "block"), found)


MEASURES = {"dft": dft, "allreduce": allreduce, "netpipe": netpipe, "hadoop": hadoop}

if __name__ == "__main__":
    sys.exit(main())
