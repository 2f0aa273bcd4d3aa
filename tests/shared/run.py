#!/usr/bin/env python3
"""One file system (OCFS2) that host and drive have mounted at once.

Two kernels run as processes, one on each door of a drive; their cluster messages go through the
drive's tunnel. The last line is ``N passed, N failed, N skipped``; the exit status is 0 if no check
failed. See ``tests/shared/README.md``.
"""

import argparse
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from doors import Doors
from machine import Machine, Unavailable, prepare
from node import Failed, Kernel, Node

ROOT = Path(__file__).resolve().parents[2]
MAKE = "mkfs.ocfs2 -q -F -N 2 -C 64K -b 4K -J size=16M -L shared --cluster-stack=o2cb "
MAKE += "--cluster-name=csd"
# Appends numbered lines under a lock, and prints the number of each once it is durable.
WRITER = (
    "cd shared; n=0; while [ ! -e stop ]; do n=$((n + 1)); "
    'flock lock -c "echo $(hostname) $n >>log; sync log"; echo $n >/tmp/written; done; '
    "touch /tmp/ended"
)
EACH = 30
# The recipe of MPI, as the image has it: its program, and what makes objects and knows the answers.
RECIPE = ROOT / "recipes/mpi"
OBJECTS = "python3 /csd-mpi/objects.py"
COUNTS = (40, 10, 2)
MPIRUN = "mpirun --allow-run-as-root --oversubscribe --bind-to none -n 2"
# A drive in the kernel "drive", and its operating system.
NQN = "nqn.2026-11.io.csdstore:drive"
INSIDE = f"nvme+unix:///run/d0.sock/{NQN}"
OUTSIDE = f"nvme+tcp://10.77.0.2:4420/{NQN}"
SERVE = "drive serve --media memory --size 192M --kv 10% --inside /run/d0.sock --allow-any-host "
SERVE += f"--listen 10.77.0.2:4420 --nqn {NQN} --ready-file /run/ready"


class Lane:
    """Checks in their order: each needs those before it."""

    def __init__(
        self, options: argparse.Namespace, folder: Path, doors: Doors, made: Path | None
    ) -> None:
        self._options, self._folder, self._doors, self._made = options, folder, doors, made
        self.nodes: list[Kernel] = []

    def node(self, number: int) -> Kernel:
        """Boot a kernel."""
        block, namespace = self._doors.block(number), self._doors.namespaces[number]
        log = self._folder / f"node{number}.log"
        image, factor = self._options.image, self._options.factor
        node: Kernel
        if self._made and number == 0:
            tap = f"csd{os.getpid()}"
            node = Machine(self._made, tap, self._doors, log, factor)
        else:
            node = Node(number, image, block, namespace, log, factor)
        self.nodes.append(node)
        node.booted()
        return node

    def both(self, command: str) -> list[str]:
        """Run a line on both kernels at once."""
        with ThreadPoolExecutor() as pool:
            return list(pool.map(lambda node: node.run(command), self.nodes[:2]))

    def mounts(self) -> None:
        """Mount on both kernels the file system that one of them makes."""
        host, drive = self.node(0), self.node(1)
        host.run(f"{MAKE} {host.disk} </dev/null")
        mount(host)
        mount(drive)
        require(self._doors.carried() > 0, "no cluster message went through the tunnel")

    def files(self) -> None:
        """Read on each kernel what the other has just written."""
        host, drive = self.nodes
        host.run("seq 200000 >shared/numbers")
        drive.run("seq 200000 | cmp - shared/numbers")
        drive.run("sort -r shared/numbers >shared/sorted; echo drive >>shared/numbers")
        host.run("seq 200000 | sort -r | cmp - shared/sorted")
        require(host.run("tail -n 1 shared/numbers") == "drive", "the append is not seen")
        drive.run("mkdir shared/a; mv shared/sorted shared/a/b")
        host.run("test ! -e shared/sorted; rm -r shared/a")
        drive.run("test ! -e shared/a")

    def locks(self) -> None:
        """Append on both under a lock: all lines are there."""
        append = 'flock shared/lock -c "echo $(hostname) >>shared/appends"'
        self.both(f"for i in $(seq {EACH}); do {append}; done")
        for count in self.both("wc -l <shared/appends"):
            require(count == str(2 * EACH), f"{count} lines")

    def transforms(self) -> None:
        """Transform on each kernel what the other wrote, at once; the writers know the answers."""
        whole = str(sum(COUNTS))
        counts = " ".join(map(str, COUNTS))
        folders = [f"$PWD/shared/of-{node.name}" for node in self.nodes]
        for number, (node, folder) in enumerate(zip(self.nodes, folders, strict=True)):
            node.run(f"{OBJECTS} make {folder} {number + 1} {counts}", seconds=300)
        with ThreadPoolExecutor() as pool:
            jobs = [
                pool.submit(node.run, f"{MPIRUN} /csd-mpi/dft {folder}", seconds=300)
                for node, folder in zip(self.nodes, reversed(folders), strict=True)
            ]
        for job in jobs:
            require(f"{whole} objects in" in job.result(), f"a job said {job.result()!r}")
        for node, folder in zip(self.nodes, folders, strict=True):
            said = node.run(f"{OBJECTS} check {folder}", seconds=300)
            require(said.startswith(f"{whole} transforms, "), f"the check said {said!r}")

    def recovery(self) -> None:
        """Kill one kernel while both write: the other goes on, and nothing synced is lost."""
        host, drive = self.nodes
        self.both(f"({WRITER}) >/dev/null 2>&1 &")
        self.wait(lambda: min(map(written, self.nodes)) > EACH)
        acknowledged = written(drive)
        drive.kill()
        before = written(host)
        self.wait(lambda: written(host) > before + EACH)
        host.run("touch shared/stop")
        self.wait(lambda: "ended" in host.run("ls /tmp"))
        lines = host.run("cat shared/log").splitlines()
        for name, least in (("host", written(host)), ("drive", acknowledged)):
            own = [line for line in lines if line.startswith(name)]
            wanted = [f"{name} {number + 1}" for number in range(len(own))]
            require(own == wanted and len(own) >= least, f"{name}: {len(own)} of {least} lines")
        require(all(line.startswith(("host ", "drive ")) for line in lines), "torn lines")

    def back(self) -> None:
        """Boot the killed kernel: it mounts again, and sees all."""
        self.nodes.pop().close()
        host, drive = self.nodes[0], self.node(1)
        mount(drive)
        sums = self.both("find shared -type f | sort | xargs sha256sum")
        require(sums[0] == sums[1], "the two see different bytes")
        drive.run("echo back >shared/back")
        require(host.run("cat shared/back") == "back", "it does not write")

    def clean(self) -> None:
        """Unmount, and check the file system."""
        host, drive = self.nodes
        drive.run("umount shared")
        host.run("umount shared")
        host.run(f"fsck.ocfs2 -fn {host.disk}", seconds=300)

    def programs(self) -> None:
        """Run programs on a file system that the host mounts, too."""
        host, drive = self.nodes
        for node in [node for node in self.nodes if isinstance(node, Node)]:
            node.run(f"mkdir /run/csd; mount -t hostfs none /run/csd -o {self._options.csd.parent}")
            node.run("for module in fuse loop overlay; do modprobe $module; done")
        drive.run("mount -t cgroup2 none /sys/fs/cgroup")
        background(drive, SERVE)
        self.wait(lambda: "ready" in drive.run("ls /run"))
        up = f"/run/csd/csd os up {INSIDE} --root / --fs ocfs2"
        require("new file system" in drive.run(up, seconds=600), "no file system was made")
        inside = f"/run/csd/csd os exec {INSIDE} --"
        drive.run(f"{inside} sh -c 'seq 10000 >/data/numbers'")
        # Programs run in the group of sessions, of control groups of version 2.
        group = drive.run(f"{inside} cat /proc/self/cgroup")
        require(group.endswith("/sessions"), f"a program runs in {group!r}")
        limit = drive.run("cat /sys/fs/cgroup/csd-os-*/sessions/pids.max")
        require(limit == "496", f"sessions may have {limit} processes")
        host.run("mkdir /run/door /mnt/os")
        if isinstance(host, Node):
            background(host, f"attach {OUTSIDE} /run/door")
            self.wait(lambda: "block" in host.run("ls /run/door"))
            direct = "losetup --find --show --direct-io=on --sector-size 4096 /run/door/block"
            host.run(f"mount -t ocfs2 $({direct}) os")
        else:
            host.run(f"nvme connect -t tcp -a 10.77.0.2 -s 4420 -n {NQN}")
            self.wait(lambda: "nvme1n1" in host.run("ls /dev"))
            host.run("mount -t ocfs2 /dev/nvme1n1 os")
        host.run("seq 10000 | cmp - os/data/numbers; echo host >os/data/of-host")
        said = drive.run(f"{inside} cat /data/of-host")
        require(said == "host", f"a program inside read {said!r}")
        host.run("umount os")
        drive.run(f"/run/csd/csd os down {INSIDE}", seconds=300)
        left = drive.run("cat /proc/mounts")
        require("d0.sock.os" not in left, f"a mount is left: {left}")
        left = drive.run("ls /sys/fs/cgroup")
        require("csd-os-" not in left, f"a control group is left: {left}")
        require("new file system" not in drive.run(up, seconds=600), "it was made again")
        require(drive.run(f"{inside} cat /data/of-host") == "host", "a file is lost")
        drive.run(f"/run/csd/csd os down {INSIDE}", seconds=300)

    def array(self) -> None:
        """Start an array whose drive has its operating system on this file system."""
        drive = self.nodes[1]

        def csd(words: str) -> str:
            return drive.run(f"cd /run/array; /run/csd/csd {words}", seconds=600)

        drive.run("modprobe tun; mkdir /run/array")
        up = "array up --drives 1 --media memory --size 192M --kv 10% --os / --os-fs ocfs2"
        require("new file system" in csd(up), "no file system was made")
        csd("os exec d0 -- sh -c 'seq 10000 >/data/numbers'")
        mounts = [line.split() for line in drive.run("cat /proc/mounts").splitlines()]
        own = [words for words in mounts if "csd-array/os/d0" in words[1]]
        require(any(words[2] == "ocfs2" for words in own), f"it is not mounted: {own}")
        # The array file says which file system it is.
        require("runs already" in csd("array up"), "it was started twice")
        csd("os down d0")
        require("new file system" not in csd("os up d0"), "it was made again")
        csd("os exec d0 -- sh -c 'seq 10000 | cmp - /data/numbers'")
        csd("array down")
        left = drive.run("cat /proc/mounts")
        require("csd-array" not in left, f"a mount is left: {left}")

    def tell(self) -> None:
        """Put the kernels' own logs into ours, as far as they answer."""
        for node in self.nodes:
            with contextlib.suppress(Failed):
                node.run("dmesg | tail -n 40; tail -n 20 /run/*.log", seconds=20)

    def wait(self, condition: Callable[[], bool]) -> None:
        """Wait for an event in a kernel."""
        end = time.monotonic() + 300 * self._options.factor
        while not condition():
            if time.monotonic() > end:
                raise Failed("no progress in time")
            time.sleep(0.5)


def mount(node: Kernel) -> None:
    """Mount the file system of both sides."""
    node.run(f"mount -t ocfs2 {node.disk} /mnt/shared")


def background(node: Kernel, arguments: str) -> None:
    """Start a command of ``csd`` in a kernel, with a log in its memory."""
    log = f"/run/{arguments.split(maxsplit=1)[0]}.log"
    node.run(f"(setsid /run/csd/csd {arguments} >{log} 2>&1 &)")


def written(node: Kernel) -> int:
    """Return the number of lines that a kernel's writer knows to be durable."""
    return int(node.run("cat /tmp/written 2>/dev/null || echo 0") or "0")


def require(holds: bool, why: str) -> None:
    """Fail the check unless something holds."""
    if not holds:
        raise Failed(why)


def missing(options: argparse.Namespace) -> str | None:
    """Make the image; return the reason why the lane cannot run."""
    if os.geteuid():
        return "it takes root"
    for device in ("/dev/fuse", "/dev/net/tun"):
        if not Path(device).exists():
            return f"no {device}"
    for tool in ("ip", "nsenter", "mmdebstrap"):
        if shutil.which(tool) is None:
            return f"no {tool}"
    make = [str(ROOT / "packaging/os/make.sh"), str(options.image), "shared"]
    if subprocess.run(make, check=False).returncode:
        return "the image cannot be made"
    shutil.copy(Path(__file__).parent / "node.sh", options.image / "csd-node")
    folder = options.image / "csd-mpi"
    folder.mkdir(exist_ok=True)
    for name in ("dft.c", "objects.py"):
        shutil.copy(RECIPE / name, folder)
    build = ["chroot", str(options.image), "mpicc", "-O2", "-Wall", "-o", "/csd-mpi/dft"]
    subprocess.run([*build, "/csd-mpi/dft.c", "-lfftw3", "-lm"], check=True)
    return None


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--csd", type=Path, default=ROOT / "target/release/csd")
    parser.add_argument("--image", type=Path, default=ROOT / "build/os/shared")
    parser.add_argument("--dir", type=Path, default=ROOT / "build/shared", help="logs")
    parser.add_argument("--host", choices=("process", "machine"), default="process")
    parser.add_argument("--build", type=Path, default=ROOT / "build/vm", help="of the machine")
    parser.add_argument("--factor", type=float, default=1.0, help="stretches every time limit")
    options = parser.parse_args()
    if options.csd.name != "csd":
        parser.error("--csd: kernels know the program by the name `csd`")
    return options


def main() -> int:
    """Run the lane."""
    options = arguments()
    reason = missing(options)
    if reason:
        print(f"SKIPPED shared: {reason}\n0 passed, 0 failed, 1 skipped")
        return 0
    made = None
    if options.host == "machine":
        try:
            made = prepare(options.build, options.image)
        except Unavailable as error:
            print(f"SKIPPED shared: {error}\n0 passed, 0 failed, 1 skipped")
            return 0
    options.dir.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="csd-shared-"))
    options.csd = options.csd.resolve()
    doors = Doors(options.csd, folder, options.factor, machine=made is not None)
    lane = Lane(options, folder, doors, made)
    passed = failed = 0
    try:
        doors.open()
        checks = [lane.mounts, lane.files, lane.locks, lane.transforms, lane.recovery, lane.back]
        checks += [lane.clean, lane.programs, lane.array]
        for check in checks:
            began = time.monotonic()
            try:
                check()
            except Failed as error:
                failed += 1
                print(f"FAILED {check.__name__}: {error}", flush=True)
                lane.tell()
                break
            passed += 1
            print(f"ok {check.__name__}  {time.monotonic() - began:.1f} s", flush=True)
    finally:
        for node in lane.nodes:
            node.close()
        doors.close()
        for log in folder.glob("*.log"):
            shutil.copy(log, options.dir)
        shutil.rmtree(folder, ignore_errors=True)
    print(f"{passed} passed, {failed} failed, 0 skipped; logs in {options.dir}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
