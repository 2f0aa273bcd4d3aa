#!/usr/bin/env python3
"""CPU time that the host takes to route packets from drive to drive, with and without offload.

Two drives; in each round iperf3 sends one stream from one to the other, and TeraSort runs, both
with segmentation offload of all ends of tunnels on and off, in turns. Figures are CPU time of the
host's ends of tunnels by GB that passed from drive to drive, and during TeraSort's shuffle as a
share of all CPU time of the machine. Each round is recorded at once.
"""

import argparse
import json
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from clusters import Drives, add_options, is_done, keep, missing, value, work
from compared import cpu_s, run
from jobs import Hadoop, explained_bytes, shuffle

CPUS = 0.9
SIDES = ("on", "off")


def main() -> int:
    """Measure, and append each round to the record."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    add_options(parser)
    parser.add_argument("--seconds", type=int, default=5, help="of one run of iperf3")
    parser.add_argument("--input", type=int, default=200_000_000, help="of TeraSort; 0: without it")
    parser.add_argument("--block", type=int, default=32 << 20, help="of HDFS, bytes")
    options = parser.parse_args()
    if lacking := missing():
        print(f"SKIPPED: {lacking}")
        return 0
    with work(options) as (folder, stack):
        drives = Drives(options.csd, folder, "drives")
        drives.up(stack, options, 2, CPUS)
        hadoop = started(options, drives, stack)
        for number in range(options.rounds):
            if is_done(options, "routing", round=number + 1):
                continue
            found: dict[str, Any] = {"round": number + 1}
            for side in SIDES if number % 2 == 0 else SIDES[::-1]:
                set_offload(drives, side)
                found[side] = {"stream": stream(drives, options.seconds)}
                if hadoop is not None:
                    done = hadoop.run("terasort", options.input)
                    explained = explained_bytes(done, hadoop.moved(done), 2)
                    more = {"explained_bytes": explained, "shuffle": shuffle(done)}
                    found[side] |= done.figures() | more
            keep(options, "routing", ("seconds", "input", "block"), found)
    return 0


def started(options: argparse.Namespace, drives: Drives, stack: ExitStack) -> Hadoop | None:
    """Start Hadoop with its input, if there is one."""
    if not options.input:
        return None
    hadoop = Hadoop(drives, options.block)
    hadoop.up(stack)
    hadoop.make_inputs(["terasort"], options.input)
    return hadoop


def set_offload(drives: Drives, wanted: str) -> None:
    """Turn offload of all ends of tunnels on or off."""
    pids = [value(group, "cgroup.procs").split()[0] for group in drives.os_groups()]
    spaces = [f"/run/netns/{drives.space}", *(f"/proc/{pid}/ns/net" for pid in pids)]
    for space in spaces:
        inside = ("nsenter", f"--net={space}")
        for device in json.loads(run(None, *inside, "ip", "-json", "link")):
            if device["ifname"] != "lo":
                script = Path(__file__).with_name("offload.py")
                run(None, *inside, sys.executable, script, device["ifname"], wanted)


def stream(drives: Drives, seconds: int) -> dict[str, float]:
    """Send from drive to drive; return the rate and what the host's ends of tunnels took."""
    first, second = drives.names
    drives.in_drive(second, "iperf3 -s -1 -D")
    # The server says nothing when it listens.
    while "LISTEN" not in drives.in_drive(second, "ss -ltnH 'sport = 5201'"):
        time.sleep(0.05)
    before = sum(map(cpu_s, drives.routers()))
    said = json.loads(drives.in_drive(first, f"iperf3 -c {second} -t {seconds} -J"))
    routing_s = sum(map(cpu_s, drives.routers())) - before
    received = said["end"]["sum_received"]
    return {
        "Gbit_s": received["bits_per_second"] / 1e9, "bytes": received["bytes"],
        "routing_s": routing_s, "s_a_GB": routing_s / (received["bytes"] / 1e9),
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
