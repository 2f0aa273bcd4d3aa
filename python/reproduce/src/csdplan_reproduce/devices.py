"""Checks of the papers on checksums in SmartSSD, on background tasks, and on Catalina.

These papers hold few numbers that a model takes; most checks are arithmetic on what they print,
or ask whether any value of what they leave out makes their statements true together.
"""

from __future__ import annotations

import re
from itertools import combinations_with_replacement, product
from math import prod

import numpy as np

from csdplan.model.scaling import augmented_energy_ratio, augmented_speed_up
from csdplan.profile import load, workload_of
from csdplan_reproduce.check import Claim, Finding, Verdict, by_ratio, check, if_holds
from csdplan_reproduce.printed import read

_CONSISTENT = Verdict.CONSISTENT


@check("CR-02", "CR-04", "CR-06", "CR-07")
def parallel_pages(claim: Claim) -> Finding:
    """Section 4.4: pages checked at once."""
    found = re.search(r"(\d+)x(\d+)", claim.statement)
    assert found, "the statement names a product"
    ours = prod(int(text) for text in found.groups())
    return if_holds(ours == claim.number(), ours, "product of the two degrees of parallelism")


@check("CR-08")
def seven_combinations(claim: Claim) -> Finding:
    """Sections 4.4 and 5.2: which products are possible."""
    crc = read("numbers.toml")["crc"]
    most = crc["parallel_max"]
    possible = [n for n in range(1, crc["units_max"] + 1) if most % n == 0]
    tried = sorted(crc["units"])
    whole = all(a * n == most for a, n in zip(crc["array"], crc["units"], strict=True))
    unused = sorted(set(possible) - set(tried))
    why = f"units that divide {most}, at most {crc['units_max']}; {unused} were not tried"
    holds = whole and set(tried) <= set(possible) and len(tried) == claim.number()
    return if_holds(holds, f"{len(tried)} of {len(possible)}", why, then=_CONSISTENT)


@check("CR-09")
def bram_is_linear(claim: Claim) -> Finding:
    """Table 1: block memory against units."""
    crc = read("numbers.toml")["crc"]
    units, bram = np.array(crc["units"], float), np.array(crc["bram"], float)
    slope, base = np.polyfit(units, bram, 1)
    residual = float(np.abs(base + slope * units - bram).max())
    return if_holds(residual < 1e-9, f"{base:.0f} + {slope:.0f} units, residual 0", "least squares")


@check("CR-10")
def every_resource_grows(claim: Claim) -> Finding:
    """Table 1 and section 5.4: monotone in the number of units."""
    crc = read("numbers.toml")["crc"]
    order = np.argsort(crc["units"])
    falls = [
        name
        for name in ("lut", "lutram", "ff", "bram")
        if (np.diff(np.array(crc[name])[order]) < 0).any()
    ]
    ours = f"falls somewhere: {', '.join(falls)}" if falls else "monotone"
    return if_holds(not falls, ours, "each column of the table, by units ascending")


@check("CR-12")
def twenty_percent(claim: Claim) -> Finding:
    """Section 1: how far utilization differs."""
    bram = read("numbers.toml")["crc"]["bram"]
    ours = max(bram) - min(bram)
    ratio = max(bram) / min(bram)
    why = f"percentage points of block memory; the 30 % elsewhere is the ratio, {ratio:.2f}"
    return if_holds(ours == claim.number(), ours, why)


@check("CR-14")
def more_units_are_faster(claim: Claim) -> Finding:
    """Section 5.3: time over combinations of equal parallelism."""
    crc = read("numbers.toml")["crc"]
    # time = pages / 300 (array copy + check): the copy of one unit's array grows with its width.
    shares = (0.001, 0.01, 0.1)
    rising = all(
        (np.diff([array * copy + 1.0 for array in crc["array"]]) > 0).all() for copy in shares
    )
    why = "time per round = array width x copy + check: rises with the width for every copy cost"
    return if_holds(rising, "rises with AP", why + "; Figure 8 prints no seconds", then=_CONSISTENT)


@check("CR-17")
def five_percent(claim: Claim) -> Finding:
    """Section 1: what misuse leaves."""
    return by_ratio(
        Claim(**{**claim.__dict__, "value": "5"}),
        [100 / read("numbers.toml")["crc"]["best_over_sequential"]],
        "one over the 20 times of Figure 10, in percent",
    )


@check("CR-18")
def overhead_order(claim: Claim) -> Finding:
    """Section 5.2: without parallelism only start-up is added."""
    # At a degree of parallelism of one no variant computes faster, so time is check + start-up.
    start_ups = [(0.0, copy, copy + launch) for copy, launch in product((0.1, 1.0), repeat=2)]
    holds = all(list(start) == sorted(start) for start in start_ups)
    why = "one page leaves nothing to share: copying adds to AP, copying and launching to MCU"
    return if_holds(holds, "S<AP<MCU", why + "; how much is in Figure 7 only", then=_CONSISTENT)


@check("CR-19")
def sixty_kilobytes(claim: Claim) -> Finding:
    """Section 5.2."""
    crc = read("numbers.toml")["crc"]
    ours = crc["units_max"] * crc["page_KB"]
    return if_holds(ours == claim.number(), ours, "units times page")


@check("BT-01")
def a_third_slower(claim: Claim) -> Finding:
    """Figure 2(a): mean response of unit tasks with background tasks between them."""
    printed = claim.number() / 100
    found = []
    for sizes in combinations_with_replacement(range(1, 5), 2):
        # All tasks arrive at once; the k-th on a core responds after k units, and every
        # background task in front of it adds one.
        base = sum(size * (size + 1) // 2 for size in sizes)
        total = sum(sizes)
        for late in range(1, total * max(sizes)):
            if round(late / base, 2) == printed:
                found.append((sizes, late, base))
    ours = "no schedule"
    if found:
        sizes, late, base = found[0]
        ours = f"{late}/{base} = {late / base:.1%} (tasks per core {sizes})"
    why = f"{len(found)} schedules of up to 4 unit tasks on two cores give 31 %; the figure has one"
    return if_holds(bool(found), ours, why, then=_CONSISTENT)


@check("BT-02")
def moved_away(claim: Claim) -> Finding:
    """Figure 2(b): the same tasks with background work on a third core."""
    # f: a foreground task, b: background work it gave rise to, in the order that a core takes them.
    unloaded = _mean_response(["fff", "fff"])
    same_core = _mean_response(["fbfbf", "fbfbf"])
    moved = _mean_response(["fff", "fff", "bbbb"])
    ours = f"{moved / unloaded - 1:.0%} (on the same core {same_core / unloaded - 1:.0%})"
    why = "unit tasks in the order they arrive, three on each of two cores, background on a third"
    return if_holds(moved == unloaded < same_core, ours, why)


def _mean_response(cores: list[str]) -> float:
    """Return the mean response of the foreground tasks, all tasks taking one unit."""
    ends = [end for queue in cores for end, task in enumerate(queue, start=1) if task == "f"]
    return sum(ends) / len(ends)


@check("BT-04")
def core_choice(claim: Claim) -> Finding:
    """Section IV.A and Figure 4: the group of idle cores."""
    bts = read("numbers.toml")["bts"]
    cores = range(1, bts["drive_cores"] + 1)
    groups = {
        window: [core for core in cores if core not in bts[f"foreground_cores_{window}"]]
        for window in ("W1", "W2")
    }
    holds = all(groups[window] == bts[f"group_{window}"] for window in groups)
    ours = f"G = {groups['W1']}, then {groups['W2']}"
    why = "cores without foreground work; with none, the least utilized"
    return if_holds(holds, ours, why)


@check("BT-06")
def chunks(claim: Claim) -> Finding:
    """Section V.A."""
    bts = read("numbers.toml")["bts"]
    count, rest = divmod(bts["value_bytes"], bts["chunk_bytes"])
    return if_holds(rest == 0, f"{count} chunks", "value over chunk, without remainder")


@check("BT-10")
def latency_rises(claim: Claim) -> Finding:
    """Figure 7: latency bounds of a closed system (Little's law)."""
    cores, threads = read("numbers.toml")["bts"]["drive_cores"], np.arange(1, 41)
    holds = True
    for background in (0.1, 1.0, 5.0):
        alone, same, moved = _latencies(threads, cores, background)
        rising = all((np.diff(line) >= 0).all() for line in (alone, same, moved))
        holds = holds and rising and bool((alone <= same).all() and (alone <= moved).all())
    why = "lower bounds by Little's law, background work of 0.1, 1 and 5 times the foreground's"
    return if_holds(holds, "L1 <= L2, L3", why, then=_CONSISTENT)


@check("BT-11")
def three_threads(claim: Claim) -> Finding:
    """Figure 7: up to three threads the idle cores carry the background work."""
    cores = read("numbers.toml")["bts"]["drive_cores"]
    threads = np.arange(1, 4)
    alone, _, moved = _latencies(threads, cores, 1.0)
    why = (
        "at 3 of 6 as many cores idle as busy: equal if background takes no longer than foreground"
    )
    return if_holds(bool((alone == moved).all()), "equal up to 3", why, then=_CONSISTENT)


def _latencies(
    threads: np.ndarray, cores: int, background: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return lower bounds of latency, in foreground service times, of cases 1, 2 and 3."""
    alone = np.maximum(1.0, threads / cores)
    same = np.maximum(1.0, threads * (1 + background) / cores)
    # Moved to idle cores it delays nothing until there are too few of them; then all share.
    idle = np.maximum(cores - threads, 0)
    fits = threads * background <= idle
    moved = np.where(fits, alone, np.maximum(alone, threads * (1 + background) / cores))
    return alone, same, moved


@check("CA-01", "CA-04", "CA-05")
def bandwidth_gap(claim: Claim) -> Finding:
    """Background: bandwidth inside all drives against that of the host."""
    c = read("numbers.toml")["catalina"]
    inside_GBps = c["channels"] * c["channel_MBps"] / 1000
    # The paper multiplies 64 drives by 8 GB/s, its rounding of 8.192.
    all_GBps = c["drives_per_host"] * round(inside_GBps)
    minutes = [c["data_TB"] * 1000 / rate / 60 for rate in (c["host_GBps"], all_GBps)]
    ours, why = {
        "CA-01": ([inside_GBps], "channels times bandwidth: 8.192"),
        "CA-04": ([all_GBps / c["host_GBps"]], "64 drives of 8 GB/s over the host's 32 GB/s"),
        "CA-05": (minutes, "32 TB over both bandwidths; the paper rounds down"),
    }[claim.id]
    finding = by_ratio(claim, ours, why)
    if claim.id == "CA-05" and finding.verdict is Verdict.REPRODUCED:
        return Finding(_CONSISTENT, finding.ours, why)
    return finding


@check("CA-06", "CA-07", "CA-08")
def dataset_sizes(claim: Claim) -> Finding:
    """Table 4: sizes of the data sets."""
    c = read("numbers.toml")["catalina"]
    (row,) = (row for row in c["datasets"] if claim.statement.startswith(row["name"]))
    ours = row["objects"] * row["elements"] * c["element_bytes"] / 1e9
    return if_holds(ours == claim.number(), f"{ours:g}", "objects x elements x 8 bytes")


@check("CA-09")
def number_of_runs(claim: Claim) -> Finding:
    """Results: tests that were run."""
    c = read("numbers.toml")["catalina"]
    ours = c["configurations"] * c["benchmarks"] * c["runs"]
    return if_holds(ours == claim.number(), ours, "configurations x benchmarks x runs")


def drive_ratio(kernel: str) -> float:
    """Return one drive's throughput over that of the whole host, from the shipped profile."""
    c, resolved = read("numbers.toml")["catalina"], workload_of(load("catalina"), kernel)
    host = resolved.host(8)
    host_time = host.tx_s / c["drives"] + host.comp_s / host.divisor
    return float(host_time / (resolved.csd_tx_s + resolved.csd_comp_s))


def routing() -> float:
    """Return the share of the host that the packets of one drive cost."""
    c = read("numbers.toml")["catalina"]
    return float(c["routing_share_max"]) / float(c["drives"])


def low_host() -> float:
    """Return the speed of the low host over that of the high one.

    "Low with six drives is close to High with none": x (1 - 6 h) + 6 r = 1.
    """
    count = read("numbers.toml")["catalina"]["low_drives"]
    return float((1 - count * drive_ratio("hadoop")) / (1 - count * routing()))


@check("CA-10", "CA-15")
def speed_ups(claim: Claim) -> Finding:
    """Figures 10 and 13: speed-up with sixteen drives."""
    kernel = "hadoop" if claim.id == "CA-10" else "dft"
    ratio, drives = drive_ratio(kernel), read("numbers.toml")["catalina"]["drives"]
    ours = float(augmented_speed_up(drives, ratio, routing()))
    why = f"a drive at {ratio:.3f} of the host, fitted to this number, so consistent at best"
    finding = by_ratio(claim, [ours], why)
    verdict = _CONSISTENT if finding.verdict is Verdict.REPRODUCED else finding.verdict
    return Finding(verdict, finding.ours, why)


@check("CA-11")
def every_drive_helps(claim: Claim) -> Finding:
    """Figure 10: elapsed time against drives."""
    gains = augmented_speed_up(np.arange(17), drive_ratio("hadoop"), routing())
    ours = f"1 to {float(gains[-1]):.2f} times as fast"
    why = "each drive adds its ratio and costs the host its routing, which is far less"
    return if_holds(bool((np.diff(gains) > 0).all()), ours, why)


@check("CA-13")
def energy_of_the_low_host(claim: Claim) -> Finding:
    """Figure 11: what power of a drive makes 36 percent less energy."""
    c, ratio, low = read("numbers.toml")["catalina"], drive_ratio("hadoop"), low_host()
    count = c["low_drives"]
    speed_up = float(augmented_speed_up(count, ratio / low, routing()))
    wanted = 1 / (1 - c["low_energy_saved"])
    power = (speed_up / wanted - 1) / count
    back = float(augmented_energy_ratio(count, speed_up, max(power, 0.0)))
    ours = f"{1 - 1 / back:.0%} if a drive takes {power:.1%} of the host's active power"
    why = f"the low host at {low:.2f} of the high one, {speed_up:.2f} times faster with six drives"
    return if_holds(0 <= power < 1, ours, why, then=_CONSISTENT)


@check("CA-14", "CA-16")
def energy_beyond_speed(claim: Claim) -> Finding:
    """Figures 11 and 13: energy falls by more than time."""
    c = read("numbers.toml")["catalina"]
    speed_up = c["hadoop_speed_up"] if claim.id == "CA-14" else c["dft_speed_up"]
    most = float(augmented_energy_ratio(c["drives"], speed_up, 0.0))
    share = speed_up / claim.number()
    why = (
        "the paper deducts what stands idle: what is left is the host, which keeps pulling tasks "
        "and stays as busy, and the drives, which add to it. So energy cannot fall by more than "
        f"time; the printed number needs {share:.0%} of the power without drives"
    )
    return if_holds(claim.number() <= most, f"at most {most:g}", why)
