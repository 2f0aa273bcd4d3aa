"""Results as Plotly figures: plain dictionaries, built without Plotly itself.

Colours are Okabe and Ito's and the ``cividis`` scale; lines differ in dash and marker as well, so
that no answer hangs on colour alone. Titles say in words what is drawn, for readers who hear it.
"""

from __future__ import annotations

import math
from typing import Any

from csdplan.page.state import State
from csdplan.result.bep import SystemResult
from csdplan.result.curves import Curve, SystemCurves
from csdplan.result.sweep import SurfaceResult
from csdplan.solve.tco import Cost

Figure = dict[str, Any]

_HOSTS = (("#0072B2", "dash", "circle"), ("#D55E00", "dot", "square"))
_DRIVES, _GREY, _MARK = "#000000", "#666666", "#D55E00"
_FONT = {"family": "system-ui, sans-serif", "size": 13, "color": "#1a1a1a"}
_TICKS = tuple(step * 10**power for power in range(6) for step in (1, 2, 5))
_HOST_PART, _DRIVE_PART = "#0072B2", "#E69F00"


def throughput(system: SystemCurves) -> Figure:
    """Draw throughput against devices, with break-even points and k_limit marked."""
    devices = list(system.devices)
    traces = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "computational drives",
            "x": devices,
            "y": [value / 1e9 for value in system.drives.throughput_Bps],
            "line": {"color": _DRIVES, "width": 3},
        }
    ]
    for index, host in enumerate(system.hosts):
        traces += _host(devices, host, index)
    kind = "log" if system.logarithmic else "linear"
    layout = _layout(system.title, "devices", "throughput [GB/s]")
    layout["xaxis"]["type"] = layout["yaxis"]["type"] = kind
    if kind == "linear":
        layout["yaxis"]["rangemode"] = "tozero"
    layout["shapes"] = [
        {
            "type": "line",
            "x0": system.k_limit,
            "x1": system.k_limit,
            "y0": 0,
            "y1": 1,
            "yref": "paper",
            "line": {"color": _GREY, "width": 1, "dash": "dot"},
        }
    ]
    layout["annotations"] = [
        {
            "x": math.log10(system.k_limit) if kind == "log" else system.k_limit,
            "y": 0,
            "yref": "paper",
            "text": f"k_limit {system.k_limit}",
            "showarrow": False,
            "xanchor": "left",
            "yanchor": "bottom",
            "font": {"color": _GREY},
        }
    ]
    return {"data": traces, "layout": layout}


def _host(devices: list[int], host: Curve, index: int) -> list[dict[str, Any]]:
    colour, dash, marker = _HOSTS[index % len(_HOSTS)]
    found = host.break_even_devices
    said = "never breaks even" if found is None else f"BEP {found}"
    line = {
        "type": "scatter",
        "mode": "lines",
        "name": f"SSDs, Host({host.host_cores}): {said}",
        "x": devices,
        "y": [value / 1e9 for value in host.throughput_Bps],
        "line": {"color": colour, "dash": dash, "width": 2},
    }
    if found is None or host.break_even_Bps is None:
        return [line]
    mark = {
        "type": "scatter",
        "mode": "markers+text",
        "name": f"BEP against Host({host.host_cores})",
        "x": [found],
        "y": [host.break_even_Bps / 1e9],
        "text": [str(found)],
        "textposition": "top left",
        "textfont": {"color": colour, "size": 15},
        "marker": {
            "symbol": marker,
            "size": 13,
            "color": "#ffffff",
            "line": {"color": colour, "width": 3},
        },
        "showlegend": False,
    }
    return [line, mark]


def surface(found: SurfaceResult, state: State) -> Figure:
    """Draw the map of break-even points, the line of the wanted one, and where the state is."""
    traces: list[dict[str, Any]] = [
        {
            "type": "heatmap",
            "x": list(found.bandwidth),
            "y": list(found.compute),
            # By the logarithm: one slow corner would else leave the rest in a single colour.
            "z": [[math.log10(z) if z else None for z in row] for row in found.devices],
            "customdata": [list(row) for row in found.devices],
            "colorscale": "Cividis",
            "reversescale": True,
            "colorbar": {
                "title": {"text": "drives"},
                "thickness": 14,
                "tickvals": [math.log10(count) for count in _TICKS],
                "ticktext": [f"{count:,}" for count in _TICKS],
            },
            "hovertemplate": "bandwidth x%{x}, compute x%{y}: BEP %{customdata}<extra></extra>",
        }
    ]
    for count, places in found.iso:
        # White below black: seen on the light end of the scale as on the dark one.
        for colour, width, shown in (("#ffffff", 6, False), ("#000000", 2.5, True)):
            traces.append(
                {
                    "type": "scatter",
                    "mode": "lines",
                    "name": f"BEP {count} or less above this line",
                    "x": list(found.bandwidth),
                    "y": list(places),
                    "line": {"color": colour, "width": width, "dash": "solid"},
                    "showlegend": shown,
                    "hoverinfo": "skip",
                }
            )
    traces.append(
        {
            "type": "scatter",
            "mode": "markers",
            "name": "the drive as set",
            "x": [state.bandwidth],
            "y": [state.compute],
            "marker": {
                "symbol": "star",
                "size": 18,
                "color": _MARK,
                "line": {"color": "#ffffff", "width": 2},
            },
        }
    )
    layout = _layout(found.title, "internal bandwidth, times", "computational power, times")
    layout["xaxis"]["range"] = [found.bandwidth[0], found.bandwidth[-1]]
    layout["yaxis"]["range"] = [found.compute[0], found.compute[-1]]
    return {"data": traces, "layout": layout}


def cost(found: tuple[Cost, ...]) -> Figure:
    """Draw each system's purchase, host and drives one above the other."""
    names = [f"{each.system.name}<br>{each.system.drives} drives" for each in found]
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
            "marker": {"color": colour, "pattern": {"shape": "/" if name == "host" else ""}},
        }
        for name, values, colour in parts
    ]
    layout = _layout("Purchase", "", "USD")
    layout["barmode"] = "stack"
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
    layout = _layout(why, "", "")
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
    if host.difference != "none":
        closed = host.closed_form_devices
        said = "more than 2^53" if closed is None else str(closed)
        text += f" The closed form says {said}: it misses {host.difference.replace('_', ' ')}."
    return text


def _layout(title: str, across: str, up: str) -> dict[str, Any]:
    axis = {"gridcolor": "#e2e2e2", "zeroline": False, "automargin": True}
    return {
        "title": {"text": title, "x": 0, "xref": "paper", "font": {"size": 15}},
        "font": _FONT,
        "xaxis": {**axis, "title": {"text": across}},
        "yaxis": {**axis, "title": {"text": up}},
        "margin": {"l": 60, "r": 20, "t": 45, "b": 95},
        "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0},
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "#ffffff",
    }
