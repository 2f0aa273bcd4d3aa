"""The answer in sentences, which the page and the report share."""

from __future__ import annotations

from collections.abc import Sequence

from csdplan.result.break_even import HostResult, SystemResult
from csdplan.result.sheets import closed_form_text, missed, spread_text
from csdplan.solve.tco import Cost

#: Words for each provenance of a number.
PROVENANCES = {
    "measured": "measured on the machine that the profile names",
    "given": "printed by its source",
    "inferred": "computed from numbers that its source prints",
    "assumed": "taken as likely: nobody has measured or printed it",
}
#: The four times of one device, and their names in words.
TIMES = {
    "ssd_tx_s": "SSD: load into the host",
    "ssd_comp_s": "host: compute on one core",
    "csd_tx_s": "drive: read its own flash",
    "csd_comp_s": "drive: compute",
}
#: A difference of prices smaller than this share is none.
_SAME = 0.005


def cores_text(count: int) -> str:
    """Return a host by its cores at work."""
    return f"a host with {count} core{'' if count == 1 else 's'}"


def headline(kernel: str, system: SystemResult) -> str:
    """Say the break-even points against every host in one sentence."""
    points = ", ".join(
        f"against {cores_text(host.host_cores)} {_from(host)}{spread_text(host)}"
        for host in system.hosts
    )
    sure = " In brackets: 90 % of cases." if any(map(spread_text, system.hosts)) else ""
    drives = f"{system.device} drives that compute are faster than as many {system.ssd} SSDs"
    return f"For {kernel}, {drives}: {points}.{sure}"


def _from(host: HostResult) -> str:
    if host.devices is not None:
        return f"from {host.devices} drives on"
    return "never" if host.verdict == "never" else "only beyond 2^53 drives"


def break_even_sentences(kernel: str, system: SystemResult, host: HostResult) -> list[str]:
    """Say the break-even point against one host and how sure it is, and then what limits it."""
    more = []
    against = f"as many {system.ssd} SSDs on {cores_text(host.host_cores)}"
    if host.devices is not None:
        spread = spread_text(host)
        sure = f" ({spread.strip(' ()')} in 90 % of cases)" if spread else ""
        some = f"For {kernel}, {host.devices} {system.device} drives{sure} or more beat {against}."
        if system.k_limit < host.devices:
            more.append(f"The host takes in no more than {system.k_limit:.4g} SSDs at full speed.")
    elif host.verdict == "never":
        some = (
            f"For {kernel}, {system.device} drives never beat {against}: however many there are, "
            f"they take {host.csd_limit_s:.3g} s at best, the SSDs {host.ssd_limit_s:.3g} s."
        )
    else:
        some = f"For {kernel}, only beyond 2^53 {system.device} drives beat {against}: never."
    if label := missed(host):
        more.append(f"The published closed form says {closed_form_text(host)}: it misses {label}.")
    return [some, *more]


def measure_sentence(system: SystemResult, found: tuple[str, int, int] | None) -> str:
    """Say which time to measure next to be surer; `found` is that of `bounds.widest`."""
    if found is None:
        return ""
    name, low, high = found
    return (
        f"Most of the spread comes from one time, {TIMES[name]} ({system.prov[name]}): alone it "
        f"gives {low} to {high} drives. Measure that first."
    )


def cost_sentence(costs: Sequence[Cost]) -> str:
    """Say what drives as fast as the SSDs cost, and what as many drives leave undone.

    `costs` are those of `csdplan.result.costs.compared`.
    """
    ssds, many, fast = costs
    if not fast.feasible:
        text = f"No number of drives is as fast as {ssds.system.name}."
    else:
        more = fast.purchase_usd / ssds.purchase_usd - 1 if ssds.purchase_usd else 0.0
        change = f"{abs(more):.0%} {'more' if more > 0 else 'less'}"
        text = (
            f"{fast.system.drives} drives with their host are as fast as {ssds.system.name}, and "
            f"cost ${fast.purchase_usd:,.0f} instead of ${ssds.purchase_usd:,.0f}"
            f"{'' if abs(more) < _SAME else f' ({change})'}."
        )
    if many.time_s and ssds.time_s and many.time_s > ssds.time_s:
        text += (
            f" As many drives cost ${many.purchase_usd:,.0f}, but do "
            f"{many.time_s / ssds.time_s:.2g} times less work in the same time."
        )
    return text
