"""An upgrade of hosts and drives that are there: upgrade."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from csdplan.commands.question import (
    PROFILE,
    AskOption,
    Choice,
    CoreProfileOption,
    GrowthOption,
    KwhOption,
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
from csdplan.request.offer import check_known
from csdplan.request.stock import HAVE, owned, sales_usd, with_stock
from csdplan.result import planned, purchase, upgraded
from csdplan.solve import optimize as solver
from csdplan.units import quantity


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
    store: StoreOption = None,
    workload: WorkloadOption = (),
    protect: ProtectOption = None,
    budget: Annotated[
        str | float | None, Option("Beyond what sales bring, such as 400k.", metavar="USD")
    ] = None,
    power: PowerOption = None,
    growth: GrowthOption = None,
    years: YearsOption = None,
    kwh: KwhOption = None,
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
    question = ask_of(given, ask)
    chosen = load_catalogue(prices, paths_of(catalogue), drives=paths_of(drive), latest=price_date)
    check_known(chosen, "have", mine)
    # Parts that are there are always on offer.
    choice = Choice.of(chosen, profile, (*only, *(mine if only else ())), without)
    asked = choice.asked(question)
    request = with_stock(asked.request, mine, share)
    warnings = tuple(f"left out: {text}" for text in asked.left_out)
    best = solver.optimize(request, time_limit_s=time_limit_s)
    if best is None:
        lacking = solver.shortfalls(request, time_limit_s=time_limit_s)
        lost = {"verdict": "infeasible", "answer": planned.impossible(lacking)}
        return Tables({"shortfalls": purchase.shortfall_sheet(lacking)}, warnings, facts=lost)
    new = solver.optimize(asked.request, time_limit_s=time_limit_s, explain=False)
    bill = upgraded.bill(request, best, mine, share)
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
        "answer": upgraded.paragraph(bill, best, new_usd, choice.titles),
        "kept": {name: best.bought.get(name + HAVE, 0) for name in mine},
    }
    return Tables(sheets, warnings, facts=facts)
