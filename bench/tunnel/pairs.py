#!/usr/bin/env python3
"""A drive's tunnel compared in pairs with a plain relay: TUN, TCP, process, TCP, TUN.

The relay (``relay.c``) has the tunnel's frames and nothing of NVMe. Each side joins two network
namespaces of its own. The sides take turns within a round, and every second round begins with the
other side. A figure is the median of the rounds' ratios, tunnel over relay, with quartiles. CPU
time is that of the three processes that carry the packets. Needs root, iperf3, gcc and iproute2.

``--only reads`` measures what a full tunnel costs the host's reads: 4 KiB at depth 1, host and
drive on one CPU, ends of the tunnel and iperf3 on the other, in alternating windows.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from compared import ROOT, cpu_s, record, say, show, summary

NQN = "nqn.2026-11.io.csdstore:drive"
HOST = "10.77.0.1"
DRIVES = ("10.77.0.2", "10.77.0.3")
NAMES = ("floor", "tunnel")
IPERF_PORT, ECHO_PORT, RELAY_PORT = 5201, 5202, 5203
# Aims: ratios of the tunnel to the relay; of drive to drive to host to drive; of p99 with a full
# tunnel to p99 without.
AIMS = {
    "host to drive": 0.6,
    "drive to host": 0.6,
    "CPU a GB, host to drive": 1.6,
    "CPU a GB, drive to host": 1.6,
    "round trip p50": 1.5,
    "drive to drive": 0.5,
    "read p99 with a full tunnel": 2.0,
}


def main() -> int:
    """Measure, print a table, and append the record."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--csd", type=Path, default=ROOT / "target/release/csd")
    parser.add_argument("--reads", type=Path, default=ROOT / "target/release/bench-reads")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=3, help="of one run of iperf3")
    parser.add_argument("--trips", type=int, default=20_000, help="round trips of one run")
    parser.add_argument("--mtu", type=int, default=9000)
    parser.add_argument("--spin", type=int, default=50, help="of the drive, microseconds")
    parser.add_argument("--only", choices=("packets", "reads"))
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    missing = [tool for tool in ("iperf3", "gcc", "ip", "taskset") if not shutil.which(tool)]
    if missing or os.geteuid() != 0:
        print(f"SKIPPED: {', '.join(missing) or 'this takes root'}")
        return 0
    results: dict[str, dict[str, object]] = {}
    with tempfile.TemporaryDirectory(prefix="csd-tunnel-") as folder:
        relay = Path(folder) / "relay"
        source = Path(__file__).with_name("relay.c")
        compiled = ["gcc", "-O2", "-Wall", "-pthread", "-o", str(relay), str(source)]
        subprocess.run(compiled, check=True)
        if options.only != "reads":
            results |= packets(options, Path(folder), relay)
        if options.only != "packets":
            results |= reads(options, Path(folder))
    show(results, AIMS)
    record("tunnel", options, ("rounds", "mtu", "spin"), results)
    return 0


class Side:
    """One way to join namespaces: its processes, and the namespaces of the host and the drives."""

    def __init__(self, name: str, stack: ExitStack, ends: int) -> None:
        self.stack = stack
        self.pids: list[int] = []
        self.namespaces = [f"csd-{name}-{end}" for end in range(ends)]
        for namespace in self.namespaces:
            ip("netns", "add", namespace)
            stack.callback(ip, "netns", "delete", namespace)
            ip("-n", namespace, "link", "set", "lo", "up")

    def start(self, *words: object, counted: bool = False) -> subprocess.Popen[bytes]:
        """Start a process that ends with this side."""
        command = [str(word) for word in words]
        # A program that prints on and on must not fill a pipe.
        stdout = subprocess.DEVNULL if "iperf3" in command else subprocess.PIPE
        process = subprocess.Popen(command, stdout=stdout, stderr=subprocess.DEVNULL)
        self.stack.callback(process.wait)
        self.stack.callback(process.kill)
        if counted:
            self.pids.append(process.pid)
        return process

    def within(self, end: int, *words: object) -> list[object]:
        """Return the command in the namespace of an end: 0 is the host's."""
        return ["ip", "netns", "exec", self.namespaces[end], *words]

    def serve(self, relay: Path, pinned: tuple[str, ...] = ()) -> None:
        """Start the servers of the measurements in the drives' namespaces."""
        for end, address in zip(range(1, len(self.namespaces)), DRIVES, strict=False):
            self.start(*pinned, *self.within(end, "iperf3", "-s", "-p", IPERF_PORT))
            self.start(*self.within(end, relay, "echo", address, ECHO_PORT))

    def cpu_s(self) -> float:
        """Return the CPU time of the processes that carry packets."""
        return sum(cpu_s(pid) for pid in self.pids)

    def rate(
        self, end: int, address: str, options: argparse.Namespace, *more: str
    ) -> tuple[float, float]:
        """Send by iperf3 from an end; return Gbit/s, and CPU seconds a GB."""
        client = ["iperf3", "-c", address, "-p", IPERF_PORT, "-t", options.seconds, "-J", *more]
        for _ in range(50):
            before = self.cpu_s()
            command = [str(word) for word in self.within(end, *client)]
            done = subprocess.run(command, capture_output=True, check=False)
            if done.returncode == 0:
                received = json.loads(done.stdout)["end"]["sum_received"]
                spent = self.cpu_s() - before
                return received["bits_per_second"] / 1e9, spent / (received["bytes"] / 1e9)
            time.sleep(0.1)
        raise RuntimeError(done.stdout.decode())

    def trip_us(self, relay: Path, trips: int) -> float:
        """Return the median round trip of one byte between host and drive."""
        command = self.within(0, relay, "ping", DRIVES[0], ECHO_PORT, trips)
        done = subprocess.run([str(word) for word in command], capture_output=True, check=True)
        return float(json.loads(done.stdout)["p50_us"])


def ip(*words: str) -> None:
    """Run ip."""
    subprocess.run(["ip", *words], check=True)


def line(stream: IO[bytes] | None) -> str:
    """Read a line of a process that has started."""
    assert stream is not None
    said = stream.readline().decode()
    if not said:
        raise RuntimeError("a process ended early")
    return said


@contextmanager
def relayed(relay: Path, mtu: int) -> Iterator[Side]:
    """Join two namespaces by the relay."""
    with ExitStack() as stack:
        side = Side("relay", stack, 2)
        line(side.start(relay, "middle", RELAY_PORT, counted=True).stdout)
        networks = ((HOST, DRIVES[0]), (DRIVES[0], HOST))
        for namespace, (own, far) in zip(side.namespaces, networks, strict=True):
            end = side.start(relay, "end", namespace, "tun0", RELAY_PORT, counted=True)
            line(end.stdout)
            inside = ("-n", namespace)
            ip(*inside, "addr", "add", own, "peer", far, "dev", "tun0")
            ip(*inside, "link", "set", "tun0", "mtu", str(mtu), "txqueuelen", "1000", "up")
        side.serve(relay)
        yield side


@contextmanager
def tunnelled(
    options: argparse.Namespace, folder: Path, relay: Path, drives: int, pinned: tuple[str, str]
) -> Iterator[tuple[Side, str]]:
    """Join namespaces by drives and their tunnels; yields the first drive's address as well."""
    near, far = (("taskset", "-c", cpu) if cpu else () for cpu in pinned)
    csd, addresses = options.csd, []
    with ExitStack() as stack:
        side = Side("tunnel", stack, drives + 1)
        for number in range(drives):
            socket, ready = folder / f"d{number}.sock", folder / f"d{number}.ready"
            serve = [csd, "drive", "serve", "--media", "memory", "--size", "256M", "--cores", 1]
            serve += ["--listen", "127.0.0.1:0", "--allow-any-host", "--nqn", NQN]
            serve += ["--inside", socket, "--ready-file", ready, "--tunnel-host", NQN + "-host"]
            serve += ["--tunnel-mtu", options.mtu, "--spin", options.spin]
            serve += ["--tunnel-inside", f"{DRIVES[number]}/24", "--log-level", "error"]
            stack.callback(ready.unlink, missing_ok=True)
            # Only the first drive's processes carry what is compared with the relay.
            counted = number == 0
            side.start(*near, *serve, counted=counted)
            while not ready.exists():
                time.sleep(0.02)
            outside = ready.read_text().strip()
            addresses.append(outside.removeprefix("nvme+tcp://").split("/")[0])
            inside = f"nvme+unix://{socket}/{NQN}"
            for url, namespace in ((outside, 0), (inside, number + 1)):
                up = [csd, "tunnel", "up", "--drive", url, "--host-nqn", NQN + "-host", "--json"]
                up += ["--netns", side.namespaces[namespace]]
                line(side.start(*far, *up, counted=counted).stdout)
        side.serve(relay, far)
        yield side, addresses[0]


def packets(options: argparse.Namespace, folder: Path, relay: Path) -> dict[str, dict[str, object]]:
    """Compare rates, CPU time and round trips."""
    pairs: dict[str, list[tuple[float, float]]] = {name: [] for name in [*AIMS][:-1]}
    joined = tunnelled(options, folder, relay, 2, ("", ""))
    with relayed(relay, options.mtu) as floor, joined as (tunnel, _):
        for number in range(options.rounds):
            sides = {"floor": floor, "tunnel": tunnel}
            order = list(sides) if number % 2 == 0 else list(sides)[::-1]
            found: dict[str, dict[str, float]] = {name: {} for name in pairs}
            for name in order:
                side = sides[name]
                for way, more in (("host to drive", ()), ("drive to host", ("-R",))):
                    rate, cost = side.rate(0, DRIVES[0], options, *more)
                    found[way][name], found[f"CPU a GB, {way}"][name] = rate, cost
                found["round trip p50"][name] = side.trip_us(relay, options.trips)
            across = tunnel.rate(1, DRIVES[1], options)[0]
            found["drive to drive"] = {"floor": found["host to drive"]["tunnel"], "tunnel": across}
            for name, both in found.items():
                pairs[name].append((both["floor"], both["tunnel"]))
            say(f"round {number + 1}: {json.dumps(found)}")
    return {name: summary(found, NAMES, (2, 2)) for name, found in pairs.items()}


def reads(options: argparse.Namespace, folder: Path) -> dict[str, dict[str, object]]:
    """Compare the host's reads with a full tunnel and without, in alternating windows."""
    relay = folder / "relay"
    pairs = []
    with tunnelled(options, folder, relay, 1, ("0", "1")) as (side, address):
        milliseconds = options.seconds * 1000 // 2
        read = ["taskset", "-c", "0", str(options.reads), address, NQN, "4096", str(milliseconds)]

        def p99() -> float:
            done = subprocess.run(read, check=True, capture_output=True)
            return float(json.loads(done.stdout)["p99_us"])

        for number in range(options.rounds):
            alone = p99()
            client = ["iperf3", "-c", DRIVES[0], "-p", IPERF_PORT, "-t", options.seconds]
            more = ["-R"] if number % 2 else []
            full = side.start("taskset", "-c", "1", *side.within(0, *client, *more))
            time.sleep(options.seconds / 4)
            pairs.append((alone, p99()))
            full.wait()
            say(f"round {number + 1}: p99 {pairs[-1]} us")
    return {"read p99 with a full tunnel": summary(pairs, NAMES, (2, 2))}


if __name__ == "__main__":
    sys.exit(main())
