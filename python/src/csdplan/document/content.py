"""Content of a report: the answer first, then figures and costs, then their sources.

It asks the same functions as the commands do and adds no number of its own. Sentences say what a
table shows, including where the closed form would mislead and where drives never break even.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import csdplan
from csdplan.document.html import figure, items, page, paragraph, section, table
from csdplan.plot import figures
from csdplan.profile.schema import Profile
from csdplan.profile.workload import Workload
from csdplan.result.break_even import BepResult, HostResult, SystemResult, bep
from csdplan.result.confidence import uncertain, uncertainty
from csdplan.result.costs import tco
from csdplan.result.purchase import bill, requirements, shortfall_sheet, work
from csdplan.result.sheet import Sheet, sheet_of
from csdplan.result.sheets import MISSES, closed_form_text, spread_text, times_sheet
from csdplan.result.sweeps import Setting, needed, surface
from csdplan.result.throughput import curves
from csdplan.solve.optimize import optimize, shortfalls
from csdplan.solve.purchase import Request
from csdplan.solve.tco import Kernel, Service, System
from csdplan.units import bytes_text

_MULTIPLIERS = tuple(1 + 0.25 * step for step in range(29))
_SAMPLES, _BASE = 20_000, 256
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
class Question:
    """Subject of a report.

    Attributes
    ----------
    name : str
        Name of the profile.
    profile : Profile
        The profile that `workload` was resolved from.
    load : Workload
        The workload.
    host_cores : tuple of int
        The n of each Host(n), at least one.
    k_limit : float or None
        Overrides the profile's own.
    sd_tx, sd_comp : float
        Slow-down factors of an overloaded host [1].
    target : int
        The break-even point to ask for what would have to change.
    scenario : tuple or None
        Systems, kernel and service to cost.
    is_example : bool
        True if the scenario is the published one, which is independent of the profile.
    request : Request or None
        A purchase to find.
    """

    name: str
    profile: Profile
    workload: Workload
    host_cores: tuple[int, ...]
    k_limit: float | None = None
    sd_tx: float = 1.0
    sd_comp: float = 1.0
    target: int = 4
    scenario: tuple[list[System], Kernel, Service] | None = None
    is_example: bool = False
    request: Request | None = None


def render(question: Question) -> str:
    """Return the report as HTML.

    Raises
    ------
    CsdplanError
        If an argument is out of range or the profile lacks what is needed.
    """
    result = bep(
        [question.workload],
        question.host_cores,
        k_limit=question.k_limit,
        sd_tx=question.sd_tx,
        sd_comp=question.sd_comp,
    )
    (system,) = result.systems
    cores = ", ".join(str(host.host_cores) for host in system.hosts)
    parts = [
        section("The answer", items(answers(system), "answer"), items(result.warnings, "warn")),
        section(
            "Break-even points",
            table(times_sheet(result, system)),
            _curves(result),
            _misses(system),
        ),
        section("What would have to change", table(_needed(question)), _surface(question)),
        section("How sure this is", *_confidence(question)),
    ]
    if question.scenario is not None:
        said = [paragraph(_EXAMPLE, "note")] if question.is_example else []
        parts.append(section("Cost of ownership", *said, *_costs(*question.scenario)))
    if question.request is not None:
        parts.append(section("What to buy", *_purchase(question.request)))
    parts.append(section("What it rests on", *_basis(question, system)))
    title = f"SSDs or computational drives: {question.workload.kernel} on {system.device}"
    under = (
        f"Profile {question.name}, Host({cores}), {bytes_text(system.bytes)}, k_limit "
        f"{system.k_limit:.4g}; csdplan {csdplan.__version__}"
    )
    return page(title, under, parts)


def answers(system: SystemResult) -> list[str]:
    """Return a sentence for each Host(n)."""
    return [_answer(system, host) for host in system.hosts]


def _answer(system: SystemResult, host: HostResult) -> str:
    against = f"as many {system.ssd} SSDs on {host.host_cores} host core(s)"
    if host.devices is not None:
        spread = spread_text(host)
        sure = f"{spread.rstrip(')')} in 90 % of cases)" if spread else ""
        some = f"From {host.devices} drives{sure} on, {system.device} is faster than {against}"
        if system.k_limit < host.devices:
            some += f"; the host takes in no more than {system.k_limit:.4g} SSDs at full speed"
        return some + "."
    if host.verdict == "never":
        return (
            f"{system.device} never overtakes {against}: however many drives, it takes "
            f"{host.csd_limit_s:.3g} s at best, the SSDs {host.ssd_limit_s:.3g} s."
        )
    return f"{system.device} overtakes {against} only beyond 2^53 drives: in practice never."


def _curves(result: BepResult) -> str:
    text = "; ".join(answers(result.systems[0]))
    panels = [figures.throughput(each) for each in curves(result)]
    return figure(panels, f"Throughput over devices. {text}")


def _misses(system: SystemResult) -> str:
    texts = [
        f"Host({host.host_cores}): the closed form says {closed_form_text(host)}, "
        f"and is wrong here: {MISSES[host.difference].sentence}."
        for host in system.hosts
        if host.difference in MISSES
    ]
    if not texts:
        return paragraph("The published closed form gives the same numbers.", "note")
    return items(texts, "warn")


def _setting(question: Question) -> Setting:
    return Setting(
        host_cores=question.host_cores[0],
        k_limit=question.k_limit,
        sd_tx=question.sd_tx,
        sd_comp=question.sd_comp,
    )


def _needed(question: Question) -> Sheet:
    return needed(
        question.workload, question.target, host_cores=question.host_cores, base=_setting(question)
    )


def _surface(question: Question) -> str:
    found = surface(
        question.workload,
        _MULTIPLIERS,
        _MULTIPLIERS,
        iso=(question.target,),
        base=_setting(question),
    )
    text = "Break-even point over the drive's bandwidth and compute, with the line of"
    return figure([figures.surface(found)], f"{text} {question.target}")


def _confidence(question: Question) -> list[str]:
    parts = []
    for cores in question.host_cores:
        case = uncertain(
            question.profile, question.workload, host_cores=cores, k_limit=question.k_limit
        )
        factors = {"sd_tx": question.sd_tx, "sd_comp": question.sd_comp}
        case = replace(case, fixed={**case.fixed, **factors})
        found = uncertainty(case, samples=_SAMPLES, base=_BASE, seed=1)
        quantiles, indices, _ = found.sheets()
        parts += [table(quantiles), table(indices), items(found.warnings, "note")]
    return parts


def _costs(systems: list[System], kernel: Kernel, service: Service) -> list[str]:
    found = tco(systems, kernel, service)
    as_is, equal, prices = found.sheets()
    return [
        table(as_is),
        table(equal),
        figure(figures.purchases(found), "Purchase of each system, as two bar charts"),
        table(prices),
        items(found.warnings, "warn"),
    ]


def _purchase(request: Request) -> list[str]:
    plan = optimize(request)
    if plan is None:
        return [table(shortfall_sheet(shortfalls(request)))]
    return [table(found) for found in (bill(request, plan), work(plan), requirements(plan))]


def _basis(question: Question, system: SystemResult) -> list[str]:
    meta = question.profile.meta
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
        table(sheet_of("Inputs and where they come from", ("input", "value", "provenance"), rows)),
        paragraph(f"Profile {question.name}:"),
        items(known),
        paragraph("Assumptions of the model:"),
        items(_ABSENT),
        paragraph(equations, "note"),
    ]


def write(path: Path, question: Question) -> None:
    """Write the report to `path`.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    path.write_text(render(question), encoding="utf-8")
