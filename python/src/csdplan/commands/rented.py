"""Owning compared with renting instances of a cloud: cloud."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from csdplan import published
from csdplan.commands.question import (
    PROFILE,
    AskOption,
    Choice,
    CoreProfileOption,
    GrowthOption,
    OnlyOption,
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
from csdplan.model.rent import egress_years_usd, hourly_even_usd, hours_even, rent_usd
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
from csdplan.request.load import core_s_per_byte
from csdplan.result import rented as sheets
from csdplan.result.sourced import Sourced, numbers
from csdplan.solve import optimize as solver
from csdplan.solve.cloud import Instance, needed
from csdplan.units import quantity

_DAY = 24.0


@documented
def cloud(
    *,
    store: StoreOption = None,
    workload: WorkloadOption = (),
    protect: ProtectOption = None,
    write: Annotated[str | float | None, Option("Client data written.", metavar="RATE")] = None,
    growth: GrowthOption = None,
    years: YearsOption = None,
    hours: Annotated[
        float,
        Option(
            "Hours of each day in which instances run; fewer than 24 without --store.",
            min=0.1,
            max=24,
        ),
    ] = _DAY,
    egress: Annotated[
        str | float, Option("Traffic out of the cloud in a month, such as 50TB.", metavar="SIZE")
    ] = "0TB",
    hourly: Annotated[
        float | None,
        Option(
            "Price of an instance's hour, such as that of a commitment.", metavar="USD", min=0.001
        ),
    ] = None,
    instance: Annotated[
        str, Option("The instance. Default: i3en.24xlarge.", metavar="NAME")
    ] = "i3en.24xlarge",
    kwh: Annotated[
        float, Option("Price of a kWh at your site, assumed.", metavar="USD", min=0)
    ] = 0.15,
    running: Annotated[
        str | float,
        Option(
            "Rack, staff and support a year, as a share of the purchase, assumed.", metavar="SHARE"
        ),
    ] = "10%",
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
    """Compare what a plan buys with cloud instances that do the same: price an hour, and traffic.

    Quantities are text with units, or numbers in base units. Returns the sheets ``costs``,
    ``instances`` and ``numbers``; fact ``answer`` is one paragraph.
    """
    check_time_limit(time_limit_s)
    month = quantity("egress", egress, "bytes")
    share = quantity("running", running, "share")
    given = {
        "store": store, "workload": list(workload) or None, "protect": protect, "write": write,
        "growth": growth, "years": years,
    }  # fmt: skip
    question = replace(ask_of(given, ask), kwh_usd=kwh)
    if question.cold_bytes:
        raise ModelError("cold", question.cold_bytes, "none: instances have no hard drives")
    if question.store_bytes and hours < _DAY:
        raise ModelError("hours", hours, "24 with data to keep: stopped instances lose it")
    body = published.read("cloud.toml")
    rented, used = _instance(body, instance, hourly)
    chosen = load_catalogue(prices, paths_of(catalogue), drives=paths_of(drive), latest=price_date)
    choice = Choice.of(chosen, profile, only, without)
    request = choice.asked(question).request
    plan = solver.optimize(request, time_limit_s=time_limit_s, explain=False)
    if plan is None:
        text = (
            "Nothing can be bought that meets this: csdplan plan with the same question says why."
        )
        return Tables({}, facts={"verdict": "infeasible", "answer": text})
    rates = {work.name: work.required_Bps * question.grown for work in question.works}
    times = {
        work.name: 1.0 / work.core_Bps
        if work.core_Bps
        else core_s_per_byte(choice.profile, work.name) or 0.0
        for work in question.works
    }
    found = needed(rented, request.limits, times, rates)
    count = max(found.values())
    out = egress_years_usd(month, _tiers(body), question.years)
    owned_usd = plan.cost_usd + share * question.years * plan.price_usd
    one = sheets.Compared(
        years=question.years,
        hours=hours,
        purchase_usd=plan.price_usd,
        energy_usd=plan.energy_usd,
        running_usd=share * question.years * plan.price_usd,
        instance=rented.name,
        count=count,
        rent_usd=rent_usd(count, rented.hourly_usd, hours, question.years),
        egress_usd=out,
        # Data that is kept leaves no choice of hours.
        even_hours=None
        if question.store_bytes
        else hours_even(owned_usd - out, count, rented.hourly_usd, question.years),
        even_hourly_usd=hourly_even_usd(owned_usd - out, count, hours, question.years),
    )
    used["kwh"] = (kwh, "assumed", "this question, or its default", None)
    used["running"] = (share, "assumed", "this question, or its default", None)
    tables = {
        "costs": sheets.costs(one),
        "instances": sheets.instances(found),
        "numbers": numbers(used),
    }
    facts = {"verdict": "found", "answer": sheets.paragraph(one)}
    return Tables(tables, facts=facts)


def _instance(
    body: dict[str, Any], name: str, hourly: float | None
) -> tuple[Instance, dict[str, Sourced]]:
    """Return an instance, and where its numbers are from."""
    known: dict[str, dict[str, Any]] = {one["name"]: one for one in body["instance"]}
    if name not in known:
        raise ModelError("instance", name, f"one of {', '.join(known)}")
    values: dict[str, Any] = {}
    used: dict[str, Sourced] = {}
    for key, one in known[name].items():
        if key == "name":
            continue
        source = body["source"][one["source"]]
        text = f"{source['publisher']}: {source['document']}"
        values[key] = one["value"]
        used[f"{key} of {name}"] = (one["value"], one["prov"], text, source["date"])
    if hourly is not None:
        values["hourly_usd"] = hourly
        used[f"hourly_usd of {name}"] = (hourly, "given", "this question", None)
    source = body["source"][body["egress"]["source"]]
    first = next(usd for _, usd in _tiers(body) if usd)
    text = f"{source['publisher']}: {source['document']}"
    used["traffic out, USD a GB of the first tier"] = (first, "given", text, source["date"])
    return Instance(name=name, **values), used


def _tiers(body: dict[str, Any]) -> list[tuple[float, float]]:
    return [(float(end), float(usd)) for end, usd in body["egress"]["tiers"]]
