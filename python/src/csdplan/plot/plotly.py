"""Renders panels as Plotly's plain dictionaries, without importing Plotly.

Colors are Okabe and Ito's and the ``cividis`` scale; lines differ in dash and marker as well, so
that no answer depends on color alone. A page includes Plotly's script, which is taken from the
installed package; without that package there is no such page.
"""

from __future__ import annotations

import html
import importlib.util
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, assert_never

from csdplan.plot.panels import Bars, Iso, Limit, Line, Lines, Map, Mark, Panel

Figure = dict[str, Any]
Trace = dict[str, Any]

#: Color, dash and marker of each further line, in Plotly's words.
STYLES = (
    ("#0072B2", "dash", "circle"),
    ("#D55E00", "dot", "square"),
    ("#009E73", "dashdot", "triangle-up"),
    ("#CC79A7", "longdash", "diamond"),
    ("#56B4E9", "longdashdot", "triangle-down"),
    ("#E69F00", "2px,3px", "cross"),
)
#: Style of the reference line.
REFERENCE = ("#000000", "solid", "circle")
_STAR = "#D55E00"
_GRAY = "#666666"
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


def page(panels: Sequence[Panel], title: str, script_text: str) -> bytes:
    """Return a page of `panels` that needs no network and no other file."""
    figures = [figure(panel) for panel in panels]
    # JSON may hold "</script>", which would end the script it stands in.
    data = json.dumps(figures, allow_nan=False).replace("<", "\\u003c")
    boxes = "\n".join(
        f'<div id="figure-{index}" role="img" aria-label="{html.escape(panel.title)}"></div>'
        for index, panel in enumerate(panels)
    )
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n"
        "<style>body { margin: 1rem; display: grid; gap: 1rem; "
        "grid-template-columns: repeat(auto-fit, minmax(min(32rem, 100%), 1fr)) }\n"
        f"div {{ min-height: {_HEIGHT_PX}px }}</style>\n"
        f"<script>{script_text}</script>\n</head>\n<body>\n{boxes}\n"
        f"<script>{data}.forEach((figure, index) => Plotly.newPlot(`figure-${{index}}`, "
        "figure.data, figure.layout, { displaylogo: false, responsive: true }));</script>\n"
        "</body>\n</html>\n"
    ).encode()


def figure(panel: Panel) -> Figure:
    """Return one panel as a figure."""
    match panel:
        case Lines():
            return _lines(panel)
        case Bars():
            return _bars(panel)
        case Map():
            return _map(panel)
    assert_never(panel)


def empty(why: str) -> Figure:
    """Return a figure that shows nothing, and says why."""
    layout = _layout(why, "", "")
    layout["xaxis"]["visible"] = layout["yaxis"]["visible"] = False
    return {"data": [], "layout": layout}


def _lines(panel: Lines) -> Figure:
    traces: list[Trace] = [_line(panel, line, index) for index, line in enumerate(panel.lines)]
    traces += [_ring(mark) for mark in panel.marks]
    layout = _layout(panel.title, panel.across, panel.up)
    if panel.logarithmic:
        layout["xaxis"]["type"] = layout["yaxis"]["type"] = "log"
        layout["xaxis"]["dtick"] = layout["yaxis"]["dtick"] = 1  # decades alone are labeled
    else:
        layout["yaxis"]["rangemode"] = "tozero"
    if panel.limits:
        layout["shapes"] = [_limit(limit) for limit in panel.limits]
        layout["annotations"] = [_limit_text(limit, panel.logarithmic) for limit in panel.limits]
    return {"data": traces, "layout": layout}


def _line(panel: Lines, line: Line, index: int) -> Trace:
    color, dash, marker = REFERENCE
    if not line.reference:
        color, dash, marker = _of(index if line.style is None else line.style)
    look: Trace = {"color": color, "dash": dash, "width": 3 if line.reference else 2}
    trace: Trace = {
        "type": "scatter",
        "mode": "lines" if line.reference or panel.smooth else "lines+markers",
        "name": line.label,
        "x": list(panel.places),
        "y": list(line.values),
        "line": look,
    }
    if not panel.smooth:
        look["shape"] = "hv" if panel.steps else "linear"
        trace["marker"] = {"symbol": marker, "size": 7}
    return trace


def _ring(mark: Mark) -> Trace:
    color, _, symbol = REFERENCE if mark.style is None else _of(mark.style)
    return {
        "type": "scatter",
        "mode": "markers+text",
        "name": mark.label,
        "x": [mark.x],
        "y": [mark.y],
        "text": [mark.text],
        "textposition": "bottom right" if mark.below else "top left",
        "textfont": {"color": color, "size": 15},
        "marker": {
            "symbol": symbol,
            "size": 13,
            "color": "#ffffff",
            "line": {"color": color, "width": 3},
        },
        "showlegend": False,
    }


def _limit(limit: Limit) -> dict[str, Any]:
    return {
        "type": "line",
        "x0": limit.x,
        "x1": limit.x,
        "y0": 0,
        "y1": 1,
        "yref": "paper",
        "line": {"color": _GRAY, "width": 1, "dash": "dot"},
    }


def _limit_text(limit: Limit, logarithmic: bool) -> dict[str, Any]:
    return {
        "x": math.log10(limit.x) if logarithmic else limit.x,
        "y": 0,
        "yref": "paper",
        "text": limit.text,
        "showarrow": False,
        "xanchor": "left",
        "yanchor": "bottom",
        "font": {"color": _GRAY},
    }


def _bars(panel: Bars) -> Figure:
    names = [label.replace("\n", "<br>") for label in panel.labels]
    layout = _layout(panel.title, "", panel.up)
    if len(panel.parts) == 1:
        return {"data": [_plain_bars(names, panel.parts[0].values)], "layout": layout}
    traces: list[Trace] = []
    totals = [0.0] * len(names)
    for index, part in enumerate(panel.parts):
        values = [value or 0.0 for value in part.values]
        totals = [total + value for total, value in zip(totals, values, strict=True)]
        color = _of(index if part.style is None else part.style)[0]
        marker = {"color": color, "pattern": {"shape": "/" if index else ""}}
        trace = {"type": "bar", "name": part.label, "x": names, "y": values, "marker": marker}
        traces.append(trace)
    layout["barmode"] = "stack"
    layout["xaxis"]["tickangle"] = 0
    layout["annotations"] = [
        {"x": name, "y": total, "text": f"{total:,.0f}", "showarrow": False, "yanchor": "bottom"}
        for name, total in zip(names, totals, strict=True)
    ]
    return {"data": traces, "layout": layout}


def _plain_bars(names: list[str], values: Sequence[float | None]) -> Trace:
    return {
        "type": "bar",
        "x": names,
        "y": [value or 0.0 for value in values],
        "text": ["unknown" if value is None else f"{value:,.4g}" for value in values],
        "textposition": "outside",
        "cliponaxis": False,
        "marker": {"color": [_of(index)[0] for index in range(len(names))]},
    }


def _map(panel: Map) -> Figure:
    traces: list[Trace] = [_heat(panel)]
    for index, iso in enumerate(panel.iso):
        traces += _iso(iso, "solid" if len(panel.iso) == 1 else _of(index)[1])
    traces += [_star(mark) for mark in panel.marks]
    layout = _layout(panel.title, panel.across, panel.up)
    layout["xaxis"]["range"] = [panel.x[0], panel.x[-1]]
    layout["yaxis"]["range"] = [panel.y[0], panel.y[-1]]
    return {"data": traces, "layout": layout}


def _heat(panel: Map) -> Trace:
    return {
        "type": "heatmap",
        "x": list(panel.x),
        "y": list(panel.y),
        # By the logarithm: one slow corner would else leave the rest in a single color.
        "z": [[math.log10(value) if value else None for value in row] for row in panel.z],
        "customdata": [list(row) for row in panel.z],
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


def _iso(iso: Iso, dash: str) -> list[Trace]:
    """Return a line over a map: white below black, seen on the light end as on the dark one."""
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": iso.label,
            "x": list(iso.x),
            "y": list(iso.y),
            "line": {"color": color, "width": width, "dash": shown_dash},
            "showlegend": shown,
            "hoverinfo": "skip",
        }
        for color, width, shown_dash, shown in (
            ("#ffffff", 6, "solid", False),
            (REFERENCE[0], 2.5, dash, True),
        )
    ]


def _star(mark: Mark) -> Trace:
    return {
        "type": "scatter",
        "mode": "markers+text" if mark.text else "markers",
        "name": mark.label,
        "x": [mark.x],
        "y": [mark.y],
        "text": [mark.text],
        "textposition": "top right",
        "marker": {
            "symbol": "star",
            "size": 18,
            "color": _STAR,
            "line": {"color": "#ffffff", "width": 2},
        },
        "cliponaxis": False,
        "showlegend": bool(mark.label),
    }


def _of(number: int) -> tuple[str, str, str]:
    return STYLES[number % len(STYLES)]


def _layout(title: str, across: str, up: str) -> dict[str, Any]:
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
