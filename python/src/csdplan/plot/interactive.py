"""The same figures as Plotly's, for pages: plain dictionaries, built without Plotly itself.

Colors are Okabe and Ito's and the ``cividis`` scale; lines differ in dash and marker as well, so
that no answer hangs on color alone. A page holds all it needs, Plotly's script included, which is
taken from the installed package: nothing is fetched. Without the package there is no such page.
"""

from __future__ import annotations

import html
import importlib.util
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from csdplan.result.throughput import Curve, SystemCurves

if TYPE_CHECKING:
    from csdplan.plot.charts import Bars, Lines, Surface

Figure = dict[str, Any]

#: Color, dash and marker of each further line, in Plotly's words.
STYLES = (
    ("#0072B2", "dash", "circle"),
    ("#D55E00", "dot", "square"),
    ("#009E73", "dashdot", "triangle-up"),
    ("#CC79A7", "longdash", "diamond"),
    ("#56B4E9", "longdashdot", "triangle-down"),
    ("#E69F00", "2px,3px", "cross"),
)
MARK = "#D55E00"
_REFERENCE, _GRAY = "#000000", "#666666"
_FONT = {"family": "system-ui, sans-serif", "size": 13, "color": "#1a1a1a"}
_TICKS = tuple(step * 10**power for power in range(6) for step in (1, 2, 5))
_HEIGHT_PX = 460


def script() -> str | None:
    """Return Plotly's script, or None if its package is not installed."""
    found = importlib.util.find_spec("plotly")
    if found is None or not found.submodule_search_locations:
        return None
    path = Path(found.submodule_search_locations[0]) / "package_data" / "plotly.min.js"
    return path.read_text(encoding="utf-8") if path.exists() else None


def page(figures: Sequence[Figure], title: str, script_text: str) -> bytes:
    """Return a page of figures that needs no network and no other file."""
    # JSON may hold "</script>", which would end the script it stands in.
    held = json.dumps(figures, allow_nan=False).replace("<", "\\u003c")
    boxes = "\n".join(
        f'<div id="figure-{index}" role="img" aria-label="{_words(figure)}"></div>'
        for index, figure in enumerate(figures)
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n"
        "<style>body { margin: 1rem; display: grid; gap: 1rem; "
        "grid-template-columns: repeat(auto-fit, minmax(min(32rem, 100%), 1fr)) }\n"
        f"div {{ min-height: {_HEIGHT_PX}px }}</style>\n"
        f"<script>{script_text}</script>\n</head>\n<body>\n{boxes}\n"
        f"<script>{held}.forEach((figure, index) => Plotly.newPlot(`figure-${{index}}`, "
        "figure.data, figure.layout, { displaylogo: false, responsive: true }));</script>\n"
        "</body>\n</html>\n"
    ).encode()


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
            "line": {"color": _REFERENCE, "width": 3},
        }
    ]
    for index, host in enumerate(system.hosts):
        traces += _host(devices, host, index)
    kind = "log" if system.logarithmic else "linear"
    layout = layout_of(system.title, "devices", "throughput [GB/s]")
    layout["xaxis"]["type"] = layout["yaxis"]["type"] = kind
    if kind == "linear":
        layout["yaxis"]["rangemode"] = "tozero"
    else:
        layout["xaxis"]["dtick"] = layout["yaxis"]["dtick"] = 1  # decades alone are labeled
    layout["shapes"] = [
        {
            "type": "line",
            "x0": system.k_limit,
            "x1": system.k_limit,
            "y0": 0,
            "y1": 1,
            "yref": "paper",
            "line": {"color": _GRAY, "width": 1, "dash": "dot"},
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
            "font": {"color": _GRAY},
        }
    ]
    return {"data": traces, "layout": layout}


def lines(panel: Lines) -> Figure:
    """Draw one panel of lines."""
    traces: list[dict[str, Any]] = []
    for index, line in enumerate(panel.lines):
        color, dash, marker = STYLES[index % len(STYLES)]
        if line.reference:
            color, dash = _REFERENCE, "solid"
        traces.append(
            {
                "type": "scatter",
                "mode": "lines" if line.reference else "lines+markers",
                "name": line.label,
                "x": list(panel.places),
                "y": list(line.values),
                "line": {
                    "color": color,
                    "dash": dash,
                    "width": 3 if line.reference else 2,
                    "shape": "hv" if panel.steps else "linear",
                },
                "marker": {"symbol": marker, "size": 7},
            }
        )
    traces += [
        {
            "type": "scatter",
            "mode": "markers+text",
            "x": [x],
            "y": [y],
            "text": [text],
            "textposition": "top left",
            "marker": _ring("circle", _REFERENCE),
            "showlegend": False,
        }
        for x, y, text in panel.marks
    ]
    layout = layout_of(panel.title, panel.across, panel.up)
    layout["yaxis"]["rangemode"] = "tozero"
    return {"data": traces, "layout": layout}


def bars(panel: Bars) -> Figure:
    """Draw one panel of bars."""
    texts = ["unknown" if value is None else f"{value:,.4g}" for value in panel.values]
    colors = [STYLES[index % len(STYLES)][0] for index in range(len(texts))]
    trace = {
        "type": "bar",
        "x": [label.replace("\n", "<br>") for label in panel.labels],
        "y": [value or 0.0 for value in panel.values],
        "text": texts,
        "textposition": "outside",
        "cliponaxis": False,
        "marker": {"color": colors},
    }
    return {"data": [trace], "layout": layout_of(panel.title, "", panel.up)}


def surface(panel: Surface) -> Figure:
    """Draw one map, its lines of equal break-even point, and its marks."""
    rows = [[None if math.isnan(value) else value for value in row] for row in panel.z]
    traces: list[dict[str, Any]] = [heat(panel.x, panel.y, rows)]
    for index, (label, across, up) in enumerate(panel.iso):
        _, dash, _ = STYLES[index % len(STYLES)]
        traces += iso_line(label, across, up, "solid" if len(panel.iso) == 1 else dash)
    if panel.marks:
        traces.append(
            {
                "type": "scatter",
                "mode": "markers+text",
                "x": [x for x, _, _ in panel.marks],
                "y": [y for _, y, _ in panel.marks],
                "text": [text for _, _, text in panel.marks],
                "textposition": "top right",
                "marker": star(),
                "cliponaxis": False,
                "showlegend": False,
            }
        )
    layout = layout_of(panel.title, panel.across, panel.up)
    layout["xaxis"]["range"] = [panel.x[0], panel.x[-1]]
    layout["yaxis"]["range"] = [panel.y[0], panel.y[-1]]
    return {"data": traces, "layout": layout}


def heat(
    x: Sequence[float], y: Sequence[float], z: Sequence[Sequence[float | None]]
) -> dict[str, Any]:
    """Return a map of break-even points, colored by the logarithm."""
    return {
        "type": "heatmap",
        "x": list(x),
        "y": list(y),
        # By the logarithm: one slow corner would else leave the rest in a single color.
        "z": [[math.log10(value) if value else None for value in row] for row in z],
        "customdata": [list(row) for row in z],
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


def iso_line(
    label: str, x: Sequence[float], y: Sequence[float | None], dash: str = "solid"
) -> list[dict[str, Any]]:
    """Return a line over a map: white below black, seen on the light end as on the dark one."""
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": label,
            "x": list(x),
            "y": list(y),
            "line": {"color": color, "width": width, "dash": shown_dash},
            "showlegend": shown,
            "hoverinfo": "skip",
        }
        for color, width, shown_dash, shown in (
            ("#ffffff", 6, "solid", False),
            (_REFERENCE, 2.5, dash, True),
        )
    ]


def star() -> dict[str, Any]:
    """Return the marker of a point on a map."""
    return {"symbol": "star", "size": 18, "color": MARK, "line": {"color": "#ffffff", "width": 2}}


def layout_of(title: str, across: str, up: str) -> dict[str, Any]:
    """Return what all figures share."""
    axis = {"gridcolor": "#e2e2e2", "zeroline": False, "automargin": True}
    return {
        "title": {"text": title, "x": 0.02, "xref": "container", "font": {"size": 14}},
        "font": _FONT,
        "xaxis": {**axis, "title": {"text": across}},
        "yaxis": {**axis, "title": {"text": up}},
        "margin": {"l": 60, "r": 20, "t": 45, "b": 95},
        "legend": {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0},
        "paper_bgcolor": "#ffffff",
        "plot_bgcolor": "#ffffff",
    }


def _host(devices: list[int], host: Curve, index: int) -> list[dict[str, Any]]:
    color, dash, marker = STYLES[index % len(STYLES)]
    found = host.break_even_devices
    said = "never breaks even" if found is None else f"BEP {found}"
    line = {
        "type": "scatter",
        "mode": "lines",
        "name": f"SSDs, Host({host.host_cores}): {said}",
        "x": devices,
        "y": [value / 1e9 for value in host.throughput_Bps],
        "line": {"color": color, "dash": dash, "width": 2},
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
        "textfont": {"color": color, "size": 15},
        "marker": _ring(marker, color),
        "showlegend": False,
    }
    return [line, mark]


def _ring(symbol: str, color: str) -> dict[str, Any]:
    return {
        "symbol": symbol,
        "size": 13,
        "color": "#ffffff",
        "line": {"color": color, "width": 3},
    }


def _words(figure: Figure) -> str:
    return html.escape(str(figure["layout"]["title"]["text"]), quote=True)
