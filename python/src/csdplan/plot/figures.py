"""Figures of results: which panels show a result, and in which words.

Each figure is described here once. A function takes a result or its sheet and returns panels; it
computes no break-even point, no cost and no throughput.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from csdplan.plot.panels import Bar, Bars, Iso, Limit, Line, Lines, Map, Mark
from csdplan.result.confidence import UncertaintyResult
from csdplan.result.costs import Tco
from csdplan.result.sheet import Sheet, Value
from csdplan.result.sweeps import AXES, HOST_CORES, SurfaceResult
from csdplan.result.throughput import Curve, SystemCurves
from csdplan.solve.optimize import Plan
from csdplan.solve.tco import Cost

BEP_DRIVES = "break-even point [drives]"
DRIVES = "number of drives"
THROUGHPUT = "throughput [GB/s]"
#: Break-even points nearer than this share of the panel's width have their labels apart.
_CROWDED = 0.09
#: Inputs of a break-even point in words.
INPUTS = {
    "ssd_tx_s": "SSD: time to load",
    "ssd_comp_s": "host: time to compute",
    "csd_tx_s": "drive: time to read its flash",
    "csd_comp_s": "drive: time to compute",
    "k_limit": "host's link (k_limit)",
}
#: Colors of the two parts of a purchase.
_HOST_STYLE, _DRIVE_STYLE = 0, 5
#: A bar chart of more numbers than this cannot be read: neighbors share a bar.
_BARS_MAX = 12


def throughput(curves: SystemCurves) -> Lines:
    """Return throughput against devices, with break-even points and k_limit marked."""
    drives = _curve("drives that compute", curves.drives, reference=True)
    lines, marks = [drives], []
    for index, host in enumerate(curves.hosts):
        crossing = host.break_even_devices
        answer = "never overtaken" if crossing is None else f"break-even {crossing}"
        lines.append(_curve(f"SSDs, {_cores(host.host_cores)}: {answer}", host, style=index))
        if crossing is not None and host.break_even_Bps is not None:
            height, below = host.break_even_Bps / 1e9, _is_crowded(curves, index)
            name = f"break-even point against {_cores(host.host_cores)}"
            low, high = host.break_even_low, host.break_even_high
            mark = Mark(float(crossing), height, str(crossing), index, below, name, low, high)
            marks.append(mark)
    return Lines(
        title=curves.title,
        across=DRIVES,
        up=THROUGHPUT,
        places=tuple(float(count) for count in curves.devices),
        lines=tuple(lines),
        smooth=True,
        logarithmic=curves.logarithmic,
        marks=tuple(marks),
        limits=(
            Limit(float(curves.k_limit), f"host's link is full (k_limit {curves.k_limit:.4g})"),
        ),
    )


def _curve(label: str, curve: Curve, *, reference: bool = False, style: int | None = None) -> Line:
    """Return a curve's throughput [GB/s] as a line with its band."""
    values, low, high = (
        _gigabytes(one) for one in (curve.throughput_Bps, curve.low_Bps, curve.high_Bps)
    )
    return Line(label, values, reference, style, low, high)


def _cores(count: int | None) -> str:
    return f"host with {count} core{'' if count == 1 else 's'}"


def _is_crowded(curves: SystemCurves, index: int) -> bool:
    """Return True if the next host's break-even point lies so near that labels would meet."""
    crossings = [host.break_even_devices for host in curves.hosts[index : index + 2]]
    if len(crossings) == 1 or None in crossings:
        return False
    first, second = (float(count or 0) for count in crossings)
    if curves.logarithmic:
        return abs(math.log(second / first)) < _CROWDED * math.log(curves.devices[-1])
    return abs(second - first) < _CROWDED * curves.devices[-1]


def sweep(sheet: Sheet, axis: str) -> Lines:
    """Return break-even points against the quantity that a sweep varied, a line for each host."""
    devices = [_number(value) for value in sheet.column("devices")]
    if axis in HOST_CORES:
        lines = [Line("drives that compute", tuple(devices))]
    else:
        hosts = sheet.column("host_cores")
        lines = [
            Line(
                f"against SSDs on a {_cores(_whole(cores))}",
                tuple(value for value, host in zip(devices, hosts, strict=True) if host == cores),
            )
            for cores in dict.fromkeys(hosts)
        ]
    count = len(lines[0].values)
    places = tuple(_number(place) or 0.0 for place in sheet.column(axis)[:count])
    across = AXES["host_cores" if axis in HOST_CORES else axis]
    return Lines(sheet.title, across, BEP_DRIVES, places, tuple(lines), steps=True)


def surface(found: SurfaceResult, marks: Sequence[Mark] = ()) -> Map:
    """Return the map of break-even points over the drive's bandwidth and compute."""
    return Map(
        title=found.title,
        across="the drive's internal bandwidth, times as now",
        up="the drive's computational power, times as now",
        x=found.bandwidth,
        y=found.compute,
        z=found.devices,
        iso=tuple(
            Iso(
                f"break-even point {count}",
                tuple(x for x, _ in points),
                tuple(y for _, y in points),
            )
            for count, points in found.curves
        ),
        marks=tuple(marks),
    )


def encoding(sheet: Sheet) -> Lines:
    """Return break-even points of erasure coding against blocks, a line for each block size.

    Of several computational powers the first is shown.
    """
    keys = list(zip(sheet.column("blocks"), sheet.column("block_MB"), strict=True))
    devices = [_number(value) for value in sheet.column("devices")]
    counts, sizes = (list(dict.fromkeys(values)) for values in zip(*keys, strict=True))
    lines = tuple(
        Line(f"{size:g} MB", tuple(devices[keys.index((count, size))] for count in counts))
        for size in sizes
    )
    places = tuple(_number(count) or 0.0 for count in counts)
    return Lines(sheet.title, "blocks after encoding", BEP_DRIVES, places, lines, steps=True)


def memory(sheet: Sheet) -> Lines:
    """Return break-even points against the host's memory, and the closed form's."""
    lines = tuple(
        Line(label, tuple(_number(value) for value in sheet.column(name)))
        for label, name in (("exact", "devices"), ("closed form", "closed_form_devices"))
    )
    places = tuple(_number(place) or 0.0 for place in sheet.column("memory_GB"))
    return Lines(sheet.title, "memory [GB]", BEP_DRIVES, places, lines, steps=True)


def overload(sheet: Sheet) -> Bars:
    """Return break-even points under each overload that was measured."""
    labels = tuple(str(name).replace(", ", "\n") for name in sheet.column("overload"))
    values = tuple(_number(value) for value in sheet.column("devices"))
    return Bars(sheet.title, BEP_DRIVES, labels, (Bar(values),))


def purchases(found: Tco) -> list[Bars]:
    """Return the systems' purchases, as configured and at equal throughput."""
    return [
        Bars(
            title,
            "purchase [USD]",
            tuple(cost.system.name for cost in costs),
            (Bar(tuple(cost.purchase_usd if cost.feasible else None for cost in costs)),),
            tuple(throughput_GBps(cost) for cost in costs),
            THROUGHPUT,
        )
        for title, costs in (
            ("Purchase as configured: cheaper may be slower", found.as_is),
            ("Purchase at the first system's throughput", found.equal),
        )
    ]


def compared(costs: Sequence[Cost]) -> Bars:
    """Return each system's purchase, drives and host, next to the throughput that it buys."""
    names = tuple(
        cost.system.name
        if cost.system.computes == "host"
        else f"{cost.system.name}: {cost.system.drives if cost.feasible else 'no number is enough'}"
        for cost in costs
    )
    prices = [(cost.system.drives * cost.system.drive_usd, cost.system.host_usd) for cost in costs]
    known = [
        pair if cost.feasible else (None, None) for pair, cost in zip(prices, costs, strict=True)
    ]
    drives, hosts = zip(*known, strict=True)
    parts = (Bar(drives, "drives", _DRIVE_STYLE), Bar(hosts, "host", _HOST_STYLE))
    rates = tuple(throughput_GBps(cost) if cost.feasible else None for cost in costs)
    title = "What each system costs, and the work that it does"
    return Bars(title, "purchase [USD]", names, parts, rates, THROUGHPUT)


def mixed(sheet: Sheet, host_cores: int) -> Lines:
    """Return throughput against the number of devices that compute."""
    line = Line(f"{_cores(host_cores)} and drives", _column_GBps(sheet, "throughput_Bps"))
    places = tuple(_number(count) or 0.0 for count in sheet.column("csds"))
    return Lines(sheet.title, "drives that compute", THROUGHPUT, places, (line,))


def front(plans: Sequence[Plan]) -> Lines:
    """Return the Pareto front of cost and throughput."""
    return Lines(
        title="Cheapest purchase for each throughput",
        across="cost [USD]",
        up="throughput [multiple of what is required]",
        places=tuple(plan.cost_usd for plan in plans),
        lines=(Line("no purchase is above", tuple(plan.scale for plan in plans)),),
        steps=True,
    )


def simulated(sheet: Sheet) -> Lines:
    """Return simulated throughput, and that of the closed forms, against drives that compute."""
    return Lines(
        title=sheet.title.split(" on ", 1)[0] + ": simulated, and by the closed forms",
        across="drives that compute",
        up=THROUGHPUT,
        places=tuple(_number(count) or 0.0 for count in sheet.column("enabled_drives")),
        lines=(
            Line("simulated", _column_GBps(sheet, "throughput_Bps")),
            Line("closed forms", _column_GBps(sheet, "closed_form_Bps")),
        ),
    )


def uncertain(result: UncertaintyResult) -> list[Bars]:
    """Return the distribution of a break-even point, and the inputs' total Sobol indices."""
    counts = result.distribution.counts()
    least, most = min(counts, default=0), max(counts, default=0)
    width = max(1, -(-(most - least + 1) // _BARS_MAX))
    labels, shares = [], []
    for first in range(least, most + 1, width) if counts else []:
        inside = sum(count for devices, count in counts.items() if first <= devices < first + width)
        labels.append(str(first) if width == 1 else f"{first}-{first + width - 1}")
        shares.append(100 * inside / result.distribution.samples)
    title = f"How likely each break-even point is: {result.question.title}"
    found = Bar(tuple(shares), style=0)
    panels = [Bars(title, "share of cases [%]", tuple(labels), (found,), across=BEP_DRIVES)]
    if result.indices:
        names = tuple(INPUTS.get(index.name, index.name) for index in result.indices)
        totals = Bar(tuple(100 * index.total for index in result.indices), style=0)
        up = "share of the spread, with interactions [%]"
        panels.append(
            Bars("What to measure to be surer: the time it hangs on", up, names, (totals,))
        )
    return panels


def throughput_GBps(cost: Cost) -> float | None:
    """Return a system's throughput [GB/s]; None if it is unknown."""
    return None if cost.throughput_Bps is None else cost.throughput_Bps / 1e9


def _gigabytes(values_Bps: Sequence[float]) -> tuple[float, ...]:
    return tuple(value / 1e9 for value in values_Bps)


def _column_GBps(sheet: Sheet, name: str) -> tuple[float | None, ...]:
    values = [_number(value) for value in sheet.column(name)]
    return tuple(None if value is None else value / 1e9 for value in values)


def _whole(value: Value) -> int | None:
    return value if isinstance(value, int) else None


def _number(value: Value) -> float | None:
    return float(value) if isinstance(value, int | float) else None
