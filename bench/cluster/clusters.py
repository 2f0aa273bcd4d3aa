"""Clusters that are measured: a host and the drives of an array, or the floor of that array.

Both have a folder, a network namespace, and the same names and addresses, so that the recipes run
in both alike. The record of ``csd meter`` has what a command took; for the floor, whose operating
systems that program does not know, their control groups are read in addition.
"""

import argparse
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from compared import ROOT, cpu_s, processor, record, run, say
from floor import floor_up, groups

RECIPES = ROOT / "recipes"
NETWORK = "10.81.0.1/24"
# Time between two looks at the memory of operating systems.
LOOK_S = 0.5
# Main classes of Hadoop's containers.
CONTAINER = (b"YarnChild", b"MRAppMaster")


@dataclass
class Ran:
    """Consumption of a command."""

    wall_s: float
    # By class: host, os, drives, tunnels_inside, tunnels_outside.
    cpu_s: dict[str, float]
    # Of all processors of the machine, other work included.
    machine_cpu_s: float
    # User and system time of operating systems.
    os_user_s: float
    os_system_s: float
    # By the containers that ran in an operating system: most memory that cannot be dropped, bytes.
    held_bytes: dict[int, int]
    # Time, CPU time of this host's ends of tunnels, and that of the machine.
    times: list[tuple[float, float, float]] = field(repr=False)
    said: str
    meter: dict[str, Any] = field(repr=False)

    @property
    def all_cpu_s(self) -> float:
        """CPU time of all classes."""
        return sum(self.cpu_s.values())

    def figures(self) -> dict[str, object]:
        """Return what a record keeps of it."""
        return {
            "wall_s": self.wall_s, "cpu_s": self.cpu_s, "machine_cpu_s": self.machine_cpu_s,
            "os_user_s": self.os_user_s, "os_system_s": self.os_system_s,
            "held_bytes": self.held_bytes, "meter": self.meter,
        }  # fmt: skip


class Cluster:
    """A host and operating systems, in a network namespace of their own."""

    def __init__(self, csd: Path, folder: Path, name: str) -> None:
        self.csd = csd
        self.folder = folder / name
        self.array = self.folder / "csd-array.toml"
        self.space = f"csd{os.getpid()}{name}"
        # The program that recipes call.
        self.program = csd
        self.names: list[str] = []
        self.group_of: dict[str, str] = {}

    def make_space(self, stack: ExitStack) -> None:
        """Make the folder and the network namespace."""
        self.folder.mkdir(parents=True)
        run(None, "ip", "netns", "add", self.space)
        stack.callback(run, None, "ip", "netns", "delete", self.space)
        run(None, "ip", "-n", self.space, "link", "set", "lo", "up")

    def within(self, *words: object) -> list[str]:
        """Return a command as it runs on the host of the cluster."""
        names = [f"CSD={self.program}", f"CSD_ARRAY={self.array}"]
        space = f"--net=/run/netns/{self.space}"
        return [str(word) for word in ("nsenter", space, "env", *names, *words)]

    def run(self, *words: object, codes: tuple[int, ...] = (0,)) -> str:
        """Run a command on the host of the cluster."""
        return run(self.folder, *self.within(*words), codes=codes)

    def in_drive(self, name: str, *words: object, given: bytes | None = None) -> str:
        """Run a command in an operating system."""
        ssh = ("ssh", "-F", self.array.with_suffix("") / "ssh_config", "-o", "BatchMode=yes", name)
        command = self.within(*ssh, *words)
        done = subprocess.run(command, input=given, capture_output=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr.decode(errors='replace')}")
        return done.stdout.decode()

    def os_groups(self) -> list[str]:
        """Return the control groups of the operating systems."""
        return [self.group_of[name] for name in self.names]

    def meter_options(self) -> list[object]:
        """Return the options of ``csd meter`` by which it finds the array, or none."""
        return ["--array", self.array]

    def routers(self) -> list[int]:
        """Return the processes of this host's ends of tunnels."""
        return []

    def of_meter(self, before: dict[str, float], cpu_s: dict[str, float]) -> dict[str, float]:
        """Return CPU times by class, from those of the meter."""
        return cpu_s


class Drives(Cluster):
    """A host and the drives of an array."""

    def up(self, stack: ExitStack, options: argparse.Namespace, drives: int, cpus: float) -> None:
        """Start the array with its operating systems."""
        self.make_space(stack)
        key = self.folder / "key"
        run(None, "ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key)
        up = ("array", "up", "--drives", drives, "--size", options.size, "--kv", "10%")
        media = ("--media", options.media, "--log-level", "error")
        limits = ("--os-cpus", cpus, "--os-memory", options.memory)
        stack.callback(self._down)
        self.run(
            self.csd, "--quiet", *up, *media, "--os", options.image, *limits,
            "--os-key", f"{key}.pub", "--os-network", NETWORK,
        )  # fmt: skip
        self.find()

    def find(self) -> None:
        """Read names and groups of the operating systems that run."""
        said = self.run(self.csd, "os", "status", "--json", codes=(0, 4))
        every = json.loads(said)["result"]["drives"]
        self.names = [one["name"] for one in every if one["state"] == "up"]
        for name in self.names:
            folder = self.array.with_suffix("") / "os" / name
            self.group_of[name] = json.loads((folder / "record.json").read_text())["id"]

    def processes(self, program: str) -> list[int]:
        """Return the processes that serve operating systems by this program."""
        found = []
        for name in self.names:
            folder = self.array.with_suffix("") / "os" / name
            record = json.loads((folder / "record.json").read_text())
            found += [one["pid"] for one in record["processes"] if one["program"] == program]
        return found

    def routers(self) -> list[int]:
        """Return the processes of this host's ends of tunnels."""
        return self.processes("csd tunnel up of the host")

    def _down(self) -> None:
        self.run(self.csd, "array", "down", "--delete", "--yes", codes=(0, 1, 2, 4))


class Floor(Cluster):
    """A host and the floor of an array that is up."""

    def up(self, stack: ExitStack, options: argparse.Namespace, of: Drives) -> None:
        """Start the floor."""
        self.make_space(stack)
        self.array = self.folder / "floor.toml"
        self.program = Path(__file__).with_name("floor.py")
        folder = self.array.with_suffix("")
        nodes = floor_up(stack, folder, of.array, self.space, options.size)
        self.names = [node.name for node in nodes]
        self.group_of = {node.name: node.id for node in nodes}

    def meter_options(self) -> list[object]:
        """Return the options of ``csd meter`` by which it finds no array."""
        return ["--array", self.folder / "none.toml"]

    def of_meter(self, before: dict[str, float], cpu_s: dict[str, float]) -> dict[str, float]:
        """Return CPU times by class, from those of the meter and of control groups."""
        after = os_times(self.os_groups())
        return cpu_s | {"os": after["all"] - before["all"]}


def value(group: str, name: str) -> str:
    """Return the text of a control group's file; nothing if no hierarchy has it."""
    for folder in groups(group):
        if (folder / name).exists():
            return (folder / name).read_text()
    return ""


def fields(text: str) -> dict[str, int]:
    """Return lines of a name and a number."""
    return {name: int(number) for name, number in (line.split() for line in text.splitlines())}


def os_times(names: list[str]) -> dict[str, float]:
    """Return CPU time of control groups: all of it, user and system."""
    found = {"all": 0.0, "user": 0.0, "system": 0.0}
    ticks = os.sysconf("SC_CLK_TCK")
    for name in names:
        if whole := value(name, "cpuacct.usage"):
            parts = fields(value(name, "cpuacct.stat"))
            found["all"] += int(whole) / 1e9
            found["user"] += parts["user"] / ticks
            found["system"] += parts["system"] / ticks
        else:
            parts = fields(value(name, "cpu.stat"))
            for key in found:
                found[key] += parts[{"all": "usage_usec"}.get(key, f"{key}_usec")] / 1e6
    return found


def machine_s() -> float:
    """Return the CPU time of the whole machine: user, nice, system and interrupts."""
    words = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    idle = int(words[3]) + int(words[4])
    return (sum(map(int, words[:8])) - idle) / os.sysconf("SC_CLK_TCK")


def held(group: str) -> int:
    """Return memory that cannot be dropped: all but the pages of files, bytes."""
    stat = fields(value(group, "memory.stat"))
    if whole := value(group, "memory.usage_in_bytes"):
        return int(whole) - stat["total_cache"] + stat.get("total_shmem", 0)
    return int(value(group, "memory.current")) - stat["file"] + stat["shmem"]


def containers(group: str) -> int:
    """Return how many containers of Hadoop run in an operating system."""
    count = 0
    for pid in value(group, "cgroup.procs").split():
        try:
            words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        # A shell that starts one has its words as well.
        count += words[0].endswith(b"java") and any(word.endswith(CONTAINER) for word in words)
    return count


class Looks:
    """Looks at operating systems and at the machine, until it is stopped."""

    def __init__(self, cluster: Cluster) -> None:
        self.names = cluster.os_groups()
        self.routers = cluster.routers()
        # By the containers that ran in an operating system: most memory that cannot be dropped.
        self.most: dict[int, int] = {}
        # Time, CPU time of this host's ends of tunnels, and that of the machine.
        self.times: list[tuple[float, float, float]] = []
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while not self._end.wait(LOOK_S):
            try:
                routing_s = sum(map(cpu_s, self.routers))
            except OSError:
                routing_s = math.nan
            self.times.append((time.time(), routing_s, machine_s()))
            for name in self.names:
                try:
                    count, bytes_ = containers(name), held(name)
                except (OSError, ValueError, KeyError):
                    continue
                self.most[count] = max(bytes_, self.most.get(count, 0))

    def stop(self) -> None:
        """End it."""
        self._end.set()
        self._thread.join()


def metered(cluster: Cluster, *words: object, pids: tuple[int, ...] = ()) -> Ran:
    """Run a command on the host of a cluster, and return what it took."""
    path = cluster.folder / "job.json"
    options = [word for pid in pids for word in ("--pid", pid)]
    meter = [cluster.csd, *cluster.meter_options(), "--quiet", "meter", "-o", path, *options]
    looks = Looks(cluster)
    before, machine = os_times(cluster.os_groups()), machine_s()
    command = cluster.within(*meter, "--", *words)
    try:
        done = subprocess.run(
            command, cwd=cluster.folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            check=False,
        )  # fmt: skip
    finally:
        looks.stop()
    after, machine_after = os_times(cluster.os_groups()), machine_s()
    said = done.stdout.decode(errors="replace")
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {said[-2000:]}")
    found = json.loads(path.read_text())
    by_class = cluster.of_meter(before, found["result"]["cpu_s"])
    user_s, system_s = (after[name] - before[name] for name in ("user", "system"))
    wall_s, spent_s = found["result"]["wall_s"], machine_after - machine
    most = dict(sorted(looks.most.items()))
    return Ran(wall_s, by_class, spent_s, user_s, system_s, most, looks.times, said, found)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that all measurements of clusters have."""
    parser.add_argument("--csd", type=Path, default=ROOT / "target/release/csd")
    parser.add_argument("--image", type=Path, default=ROOT / "build/os/root")
    parser.add_argument("--size", default="8G", help="of each drive")
    parser.add_argument("--memory", default="2G", help="of each operating system")
    parser.add_argument("--media", choices=("file", "memory"), default="file")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="on the disk of the drives' media")
    parser.add_argument("--run", help="name of a run in the record, to do what it lacks")
    parser.add_argument("--record", type=Path)


def missing(*more: str) -> str:
    """Say what this machine lacks for a cluster; nothing if it lacks nothing."""
    tools = ("runc", "losetup", "mke2fs", "ip", "nsenter", "ssh", "ssh-keygen", "gcc", *more)
    lacking = [tool for tool in tools if not shutil.which(tool)]
    if os.geteuid() != 0:
        lacking.append("root")
    return ", ".join(lacking)


@contextmanager
def work(options: argparse.Namespace) -> Iterator[tuple[Path, ExitStack]]:
    """Return a folder and a stack; what the stack has ends also after a signal."""

    def end(number: int, _frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    signal.signal(signal.SIGTERM, end)
    options.image, options.csd = options.image.resolve(), options.csd.resolve()
    if not (options.image / "usr/sbin/sshd").exists():
        raise SystemExit(f"{options.image} has no OpenSSH: `make os-image` makes an image")
    options.run = options.run or time.strftime("%Y-%m-%dT%H:%M:%S")
    options.load_before = os.getloadavg()[0]
    options.machine = processor()
    temporary = tempfile.TemporaryDirectory(prefix="csd-cluster-", dir=options.folder)
    with temporary as folder, ExitStack() as stack:
        yield Path(folder), stack


def keep(options: argparse.Namespace, part: str, names: tuple[str, ...], result: object) -> None:
    """Record one round, at once: a run that is interrupted keeps those that are done."""
    options.part = part
    about = ("part", "run", "machine", "load_before", "size", "memory", "media", *names)
    record("cluster", options, about, result)
    say(f"{part}: {json.dumps(shortened(result))}")


def is_done(options: argparse.Namespace, part: str, **about: object) -> bool:
    """Return true if this run has a record with these values, from before an interruption."""
    if not options.record or not options.record.exists():
        return False
    for line in options.record.read_text().splitlines():
        one = json.loads(line)
        if (one.get("part"), one.get("run")) == (part, options.run):
            results = one["results"]
            if all(results.get(name) == wanted for name, wanted in about.items()):
                return True
    return False


def shortened(result: object) -> object:
    """Leave out of a result what is too long for a line of progress."""
    if isinstance(result, dict):
        return {key: shortened(one) for key, one in result.items() if key not in ("meter", "log")}
    return round(result, 3) if isinstance(result, float) else result
