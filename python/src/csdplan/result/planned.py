"""The answer to a question as a person asks it: one paragraph, alternatives, and how sure it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import log

from csdplan.hardware import Price
from csdplan.request.ask import SERVED
from csdplan.request.cold import READ
from csdplan.result.sheet import Sheet, Value, sheet_of
from csdplan.result.weighed import range_text
from csdplan.solve.optimize import AT_MOST, Plan, Shortfall
from csdplan.solve.purchase import Request
from csdplan.solve.regret import Weighed
from csdplan.units import bytes_text


@dataclass(frozen=True)
class Planned:
    """Answer to a question, as the page and the report show it.

    Attributes
    ----------
    answer : str
        The answer in one paragraph.
    sheets : mapping of str to Sheet
        Its tables by name: those of ``plan``, and ``sources``.
    warnings : tuple of str
        Statements that the reader must know.
    titles : mapping of str to str
        Names of parts as people know them.
    durability : str
        How long the data last in what is bought, in sentences; empty if nothing is.
    """

    answer: str
    sheets: Mapping[str, Sheet]
    warnings: tuple[str, ...] = ()
    titles: Mapping[str, str] = field(default_factory=dict)
    durability: str = ""


#: Share of draws from which on a list that wins in them is likely.
_LIKELY = 0.05

#: Plans that differ from the answer in one product: its name, and the cheapest without it.
Alternative = tuple[str, Plan | None]


def paragraph(
    request: Request, plan: Plan, weighed: Sequence[Weighed], titles: Mapping[str, str]
) -> str:
    """Say what to buy, what it costs, what binds, and how sure that is."""
    hosts = [f"{count} x {titles[name]}" for name, count in plan.hosts.items()]
    drives = [f"{count} x {titles[name]}" for name, count in plan.drives.items()]
    bought = f"{', '.join(hosts)} with {', '.join(drives) or 'no drives'}"
    if plan.network:
        parts = [f"{count} x {titles[name]}" for name, count in plan.network.items()]
        bought += f", and {', '.join(parts)}"
    power = "" if plan.power_W is None else f", at most {plan.power_W / 1e3:.3g} kW at work"
    text = f"Buy {bought}: ${plan.price_usd:,.0f}{range_text(weighed)}"
    if plan.energy_usd:
        text += f" and ${plan.energy_usd:,.0f} of energy in {request.limits.years:g} years"
    disks = {kind.name: kind.capacity_bytes for kind in request.drives if kind.disk}
    cold = sum(disks[name] * count for name, count in plan.drives.items() if name in disks)
    on_disks = f", {bytes_text(cold)} of it on hard drives" if cold else ""
    text += f", room for {bytes_text(plan.capacity_bytes)}{on_disks}{power}. "
    computing = {share.where for share in plan.shares if share.in_drive}
    if computing:
        text += f"{' and '.join(titles[name] for name in sorted(computing))} compute in place. "
    elif any(demand.name not in {"storage", SERVED, READ} for demand in request.demands):
        text += "All of the work is done on the hosts: drives that compute do not pay here. "
    binding = sorted(
        (need for need in plan.requirements if need.binds), key=lambda need: -need.saving_usd
    )
    if binding:
        first = binding[0]
        other = "more" if first.name in AT_MOST else "less"
        text += f"The price is set by the {first.name}: "
        text += f"10 % {other} saves ${first.saving_usd:,.0f}. "
    if plan.bound_usd < plan.cost_usd * (1 - 1e-6):
        text += (
            f"No cheaper purchase was found; none costs less than ${plan.bound_usd:,.0f}. The "
            "search ended before it could say more. "
        )
    return text.strip()


def unmeasured(plan: Plan, parts: Sequence[str], titles: Mapping[str, str]) -> str:
    """Say which of the parts that are bought have cores without a measurement."""
    bought = [titles[name] for name in plan.bought if name in parts]
    if not bought:
        return ""
    return f"Nobody has measured the cores of {' and '.join(bought)}: their speed is assumed. "


def impossible(shortfalls: Sequence[Shortfall]) -> str:
    """Say which requirement is in the way, by how much, and what would do."""
    alone = [lack for lack in shortfalls if lack.possible_alone is not None and lack.required]
    if not alone:
        return "Nothing can be bought that meets this; several requirements must give way together."

    def change(lack: Shortfall) -> float:
        assert lack.possible_alone is not None, "only those that are possible alone"
        return lack.possible_alone / lack.required

    # Twice as much and half as much are equally far away.
    nearest = min(alone, key=lambda lack: abs(log(max(change(lack), 1e-9))))
    units = {"budget": "USD", "power": "W", "capacity": "bytes", "hosts": "hosts", "rack": "U"}
    unit = units.get(nearest.name, "bytes/s")
    return (
        f"Nothing can be bought that meets this. The {nearest.name} is in the way: "
        f"{nearest.required:.6g} {unit} is asked, {nearest.possible_alone:.6g} {unit} would do, "
        f"which is {change(nearest):.3g} times as much."
    )


def alternatives(plan: Plan, found: Sequence[Alternative], titles: Mapping[str, str]) -> Sheet:
    """Return what would be bought if one product were not to be had."""
    rows: list[tuple[Value, ...]] = []
    for name, other in found:
        if other is None:
            rows.append((titles[name], "", None, None, "nothing else does"))
            continue
        listed = ", ".join(f"{count} x {one}" for one, count in other.bought.items())
        more = other.price_usd - plan.price_usd
        rows.append((titles[name], listed, other.price_usd, more, other.verdict.value))
    columns = ("without", "buy", "price_usd", "more_usd", "verdict")
    return sheet_of("What would change the answer", columns, rows)


def certainty(
    plan: Plan,
    weighed: Sequence[Weighed],
    assumed: Mapping[str, Sequence[str]],
    priced: Mapping[str, Price],
) -> Sheet:
    """Return the range of each number bought, and the assumed numbers behind it."""
    likely = [one.plan for one in weighed if one.wins >= _LIKELY]
    rows = []
    for name, count in plan.bought.items():
        others = [one.bought.get(name, 0) for one in likely]
        texts = [*assumed.get(name, ()), f"price ({priced[name].prov}, {priced[name].date})"]
        counts = [count, *others]
        rows.append((name, count, min(counts), max(counts), ", ".join(texts)))
    note = (
        f"from and to: in lists that are the cheapest in {_LIKELY:.0%} of draws or more, which may "
        "have other products"
    )
    columns = ("name", "count", "from", "to", "assumed")
    return sheet_of("How sure it is", columns, rows, note)
