"""Energy of a job on what a plan buys: energy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from csdplan.commands.question import (
    PROFILE,
    AskOption,
    Choice,
    CoreProfileOption,
    OnlyOption,
    ProtectOption,
    StoreOption,
    WithoutOption,
    WorkloadOption,
    ask_of,
)
from csdplan.commands.tables import Tables
from csdplan.errors import ModelError
from csdplan.hardware import Part, load_catalogue
from csdplan.model.cost import PUE
from csdplan.options import (
    CatalogueOption,
    DriveOption,
    Option,
    Paths,
    PriceDateOption,
    PricesOption,
    TimeLimitOption,
    check_time_limit,
    documented,
    paths_of,
)
from csdplan.profile.meter import Metered, read_record
from csdplan.request.ask import Ask
from csdplan.request.offer import check_known
from csdplan.result import energy as sheets
from csdplan.solve import optimize as solver
from csdplan.solve.energy import Energy, energy_of
from csdplan.solve.plans import Plan
from csdplan.units import quantity

#: A limit that no purchase reaches, so that watts are asked for and nothing is refused [W].
_ANY_W = 1e12


@documented
def energy(
    *,
    job: Annotated[str | float, Option("Input of the job, such as 10TB.", metavar="SIZE")] = "1TB",
    record: Annotated[
        Paths,
        Option(
            "What csd meter recorded of the job; then its work draws what was measured. Repeat it.",
            type=list[Path],
        ),
    ] = (),
    input: Annotated[
        str | float | None,
        Option("Input of the recorded job, if it is not what was read of drives.", metavar="SIZE"),
    ] = None,
    store: StoreOption = None,
    workload: WorkloadOption = (),
    protect: ProtectOption = None,
    kwh: Annotated[
        float | None, Option("Price of a kWh; then a job has one, too.", metavar="USD", min=0)
    ] = None,
    pue: Annotated[float, Option("Power usage effectiveness of the site.", min=1, max=10)] = PUE,
    ask: AskOption = None,
    only: OnlyOption = (),
    without: WithoutOption = (),
    compare: Annotated[
        Sequence[str],
        Option(
            "Compare with the purchase whose drives are of this kind alone. Repeat it.",
            metavar="PART",
            type=list[str],
        ),
    ] = (),
    catalogue: CatalogueOption = (),
    drive: DriveOption = (),
    profile: CoreProfileOption = PROFILE,
    prices: PricesOption = None,
    price_date: PriceDateOption = None,
    time_limit_s: TimeLimitOption = 20.0,
) -> Tables:
    """Find the energy of a job, and of a TB, on what a plan buys.

    Quantities are text with units, or numbers in base units. Returns the sheets ``jobs`` and
    ``parts``, and ``measured`` if there are records, which is all without a question; fact
    ``answer`` is one paragraph.
    """
    check_time_limit(time_limit_s)
    size = _size("job", job)
    measured = _records(record, input)
    given = {"store": store, "workload": list(workload) or None, "protect": protect}
    tables = {"measured": sheets.measured(measured, size, pue, kwh)} if measured else {}
    warnings = tuple(one for metered, _ in measured for one in metered.warnings)
    if measured and ask is None and not any(given.values()):
        said = sheets.measured_paragraph(measured)
        return Tables(tables, warnings, facts={"verdict": "measured", "answer": said})
    question = _question(given, ask, measured)
    chosen = load_catalogue(prices, paths_of(catalogue), drives=paths_of(drive), latest=price_date)
    check_known(chosen, "compare", compare)
    names = {"cheapest": tuple(only)} | {
        f"with {name}": (*_hosts(chosen.parts, only), name) for name in compare
    }
    found: dict[str, tuple[Plan, list[Energy]]] = {}
    for name, alone in names.items():
        choice = Choice.of(chosen, profile, alone, without)
        answer = _answered(choice, question, size, time_limit_s)
        if answer is None:
            warnings += (f"{name}: nothing can be bought that meets this",)
        else:
            found[name] = answer
    if not found:
        text = (
            "Nothing can be bought that meets this: csdplan plan with the same question says why."
        )
        return Tables(tables, warnings, facts={"verdict": "infeasible", "answer": text})
    jobs = {"jobs": sheets.jobs(found, measured, pue, kwh), "parts": sheets.parts(found)}
    facts = {"verdict": "found", "answer": sheets.paragraph(found, measured)}
    return Tables(jobs | tables, warnings, facts=facts)


def _size(name: str, value: str | float) -> float:
    size = quantity(name, value, "bytes")
    if not size > 0:
        raise ModelError(name, value, "more than 0 bytes")
    return size


def _records(record: Paths, given: str | float | None) -> list[tuple[Metered, float]]:
    """Return the records with the input of their job."""
    if given is not None and not record:
        raise ModelError("input", given, "a record whose job had this input")
    size = None if given is None else _size("input", given)
    found = [read_record(path) for path in paths_of(record)]
    for one in found:
        if size is None and not one.read_bytes:
            expected = f"the input of the job of {one.name}, which read nothing of drives"
            raise ModelError("input", "absent", expected)
    return [(one, size or one.read_bytes) for one in found]


def _question(
    given: Mapping[str, object], ask: str | Path | None, measured: Sequence[tuple[Metered, float]]
) -> Ask:
    question = ask_of(given, ask)
    if not question.works:
        raise ModelError("workload", "none", "at least one, such as count=20GB/s")
    if measured and len(question.works) > 1:
        names = ", ".join(work.name for work in question.works)
        raise ModelError("workload", names, "one, that of the record")
    return replace(question, power_W=question.power_W or _ANY_W)


def _hosts(parts: Mapping[str, Part], only: Sequence[str]) -> tuple[str, ...]:
    drives = {"ssd", "csd", "network-drive"}
    return tuple(name for name in only if name in parts and parts[name].kind not in drives)


def _answered(
    choice: Choice, question: Ask, size: float, time_limit_s: float
) -> tuple[Plan, list[Energy]] | None:
    request = choice.asked(question).request
    plan = solver.optimize(request, time_limit_s=time_limit_s, explain=False)
    return None if plan is None else (plan, energy_of(request, plan, size))
