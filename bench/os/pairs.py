#!/usr/bin/env python3
"""The operating system of a drive compared with what it stands on.

``data``: direct I/O of written data on ``/data``, compared with the same I/O on ext4 over a loop
device of a plain file, and with this project's initiator on a drive of the same kind. The ratio is
that to the slower of the two. The three take turns within a round, each round in another order.
``idle``: CPU time and memory of an operating system with its tunnel and nothing to do. ``spin``: a
program that only computes, inside and outside, in turns. ``reads``: the host's reads of 4 KiB at
depth 1 next to programs that compute. Needs root, runc, FUSE, fio, gcc and, for ``idle``, an image
with OpenSSH.
"""

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from compared import MIB, ROOT, cpu_s, record, say, show, spread, summary
from compared import run as run_in

NQN = "nqn.2026-11.io.csdstore:drive"
# Name, bytes of an operation, operations at once, and the aim.
LOADS = (
    ("read", MIB, 4, 0.7),
    ("write", MIB, 4, 0.7),
    ("read", 4096, 32, 0.4),
    ("write", 4096, 32, 0.4),
)


def main() -> int:
    """Measure, print, and append the record."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--csd", type=Path, default=ROOT / "target/release/csd")
    parser.add_argument("--rate", type=Path, default=ROOT / "target/release/bench-rate")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=3, help="of one run")
    parser.add_argument("--span", type=int, default=256, help="MiB that are read and written")
    parser.add_argument("--idle", type=int, default=30, help="seconds")
    parser.add_argument("--media", choices=("memory", "file"), default="memory")
    parser.add_argument("--reads", type=Path, default=ROOT / "target/release/bench-reads")
    parser.add_argument("--image", type=Path, default=ROOT / "build/os/root", help="of idle")
    parser.add_argument("--only", choices=[*MEASURES], action="append")
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    tools = ("fio", "gcc", "runc", "losetup", "mke2fs", "taskset", "ssh-keygen")
    missing = [tool for tool in tools if not shutil.which(tool)]
    if missing or os.geteuid() != 0:
        print(f"SKIPPED: {', '.join(missing) or 'this takes root'}")
        return 0
    results: dict[str, object] = {}
    for name, measure in MEASURES.items():
        if name in (options.only or MEASURES):
            with ExitStack() as stack:
                # A drive in memory is compared with a file in memory.
                place = "/dev/shm" if options.media == "memory" else None
                folder = tempfile.TemporaryDirectory(prefix="csd-os-", dir=place)
                results |= measure(options, Path(stack.enter_context(folder)), stack)
    show(results)
    record("os", options, ("rounds", "media"), results)
    return 0


def run(*words: object) -> str:
    """Run a program, and return what it prints."""
    return run_in(None, *words)


class Drive:
    """A drive with an inside, and maybe an operating system with this machine's own programs."""

    def __init__(
        self, options: argparse.Namespace, folder: Path, stack: ExitStack, *pinned: str
    ) -> None:
        folder.mkdir()
        self.csd, self.folder = options.csd, folder
        socket, ready = folder / "d0.sock", folder / "ready"
        media = "memory" if options.media == "memory" else folder / "media"
        serve = [self.csd, "drive", "serve", "--media", media, "--size", f"{4 * options.span}M"]
        serve += ["--kv", "10%", "--listen", "127.0.0.1:0", "--cores", 1, "--nqn", NQN]
        serve += ["--inside", socket, "--ready-file", ready, "--tunnel-host", NQN + "-host"]
        serve += ["--allow-any-host", "--log-level", "error"]
        self.process = start(stack, *pinned, *serve)
        while not ready.exists():
            time.sleep(0.02)
        self.outside = ready.read_text().strip()
        self.inside = f"nvme+unix://{socket}/{NQN}"

    def up(self, stack: ExitStack, root: Path = Path("/"), *more: object) -> None:
        """Start the operating system."""
        limits = ("--cpus", os.cpu_count(), "--memory", "2G")
        run(self.csd, "os", "up", self.inside, "--root", root, *limits, *more)
        stack.callback(run, self.csd, "os", "down", self.inside)

    def within(self, *words: object) -> list[object]:
        """Return the command inside."""
        return [self.csd, "os", "exec", self.inside, "--", *words]


def start(stack: ExitStack, *words: object) -> subprocess.Popen[bytes]:
    """Start a process that ends with the stack."""
    process = subprocess.Popen([str(word) for word in words], stdout=subprocess.PIPE)
    stack.callback(process.wait)
    stack.callback(process.terminate)
    return process


def fio(options: argparse.Namespace, path: str, kind: str, size: int, depth: int) -> list[object]:
    """Return the command that does direct I/O on a file."""
    way = f"rand{kind}" if size < MIB else kind
    command = ["fio", "--name=x", f"--filename={path}", f"--size={options.span}M", f"--rw={way}"]
    command += [f"--bs={size}", f"--iodepth={depth}", "--ioengine=libaio", "--direct=1"]
    # The file is written before; only whole windows count.
    command += ["--overwrite=1", "--time_based", f"--runtime={options.seconds}"]
    return [*command, "--output-format=json"]


def per_s(said: str, kind: str) -> float:
    """Return the operations a second of fio's report."""
    return float(json.loads(said[said.index("{") :])["jobs"][0][kind]["iops"])


def data(options: argparse.Namespace, folder: Path, stack: ExitStack) -> dict[str, object]:
    """Compare /data with its two floors."""
    drive, bare = (Drive(options, folder / name, stack) for name in ("os", "bare"))
    drive.up(stack)
    plain = folder / "plain"
    mount = folder / "mount"
    mount.mkdir()
    with plain.open("wb") as file:
        file.truncate(3 * options.span * MIB)
    direct = ("--direct-io=on", "--sector-size", 4096)
    device = run("losetup", "--find", "--show", *direct, plain).strip()
    stack.callback(run, "losetup", "--detach", device)
    run("mke2fs", "-q", "-t", "ext4", device)
    run("mount", "-o", "noatime", device, mount)
    stack.callback(run, "umount", mount)
    for command in (drive.within("dd", "of=/data/x"), ["dd", f"of={mount}/x"]):
        run(*command, "if=/dev/urandom", "bs=1M", f"count={options.span}", "conv=fsync")
    run(options.rate, bare.inside, "write", MIB, 4, 2000, options.span * MIB)

    def measured(name: str, kind: str, size: int, depth: int) -> float:
        if name == "initiator":
            window = options.seconds * 1000
            said = run(options.rate, bare.inside, kind, size, depth, window, options.span * MIB)
            return float(json.loads(said)["per_s"])
        path = "/data/x" if name == "data" else f"{mount}/x"
        command = fio(options, path, kind, size, depth)
        return per_s(run(*(drive.within(*command) if name == "data" else command)), kind)

    results: dict[str, object] = {}
    for kind, size, depth, aim in LOADS:
        rounds = []
        for number in range(options.rounds):
            names = ["data", "loop", "initiator"]
            random.Random(number).shuffle(names)
            rounds.append({name: measured(name, kind, size, depth) for name in names})
            say(f"{kind} {size}: {rounds[-1]}")
        ratios = [one["data"] / min(one["loop"], one["initiator"]) for one in rounds]
        medians = {
            name: round(statistics.median(one[name] for one in rounds) * size / 1e6, 1)
            for name in rounds[0]
        }
        results[f"{kind} {size} x {depth}, MB/s"] = medians | spread(ratios) | {"aim": aim}
    return results


def idle(options: argparse.Namespace, folder: Path, stack: ExitStack) -> dict[str, object]:
    """Measure an operating system that has nothing to do, with OpenSSH and its tunnel."""
    drive = Drive(options, folder / "os", stack)
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / "key")
    drive.up(stack, options.image, "--key", folder / "key.pub")
    connect = ("--host-nqn", NQN + "-host")
    host = start(stack, drive.csd, "tunnel", "up", "--drive", drive.outside, *connect)
    assert host.stdout is not None
    host.stdout.readline()
    record = json.loads((folder / "os/d0.sock.os/record.json").read_text())
    served = [process["pid"] for process in record["processes"]]
    before, own = [cpu_s(pid) for pid in [*served, host.pid]], cpu_s(drive.process.pid)
    inside = status(drive)
    begun = time.monotonic()
    time.sleep(options.idle)
    passed = time.monotonic() - begun
    spent = [cpu_s(pid) - was for pid, was in zip([*served, host.pid], before, strict=True)]
    drive_s = cpu_s(drive.process.pid) - own
    after = status(drive)
    share = (sum(spent[:-1]) + after["cpu_s"] - inside["cpu_s"]) / passed
    memory = sum(pss(pid) for pid in served) + after["memory_bytes"]
    return {
        "idle": {
            "of_a_core": round(share, 4),
            "MiB": round(memory / MIB, 1),
            "processes": {p["program"]: round(pss(p["pid"]) / MIB, 1) for p in record["processes"]},
            "programs_MiB": round(after["memory_bytes"] / MIB, 1),
            "host_end_of_a_core": round(spent[-1] / passed, 4),
            "host_end_MiB": round(pss(host.pid) / MIB, 1),
            "drive_of_a_core": round(drive_s / passed, 4),
            "seconds": options.idle,
            "aim": "0.01 of a core, 60 MiB",
        }
    }


def status(drive: Drive) -> dict[str, float]:
    """Return what ``csd os status`` says."""
    said = json.loads(run(drive.csd, "os", "status", drive.inside, "--json"))
    found: dict[str, float] = said["result"]["drives"][0]
    return found


def spin(options: argparse.Namespace, folder: Path, stack: ExitStack) -> dict[str, object]:
    """Compare the CPU time of a program that only computes."""
    drive = Drive(options, folder / "os", stack)
    drive.up(stack)
    program = folder / "spin"
    source = Path(__file__).with_name("spin.c")
    run("gcc", "-O2", "-static", "-o", program, source)
    shutil.copy(program, folder / "os/d0.sock.os/volume/data/spin")
    ratios = []
    for number in range(options.rounds):
        sides: dict[str, list[object]] = {"outside": [program]}
        sides["inside"] = drive.within("/data/spin")
        order = list(sides) if number % 2 == 0 else list(sides)[::-1]
        took = {name: int(run(*sides[name]).split()[0]) for name in order}
        ratios.append(took["inside"] / took["outside"])
        say(f"spin: {took}")
    return {"spin, CPU time inside over outside": spread(ratios) | {"aim": 1.02}}


def reads(options: argparse.Namespace, folder: Path, stack: ExitStack) -> dict[str, object]:
    """Compare the host's reads with a busy operating system and with an idle one.

    Host and drive have one CPU, the programs of the operating system the other.
    """
    drive = Drive(options, folder / "os", stack, "taskset", "-c", "0")
    drive.up(stack)
    address = drive.outside.removeprefix("nvme+tcp://").split("/")[0]
    milliseconds = options.seconds * 1000 // 2
    read = ["taskset", "-c", "0", options.reads, address, NQN, 4096, milliseconds]
    loop = "while :; do :; done"
    busy = ["timeout", options.seconds, "taskset", "-c", 1, "sh", "-c", f"echo; {loop} & {loop}"]
    pairs = []
    for number in range(options.rounds):
        idle = json.loads(run(*read))["p99_us"]
        programs = subprocess.Popen(map(str, drive.within(*busy)), stdout=subprocess.PIPE)
        assert programs.stdout is not None
        programs.stdout.readline()
        pairs.append((idle, json.loads(run(*read))["p99_us"]))
        programs.communicate()
        say(f"reads {number + 1}: p99 {pairs[-1]} us")
    found = summary(pairs, ("idle_us", "busy_us")) | {"aim": 1.2}
    return {"read p99 with a busy operating system": found}


def pss(pid: int) -> int:
    """Return the bytes of memory of a process, shared ones in parts."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:")) * 1024


MEASURES = {"data": data, "idle": idle, "spin": spin, "reads": reads}

if __name__ == "__main__":
    sys.exit(main())
