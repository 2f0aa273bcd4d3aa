"""An upgrade of hosts and drives that are there: upgrade."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from csdplan.commands.choose import profile_of
from csdplan.commands.tables import Tables
from csdplan.errors import ModelError
from csdplan.hardware import load_catalogue
from csdplan.hardware.measured import inside_of
from csdplan.options import (
    CatalogueOption,
    DriveOption,
    Option,
    PriceDateOption,
    PricesOption,
    ProfileLike,
    TimeLimitOption,
    check_time_limit,
    documented,
    paths_of,
)
from csdplan.request.ask import read_ask, read_file_of_question
from csdplan.request.offer import check_parts, to_request
from csdplan.request.stock import HAVE, owned, sales_usd, with_stock
from csdplan.result import planned, purchase, upgraded
from csdplan.solve import optimize as solver
from csdplan.units import quantity

_PROFILE = "newport"


@documented
def upgrade(
    *,
    have: Annotated[
        Sequence[str],
        Option(
            "A CPU (a host with its chassis) or drive that is there, and how many. Repeat it.",
            metavar="PART=COUNT",
            type=list[str],
        ),
    ] = (),
    resale: Annotated[
        str | float,
        Option("Share of a new part's price that selling it brings. Default: 0%.", metavar="SHARE"),
    ] = "0%",
    store: Annotated[
        str | float | None, Option("Data to keep, such as 500TB.", metavar="SIZE")
    ] = None,
    workload: Annotated[
        Sequence[str],
        Option(
            "A kernel and its input, such as count=120GB/s, or @FILE.toml. Repeat it.",
            metavar="NAME=RATE|@FILE",
            type=list[str],
        ),
    ] = (),
    protect: Annotated[str | None, Option("none, replica:3 or rs:8+2.", metavar="CODE")] = None,
    budget: Annotated[
        str | float | None, Option("Beyond what sales bring, such as 400k.", metavar="USD")
    ] = None,
    power: Annotated[
        str | float | None, Option("With all at work, such as 12kW.", metavar="POWER")
    ] = None,
    growth: Annotated[
        str | float | None, Option("Growth a year, such as 20%.", metavar="SHARE")
    ] = None,
    years: Annotated[
        str | float | None, Option("Years in service. Default: 5.", metavar="YEARS")
    ] = None,
    kwh: Annotated[
        str | float | None, Option("Price of a kWh; then energy is a cost.", metavar="USD")
    ] = None,
    ask: Annotated[
        str | Path | None, Option("A file of a question, as plan takes it; options go before it.")
    ] = None,
    only: Annotated[
        Sequence[str], Option("Consider this part of its kind alone. Repeat it.", type=list[str])
    ] = (),
    without: Annotated[Sequence[str], Option("Leave out this part.", type=list[str])] = (),
    catalogue: CatalogueOption = (),
    drive: DriveOption = (),
    profile: Annotated[
        ProfileLike,
        Option("Profile whose host points give the times of one core. Default: newport.", type=str),
    ] = _PROFILE,
    prices: PricesOption = None,
    price_date: PriceDateOption = None,
    time_limit_s: TimeLimitOption = 20.0,
) -> Tables:
    """Plan an upgrade: which hosts and drives to keep and to sell, and what to buy with them.

    Quantities are text with units, or numbers in base units. Returns the sheets ``bill``,
    ``work``, ``topology`` and ``requirements``, or ``shortfalls`` if nothing does; fact ``answer``
    is one paragraph. Names that end with " (have)" are parts that are there already.
    """
    check_time_limit(time_limit_s)
    mine = owned(list(have))
    if not mine:
        raise ModelError("have", "nothing", "what is there, such as epyc-7763=12")
    share = quantity("resale", resale, "share")
    if share > 1:
        raise ModelError("resale", resale, "a share of at most 1, or 100%")
    given = {
        "store": store, "workload": list(workload) or None, "protect": protect, "budget": budget,
        "power": power, "growth": growth, "years": years, "kwh": kwh,
    }  # fmt: skip
    values = {} if ask is None else read_file_of_question(Path(ask))
    values |= {name: value for name, value in given.items() if value is not None}
    question = read_ask(values, None if ask is None else Path(ask).parent)
    chosen = load_catalogue(prices, paths_of(catalogue), drives=paths_of(drive), latest=price_date)
    check_parts(chosen, only, without)
    check_parts(chosen, tuple(mine), ())
    asked = to_request(
        question,
        chosen,
        profile_of(profile)[1],
        inside_of(chosen.parts.values()),
        only=(*only, *(mine if only else ())),
        without=without,
    )
    request = with_stock(asked.request, mine, share)
    warnings = tuple(f"left out: {text}" for text in asked.left_out)
    best = solver.optimize(request, time_limit_s=time_limit_s)
    if best is None:
        lacking = solver.shortfalls(request, time_limit_s=time_limit_s)
        lost = {"verdict": "infeasible", "answer": planned.impossible(lacking)}
        return Tables({"shortfalls": purchase.shortfall_sheet(lacking)}, warnings, facts=lost)
    new = solver.optimize(asked.request, time_limit_s=time_limit_s, explain=False)
    bill = upgraded.bill(request, best, mine, share)
    titles = {name: part.title for name, part in chosen.parts.items()}
    sold = sales_usd(asked.request, mine, share)
    new_usd = None if new is None else new.price_usd - sold
    sheets = {
        "bill": bill,
        "work": purchase.work(best),
        "topology": purchase.topology(request, best),
        "requirements": purchase.requirements(best),
    }
    facts: dict[str, object] = {
        "verdict": best.verdict.value,
        "answer": upgraded.paragraph(bill, best, new_usd, titles),
        "kept": {name: best.bought.get(name + HAVE, 0) for name in mine},
    }
    return Tables(sheets, warnings, facts=facts)
