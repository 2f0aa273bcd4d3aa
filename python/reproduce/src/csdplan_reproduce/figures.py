"""The papers' figures, redrawn from the shipped profiles.

Nothing is traced from the papers: each line is computed by the code that plans, so a figure shows
what the model says where the paper's own figure may show something else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from csdplan.model.array import csd_array_time_s, ssd_array_time_s
from csdplan.plot import Bar, Bars, Line, Lines, Mark, Panel
from csdplan.plot.figures import BEP_DRIVES as _BEP
from csdplan.plot.figures import DRIVES, THROUGHPUT, surface, throughput
from csdplan.profile import Workload
from csdplan.published import read as example
from csdplan.result.break_even import bep as planned
from csdplan.result.overload import overload_plan
from csdplan.result.sweeps import surface as swept
from csdplan.result.throughput import curves
from csdplan.solve.ec import encode_break_even
from csdplan.solve.ec_fit import fit_encode_time
from csdplan.solve.overload import step_slow_downs
from csdplan.solve.tco import cost_of, equal_throughput
from csdplan_reproduce.equations import encode_points
from csdplan_reproduce.planning import KERNELS, bep, system
from csdplan_reproduce.tables import scenario

_DEVICES = ("smartssd", "newport")
_TIMES = tuple(range(1, 11))


def throughput_of_arrays() -> Sequence[Panel]:
    """Figure 7: throughput against devices, Host(1, 4, 16, 64), both drives, four kernels."""
    workloads = [system(device, kernel) for device in _DEVICES for kernel in KERNELS]
    return [
        throughput(each)
        for workload in workloads
        for each in curves(planned([workload], [1, 4, 16, 64]), [workload])
    ]


def bus_limits() -> Sequence[Panel]:
    """Figure 8: Count, Host(16), for three bus limits."""
    workload = system("smartssd", "count")
    host, places = workload.host(16), tuple(range(1, 25))
    drives = tuple(_throughput(workload.bytes, _drives(workload, m)) for m in places)
    drawn, marks = [Line("drives that compute", drives, reference=True)], []
    for limit in (8, 12, 16):
        times = [
            float(ssd_array_time_s(m, host.tx_s, host.comp_s, k_limit=limit, cores=host.divisor))
            for m in places
        ]
        found = bep("smartssd", "count", cores=16, k_limit=limit)
        marks.append(Mark(float(found), drives[found - 1], str(found)))
        values = tuple(_throughput(workload.bytes, time) for time in times)
        drawn.append(Line(f"SSDs, k_limit {limit}: break-even {found}", values))
    across = tuple(float(place) for place in places)
    title = "count: what a wider host link (k_limit) does, smartssd, host with 16 cores"
    panel = Lines(title, DRIVES, THROUGHPUT, across, tuple(drawn), marks=tuple(marks))
    return [panel]


def multipliers() -> Sequence[Panel]:
    """Figure 9: break-even point as bandwidth, compute or both grow."""
    return [_swept(device, kernel, drive=True) for device in _DEVICES for kernel in KERNELS]


def slow_downs() -> Sequence[Panel]:
    """Figure 13: break-even point as the host slows down."""
    return [_swept(device, kernel, drive=False) for device in _DEVICES for kernel in KERNELS]


def iso_surface() -> Sequence[Panel]:
    """Figure 10: the surface over both multipliers, with lines of equal break-even point."""
    panels = []
    places = [1 + step / 8 for step in range(57)]
    for variant in ("A", "B"):
        found = swept(system("newport", "vector-add", variant), places, places, iso=(3, 4, 6))
        marks = [
            Mark(x, y, str(bep("newport", "vector-add", variant=variant, bandwidth=x, compute=y)))
            for x, y in ((2.0, 7.0), (3.0, 4.0), (4.0, 3.0), (8.0, 2.0))
        ]
        panel = surface(found, marks)
        panels.append(replace(panel, title=f"{panel.title}, calibration {variant}"))
    return panels


def starved_hosts() -> Sequence[Panel]:
    """Figure 12: break-even point against memory."""
    printed = example("overload.toml")
    memory = [place * 1e9 for place in printed["memory_GB"]]
    panels = []
    for kernel in KERNELS:
        factors = printed["kernel"][kernel]
        chosen = {"sd_tx": factors["sd_tx"], "sd_comp": factors["sd_comp"]}
        drawn = []
        for device in _DEVICES:
            workload = system(device, kernel)
            found = overload_plan(workload, step_slow_downs(memory, workload.bytes, **chosen))
            drawn.append(Line(device, tuple(_number(value) for value in found.column("devices"))))
        places = tuple(printed["memory_GB"])
        panels.append(
            Lines(
                f"{kernel}: when the host's memory is short",
                "memory [GB]",
                _BEP,
                places,
                tuple(drawn),
                steps=True,
            )
        )
    return panels


def erasure_coding() -> Sequence[Panel]:
    """Figures 5 to 7 of the second paper: break-even point over size, blocks and power."""
    ssd, csd = (fit_encode_time(encode_points(side)) for side in ("ssd", "csd"))

    def found(blocks: int, size: float, drive: float = 1.0, host: float = 1.0) -> float:
        times = csd.time_s(blocks, size * 1e6) / drive, ssd.time_s(blocks, size * 1e6) * host
        return float(encode_break_even(*times).devices)

    sizes, counts = tuple(range(16, 129, 8)), tuple(range(12, 49, 3))
    powers = tuple(1 + step / 10 for step in range(51))
    panels = [
        Lines(
            "Erasure coding: 24 blocks of growing size",
            "block [MB]", _BEP, tuple(map(float, sizes)),
            (Line("exact", tuple(found(24, size) for size in sizes)),), steps=True,
        ),
        Lines(
            "Erasure coding: more blocks of 64 MB",
            "blocks after encoding", _BEP, tuple(map(float, counts)),
            (Line("exact", tuple(found(count, 64) for count in counts)),), steps=True,
        ),
        Lines(
            "Erasure coding: 48 blocks of 64 MB, faster drives",
            "computational power, times", _BEP, powers,
            (
                Line("drive faster", tuple(found(48, 64, power) for power in powers)),
                Line("and host as much slower", tuple(found(48, 64, p, p) for p in powers)),
            ),
            steps=True,
        ),
    ]  # fmt: skip
    return panels


def cost_of_ownership() -> Sequence[Panel]:
    """Figure 15 in cost: Table 4 as printed, and at equal throughput."""
    systems, kernel, service = scenario()
    equal = equal_throughput(systems, kernel, service)
    panels = []
    for title, costs in (
        ("as printed", [cost_of(each, kernel, service) for each in systems]),
        ("at the SSD system's throughput", equal),
    ):
        names = tuple(f"{each.system.name}\n{each.system.drives} drives" for each in costs)
        rates = tuple((each.throughput_Bps or 0.0) / 1e6 / each.purchase_usd for each in costs)
        panels.append(
            Bars(
                f"Purchase, {title}",
                "USD",
                names,
                (Bar(tuple(each.purchase_usd for each in costs)),),
            )
        )
        panels.append(Bars(f"Throughput for a dollar, {title}", "MB/s/USD", names, (Bar(rates),)))
    return panels


#: File name, caption and drawing of every figure.
FIGURES: dict[str, tuple[str, Callable[[], Sequence[Panel]]]] = {
    "throughput": (
        "Throughput against devices (paper 000, Figure 7); rings mark break-even points",
        throughput_of_arrays,
    ),
    "k-limit": ("Throughput for three bus limits (Figure 8)", bus_limits),
    "multipliers": ("Break-even point against the drive's multipliers (Figure 9)", multipliers),
    "surface": (
        "Break-even point over both multipliers (Figure 10); stars are the paper's points of 4, "
        "with the break-even point that comes out here",
        iso_surface,
    ),
    "memory": (
        "Break-even point against the host's memory (Figure 12), example factors",
        starved_hosts,
    ),
    "slow-down": ("Break-even point against the host's slow-down (Figure 13)", slow_downs),
    "erasure-coding": (
        "Erasure coding (paper 001, Figures 5 to 7), from the fitted time model",
        erasure_coding,
    ),
    "cost": ("Cost of ownership (Table 4)", cost_of_ownership),
}


def _swept(device: str, kernel: str, *, drive: bool) -> Lines:
    if drive:
        found = {
            "bandwidth": [bep(device, kernel, bandwidth=x) for x in _TIMES],
            "compute": [bep(device, kernel, compute=x) for x in _TIMES],
            "both": [bep(device, kernel, bandwidth=x, compute=x) for x in _TIMES],
        }
    else:
        found = {
            "host transfer": [bep(device, kernel, sd_tx=x) for x in _TIMES],
            "host compute": [bep(device, kernel, sd_comp=x) for x in _TIMES],
        }
    drawn = tuple(Line(name, tuple(map(float, values))) for name, values in found.items())
    across = "multiplier" if drive else "slow-down"
    title = f"{kernel} on {device}: {'a faster drive' if drive else 'a slower host'}"
    return Lines(title, across, _BEP, tuple(map(float, _TIMES)), drawn, steps=True)


def _drives(workload: Workload, devices: int) -> float:
    tx, comp = workload.csd_tx_s, workload.csd_comp_s
    return float(csd_array_time_s(devices, tx, comp))


def _throughput(size: int, time_s: float) -> float:
    return size / time_s / 1e9


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None
