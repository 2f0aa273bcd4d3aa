"""A purchase in the sentences that a buyer must know: price, risk, and what would change it."""

from __future__ import annotations

from dataclasses import replace

from csdplan.result.planned import Planned
from csdplan.result.sheet import Sheet, Value, rows_of, sheet_of

#: Parts that are near their price of entry, and lists, that are worth a look at first.
_FIRST = 6


def price_text(planned: Planned) -> str:
    """Return what is paid and its range in 90 % of cases; empty if nothing can be bought."""
    if "bill" not in planned.sheets:
        return ""
    text = f"${_number(planned.sheets['bill'].column('cost_usd')[-1]):,.0f}"
    if lists := planned.sheets.get("lists"):
        low, high = (_number(lists.column(name)[0]) for name in ("low_usd", "high_usd"))
        text += f" (${low:,.0f} to ${high:,.0f})"
    return text


def sentences(planned: Planned) -> tuple[str, str]:
    """Return the sentence of the answer that says what to buy, and the others."""
    first, *rest = planned.answer.split(". Buy ", 1)[-1].split(". ", 1)
    before = planned.answer[: planned.answer.find(first)]
    return f"{before}{first.removesuffix('.')}.", "".join(rest)


def bill(planned: Planned) -> Sheet:
    """Return the bill with the names of parts that people know, in as few columns as it can be."""
    found = planned.sheets["bill"]
    rows = [
        (planned.titles.get(str(name), name) or what, count, price, cost)
        for what, name, count, price, cost in found.rows
    ]
    return sheet_of("Bill", ("part", "count", "price_usd", "cost_usd"), rows, found.note)


def risks(planned: Planned) -> list[str]:
    """Say how far the list may be wrong: its cost, other lists, its speed, and its data."""
    found = []
    if lists := planned.sheets.get("lists"):
        rows = rows_of(lists)
        first = rows[0]
        low, high = _number(first["low_usd"]), _number(first["high_usd"])
        found.append(f"Cost: ${low:,.0f} to ${high:,.0f} in 90 % of cases.")
        regret = _number(first["regret_usd"])
        others = sorted(rows[1:], key=lambda row: -_number(row["wins"]))
        text = (
            f"Other lists: this one is the cheapest in {_number(first['wins']):.0%} of draws, and "
            f"costs ${regret:,.0f} more than the cheapest on average (its regret)."
        )
        if others and _number(others[0]["wins"]):
            text += (
                f" {others[0]['buy']} is the cheapest in {_number(others[0]['wins']):.0%}, with a "
                f"regret of ${_number(others[0]['regret_usd']):,.0f}."
            )
        found.append(text)
        slow, over = _number(first["too_slow"]), _number(first["over_limit"])
        if slow or over:
            found.append(
                f"Limits: too slow in {slow:.0%} of draws, beyond budget or power in {over:.0%}."
            )
    if planned.durability:
        found.append(f"Data: {planned.durability}")
    return found


def changes(planned: Planned) -> list[Sheet]:
    """Return the tables of what would change the answer, those rows that are nearest to it."""
    found = []
    if enters := planned.sheets.get("enters"):
        known = [row for row in enters.rows if row[enters.columns.index("share")] is not None]
        found.append(replace(enters, rows=tuple(known[:_FIRST])))
    if others := planned.sheets.get("alternatives"):
        found.append(others)
    return found


def _number(value: Value) -> float:
    return float(value or 0.0)
