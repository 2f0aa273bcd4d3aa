"""The page's own figures, and its answer in words; curves and style are those of every figure.

Titles say in words what is drawn, for readers who hear it.
"""

from __future__ import annotations

from textwrap import wrap
from typing import Any

from csdplan.page.state import State
from csdplan.plot.interactive import Figure, heat, iso_line, layout_of, star
from csdplan.result.break_even import SystemResult
from csdplan.result.sheets import closed_form_text, missed
from csdplan.result.sweeps import SurfaceResult
from csdplan.solve.tco import Cost

#: A bar's label is broken after so many letters.
_LABEL = 12
_HOST_PART, _DRIVE_PART = "#0072B2", "#E69F00"


def surface(found: SurfaceResult, state: State) -> Figure:
    """Draw the map of break-even points, the line of the wanted one, and where the state is."""
    traces: list[dict[str, Any]] = [heat(found.bandwidth, found.compute, found.devices)]
    top = found.compute[-1]
    for count, places in found.iso:
        within = any(place is not None and place <= top for place in places)
        reach = "or less above this line" if within else "or less: out of reach here"
        traces += iso_line(f"BEP {count} {reach}", found.bandwidth, places)
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "name": "the drive as set",
            "x": [state.bandwidth],
            "y": [state.compute],
            "marker": star(),
        }
    )
    layout = layout_of(found.title, "internal bandwidth, times", "computational power, times")
    layout["xaxis"]["range"] = [found.bandwidth[0], found.bandwidth[-1]]
    layout["yaxis"]["range"] = [found.compute[0], found.compute[-1]]
    return {"data": traces, "layout": layout}


def cost(found: tuple[Cost, ...]) -> Figure:
    """Draw each system's purchase, host and drives one above the other."""
    names = [
        "<br>".join([*wrap(each.system.name, _LABEL), f"{each.system.drives} drives"])
        for each in found
    ]
    parts = (
        ("drives", [each.system.drives * each.system.drive_usd for each in found], _DRIVE_PART),
        ("host", [each.system.host_usd for each in found], _HOST_PART),
    )
    traces: list[dict[str, Any]] = [
        {
            "type": "bar",
            "name": name,
            "x": names,
            "y": values,
            "marker": {"color": color, "pattern": {"shape": "/" if name == "host" else ""}},
        }
        for name, values, color in parts
    ]
    layout = layout_of("Purchase", "", "USD")
    layout["barmode"] = "stack"
    layout["xaxis"]["tickangle"] = 0
    layout["annotations"] = [
        {
            "x": name,
            "y": each.purchase_usd,
            "text": f"{each.purchase_usd:,.0f}",
            "showarrow": False,
            "yanchor": "bottom",
        }
        for name, each in zip(names, found, strict=True)
    ]
    return {"data": traces, "layout": layout}


def empty(why: str) -> Figure:
    """Return a figure that shows nothing, and says why."""
    layout = layout_of(why, "", "")
    layout["xaxis"]["visible"] = layout["yaxis"]["visible"] = False
    return {"data": [], "layout": layout}


def sentence(system: SystemResult) -> str:
    """Say the answer for the host that was asked about."""
    host = system.hosts[-1]
    against = f"{system.ssd} SSDs on Host({host.host_cores})"
    if host.devices is not None:
        text = f"Break-even point: {host.devices} {system.device} drives against {against}."
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
