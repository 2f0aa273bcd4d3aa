"""Purchases over the hours of a day, and over years: day, steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Annotated

from csdplan.commands.question import (
    PROFILE,
    AskOption,
    Choice,
    CoreProfileOption,
    GrowthOption,
    OnlyOption,
    PowerOption,
    ProtectOption,
    StoreOption,
    WithoutOption,
    WorkloadOption,
    YearsOption,
    ask_of,
)
from csdplan.commands.tables import Tables
from csdplan.errors import ModelError
from csdplan.hardware import load_catalogue
from csdplan.options import (
    CatalogueOption,
    DriveOption,
    Option,
    PriceDateOption,
    PricesOption,
    TimeLimitOption,
    check_time_limit,
    documented,
    paths_of,
)
from csdplan.request.ask import Ask
from csdplan.request.stock import HAVE, with_stock
from csdplan.request.windows import ask_in, peaks, windows_of, with_daily_writes
from csdplan.result import timed as sheets
from csdplan.solve import optimize as solver
from csdplan.solve import periods, sequence
from csdplan.solve.purchase import Request
from csdplan.units import quantity

#: Times of a day that are planned apart, and purchases over the years, at most.
_TIMES_MAX, _STEPS_MAX = 8, 20


@documented
def day(
    *,
    window: Annotated[
        Sequence[str],
        Option(
            "A time of the day with what is written and processed in it, such as "
            "8-10,write=30GB/s or 22-6,count=20GB/s. Repeat it; what overlaps adds up.",
            metavar="FROM-TO,NAME=RATE,...",
            type=list[str],
        ),
    ] = (),
    store: StoreOption = None,
    protect: ProtectOption = None,
    power: PowerOption = None,
    growth: GrowthOption = None,
    years: YearsOption = None,
    only: OnlyOption = (),
    without: WithoutOption = (),
    catalogue: CatalogueOption = (),
    drive: DriveOption = (),
    profile: CoreProfileOption = PROFILE,
    prices: PricesOption = None,
    price_date: PriceDateOption = None,
    time_limit_s: TimeLimitOption = 20.0,
) -> Tables:
    """Plan a purchase for the windows of a day: peaks that are not all at once, volumes by the day.

    Quantities are text with units, or numbers in base units. Returns the sheets ``bill`` and
    ``windows``; fact ``answer`` is one paragraph.
    """
    check_time_limit(time_limit_s)
    times = windows_of(window)
    if not 1 <= len(times) <= _TIMES_MAX:
        raise ModelError(
            "window", f"{len(times)} times of the day", f"1 to {_TIMES_MAX} that differ"
        )
    given: dict[str, object] = {
        "store": store, "protect": protect, "power": power, "growth": growth, "years": years,
        "workload": [],
    }  # fmt: skip
    if store is None:
        # Windows alone are a question; reading next to nothing stands for them until then.
        given["workload"] = [{"name": "none", "throughput": "1B/s", "core": "1GB/s"}]
    base = ask_of(given, None)
    # Every window has the same parts on offer.
    base = replace(base, network=any(ask_in(base, one).has_clients for one in times))
    chosen = load_catalogue(prices, paths_of(catalogue), drives=paths_of(drive), latest=price_date)
    choice = Choice.of(chosen, profile, only, without)
    asked = [choice.asked(ask_in(base, one)) for one in times]
    requests = [
        with_daily_writes(one.request, time, times) for one, time in zip(asked, times, strict=True)
    ]
    found = periods.shared(requests, time_limit_s=time_limit_s)
    warnings = tuple(f"left out: {text}" for text in asked[0].left_out)
    if found is None:
        text = "Nothing can be bought that meets every window: csdplan plan with one says why."
        return Tables({}, warnings, facts={"verdict": "infeasible", "answer": text})
    at_once = choice.asked(ask_in(base, peaks(times))).request
    always = solver.optimize(at_once, time_limit_s=time_limit_s, explain=False)
    bill = sheets.bill(requests[0], found)
    answer = sheets.day_text(found, None if always is None else always.price_usd, choice.titles)
    tables = {"bill": bill, "windows": sheets.windows(times, found)}
    return Tables(tables, warnings, facts={"verdict": "found", "answer": answer})


@documented
def steps(
    *,
    store: StoreOption = None,
    workload: WorkloadOption = (),
    protect: ProtectOption = None,
    growth: GrowthOption = None,
    years: YearsOption = None,
    every: Annotated[
        str | float,
        Option("Time between purchases, such as 1y or 6 months as 0.5.", metavar="YEARS"),
    ] = "1",
    decay: Annotated[
        str | float,
        Option("What drives get cheaper a year, of their price then.", metavar="SHARE"),
    ] = "15%",
    decay_hosts: Annotated[
        str | float,
        Option("The same of hosts, cards and switches.", metavar="SHARE"),
    ] = "0%",
    discount: Annotated[str | float, Option("What money brings a year.", metavar="SHARE")] = "5%",
    ask: AskOption = None,
    only: OnlyOption = (),
    without: WithoutOption = (),
    catalogue: CatalogueOption = (),
    drive: DriveOption = (),
    profile: CoreProfileOption = PROFILE,
    prices: PricesOption = None,
    price_date: PriceDateOption = None,
    time_limit_s: TimeLimitOption = 20.0,
) -> Tables:
    """Plan growth bought in steps, and compare with buying all of it now.

    Quantities are text with units, or numbers in base units. Returns the sheets ``steps``,
    ``compared``; fact ``answer`` is one paragraph.
    """
    check_time_limit(time_limit_s)
    shares = {
        name: _share(name, value)
        for name, value in (("decay", decay), ("decay_hosts", decay_hosts), ("discount", discount))
    }
    given = {
        "store": store, "workload": list(workload) or None, "protect": protect, "growth": growth,
        "years": years,
    }  # fmt: skip
    base = replace(ask_of(given, ask), kwh_usd=None)
    apart = quantity("every", every, "years")
    if not base.years / _STEPS_MAX <= apart:
        raise ModelError("every", every, f"at least {base.years / _STEPS_MAX:g} years")
    chosen = load_catalogue(prices, paths_of(catalogue), drives=paths_of(drive), latest=price_date)
    choice = Choice.of(chosen, profile, only, without)

    def request_at(year: float, until: float) -> Request:
        request = choice.asked(_grown(base, until)).request
        left = (1 - shares["decay"]) ** year, (1 - shares["decay_hosts"]) ** year
        return sequence.at_prices(request, *left)

    find = partial(solver.optimize, time_limit_s=time_limit_s, explain=False)
    rest = (shares["discount"], find, _have, HAVE)
    slow = sequence.steps(request_at, base.years, apart, *rest)
    once = sequence.steps(request_at, base.years, base.years, *rest)
    if slow is None or once is None:
        text = (
            "Nothing can be bought that meets this: csdplan plan with the same question says why."
        )
        return Tables({}, facts={"verdict": "infeasible", "answer": text})
    tables = {"steps": sheets.steps(slow), "compared": sheets.compared(once, slow, apart)}
    answer = sheets.steps_text(once, slow, shares["decay"])
    return Tables(tables, facts={"verdict": "found", "answer": answer})


def _have(request: Request, there: Mapping[str, int]) -> Request:
    return with_stock(request, there, 0.0)


def _grown(ask: Ask, years: float) -> Ask:
    """Return what is asked for after some years, without further growth."""
    factor = (1.0 + ask.growth) ** years
    return replace(
        ask,
        store_bytes=factor * ask.store_bytes,
        cold_bytes=factor * ask.cold_bytes,
        cold_read_Bps=factor * ask.cold_read_Bps,
        write_Bps=factor * ask.write_Bps,
        serve_Bps=factor * ask.serve_Bps,
        works=tuple(replace(one, required_Bps=factor * one.required_Bps) for one in ask.works),
        growth=0.0,
    )


def _share(name: str, value: str | float) -> float:
    share = quantity(name, value, "share")
    if share >= 1:
        raise ModelError(name, value, "a share below 1, or below 100%")
    return share
