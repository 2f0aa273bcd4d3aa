"""Content of a report: the answer in one sentence, then the bill, then pictures and their sources.

It asks the same functions as the commands do and adds no number of its own. Sentences say what a
table shows, including where the closed form would mislead and where drives never break even. Every
figure is about the report's own kernel, unless the user gives a scenario of systems.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import csdplan
from csdplan.document.html import figure, items, page, paragraph, section
from csdplan.document.table import table
from csdplan.plot import Bars, figures
from csdplan.profile.schema import Profile
from csdplan.profile.workload import Workload
from csdplan.result.break_even import BepResult, SystemResult, bep
from csdplan.result.confidence import QUANTILES, UncertaintyResult, uncertain, uncertainty
from csdplan.result.costs import Comparison, compared, purchase_sheet, tco
from csdplan.result.listed import Listed
from csdplan.result.planned import Planned
from csdplan.result.purchase import bill, requirements, shortfall_sheet, topology, work
from csdplan.result.sheet import Sheet, sheet_of
from csdplan.result.sheets import MISSES, closed_form_text, times_sheet
from csdplan.result.sweeps import Setting, needed, surface
from csdplan.result.throughput import curves
from csdplan.result.words import (
    PROVENANCES,
    TIMES,
    break_even_sentences,
    cores_text,
    cost_sentence,
    headline,
)
from csdplan.solve.optimize import optimize, shortfalls
from csdplan.solve.purchase import Request
from csdplan.solve.tco import Cost, Kernel, Service, System
from csdplan.units import bytes_text

_MULTIPLIERS = tuple(1 + 0.25 * step for step in range(29))
_SAMPLES, _BASE = 20_000, 256
_ABSENT = (
    "the model adds transfer and compute time, unless an overlap is asked for",
    "the host's compute time is divided by its cores, without a serial part",
    "data are spread evenly, and drives share nothing",
)
_OTHERS = (
    "--scenario FILE.toml costs systems of your own, --ask FILE.toml plans a purchase from the "
    "catalogue of hardware, --prices FILE has both at your prices."
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
    workload : Workload
        The workload.
    host_cores : tuple of int
        The n of each Host(n), at least one; costs and the map are about the last one.
    k_limit : float or None
        Overrides the profile's own.
    sd_tx, sd_comp : float
        Slow-down factors of an overloaded host [1].
    target : int
        The break-even point to ask for what would have to change.
    prices : Listed
        Prices of hosts and drives.
    scenario : tuple or None
        Systems, kernel and service to cost; None for the report's own kernel at `prices`.
    request : Request or None
        A purchase to find.
    planned : Planned or None
        A purchase from the catalogue.
    """

    name: str
    profile: Profile
    workload: Workload
    host_cores: tuple[int, ...]
    prices: Listed
    k_limit: float | None = None
    sd_tx: float = 1.0
    sd_comp: float = 1.0
    target: int = 4
    scenario: tuple[list[System], Kernel, Service] | None = None
    request: Request | None = None
    planned: Planned | None = None


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
    costs = compared(question.workload, _comparison(question))
    parts = [
        section(
            "The answer",
            paragraph(headline(result.kernel, system), "answer"),
            items(_limits(result, system), "note"),
            items(result.warnings, "warn"),
        ),
        section("The bill", *_bill(question, costs)),
        section(
            "How fast",
            _curves(question, result),
            table(times_sheet(result, system)),
            _misses(system),
        ),
        section("What would have to change", table(_needed(question)), _surface(question)),
        section("How sure this is", *_confidence(question)),
        section("What it rests on", *_basis(question, system)),
    ]
    title = f"SSDs or drives that compute: {question.workload.kernel} on {system.device}"
    under = (
        f"Profile {question.name}, Host({cores}), {bytes_text(system.bytes)}, k_limit "
        f"{system.k_limit:.4g}; csdplan {csdplan.__version__}"
    )
    return page(title, under, parts)


def _limits(result: BepResult, system: SystemResult) -> list[str]:
    """Return what limits the SSDs on the last host."""
    _, *more = break_even_sentences(result.kernel, system, system.hosts[-1])
    return more[:1] if system.hosts[-1].devices is not None else []


def _comparison(question: Question) -> Comparison:
    return Comparison(
        host_cores=question.host_cores[-1],
        k_limit=question.k_limit,
        sd_tx=question.sd_tx,
        sd_comp=question.sd_comp,
        host_usd=question.prices.host_usd,
        csd_host_usd=question.prices.host_usd,
        ssd_usd=question.prices.ssd_usd,
        csd_usd=question.prices.csd_usd,
        drive_bytes=question.prices.drive_bytes,
    )


def _bill(question: Question, costs: tuple[Cost, Cost, Cost]) -> list[str]:
    parts = []
    if question.planned is not None:
        parts.append(paragraph(question.planned.answer, "answer"))
        parts += [table(sheet) for sheet in question.planned.sheets.values()]
        parts.append(items(question.planned.warnings, "note"))
    if question.request is not None:
        parts += _purchase(question.request)
    if question.scenario is not None:
        return parts + _costs(*question.scenario)
    return [
        *parts,
        paragraph(cost_sentence(costs)),
        table(purchase_sheet(costs)),
        figure([figures.compared(costs)]),
        paragraph(f"{question.prices} {_OTHERS}", "note"),
    ]


def _curves(question: Question, result: BepResult) -> str:
    found = curves(result, [question.workload])
    return figure([figures.throughput(each) for each in found])


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
        host_cores=question.host_cores[-1],
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
    return figure([figures.surface(found)])


def _confidence(question: Question) -> list[str]:
    """Return one table of quantiles for all hosts, and what the last host's answer hangs on."""
    found = [_uncertainty(question, cores) for cores in question.host_cores]
    columns = ("SSDs on", *(f"{share:.0%} of cases" for share in QUANTILES), "never")
    rows = [
        (
            cores_text(cores),
            *(each.distribution.quantile(share) for share in QUANTILES),
            f"{each.distribution.never / each.distribution.samples:.1%}",
        )
        for cores, each in zip(question.host_cores, found, strict=True)
    ]
    note = f"{_SAMPLES} draws; in that share of them so many drives are enough"
    quantiles = sheet_of("Break-even points, from the spreads of the times", columns, rows, note)
    panels: list[Bars] = figures.uncertain(found[-1])
    _, indices, _ = found[-1].sheets()
    return [
        table(quantiles),
        figure(panels),
        table(indices),
        items(found[-1].warnings, "note"),
    ]


def _uncertainty(question: Question, cores: int) -> UncertaintyResult:
    case = uncertain(
        question.profile, question.workload, host_cores=cores, k_limit=question.k_limit
    )
    factors = {"sd_tx": question.sd_tx, "sd_comp": question.sd_comp}
    case = replace(case, fixed={**case.fixed, **factors})
    return uncertainty(case, samples=_SAMPLES, base=_BASE, seed=1)


def _costs(systems: list[System], kernel: Kernel, service: Service) -> list[str]:
    found = tco(systems, kernel, service)
    as_is, equal, prices = found.sheets()
    return [
        table(as_is),
        table(equal),
        figure(figures.purchases(found)),
        table(prices),
        items(found.warnings, "warn"),
    ]


def _purchase(request: Request) -> list[str]:
    plan = optimize(request)
    if plan is None:
        return [table(shortfall_sheet(shortfalls(request)))]
    sheets = (bill(request, plan), work(plan), topology(request, plan), requirements(plan))
    return [table(found) for found in sheets]


def _basis(question: Question, system: SystemResult) -> list[str]:
    meta = question.profile.meta
    times = {
        "ssd_tx_s": system.hosts[0].ssd_tx_s,
        "ssd_comp_s": question.workload.host(1).comp_s,
        "csd_tx_s": system.csd_tx_s,
        "csd_comp_s": system.csd_comp_s,
    }
    rows = [(words, times[name], "s", system.prov[name]) for name, words in TIMES.items()]
    rows.append(("host's link: SSDs that fill it", system.k_limit, "SSDs", system.k_limit_from))
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
    columns = ("number", "value", "unit", "provenance")
    return [
        table(sheet_of("Numbers and where they come from", columns, rows)),
        items([f"{name}: {words}" for name, words in PROVENANCES.items()], "note"),
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
