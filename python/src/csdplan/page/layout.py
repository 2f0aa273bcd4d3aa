"""The page's parts: native controls with labels, figures with descriptions, tables.

Native radio buttons and range inputs take the keyboard and screen readers as they come.
"""

from __future__ import annotations

from typing import Any

from dash import dcc, html

from csdplan.page.state import SLIDERS, Slider, State, computing_names
from csdplan.result.sheet import Sheet, Value

#: Descriptions of the figures, for screen readers.
FIGURES = {
    "curves": "Throughput against devices, with break-even points",
    "surface": "Break-even point over the drive's bandwidth and compute",
    "cost": "Purchase of the SSDs, of as many drives, and of drives that are as fast",
}


#: Fields that are chosen only where a profile has several, with their labels.
PICKS = {"device": "Drive that computes", "ssd": "Drive as SSD", "size": "Working set"}


def options(name: str, found: tuple[str, ...]) -> list[dict[str, str]]:
    """Return the options of a choice: values, and how they read."""
    if name == "size":
        return [{"label": f"{int(size) / 1e9:.4g} GB", "value": size} for size in found]
    return [{"label": one, "value": one} for one in found]


def layout() -> Any:
    """Return the whole page in its default state."""
    return html.Div(
        [
            dcc.Location(id="location", refresh=False),
            dcc.Store(id="text", data=""),
            dcc.Download(id="download"),
            html.Header(html.H1("csdplan: ordinary SSDs or computational drives")),
            html.Main(
                [
                    html.Div(_controls(), className="panel controls"),
                    html.Div(_results(), className="plots"),
                ],
                className="page",
            ),
        ]
    )


def table(sheet: Sheet) -> list[Any]:
    """Return a sheet as a table with its note."""
    known = [i for i in range(len(sheet.columns)) if any(row[i] is not None for row in sheet.rows)]
    numeric = {i: all(not isinstance(row[i], str) for row in sheet.rows) for i in known}
    kind = {i: "n" if numeric[i] else "" for i in known}
    head = [
        html.Th(sheet.columns[i].replace("_", " "), scope="col", className=kind[i]) for i in known
    ]
    rows = [
        html.Tr([html.Td(_cell(row[i]), className=kind[i]) for i in known]) for row in sheet.rows
    ]
    parts = [html.Caption(sheet.title), html.Thead(html.Tr(head)), html.Tbody(rows)]
    return [html.Table(parts), html.P(sheet.note, className="note")]


def shown(slider: Slider, value: float) -> str:
    """Return a slider's value as the page writes it."""
    if slider.name == "k_limit" and value == 0:
        return "as the profile"
    return f"{value:g} {slider.unit}".strip()


def _controls() -> list[Any]:
    plain = State()
    names, kernels = computing_names(), plain.chosen_profile().kernels()
    parts: list[Any] = [
        _choice("profile", "Profile", names, plain.profile),
        html.Div(
            dcc.Upload(
                html.Button("Upload a profile (TOML)", id="upload-button", type="button"),
                id="upload",
                accept=".toml",
                # A file that is too long is refused by the server, which says so.
                max_size=-1,
            ),
            className="upload",
        ),
        _choice("kernel", "Kernel", kernels, plain.kernel),
        *(_choice(name, label, (), "") for name, label in PICKS.items()),
    ]
    for group in dict.fromkeys(slider.group for slider in SLIDERS):
        inside = [_slider(slider, plain) for slider in SLIDERS if slider.group == group]
        parts.append(html.Fieldset([html.Legend(group), *inside]))
    return parts


def _choice(name: str, label: str, names: tuple[str, ...], chosen: str) -> Any:
    options: Any = list(names)
    radio = dcc.RadioItems(options, chosen, id=name, inline=True)
    return html.Fieldset([html.Legend(label), radio], id=f"{name}-box", hidden=not names)


def _slider(slider: Slider, state: State) -> Any:
    value = getattr(state, slider.name)
    ends: Any = {"min": slider.low, "max": slider.high, "step": slider.step}
    return html.Div(
        [
            html.Label(
                [slider.label, html.Span(shown(slider, value), id=f"{slider.name}-shown")],
                htmlFor=slider.name,
            ),
            dcc.Input(id=slider.name, type="range", value=value, **ends),
        ],
        className="slider",
    )


def _results() -> list[Any]:
    live: Any = {"aria-live": "polite"}
    answer = html.Section(
        [
            html.P(id="says", **live),
            html.Div(id="refused", role="alert"),
            html.Div(id="fault", role="alert"),
            html.Ul(id="warnings", className="note"),
            html.Div(
                [
                    html.Button("Download CSV", id="csv", type="button"),
                    html.Button("Download JSON", id="json", type="button"),
                    html.A("Link to this state", id="link", href="?", className="link"),
                ],
                className="actions",
            ),
        ],
        className="panel wide answer",
    )
    graphs = {name: _graph(name, text) for name, text in FIGURES.items()}
    bill = html.Section([html.Div(id="bill"), html.Div(id="points")], className="panel tables")
    costs = html.Section(html.Div(id="costs"), className="panel wide tables")
    return [answer, graphs["curves"], graphs["surface"], graphs["cost"], bill, costs]


def _graph(name: str, text: str) -> Any:
    graph = dcc.Graph(
        id=name,
        config={"displaylogo": False, "displayModeBar": False, "responsive": True},
        style={"height": "26rem"},
    )
    described: Any = {"aria-label": text}
    return html.Section(graph, className="panel", role="img", **described)


def _cell(value: Value) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:,.4g}"  # noqa: PLR2004
    return str(value)
