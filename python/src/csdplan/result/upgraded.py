"""Parts to keep, to sell and to buy, as a sheet and as a paragraph."""

from __future__ import annotations

from collections.abc import Mapping

from csdplan.request.stock import HAVE
from csdplan.result.sheet import Sheet, Value, sheet_of
from csdplan.solve.plans import Plan
from csdplan.solve.purchase import Request
from csdplan.units import bytes_text


def bill(request: Request, plan: Plan, have: Mapping[str, int], resale: float) -> Sheet:
    """Return what to keep, to sell and to buy; sales have a negative cost."""
    new = {cpu.name: cpu.price_usd for cpu in request.cpus}
    new |= {kind.name: kind.price_usd for kind in request.drives}
    new |= {part.name: part.price_usd for part in request.network}
    rows: list[tuple[Value, ...]] = []
    for name, count in have.items():
        kept = plan.bought.get(name + HAVE, 0)
        if kept:
            rows.append(("keep", name, kept, 0.0, 0.0))
        if left := count - kept:
            usd = 0.0 - resale * new[name]
            rows.append(("sell" if usd else "not needed", name, left, usd, usd * left))
    for name, count in plan.bought.items():
        if not name.endswith(HAVE):
            rows.append(("buy", name, count, new[name], new[name] * count))
    total = sum(float(row[4]) for row in rows if isinstance(row[4], float))
    if plan.energy_usd:
        rows.append(("purchase", "all of the above", None, None, total))
        rows.append(("energy", f"{request.limits.years:g} years", None, None, plan.energy_usd))
    rows.append(("all", "", None, None, total + plan.energy_usd))
    power = "power unknown" if plan.power_W is None else f"{plan.power_W:g} W at work"
    note = f"{plan.capacity_bytes / 1e12:g} TB, {power}; {plan.verdict.value}"
    if resale:
        note += f"; sales bring {resale:.0%} of a new part's price"
    return sheet_of("What to do", ("do", "name", "count", "price_usd", "cost_usd"), rows, note)


def paragraph(what: Sheet, plan: Plan, new_usd: float | None, titles: Mapping[str, str]) -> str:
    """Say what to keep, sell and buy, and what a purchase of everything new would cost."""
    said = []
    for verb, name in (
        ("keep", "Keep"), ("buy", "buy"), ("sell", "sell"), ("not needed", "leave out"),
    ):  # fmt: skip
        listed = [f"{row[2]} x {titles[str(row[1])]}" for row in what.rows if row[0] == verb]
        if listed:
            said.append(f"{name} {', '.join(listed)}")
    spent = next(row[4] for row in what.rows if row[0] in {"purchase", "all"})
    text = "; ".join(said)
    text = (
        f"{text[0].upper()}{text[1:]}: ${spent:,.0f}, room for {bytes_text(plan.capacity_bytes)}."
    )
    if new_usd is None:
        return f"{text} Nothing new alone does this."
    return f"{text} Everything new would cost ${new_usd:,.0f}."
