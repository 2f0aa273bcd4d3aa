"""Purchases over the hours of a day and over years, as sheets and paragraphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from csdplan.request.windows import HOURS, Window
from csdplan.result.sheet import Sheet, Value, sheet_of
from csdplan.solve.periods import Shared
from csdplan.solve.purchase import Request
from csdplan.solve.sequence import Step

#: A price this much above what no purchase can be below is called the least.
_SAME = 1e-6


def bill(request: Request, found: Shared) -> Sheet:
    """Return the bill of a purchase for all windows."""
    prices = {cpu.name: ("host", cpu.price_usd) for cpu in request.cpus}
    prices |= {kind.name: ("drive", kind.price_usd) for kind in request.drives}
    prices |= {
        part.name: ("switch" if part.ports else "network card", part.price_usd)
        for part in request.network
    }
    rows: list[tuple[Value, ...]] = [
        (prices[name][0], name, count, prices[name][1], count * prices[name][1])
        for name, count in found.plan.bought.items()
    ]
    rows.append(("all", "", None, None, found.plan.price_usd))
    note = (
        "least price"
        if _is_least(found)
        else f"none costs less than {found.plan.bound_usd:.0f} USD"
    )
    return sheet_of("What to buy", ("what", "name", "count", "price_usd", "cost_usd"), rows, note)


def windows(times: Sequence[Window], found: Shared) -> Sheet:
    """Return what is asked for at each time, and the price of a purchase for that time alone."""
    rows: list[tuple[Value, ...]] = []
    for time, alone in zip(times, found.alone, strict=True):
        works = ", ".join(f"{work.name} {work.required_Bps / 1e9:g} GB/s" for work in time.works)
        daily = time.write_Bps * time.hours * 3600.0
        rows.append((time.name, time.hours, time.write_Bps, daily / 1e12, works, alone.price_usd))
    busy = sum(time.hours for time in times) / HOURS
    columns = ("time", "hours", "write_Bps", "written_TB_a_day", "works", "alone_usd")
    note = f"at work for {busy:.0%} of the day; alone: the purchase for this time by itself"
    return sheet_of("Times of the day", columns, rows, note)


def day_text(found: Shared, always_usd: float | None, titles: Mapping[str, str]) -> str:
    """Say what to buy, and what the same peaks would cost all day and all at once."""
    listed = ", ".join(f"{count} x {titles[name]}" for name, count in found.plan.bought.items())
    text = f"Buy {listed}: ${found.plan.price_usd:,.0f}."
    if not _is_least(found):
        text += f" None costs less than ${found.plan.bound_usd:,.0f}."
    if always_usd is None:
        return f"{text} With all peaks at once, all day, nothing could be bought."
    return f"{text} All peaks at once, all day, would take ${always_usd:,.0f}."


def steps(found: Sequence[Step]) -> Sheet:
    """Return the purchases of each year."""
    rows: list[tuple[Value, ...]] = []
    for step in found:
        listed = ", ".join(f"{count} x {name}" for name, count in step.bought.items())
        rows.append((step.year, listed or "nothing", step.price_usd, step.value_usd))
    columns = ("year", "buy", "price_usd", "value_today_usd")
    return sheet_of("What to buy when", columns, rows, "prices: as they are then")


def compared(once: Sequence[Step], slow: Sequence[Step], every: float) -> Sheet:
    """Return the totals of buying everything now and of buying in steps."""
    rows: list[tuple[Value, ...]] = [
        (name, len(each), _paid(each), _value(each))
        for name, each in (("all now", once), (f"every {every:g} years", slow))
    ]
    columns = ("purchases", "count", "price_usd", "value_today_usd")
    return sheet_of("All now, or in steps", columns, rows)


def steps_text(once: Sequence[Step], slow: Sequence[Step], decay: float) -> str:
    """Say which of both costs less today."""
    now, later = _value(once), _value(slow)
    which = "Buy in steps" if later < now else "Buy all now"
    return (
        f"{which}: ${min(now, later):,.0f} of today's money instead of ${max(now, later):,.0f}, if "
        f"drives get {decay:.0%} cheaper a year. The first of {len(slow)} steps costs "
        f"${slow[0].price_usd:,.0f}."
    )


def _paid(found: Sequence[Step]) -> float:
    return sum(step.price_usd for step in found)


def _value(found: Sequence[Step]) -> float:
    return sum(step.value_usd for step in found)


def _is_least(found: Shared) -> bool:
    return found.plan.price_usd <= found.plan.bound_usd * (1 + _SAME)
