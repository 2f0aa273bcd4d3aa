"""Checks of the first two papers' tables: bandwidths, hardware, and cost of ownership."""

from __future__ import annotations

from csdplan.model.cost import per_usd, purchase_usd
from csdplan.profile import k_limit, load
from csdplan.request.scenario import Scenario, load_scenario
from csdplan.solve.tco import Cost, cost_of, equal_throughput
from csdplan_reproduce.check import (
    Claim,
    Finding,
    Verdict,
    by_digits,
    by_ratio,
    check,
    if_holds,
)
from csdplan_reproduce.planning import KERNELS, drive_s, host_s
from csdplan_reproduce.printed import read

_GB = 1e9


@check("P0-10")
def internal_above_external(claim: Claim) -> Finding:
    """Table 1."""
    rows = read("numbers.toml")["bandwidth_GBps"]
    ratios = {name: row["internal"] / row["external"] for name, row in rows.items()}
    ours = ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())
    return if_holds(min(ratios.values()) > 1, ours, "internal over external, as printed")


@check("P0-11", "P0-14", "M0-01", "M0-02")
def transfer_ratios(claim: Claim) -> Finding:
    """Figure 2(b): R_tx from the printed ratio of bandwidths."""
    printed = read("numbers.toml")["bandwidth_ratio_000"]
    ratio = {
        "P0-11": 1 / printed["smartssd_read"],
        "P0-14": 1 / printed["newport_write"],
        "M0-01": printed["smartssd_write_internal"],
        "M0-02": 1 / printed["newport_read"],
    }[claim.id]
    text = claim.value.split(";")[-1].strip()
    why = "internal over external from the printed external over internal"
    if claim.id == "M0-02":
        why += "; this is the drive's own ratio: equations 11 to 13 need the one against the SSD"
    return by_digits([text], [ratio], why)


@check("P0-15")
def execution_or_compute(claim: Claim) -> Finding:
    """Figure 2(a) calls 1.6 and 1.7 execution time."""
    implied = 1.7 / 1.6
    measured = drive_s("newport", "count") / drive_s("smartssd", "count")
    whole = [drive_s(d, "count") / host_s("smartssd", "count", 1) for d in ("smartssd", "newport")]
    why = (
        f"as execution times they make SmartSSD {implied:.2f} times Newport's throughput, but "
        f"Figure 6 says about 3 (ours {measured:.2f}). They are compute times, as paper 001 says; "
        "execution times come out as shown"
    )
    ours = f"{whole[0]:.2f}; {whole[1]:.2f}"
    return Finding(by_ratio(claim, whole, why).verdict, ours, why)


@check("P0-17", "P0-18")
def which_computes_faster(claim: Claim) -> Finding:
    """Sections 2.3 and 4.2.3 disagree on Count."""
    slow = read("numbers.toml")["slow_down"]
    newport, smartssd = slow["newport"], slow["smartssd"]
    kernels = ("count",) if claim.id == "P0-17" else ("count", "vector-add")
    faster = all(smartssd[kernel] < newport[kernel] for kernel in kernels)
    ours = ", ".join(f"{k}: S {smartssd[k]}, N {newport[k]}" for k in kernels)
    why = "slow-downs of paper 001, Figure 3"
    if claim.id == "P0-17":
        return if_holds(faster, ours, why, then=Verdict.CONSISTENT)
    why += ": SmartSSD computes both faster. Section 4.2.3 contradicts 2.3 and the other paper"
    return if_holds(not faster, ours, why)


@check("P0-19")
def host_table(claim: Claim) -> Finding:
    """Table 2."""
    host, profile = read("numbers.toml")["host"], load("newport").host
    memory, cores = host["dimms"] * host["dimm_GB"], host["sockets"] * host["cores_per_socket"]
    assert profile.dram_bytes is not None, "the shipped profile states memory"
    agrees = profile.dram_bytes == memory * 2**30 and profile.cores == cores
    return if_holds(
        agrees and memory == claim.number(), f"{memory} GB, {cores} cores", "and the profile's"
    )


@check("M0-05")
def bus_limit(claim: Claim) -> Finding:
    """Section 4.3."""
    found = k_limit(load("newport"), "smartssd")
    why = "host.ingest_bw_Bps over link_bw_Bps of the profile"
    return if_holds(found == claim.numbers()[-1], found, why)


@check("EC-18")
def same_ratios_in_both(claim: Claim) -> Finding:
    """Both papers print the same bandwidth ratios."""
    numbers = read("numbers.toml")
    first, second = numbers["bandwidth_ratio_000"], numbers["bandwidth_ratio_001"]
    ours = ", ".join(str(value) for value in second.values())
    return if_holds(first == second, ours, "the two papers' numbers, side by side")


@check("EC-19")
def slower_on_every_kernel(claim: Claim) -> Finding:
    """Figure 3 of paper 001."""
    slow = read("numbers.toml")["slow_down"]
    least = min(slow[device][kernel] for device in slow for kernel in KERNELS)
    return if_holds(least > 1, f"least {least}", "smallest printed slow-down")


def scenario() -> Scenario:
    """Return Table 4's systems, the kernel they run, and the service they are costed for."""
    return load_scenario()


def _costs() -> list[Cost]:
    systems, kernel, service = scenario()
    return [cost_of(each, kernel, service) for each in systems]


def _figures(found: Cost, base: Cost) -> list[float]:
    """Return total, marks per dollar and gigabytes per dollar, as Table 4's columns.

    The table divides the *first* system's mark by every total: it takes all three systems to do
    the first one's work.
    """
    mark = base.system.mark
    assert mark is not None, "Table 4 states a mark for every CPU"
    each = float(per_usd(mark, found.purchase_usd))
    return [found.purchase_usd, each, found.bytes_per_usd / _GB]


@check("P0-76", "P0-78", "M0-11", "M0-12")
def table_4(claim: Claim) -> Finding:
    """Table 4, row by row."""
    row = {"P0-76": 0, "M0-11": 0, "M0-12": 1, "P0-78": 2}[claim.id]
    costs = _costs()
    figures = _figures(costs[row], costs[0])
    printed = [text.strip() for text in claim.value.split(";")]
    ours = figures[2:] if claim.id == "P0-76" else figures[: len(printed)]
    why = "prices, marks and drives as printed, a terabyte of 1,024 gigabytes"
    if claim.id == "P0-76":
        decimal = costs[0].system.drives * 2000 / figures[0]
        why += f"; with 1,000 it is {decimal:.2f}. Neither is 8.10, which looks truncated twice"
    elif row:
        own = costs[row].mark_per_usd or 0.0
        why += f"; performance is the first CPU's mark, its own would give {own:.1f}/$ (see M0-13)"
    return by_digits(printed, ours, why)


@check("P0-80")
def marks(claim: Claim) -> Finding:
    """Table 4: how much slower the CPUs are, by their marks."""
    found = [each.system.mark for each in _costs()]
    ratios = [found[0] / mark for mark in found[1:] if mark and found[0]]
    finding = by_ratio(claim, ratios, "marks divided; the paper says 'approximately'")
    verdict = finding.verdict
    return Finding(
        Verdict.CONSISTENT if verdict is Verdict.REPRODUCED else verdict, finding.ours, finding.why
    )


@check("P0-81")
def performance_for_a_dollar(claim: Claim) -> Finding:
    """Section 4.5: performance for a dollar, equal throughput supposed."""
    base, *others = (each.purchase_usd for each in _costs())
    why = "3028 over each total, which supposes equal throughput (see M0-13); cut, not rounded"
    return by_digits(["1.47", "2.21"], [base / each for each in others], why)


@check("P0-82")
def capacity_for_a_dollar(claim: Claim) -> Finding:
    """Section 4.5: capacity for a dollar."""
    base, first, second = (each.bytes_per_usd for each in _costs())
    why = "1 - A over SSD, and B over SSD; 'less' and 'higher' mean two things here"
    return by_digits(["0.27", "1.48"], [1 - first / base, second / base], why)


@check("P0-83")
def savings(claim: Claim) -> Finding:
    """Section 1: 55 % less with a CPU half as fast and six drives."""
    base, first, second = (each.purchase_usd for each in _costs())
    ours = f"{1 - first / base:.1%}"
    why = (
        f"that is system A. {1 - second / base:.1%} belongs to B: a CPU a third as fast and, in "
        "the table, eight drives"
    )
    return if_holds(round(100 * (1 - first / base)) == claim.number(), ours, why)


@check("P0-84")
def drive_price(claim: Claim) -> Finding:
    """Section 4.5: the price of a drive that computes."""
    systems = scenario()[0]
    ours = float(purchase_usd(0.0, 1, systems[0].drive_usd)) * 1.1
    agrees = abs(ours - systems[1].drive_usd) < 1e-9
    return if_holds(agrees and round(ours) == claim.number(), f"{ours:g}", "100 dollars and 10 %")


@check("M0-13")
def equal_throughput_of_table_4(claim: Claim) -> Finding:
    """Section 4.5: the systems of Table 4 are said to have the same throughput."""
    systems, kernel, service = scenario()
    times = [cost_of(each, kernel, service).time_s for each in systems]
    assert None not in times, "a kernel was given"
    sized = equal_throughput(systems, kernel, service)
    base = sized[0].purchase_usd
    equal = ", ".join(
        f"{each.system.name} needs {each.system.drives} drives and costs "
        f"{1 - each.purchase_usd / base:.0%} less"
        for each in sized[1:]
    )
    why = (
        "drives were counted against a *slower* host, not against the SSD system next to them, "
        f"and the CPU of a CSD system does not compute. At equal throughput {equal}"
    )
    ours = ", ".join(f"{time:.2f} s" for time in times if time is not None)
    return if_holds(len({round(time or 0, 2) for time in times}) == 1, ours, why)
