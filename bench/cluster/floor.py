#!/usr/bin/env python3
"""The floor of a cluster: the operating systems of an array's drives, without its drives.

Each runs by runc from the bundle of one of the drives, so with the same image, limits and rights.
Two things are others: a pair of virtual Ethernet devices and a bridge take the place of the tunnel,
and `/data` is ext4 over a loop device of a plain file. The array stays up as long as the floor is.

Called by recipes, this file stands for ``csd``: ``os status --json``, ``os service start`` and
``os service stop``, for the operating systems that `state.json` next to the array file names.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from compared import run

V1 = Path("/sys/fs/cgroup/pids")
# As `csd os` has them (crates/os): options of the file system, and what sessions leave to others.
FORMAT = ("-q", "-F", "-t", "ext4", "-b", 4096, "-m", 0)
SESSIONS_RESERVE = 16
TCP_SHARE = 8
SERVICE = 'mkdir -p /var/log/csd; exec </dev/null >>"/var/log/csd/$0.log" 2>&1; exec "$@"'


def groups(name: str) -> list[Path]:
    """Return the folders of a control group: one of each hierarchy of version 1, or one."""
    every = [*Path("/sys/fs/cgroup").glob("*/" + name), Path("/sys/fs/cgroup") / name]
    return [folder for folder in every if folder.is_dir()]


def unmount(folder: Path) -> None:
    """Unmount a folder: the last process that used it goes a moment after its end."""
    for _ in range(100):
        if not os.path.ismount(folder):
            return
        run(None, "umount", folder, codes=(0, 32))
        time.sleep(0.05)
    raise RuntimeError(f"{folder} is in use")


class Node:
    """One operating system of the floor."""

    def __init__(self, name: str, folder: Path, bundle: Path, address: str) -> None:
        self.name, self.folder, self.bundle, self.address = name, folder, bundle, address
        self.template: dict[str, Any] = json.loads((bundle / "config.json").read_text())
        self.drive = json.loads((bundle / "record.json").read_text())
        self.id = f"csd-floor-{os.getpid()}-{name}"

    def state(self) -> dict[str, object]:
        """Return what recipes ask of it."""
        limits = self.drive["limits"]
        return {
            "name": self.name, "state": "up", "cpus": limits["cpus"], "id": self.id,
            "processors": self.drive["processors"], "memory_limit_bytes": limits["memory_bytes"],
            "tunnel": {"address": self.address}, "runc": str(self.folder / "runc"),
        }  # fmt: skip

    def up(self, stack: ExitStack, space: str, size: str, mtu: int) -> None:
        """Make its file system, its network and its first process."""
        self._mount(stack, size)
        self._configure(stack)
        runc = ["runc", "--root", self.folder / "runc"]
        with (self.folder / "os.log").open("w") as log:
            command = [*runc, "create", "--bundle", self.folder, "--pid-file", self.folder / "pid"]
            words = [str(word) for word in [*command, self.id]]
            subprocess.run(words, check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        stack.callback(run, None, *runc, "delete", "--force", self.id)
        pid = (self.folder / "pid").read_text()
        for path in (group / "sessions/pids.max" for group in groups(self.id)):
            if path.exists():
                path.write_text(str(self.drive["limits"]["pids"] - SESSIONS_RESERVE))
        for path in (group / "memory.kmem.tcp.limit_in_bytes" for group in groups(self.id)):
            if path.exists():
                path.write_text(str(self.drive["limits"]["memory_bytes"] // TCP_SHARE))
        inside = ["nsenter", f"--net=/proc/{pid}/ns/net", "ip"]
        device = f"to-{self.name}"
        pair = ["link", "add", device, "type", "veth", "peer", "name", "eth0", "netns", pid]
        run(None, "ip", "-n", space, *pair)
        run(None, "ip", "-n", space, "link", "set", device, "master", "floor", "mtu", mtu, "up")
        run(None, *inside, "addr", "add", f"{self.address}/24", "dev", "eth0")
        run(None, *inside, "link", "set", "eth0", "mtu", mtu, "up")
        run(None, *inside, "link", "set", "lo", "up")
        run(None, *runc, "start", self.id)

    def _mount(self, stack: ExitStack, size: str) -> None:
        volume, root = self.folder / "volume", self.folder / "root"
        for folder in (volume, root):
            folder.mkdir(parents=True)
        image = self.folder / "image"
        run(None, "truncate", "-s", size, image)
        options = "lazy_itable_init=1,lazy_journal_init=1,nodiscard"
        run(None, "mke2fs", *FORMAT, "-E", options, image)
        loop = ("losetup", "--find", "--show", "--direct-io=on", "--sector-size", 4096)
        device = run(None, *loop, image).strip()
        stack.callback(run, None, "losetup", "--detach", device, codes=(0, 1))
        options = "nodev,nosuid,noatime,noinit_itable,errors=remount-ro"
        run(None, "mount", "-t", "ext4", "-o", options, device, volume)
        stack.callback(unmount, volume)
        for folder in ("data", "root/upper", "root/work"):
            (volume / folder).mkdir(parents=True)
        upper, work = volume / "root/upper", volume / "root/work"
        options = f"nodev,noatime,lowerdir={self.drive['image']},upperdir={upper},workdir={work}"
        run(None, "mount", "-t", "overlay", "-o", options, "overlay", root)
        stack.callback(unmount, root)

    def _configure(self, stack: ExitStack) -> None:
        """Write the bundle: the drive's, with this root, data and group."""
        config = self.template
        config["root"]["path"] = str(self.folder / "root")
        config["linux"]["cgroupsPath"] = f"/{self.id}"
        sessions = V1 / self.id / "sessions"
        sessions = sessions if V1.is_dir() else Path("/sys/fs/cgroup") / self.id / "sessions"
        sessions.mkdir(parents=True)
        stack.callback(self._remove_groups)
        for mount in config["mounts"]:
            if mount["destination"] == "/data":
                mount["source"] = str(self.folder / "volume/data")
            if mount["source"].endswith("/sessions/cgroup.procs"):
                mount["source"] = str(sessions / "cgroup.procs")
        for namespace in config["linux"]["namespaces"]:
            if namespace["type"] == "user":
                namespace["path"] = f"/proc/{self.pid_of_drive()}/ns/user"
        (self.folder / "config.json").write_text(json.dumps(config))

    def pid_of_drive(self) -> int:
        """Return the first process of the drive's operating system."""
        command = ("runc", "--root", self.bundle / "runc", "state", self.drive["id"])
        return int(json.loads(run(None, *command))["pid"])

    def mtu(self) -> int:
        """Return the longest packet of the drive's tunnel."""
        inside = ("nsenter", f"--net=/proc/{self.pid_of_drive()}/ns/net")
        devices = json.loads(run(None, *inside, "ip", "-json", "link"))
        return min(int(one["mtu"]) for one in devices if one["ifname"] != "lo")

    def _remove_groups(self) -> None:
        for group in groups(self.id):
            for folder in (group / "sessions", group):
                for _ in range(100):
                    if not folder.is_dir():
                        break
                    try:
                        folder.rmdir()
                    except OSError:
                        time.sleep(0.05)

    def host_key(self) -> str:
        """Return its line of known hosts, once its OpenSSH has made its key."""
        path = self.folder / "root/etc/ssh/csd_host_key.pub"
        while not path.exists():
            pid = int((self.folder / "pid").read_text())
            if not Path(f"/proc/{pid}").exists():
                raise RuntimeError(f"{self.name}: {(self.folder / 'os.log').read_text()}")
            time.sleep(0.05)
        return f"{self.name} {' '.join(path.read_text().split()[:2])}\n"


def floor_up(stack: ExitStack, folder: Path, array: Path, space: str, size: str) -> list[Node]:
    """Start the floor of an array, with files for recipes next to `folder`; it ends with the stack.

    `folder` takes the place of the array's folder, and FOLDER.toml that of its file.
    """
    of_array = array.with_suffix("")
    folder.mkdir(parents=True)
    folder.with_suffix(".toml").write_text("# The floor of an array, for recipes alone.\n")
    shutil.copy(of_array / "hosts", folder / "hosts")
    lines = [line.split() for line in (of_array / "hosts").read_text().splitlines() if line]
    addresses = {name: address for address, name, *_ in lines}
    bundles = sorted((of_array / "os").iterdir(), key=lambda path: int(path.name[1:]))
    nodes = [
        Node(bundle.name, folder / "os" / bundle.name, bundle, addresses[bundle.name])
        for bundle in bundles
    ]
    mtu = nodes[0].mtu()
    run(None, "ip", "-n", space, "link", "add", "floor", "type", "bridge")
    run(None, "ip", "-n", space, "addr", "add", f"{addresses['host']}/24", "dev", "floor")
    run(None, "ip", "-n", space, "link", "set", "floor", "mtu", mtu, "up")
    for node in nodes:
        node.up(stack, space, size, mtu)
    known = folder / "known_hosts"
    text = (of_array / "ssh_config").read_text()
    (folder / "ssh_config").write_text(text.replace(str(of_array / "known_hosts"), str(known)))
    known.write_text("".join(node.host_key() for node in nodes))
    state = {"drives": [node.state() for node in nodes], "services": {}}
    (folder / "state.json").write_text(json.dumps(state))
    return nodes


def service(folder: Path, act: str, name: str, program: str, words: list[str]) -> int:
    """Start or stop a service in an operating system."""
    path = folder / "state.json"
    state = json.loads(path.read_text())
    (node,) = (one for one in state["drives"] if one["name"] == name)
    key = f"{name}/{program}"
    pid = state["services"].get(key)
    runs = pid is not None and Path(f"/proc/{pid}").exists()
    if act == "start":
        if runs:
            print(f"error: service {program} runs already", file=sys.stderr)
            return 2
        file = folder / "service.pid"
        command = ["runc", "--root", node["runc"], "exec", "--detach", "--pid-file", str(file)]
        command += ["--cwd", "/data", "--cgroup", "pids:sessions" if V1.is_dir() else "sessions"]
        command += [node["id"], "/bin/sh", "-c", SERVICE, program, *words]
        quiet = subprocess.DEVNULL
        subprocess.run(command, check=True, stdin=quiet, stdout=quiet, stderr=quiet)
        state["services"][key] = int(file.read_text())
    else:
        state["services"].pop(key, None)
        if runs:
            os.kill(pid, signal.SIGTERM)
            for _ in range(100):
                if not Path(f"/proc/{pid}").exists():
                    break
                time.sleep(0.1)
            else:
                os.kill(pid, signal.SIGKILL)
    path.write_text(json.dumps(state))
    return 0


def main() -> int:
    """Answer a recipe in the place of ``csd``."""
    words = [word for word in sys.argv[1:] if word != "--quiet"]
    match words:
        case ["--array", array, "os", "status", "--json"]:
            state = json.loads((Path(array).with_suffix("") / "state.json").read_text())
            print(json.dumps({"result": {"drives": state["drives"]}}))
            return 0
        case ["--array", array, "os", "service", "start", name, program, "--", *rest]:
            return service(Path(array).with_suffix(""), "start", name, program, rest)
        case ["--array", array, "os", "service", "stop", name, program]:
            return service(Path(array).with_suffix(""), "stop", name, program, [])
    print(f"error: the floor knows no {words}", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
