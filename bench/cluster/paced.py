#!/usr/bin/env python3
"""More drives than the machine has CPUs, each at a share of the host's pace, by quotas.

``dft``: the transforms of recipes/mpi with the host at 0.30 of a core and each drive at 0.0825, so
0.275 of the host, with 0, 4, 8 and 16 drives. Throughput is compared with 1 + 0.275 N times that of
the host alone. Objects lie on the machines in these shares. In each round, before each run, bare
loops take as much as they get under the same quotas at the same time: the run is valid if each of
them got 95 % of its quota. ``hadoop``: the three jobs on one operating system that stands for the
host, and on it and one or two drives at half of its quota, compared with 1 + N / 2. Each round is
recorded at once, and ``table.py`` prints what the record has.
"""

import argparse
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from clusters import (
    RECIPES,
    Drives,
    add_options,
    groups,
    is_done,
    keep,
    missing,
    os_times,
    value,
    work,
)
from compared import run, say
from jobs import JOBS, Hadoop, Transforms, transforms_s

PERIOD_US = 100_000
HOST_CPUS, DRIVE_CPUS = 0.30, 0.0825
# Time in which all loops start, and for which they run.
START_S = 8
# As recipes/mpi/run has it, without drives.
ALONE = (
    "mpirun", "--allow-run-as-root", "--host", "localhost:1", "-np", 1, "--bind-to", "none",
    "--mca", "mpi_yield_when_idle", 1,
)  # fmt: skip


class Quota:
    """A control group of the host with a quota of CPU time."""

    def __init__(self, stack: ExitStack, cpus: float) -> None:
        self.name = f"csd-paced-{os.getpid()}"
        root = Path("/sys/fs/cgroup")
        # Of version 1 each controller has a hierarchy, of version 2 there is one.
        points = [root / "cpu", root / "cpuacct"] if (root / "cpu").is_dir() else [root]
        folders = [point / self.name for point in points]
        for folder in folders:
            folder.mkdir()
            stack.callback(folder.rmdir)
        set_quota(self.name, cpus)
        enter = "; ".join(f"echo $$ >{folder}/cgroup.procs" for folder in folders)
        self._shell = ("sh", "-c", f'{enter}; exec "$@"', "sh")

    def within(self, *words: object) -> tuple[object, ...]:
        """Return a command as it runs in the group."""
        return (*self._shell, *words)


def main() -> int:
    """Measure, and append each round to the record."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add_options(parser)
    parser.add_argument("--only", choices=("dft", "hadoop"), default="dft")
    parser.add_argument("--drives", default="0,4,8,16", help="numbers of drives, of dft")
    parser.add_argument("--cubes", type=int, default=600, help="objects of the host, of dft")
    parser.add_argument("--loops", type=int, default=10, help="seconds of the bare loops")
    parser.add_argument("--host-cpus", type=float, default=0.8, help="of the host, of hadoop")
    parser.add_argument("--input", type=int, default=200_000_000, help="bytes of each job")
    parser.add_argument("--block", type=int, default=32 << 20, help="of HDFS, bytes")
    parser.add_argument("--jobs", default=",".join(JOBS))
    if parser.parse_known_args()[0].only == "dft":
        # Many drives, whose medium is not what is measured.
        parser.set_defaults(size="1G", memory="512M", media="memory")
    options = parser.parse_args()
    if lacking := missing("mpicc", "mpirun"):
        print(f"SKIPPED: {lacking}")
        return 0
    with work(options) as (folder, stack):
        (dft if options.only == "dft" else hadoop)(options, folder, stack)
    return 0


def dft(options: argparse.Namespace, folder: Path, stack: ExitStack) -> None:
    """Measure the transforms."""
    counts = [int(text) for text in options.drives.split(",")]
    cluster = Drives(options.csd, folder, "drives")
    # Starts are not measured: the quotas come when all is there.
    cluster.up(stack, options, max(counts), 1)
    every = list(cluster.names)
    quota = Quota(stack, HOST_CPUS)
    transforms = Transforms(cluster, Transforms.compile(folder))
    share = round(options.cubes * DRIVE_CPUS / HOST_CPUS)
    transforms.make(lambda name: (0, 0, options.cubes if name == "host" else share))
    loop = folder / "loop"
    run(None, "gcc", "-O2", "-static", "-o", loop, Path(__file__).with_name("loop.c"))
    for name in every:
        put = "cat >/data/loop && chmod 755 /data/loop"
        cluster.in_drive(name, put, given=loop.read_bytes())
    for number in range(options.rounds):
        for count in counts if number % 2 == 0 else counts[::-1]:
            if is_done(options, "paced: dft", round=number + 1, drives=count):
                continue
            use(cluster, every, count)
            loops = shares(cluster, quota, loop, options.loops)
            transforms.clear()
            found = paced(cluster, quota, transforms)
            found |= {"round": number + 1, "drives": count, "loops": loops}
            keep(options, "paced: dft", ("cubes", "loops"), found)
    use(cluster, every, max(counts))
    for name in ("host", every[0], every[-1]):
        say(f"{name}: {transforms.check(name).strip()}")


def use(cluster: Drives, every: list[str], count: int) -> None:
    """Let the first so many drives have operating systems, with the quota of the measurement."""
    for name in every[count:]:
        cluster.run(cluster.csd, "--quiet", "os", "down", name, codes=(0, 4))
    for name in every[:count]:
        cluster.run(cluster.csd, "--quiet", "os", "up", name)
    if count:
        cluster.find()
        cluster.run(RECIPES / "mpi/up", 1)
        for group in cluster.os_groups():
            set_quota(group, DRIVE_CPUS)
    else:
        cluster.names = []


def set_quota(group: str, cpus: float) -> None:
    """Change the quota of a control group."""
    quota = round(cpus * PERIOD_US)
    for folder in groups(group):
        if (folder / "cpu.cfs_quota_us").exists():
            (folder / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (folder / "cpu.cfs_quota_us").write_text(str(quota))
        elif (folder / "cpu.max").exists():
            (folder / "cpu.max").write_text(f"{quota} {PERIOD_US}")


def shares(cluster: Drives, quota: Quota, loop: Path, seconds: int) -> dict[str, float]:
    """Return the part of its quota that a bare loop got on each machine, all at the same time."""
    begin = time.time() + START_S
    config = cluster.array.with_suffix("") / "ssh_config"
    commands = {"host": quota.within(loop, begin, seconds)}
    for name in cluster.names:
        commands[name] = ("ssh", "-F", config, name, "/data/loop", begin, seconds)
    running = {
        name: subprocess.Popen(cluster.within(*command), stdout=subprocess.PIPE, text=True)
        for name, command in commands.items()
    }
    found = {}
    for name, process in running.items():
        said, _ = process.communicate()
        if process.returncode:
            raise RuntimeError(f"the loop of {name} did not run")
        cpus = HOST_CPUS if name == "host" else DRIVE_CPUS
        found[name] = float(said.split()[0]) / (cpus * seconds)
    return found


def paced(cluster: Drives, quota: Quota, transforms: Transforms) -> dict[str, object]:
    """Run the transforms, and return their number, their time and what was used of the quotas."""
    words = (transforms.program, transforms.objects)
    command = (RECIPES / "mpi/run", *words) if cluster.names else (*ALONE, *words)
    before, host = os_times(cluster.os_groups()), os_times([quota.name])
    throttled = times_throttled(cluster, quota)
    said = cluster.run(*quota.within(*command))
    count, seconds = transforms_s(said)
    os_s = os_times(cluster.os_groups())["all"] - before["all"]
    host_s = os_times([quota.name])["all"] - host["all"]
    return {
        "objects": count, "s": seconds, "per_s": count / seconds, "host_cpu_s": host_s,
        "os_cpu_s": os_s, "throttled": times_throttled(cluster, quota) - throttled,
        "taken": said.strip().splitlines()[-1].partition(": ")[2],
    }  # fmt: skip


def times_throttled(cluster: Drives, quota: Quota) -> int:
    """Return the periods in which one of the quotas was used up."""
    texts = (value(name, "cpu.stat") for name in (quota.name, *cluster.os_groups()))
    lines = (line.split() for text in texts for line in text.splitlines())
    return sum(int(number) for name, number in lines if name == "nr_throttled")


def hadoop(options: argparse.Namespace, folder: Path, stack: ExitStack) -> None:
    """Measure the jobs of Hadoop, for each number of drives all rounds one after another."""
    names = options.jobs.split(",")
    for count in (0, 1, 2):
        with ExitStack() as here:
            cluster = Drives(options.csd, folder, f"drives{count}")
            cluster.up(here, options, count + 1, options.host_cpus)
            for group in cluster.os_groups()[1:]:
                set_quota(group, options.host_cpus / 2)
            made = Hadoop(cluster, options.block)
            made.up(here)
            made.make_inputs(names, options.input)
            for number in range(options.rounds):
                for job in names:
                    about: dict[str, object] = {"round": number + 1, "job": job, "drives": count}
                    if is_done(options, "paced: hadoop", **about):
                        continue
                    done = made.run(job, options.input)
                    found = about | done.figures()
                    keep(options, "paced: hadoop", ("input", "block", "host_cpus"), found)


if __name__ == "__main__":
    sys.exit(main())
