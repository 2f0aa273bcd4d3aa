"""What a report holds: the answer first, then figures and costs, then what they rest on.

It asks the same functions as the commands do and adds no number of its own. Sentences say what a
table shows, including where the closed form would mislead and where drives never break even.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import csdplan
from csdplan import plot
from csdplan.plot.charts import Bars, Surface
from csdplan.profile.schema import Profile
from csdplan.profile.workload import Workload
from csdplan.report.html import figure, items, page, paragraph, section, table
from csdplan.result.bep import BepResult, HostResult, SystemResult, bep
from csdplan.result.coding import cost_sheet, price_sensitivity
from csdplan.result.curves import curves
from csdplan.result.purchase import bill, lacking, requirements, work
from csdplan.result.sheet import Sheet, sheet
from csdplan.result.sweep import Setting, needed, surface
from csdplan.result.uncertainty import uncertain, uncertainty
from csdplan.solve.optimize import optimise, shortfalls
from csdplan.solve.purchase import Request
from csdplan.solve.tco import Kernel, Service, System, cost_of, equal_throughput
from csdplan.units import bytes_text

#: What the closed form leaves out, for each reason why it misses.
_MISSES = {
    "tie": "at the closed form's number both arrays are equally fast; a drive more is needed",
    "k_limit": "the closed form lets SSDs be added beyond what the host can take in (k_limit)",
    "host_part": "the closed form leaves out the work that stays with the host",
    "store": "the closed form leaves out the time to store results",
    "overlap": "the closed form adds transfer and compute, here they overlap",
}
_MULTIPLIERS = tuple(1 + 0.25 * step for step in range(29))
_SAMPLES, _BASE = 20_000, 256
_DRIVE_USD = (80.0, 110.0, 150.0, 200.0, 300.0)
_ABSENT = (
    "the model adds transfer and compute time, unless an overlap is asked for",
    "the host's compute time is divided by its cores, without a serial part",
    "data are spread evenly, and drives share nothing",
)


_EXAMPLE = (
    "A published example, array-merge on Newport at prices of October 2022: it is not about the "
    "profile above. --scenario FILE.toml costs systems of your own."
)


@dataclass(frozen=True)
class Ask:
    """What a report is about.

    Attributes
    ----------
    name : str
        What the profile is called.
    profile : Profile
        The profile that `load` was resolved from.
    load : Workload
        The workload.
    host_cores : tuple of int
        The n of each Host(n), at least one.
    k_limit : int or None
        Overrides the profile's own.
    sd_tx, sd_comp : float
        Slow-down factors of an overloaded host [1].
    target : int
        The break-even point to ask for what would have to change.
    scenario : tuple or None
        Systems, kernel and service to cost.
    is_example : bool
        Whether the scenario is the published one, which has nothing to do with the profile.
    request : Request or None
        A purchase to find.
    """

    name: str
    profile: Profile
    load: Workload
    host_cores: tuple[int, ...]
    k_limit: int | None = None
    sd_tx: float = 1.0
    sd_comp: float = 1.0
    target: int = 4
    scenario: tuple[list[System], Kernel, Service] | None = None
    is_example: bool = False
    request: Request | None = None


def document(ask: Ask) -> str:
    """Return the report as HTML.

    Raises
    ------
    CsdplanError
        If an argument is out of range or the profile lacks what is needed.
    """
    result = bep(
        [ask.load], ask.host_cores, k_limit=ask.k_limit, sd_tx=ask.sd_tx, sd_comp=ask.sd_comp
    )
    (system,) = result.systems
    cores = ", ".join(str(host.host_cores) for host in system.hosts)
    parts = [
        section("The answer", items(answers(system), "answer"), items(result.warnings, "warn")),
        section("Break-even points", table(_points(result)), _curves(result), _misses(system)),
        section("What would have to change", table(_needed(ask)), _surface(ask)),
        section("How sure this is", *_sureness(ask)),
    ]
    if ask.scenario is not None:
        said = [paragraph(_EXAMPLE, "note")] if ask.is_example else []
        parts.append(section("Cost of ownership", *said, *_costs(*ask.scenario)))
    if ask.request is not None:
        parts.append(section("What to buy", *_purchase(ask.request)))
    parts.append(section("What it rests on", *_basis(ask, system)))
    title = f"SSDs or computational drives: {ask.load.kernel} on {system.device}"
    under = (
        f"Profile {ask.name}, Host({cores}), {bytes_text(system.bytes)}, k_limit "
        f"{system.k_limit}; csdplan {csdplan.__version__}"
    )
    return page(title, under, parts)


def answers(system: SystemResult) -> list[str]:
    """Return a sentence for each Host(n)."""
    return [_answer(system, host) for host in system.hosts]


def _answer(system: SystemResult, host: HostResult) -> str:
    against = f"as many {system.ssd} SSDs on {host.host_cores} host core(s)"
    if host.devices is not None:
        some = f"From {host.devices} drives on, {system.device} is faster than {against}"
        if system.k_limit < host.devices:
            some += f"; the host takes in no more than {system.k_limit} SSDs at full speed"
        return some + "."
    if host.verdict == "never":
        return (
            f"{system.device} never overtakes {against}: however many drives, it takes "
            f"{host.csd_limit_s:.3g} s at best, the SSDs {host.ssd_limit_s:.3g} s."
        )
    return f"{system.device} overtakes {against} only beyond 2^53 drives: in practice never."


def _points(result: BepResult) -> Sheet:
    (system,) = result.systems
    rows = [
        (
            f"Host({host.host_cores})",
            host.ssd_tx_s,
            host.ssd_comp_s,
            system.csd_tx_s,
            system.csd_comp_s,
            host.ctr,
            "never" if host.devices is None else str(host.devices),
            host.closed_form_devices,
            "" if host.difference == "none" else host.difference.replace("_", " "),
        )
        for host in system.hosts
    ]
    columns = (
        "SSD side", "SSD tx_s", "SSD comp_s", "CSD tx_s", "CSD comp_s", "compute share",
        "break-even drives", "closed form", "closed form misses",
    )  # fmt: skip
    note = (
        f"{system.workload_class}; slow-down of transfer {result.sd_tx:g}, of compute "
        f"{result.sd_comp:g}; times of one device"
    )
    return sheet("One device's times, and the break-even point", columns, rows, note)


def _curves(result: BepResult) -> str:
    drawn = curves(result)
    text = "; ".join(answers(result.systems[0]))
    return figure(lambda path: plot.throughput(drawn, path), f"Throughput over devices. {text}")


def _misses(system: SystemResult) -> str:
    texts = [
        f"Host({host.host_cores}): the closed form says "
        f"{'more than 2^53' if host.closed_form_devices is None else host.closed_form_devices}, "
        f"and is wrong here: {_MISSES[host.difference]}."
        for host in system.hosts
        if host.difference in _MISSES
    ]
    if not texts:
        return paragraph("The published closed form gives the same numbers.", "note")
    return items(texts, "warn")


def _setting(ask: Ask) -> Setting:
    return Setting(
        cores=ask.host_cores[0], k_limit=ask.k_limit, sd_tx=ask.sd_tx, sd_comp=ask.sd_comp
    )


def _needed(ask: Ask) -> Sheet:
    return needed(ask.load, ask.target, host_cores=ask.host_cores, base=_setting(ask))


def _surface(ask: Ask) -> str:
    found = surface(ask.load, _MULTIPLIERS, _MULTIPLIERS, iso=(ask.target,), base=_setting(ask))
    panel = Surface(
        title=found.title,
        across="internal bandwidth, times",
        up="computational power, times",
        x=found.bandwidth,
        y=found.compute,
        z=tuple(tuple(float(z) if z else float("nan") for z in row) for row in found.devices),
        iso=tuple((f"BEP {count}", found.bandwidth, places) for count, places in found.iso),
    )
    return figure(
        lambda path: plot.surface([panel], path),
        f"Break-even point over the drive's bandwidth and compute, with the line of {ask.target}",
    )


def _sureness(ask: Ask) -> list[str]:
    parts = []
    for cores in ask.host_cores:
        question = uncertain(ask.profile, ask.load, host_cores=cores, k_limit=ask.k_limit)
        factors = {"sd_tx": ask.sd_tx, "sd_comp": ask.sd_comp}
        question = replace(question, fixed={**question.fixed, **factors})
        found = uncertainty(question, samples=_SAMPLES, base=_BASE, seed=1)
        quantiles, indices, _ = found.sheets()
        parts += [table(quantiles), table(indices), items(found.warnings, "note")]
    return parts


def _costs(systems: list[System], kernel: Kernel, service: Service) -> list[str]:
    as_is = [cost_of(system, kernel, service) for system in systems]
    equal = equal_throughput(systems, kernel, service)
    panels = [
        Bars(
            title,
            "purchase [USD]",
            tuple(each.system.name for each in costs),
            tuple(each.purchase_usd if each.feasible else None for each in costs),
        )
        for title, costs in (("As configured", as_is), ("At equal throughput", equal))
    ]
    unknown = [each.system.name for each in as_is if each.energy_usd is None]
    return [
        table(cost_sheet("As configured", as_is, "saved: against the first system's purchase")),
        table(cost_sheet("At the first system's throughput", equal, "drives counted anew")),
        figure(lambda path: plot.bars(panels, path), "Purchase of each system, as two bar charts"),
        table(price_sensitivity(equal, _DRIVE_USD)),
        items([f"power unknown, so no energy: {', '.join(unknown)}"] if unknown else [], "warn"),
    ]


def _purchase(request: Request) -> list[str]:
    plan = optimise(request)
    if plan is None:
        return [table(lacking(shortfalls(request)))]
    return [table(found) for found in (bill(request, plan), work(plan), requirements(plan))]


def _basis(ask: Ask, system: SystemResult) -> list[str]:
    meta = ask.profile.meta
    times = {
        "ssd_tx_s": system.hosts[0].ssd_tx_s,
        "ssd_comp_s": system.hosts[0].ssd_comp_s,
        "csd_tx_s": system.csd_tx_s,
        "csd_comp_s": system.csd_comp_s,
    }
    rows = [(name, times[name], prov) for name, prov in system.prov.items() if name in times]
    rows.append(("k_limit", float(system.k_limit), f"by {system.k_limit_from}"))
    known = [
        f"{name}: {value}"
        for name, value in (
            ("machine", meta.machine),
            ("date", meta.date),
            ("source", meta.source),
            ("version", meta.version),
            ("commit", meta.commit),
            ("note", meta.note),
        )
        if value
    ]
    equations = (
        "Equations: Byun et al., An Analytical Model-based Capacity Planning Approach for Building "
        "CSD-based Storage Systems, https://doi.org/10.1145/3623677"
    )
    return [
        table(sheet("Inputs and where they come from", ("input", "value", "provenance"), rows)),
        paragraph(f"Profile {ask.name}:"),
        items(known),
        paragraph("Assumptions of the model:"),
        items(_ABSENT),
        paragraph(equations, "note"),
    ]


def write(path: Path, ask: Ask) -> None:
    """Write the report to `path`.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    path.write_text(document(ask), encoding="utf-8")
