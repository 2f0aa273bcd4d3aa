"""Lists of parts over many draws as a sheet and a sentence, and prices at which parts enter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from csdplan.result.sheet import Sheet, Value, sheet_of
from csdplan.solve.plans import Plan
from csdplan.solve.regret import HIGH, LOW, Weighed

#: A share of draws that is worth a word.
_OFTEN = 0.05


def range_text(found: Sequence[Weighed]) -> str:
    """Return what the first list costs in 90 % of cases, in brackets; empty without draws."""
    if not found:
        return ""
    low, high = found[0].quantile_usd(LOW), found[0].quantile_usd(HIGH)
    if high - low < 1:
        return " (the same in 90 % of cases)"
    return f" (${low:,.0f} to ${high:,.0f} in 90 % of cases)"


def regret_text(found: Sequence[Weighed], draws: int, titles: Mapping[str, str]) -> str:
    """Say how often the first list wins, which has the least regret, and what is not sure of it."""
    if not found:
        return ""
    first, best = found[0], min(found, key=lambda one: one.regret_usd)
    text = f"Over {draws} draws of prices, speeds and assumed numbers this list is "
    others = f"of {len(found)} lists" if len(found) > 1 else "of the only list found"
    text += f"the cheapest {others} in {first.wins:.0%}"
    if best is first:
        text += f", and has the least regret, ${first.regret_usd:,.0f} on average. "
    else:
        bought = ", ".join(f"{count} x {titles[name]}" for name, count in best.plan.bought.items())
        text += (
            f"; its regret is ${first.regret_usd:,.0f} on average. The least regret, "
            f"${best.regret_usd:,.0f}, has {bought} for ${best.plan.cost_usd:,.0f}. "
        )
    if first.short >= _OFTEN:
        text += f"It is too slow in {first.short:.0%} of them, and then costs more. "
    over = [f"the {name} in {share:.0%}" for name, share in first.over.items() if share >= _OFTEN]
    if over:
        text += f"It exceeds {' and '.join(over)} of them. "
    return text


def lists(found: Sequence[Weighed], draws: int) -> Sheet:
    """Return every list with its cost, how often it wins, and its regret."""
    rows: list[tuple[Value, ...]] = []
    for one in found:
        bought = ", ".join(f"{count} x {name}" for name, count in one.plan.bought.items())
        costs = (one.plan.cost_usd, one.quantile_usd(LOW), one.quantile_usd(HIGH))
        over = max(one.over.values()) if one.over else None
        rows.append((bought, *costs, one.wins, one.regret_usd, one.short, over))
    note = (
        f"{draws} draws of prices, speeds and assumed numbers. low, high: 90 % of cases. wins: "
        "share of draws in which it is the cheapest of these. regret: what it costs more than the "
        "cheapest of them, on average. too_slow: share in which it must be bought more often, in "
        "proportion. over_limit: share in which it exceeds budget or power"
    )
    columns = ("buy", "cost_usd", "low_usd", "high_usd", "wins", "regret_usd", "too_slow")
    return sheet_of("Which list is best, if numbers are off", (*columns, "over_limit"), rows, note)


def enters(plan: Plan, prices: Mapping[str, float], chassis_usd: Mapping[str, float]) -> Sheet:
    """Return the price at which each part that is left out is worth buying.

    Parameters
    ----------
    plan : Plan
        The purchase.
    prices : mapping of str to float
        Prices of parts, CPUs alone [USD].
    chassis_usd : mapping of str to float
        Price of what a CPU is bought with, by CPU [USD].
    """
    rows: list[tuple[Value, ...]] = []
    for name, price in plan.enters_usd.items():
        level = price - chassis_usd.get(name, 0.0)
        rows.append(
            (name, prices[name], level if level > 0 else None, _change(prices[name], level))
        )
    rows.sort(key=lambda row: -(float(row[3]) if isinstance(row[3], float) else -1.0))
    note = (
        "enters_usd: the price below which it is worth buying, all else as stated, and drives and "
        "hosts taken as divisible; empty: not as a gift. share: of its price now"
    )
    if plan.ties:
        note += f". As good as what is bought, at their prices now: {', '.join(plan.ties)}"
    columns = ("part", "price_usd", "enters_usd", "share")
    return sheet_of("At what price parts that are left out enter", columns, rows, note)


def _change(price: float, level: float) -> float | None:
    return level / price if level > 0 and price > 0 else None
