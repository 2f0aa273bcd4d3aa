#!/usr/bin/env python3
"""Tables of what clusters were measured to do: ``table.py RECORD``, such as records/cluster.jsonl.

Of each part the rounds of its last run count. A ratio whose quartiles are more than 15 % apart is
inconclusive.
"""

import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from compared import spread

Round = dict[str, Any]
Rounds = list[Round]
GIB = 1 << 30
#: What a drive does of the host's pace: with transforms, and with Hadoop.
SHARE = {"dft": 0.275, "hadoop": 0.5}
#: Part of a quota that a bare loop must get, so that a run counts.
VALID = 0.95
STEADY = 0.15
#: Least throughput over the sum of paces.
PACED = 0.9
#: Sizes of messages that the table shows, bytes.
MESSAGES = (1, 1024, 65536, 1 << 20, 4 << 20)
#: Containers of Hadoop for which the aim of a drive's memory holds.
CONTAINERS = 2
COMPARED = "| measurement | floor | drives | ratio | quartiles | aim |\n|---|---|---|---|---|---|"
PLAIN = "| measurement | median | quartiles | aim |\n|---|---|---|---|"


def last_runs(text: str) -> dict[str, tuple[Round, Rounds]]:
    """Return of each part what its last run had in common, and its rounds."""
    runs: dict[str, dict[str, Rounds]] = defaultdict(lambda: defaultdict(list))
    about: dict[tuple[str, str], Round] = {}
    for line in text.splitlines():
        one = json.loads(line)
        if one["bench"] == "cluster":
            runs[one["part"]][one["run"]].append(one["results"])
            about.setdefault((one["part"], one["run"]), one)
    return {
        part: (about[part, list(of_part)[-1]], list(of_part.values())[-1])
        for part, of_part in runs.items()
    }


def quartiles(values: Sequence[float], digits: int = 3) -> tuple[float, str]:
    """Return the median, and the quartiles as text."""
    found: dict[str, Any] = spread(values, digits)
    low, high = found["quartiles"]
    return found["ratio"], f"{low:g}-{high:g}"


def verdict(values: Sequence[float], aim: float | None) -> str:
    """Return a ratio with its quartiles and its aim, as cells; the aim is a maximum."""
    found: dict[str, Any] = spread(values)
    ratio, (low, high) = found["ratio"], found["quartiles"]
    mark = " (inconclusive)" if high - low > STEADY * ratio else ""
    missed = ": missed" if aim is not None and ratio > aim else ""
    return f"{ratio:g}{mark}{missed} | {low:g}-{high:g} | {'' if aim is None else f'{aim:g}'}"


def compared(name: str, rounds: Rounds, of: Callable[[Round], float], aim: float | None) -> str:
    """Return a row of both sides of pairs."""
    sides = {side: [of(one[side]) for one in rounds] for side in ("floor", "drives")}
    medians = (f"{statistics.median(values):.4g}" for values in sides.values())
    ratios = [ours / floor for floor, ours in zip(*sides.values(), strict=True)]
    return f"| {name} | {' | '.join(medians)} | {verdict(ratios, aim)} |"


def plain(name: str, values: Sequence[float], aim: str, digits: int = 3) -> str:
    """Return a row of one figure."""
    median, around = quartiles(values, digits)
    return f"| {name} | {median:g} | {around} | {aim} |"


def all_cpu_s(side: Round) -> float:
    """Return CPU time of all classes."""
    return float(sum(side["cpu_s"].values()))


def dft(rounds: Rounds) -> list[str]:
    """Return rows of the transforms."""
    return [
        COMPARED,
        compared("transforms, wall of the whole job, s", rounds, lambda one: one["wall_s"], 1.1),
        compared("transforms alone, s", rounds, lambda one: one["transforms_s"], None),
        compared("transforms, CPU-s", rounds, all_cpu_s, None),
    ]


def allreduce(rounds: Rounds) -> list[str]:
    """Return the row of sums over all ranks."""
    milliseconds = compared(
        "all-reduce of 4 MiB, ms", rounds, lambda one: 1e3 * float(one["all_reduce_s"]), 2
    )
    return [COMPARED, milliseconds]


def netpipe(rounds: Rounds) -> list[str]:
    """Return rows of some sizes of messages."""
    rows = [COMPARED]
    for between in dict.fromkeys(one["between"] for one in rounds):
        chosen = [one for one in rounds if one["between"] == between]
        for size in MESSAGES:
            if any(size not in dict(one["floor"]["curve"]) for one in chosen):
                continue

            def one_way_us(side: Round, size: int = size) -> float:
                return 1e6 * float(dict(side["curve"])[size])

            rows.append(compared(f"{between}, {size:,} B, us", chosen, one_way_us, None))
    return rows


def hadoop(rounds: Rounds) -> list[str]:
    """Return rows of the jobs of Hadoop."""
    jobs = dict.fromkeys(one["job"] for one in rounds)
    rows, more = [COMPARED], ["", PLAIN]
    for job in jobs:
        chosen = [one for one in rounds if one["job"] == job]
        rows.append(compared(f"{job}, CPU-s", chosen, all_cpu_s, 1.25))
        rows.append(compared(f"{job}, wall, s", chosen, lambda one: one["wall_s"], 1.3))
        more += of_drives(job, chosen)
    return rows + more


def of_drives(job: str, rounds: Rounds) -> list[str]:
    """Return rows of a job that only drives have."""
    sides = [one["drives"] for one in rounds]
    counted = [side["counters"] for side in sides]
    local = [100 * one["local_maps"] / one["maps"] for one in counted]
    ends = [tunnel_bytes(side) for side in sides]
    over = [moved / one["explained_bytes"] for moved, one in zip(ends, rounds, strict=True)]
    rows = [
        plain(f"{job}, local maps, %", local, "95"),
        plain(f"{job}, bytes of tunnels over those of counters", over, "1.15"),
    ]
    held = [most_held(side) for side in sides]
    known = [value for value in held if value is not None]
    if known:
        name = f"{job}, most memory of a drive with {CONTAINERS} containers, GiB"
        rows.append(plain(name, known, "1.2"))
    routing = [
        side["cpu_s"]["tunnels_outside"] / (moved / 2e9)
        for side, moved in zip(sides, ends, strict=True)
    ]
    rows.append(plain(f"{job}, host's routing, CPU-s a GB from drive to drive", routing, ""))
    shares = [100 * routed(one) for one in rounds if one["shuffle"]]
    if shares:
        rows.append(plain(f"{job}, routing, % of CPU time during the shuffle", shares, ""))
    served = [100 * serving(side["cpu_s"]) for side in sides]
    rows.append(plain(f"{job}, what serves a drive's programs, % of its CPU time", served, ""))
    system = [100 * side["os_system_s"] / side["cpu_s"]["os"] for side in sides]
    rows.append(plain(f"{job}, kernel's time, % of that of a drive's programs", system, ""))
    return rows


def tunnel_bytes(side: Round) -> float:
    """Return bytes at ends of tunnels: from drive to drive they count at both."""
    drives = side["meter"]["result"]["drives"]
    return float(sum(one["tunnel_sent_bytes"] + one["tunnel_received_bytes"] for one in drives))


def most_held(side: Round) -> float | None:
    """Return the most memory with as many containers as the aim is for, GiB."""
    found = side["held_bytes"].get(str(CONTAINERS))
    return None if found is None else found / GIB


def routed(one: Round) -> float:
    """Return the host's routing as a share of all CPU time during a shuffle."""
    return float(one["shuffle"]["routing_s"] / one["shuffle"]["machine_s"])


def serving(cpu_s: dict[str, float]) -> float:
    """Return the share of a drive's CPU time that doors, drives and ends of tunnels take."""
    served = cpu_s["drives"] + cpu_s["tunnels_inside"]
    return served / (served + cpu_s["os"])


def routing(rounds: Rounds) -> list[str]:
    """Return rows with and without offload."""
    rows = ["| measurement | with offload | without | ratio | quartiles |\n|---|---|---|---|---|"]
    measures: list[tuple[str, Callable[[Round], float]]] = [
        ("drive to drive, Gbit/s", lambda one: one["stream"]["Gbit_s"]),
        ("host's routing of a stream, CPU-s a GB", lambda one: one["stream"]["s_a_GB"]),
    ]
    if "cpu_s" in rounds[0]["on"]:
        measures.append(
            (
                "host's routing of TeraSort, CPU-s a GB",
                lambda one: one["cpu_s"]["tunnels_outside"] / (tunnel_bytes(one) / 2e9),
            )
        )
    if all(one[side].get("shuffle") for one in rounds for side in ("on", "off")):
        name = "routing, % of CPU time during TeraSort's shuffle"
        measures.append((name, lambda one: 100 * routed(one)))
    for name, of in measures:
        on, off = ([of(one[side]) for one in rounds] for side in ("on", "off"))
        ratio, around = quartiles([b / a for a, b in zip(on, off, strict=True)])
        medians = f"{statistics.median(on):.3g} | {statistics.median(off):.3g}"
        rows.append(f"| {name} | {medians} | {ratio:g} | {around} |")
    return rows


def paced(rounds: Rounds) -> list[str]:
    """Return rows of drives under quotas."""
    rows = [
        "| drives | objects a second | over the host alone | over 1 + 0.275 N | quartiles | aim "
        "| least part of its quota that a loop got |\n|---|---|---|---|---|---|---|"
    ]
    alone = {one["round"]: one["per_s"] for one in rounds if one["drives"] == 0}
    for count in sorted({one["drives"] for one in rounds}):
        # Only rounds whose host alone was measured as well, before an interruption.
        chosen = [one for one in rounds if one["drives"] == count and one["round"] in alone]
        if not chosen:
            continue
        rate = statistics.median(one["per_s"] for one in chosen)
        gains = [one["per_s"] / alone[one["round"]] for one in chosen]
        ratios = [gain / (1 + SHARE["dft"] * count) for gain in gains]
        ratio, around = quartiles(ratios)
        least = min(min(one["loops"].values()) for one in chosen)
        valid = "" if least >= VALID else ": not valid"
        missed = ": missed" if ratio < PACED else ""
        aim = f"{PACED:g}" if count else ""
        rows.append(
            f"| {count} | {rate:.4g} | {statistics.median(gains):.3g} | {ratio:g}{missed} "
            f"| {around} | {aim} | {least:.3f}{valid} |"
        )
    return rows


def paced_hadoop(rounds: Rounds) -> list[str]:
    """Return rows of jobs of Hadoop under quotas."""
    rows = [
        "| job | drives | wall, s | quartiles | throughput over the host alone, over 1 + N / 2 |\n"
        "|---|---|---|---|---|"
    ]
    for job in dict.fromkeys(one["job"] for one in rounds):
        walls: dict[int, list[float]] = defaultdict(list)
        for one in rounds:
            if one["job"] == job:
                walls[one["drives"]].append(one["wall_s"])
        alone = statistics.median(walls[0])
        for count, values in sorted(walls.items()):
            median, around = quartiles(values, 1)
            ratio = alone / median / (1 + SHARE["hadoop"] * count)
            rows.append(f"| {job} | {count} | {median:g} | {around} | {ratio:.3f} |")
    return rows


PARTS: dict[str, Callable[[Rounds], list[str]]] = {
    "floors: dft": dft, "floors: allreduce": allreduce, "floors: netpipe": netpipe,
    "floors: hadoop": hadoop, "routing": routing, "paced: dft": paced,
    "paced: hadoop": paced_hadoop,
}  # fmt: skip


def main() -> int:
    """Print the tables."""
    for part, (about, rounds) in last_runs(Path(sys.argv[1]).read_text()).items():
        if part not in PARTS:
            continue
        options = {
            name: value
            for name, value in about.items()
            if name not in ("bench", "part", "results", "load", "machine", "run")
        }
        print(f"\n{part}, {about['run']}, {about['machine']}, {json.dumps(options)}\n")
        print("\n".join(PARTS[part](rounds)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
