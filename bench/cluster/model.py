#!/usr/bin/env python3
"""Runs of jobs for the planner's model: two sizes on one drive, a third size on two drives.

WordCount, Sort and TeraSort by recipes/hadoop, and the transforms of recipes/mpi by ranks of drives
alone. Jobs and sizes take turns within a round, and each run is recorded at once. ``csdplan
reproduce --cluster RECORD`` fits the model to the runs on one drive, and compares what it foretells
with those on two.
"""

import argparse
import random
import sys
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from clusters import RECIPES, Drives, add_options, is_done, keep, metered, missing, work
from compared import say
from jobs import JOBS, Hadoop, Transforms, transforms_s

CPUS = 0.9
OBJECT_BYTES = 8 * 50**3
PART = "model"


def main() -> int:
    """Measure, and append each run to the record."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add_options(parser)
    parser.add_argument("--inputs", default="200,400,600", help="of Hadoop, MB; the last on two")
    parser.add_argument("--cubes", default="1000,2000,3000", help="of DFT, 3D; the last on two")
    parser.add_argument("--block", type=int, default=16 << 20, help="of HDFS, bytes")
    parser.add_argument("--jobs", default=",".join([*JOBS, "dft"]))
    options = parser.parse_args()
    if lacking := missing("mpicc", "mpirun"):
        print(f"SKIPPED: {lacking}")
        return 0
    inputs = [10**6 * int(text) for text in options.inputs.split(",")]
    cubes = [int(text) for text in options.cubes.split(",")]
    with work(options) as (folder, _stack):
        program = Transforms.compile(folder)
        for drives, at in ((1, slice(2)), (2, slice(2, 3))):
            with ExitStack() as here:
                cluster = Drives(options.csd, folder, f"drives{drives}")
                cluster.up(here, options, drives, CPUS)
                names = options.jobs.split(",")
                if "dft" in names:
                    dft(options, Transforms(cluster, program), cubes[at])
                hadoop(options, cluster, here, inputs[at], [one for one in names if one != "dft"])
    return 0


def turns(number: int, cases: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Return the cases of a round in an order of chance, the same for every measurement."""
    return random.Random(number).sample(cases, len(cases))


def hadoop(
    options: argparse.Namespace, cluster: Drives, stack: ExitStack, sizes: list[int],
    names: list[str],
) -> None:  # fmt: skip
    """Measure the jobs of Hadoop."""
    if not names:
        return
    made = Hadoop(cluster, options.block)
    made.up(stack)
    for size in sizes:
        made.make_inputs(names, size)
    for number in range(options.rounds):
        for job, size in turns(number, [(job, size) for job in names for size in sizes]):
            about: dict[str, object] = {"round": number + 1, "job": job, "size": size}
            about["drives"] = len(cluster.names)
            if not is_done(options, PART, **about):
                keep(options, PART, ("block",), about | made.run(job, size).figures())


def dft(options: argparse.Namespace, transforms: Transforms, sizes: list[int]) -> None:
    """Measure the transforms, by ranks of the drives alone."""
    cluster = transforms.cluster
    drives = len(cluster.names)
    cluster.run(RECIPES / "mpi/up", 0)
    for number in range(options.rounds):
        for job, size in turns(number, [("dft", size) for size in sizes]):
            about: dict[str, object] = {"round": number + 1, "job": job, "size": size}
            about["drives"] = drives
            if is_done(options, PART, **about):
                continue
            each = size // drives
            transforms.empty()
            transforms.make(lambda name, each=each: (0, 0, 0 if name == "host" else each))
            ran = metered(cluster, RECIPES / "mpi/run", transforms.program, transforms.objects)
            count, seconds = transforms_s(ran.said)
            if count != each * drives:
                raise RuntimeError(f"{count} objects, not {each * drives}")
            found = about | {
                "transforms_s": seconds,
                "input_bytes": count * OBJECT_BYTES, "block_bytes": OBJECT_BYTES,
            }  # fmt: skip
            keep(options, PART, ("cubes",), found | ran.figures())
    for name in cluster.names:
        say(f"{name}: {transforms.check(name).strip()}")


if __name__ == "__main__":
    sys.exit(main())
