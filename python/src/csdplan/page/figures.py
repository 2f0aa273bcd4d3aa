"""The page's own figures, and its answer in words.

Titles say in words what is drawn, for readers who hear it.
"""

from __future__ import annotations

from dataclasses import replace
from textwrap import wrap

from csdplan.page.state import State
from csdplan.plot import Bar, Bars, Map, Mark, figures
from csdplan.result.break_even import SystemResult
from csdplan.result.sheets import closed_form_text, missed, spread_text
from csdplan.result.sweeps import SurfaceResult
from csdplan.solve.tco import Cost

#: A bar's label is broken after so many letters.
_LABEL = 12
_HOST_STYLE, _DRIVE_STYLE = 0, 5


def surface(found: SurfaceResult, state: State) -> Map:
    """Return the map of break-even points with the wanted line and the state's own place."""
    own = Mark(state.bandwidth, state.compute, label="the drive as set")
    drawn = figures.surface(found, [own])
    top = found.compute[-1]
    iso = []
    for line in drawn.iso:
        within = any(place is not None and place <= top for place in line.y)
        reach = "or less above this line" if within else "or less: out of reach here"
        iso.append(replace(line, label=f"{line.label} {reach}"))
    return replace(drawn, iso=tuple(iso))


def purchases(costs: tuple[Cost, ...]) -> Bars:
    """Return each system's purchase: the drives, and the host on top of them."""
    names = tuple(
        "\n".join([*wrap(cost.system.name, _LABEL), f"{cost.system.drives} drives"])
        for cost in costs
    )
    drives = tuple(cost.system.drives * cost.system.drive_usd for cost in costs)
    hosts = tuple(cost.system.host_usd for cost in costs)
    parts = (Bar(drives, "drives", _DRIVE_STYLE), Bar(hosts, "host", _HOST_STYLE))
    return Bars("Purchase", "USD", names, parts)


def sentence(system: SystemResult) -> str:
    """Say the answer for the host that was asked about."""
    host = system.hosts[-1]
    against = f"{system.ssd} SSDs on Host({host.host_cores})"
    if host.devices is not None:
        spread = spread_text(host)
        sure = f" Nine times out of ten it is {spread.strip(' ()')}." if spread else ""
        text = f"Break-even point: {host.devices} {system.device} drives against {against}.{sure}"
    elif host.verdict == "never":
        text = (
            f"{system.device} never breaks even against {against}: it approaches "
            f"{host.csd_limit_s:.3g} s, the SSDs {host.ssd_limit_s:.3g} s."
        )
    else:
        text = f"Beyond 2^53 drives against {against}: in practice never."
    if label := missed(host):
        text += f" The closed form says {closed_form_text(host)}: it misses {label}."
    return text
