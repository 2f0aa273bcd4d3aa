"""The page as a Dash application, and the server that shows it on this machine alone.

A change of any control sends all values, and one answer comes back: the server keeps no session,
so two windows never disturb each other. Faults of the input become a sentence on the page.
"""

from __future__ import annotations

import base64
import binascii
import logging
import socket
from pathlib import Path
from typing import Any

from dash import Dash, Input, Output, ctx, html, no_update
from dash import State as Kept
from flask import abort, request
from werkzeug.serving import make_server

from csdplan.errors import CsdplanError, ModelError
from csdplan.page import export
from csdplan.page import figures as own
from csdplan.page import layout as parts
from csdplan.page.answer import answer, purchase
from csdplan.page.state import (
    CHOICES,
    LINK_MAX,
    PROFILE_BYTES_MAX,
    SLIDERS,
    TEXTS,
    UPLOADED,
    State,
    check_choices,
    from_query,
    normalized,
    of_values,
    picks,
    to_query,
)
from csdplan.plot import figures, plotly
from csdplan.profile.read import parse

#: The only address that the page listens on.
ADDRESS = "127.0.0.1"
_NAMES = (*TEXTS, *(slider.name for slider in SLIDERS))
_OURS = frozenset({"127.0.0.1", "localhost"})
_KEEP_LINK = """
function (href) {
  if (href && href !== window.location.search) {
    window.history.replaceState(null, "", href);
  }
  return document.title;
}
"""


def application() -> Dash:
    """Return the page, ready to be served or tested."""
    app = Dash(
        "csdplan",
        title="csdplan",
        update_title="",
        assets_folder=str(Path(__file__).parent / "assets"),
        serve_locally=True,
        compress=False,
    )
    app.layout = parts.layout()
    app.server.before_request(_only_this_machine)
    _connect(app)
    return app


def serve(port: int) -> None:
    """Serve the page until interrupted.

    Raises
    ------
    OSError
        If the port cannot be had; the message says what to do.
    """
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((ADDRESS, port))
        except OSError as error:
            why = f"port {port} of {ADDRESS} is in use or not allowed; choose another with --port"
            raise OSError(f"{why} ({error.strerror})") from error
        listener.listen(128)
        app = application()
        # SciPy's solver takes a second to come in: better now than under the first slider.
        purchase(State())
        # Requests are not logged, errors are.
        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        server = make_server(ADDRESS, port, app.server, threaded=True, fd=listener.fileno())
        where = f"http://{ADDRESS}:{listener.getsockname()[1]}/"
        print(f"csdplan: {where} (stop with Ctrl-C)", flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass
        finally:
            server.server_close()


def changed(values: dict[str, Any]) -> tuple[Any, ...]:
    """Return all that the page shows for the controls' values, in the order of `_SHOWN`."""
    try:
        state = of_values(values)
        found = answer(state)
        bill = purchase(state)
    except CsdplanError as error:
        blank = plotly.empty("nothing to draw")
        return (blank, blank, blank, "", str(error), [], [], [], [], no_update, *_labels(values))
    (system,) = found.result.systems
    link = to_query(state)
    notes = list(found.result.warnings)
    if len(link) > LINK_MAX:
        link, notes = "?", [*notes, "the uploaded profile is too long for a link"]
    return (
        plotly.figure(figures.throughput(found.curves)),
        plotly.figure(own.surface(found.surface, state)),
        plotly.figure(own.purchases(found.costs)),
        own.sentence(system),
        "",
        [html.Li(text) for text in notes],
        parts.table(bill),
        parts.table(found.points()),
        parts.table(found.purchases()),
        link,
        *_labels(values),
    )


_SHOWN = (
    *((name, "figure") for name in parts.FIGURES),
    ("says", "children"),
    ("fault", "children"),
    ("warnings", "children"),
    ("bill", "children"),
    ("points", "children"),
    ("costs", "children"),
    ("link", "href"),
    *((f"{slider.name}-shown", "children") for slider in SLIDERS),
)


def chosen(
    trigger: str | None, query: str, values: dict[str, Any], contents: str | None
) -> tuple[State, str]:
    """Return the state after a link was opened, a choice or an upload; and a fault.

    `trigger` is the control that changed; anything but a choice and ``upload`` is the link.
    """
    try:
        if trigger == "upload" and contents:
            text = _read_upload(contents)
            state = of_values({**values, "text": text, "profile": UPLOADED})
        elif trigger in CHOICES:
            state = of_values(values)
        else:
            state = from_query(query)
            check_choices(state)
        return normalized(state), ""
    except CsdplanError as error:
        plain = of_values(values) if trigger in {"upload", *CHOICES} else State()
        return normalized(plain), str(error)


def _connect(app: Dash) -> None:
    inputs = {name: Input(name, _property(name)) for name in _NAMES}
    kept = {name: Kept(name, _property(name)) for name in _NAMES if name not in CHOICES}
    choices = {name: Input(name, "value") for name in CHOICES}

    @app.callback(
        output=[
            *(Output(name, _property(name)) for name in _NAMES),
            *(Output(name, "options") for name in CHOICES),
            *(Output(f"{name}-box", "hidden") for name in parts.PICKS),
            Output("refused", "children"),
        ],
        inputs={
            "query": Input("location", "search"),
            "contents": Input("upload", "contents"),
            "values": {**choices, **kept},
        },
    )
    def pick(query: str | None, contents: str | None, values: dict[str, Any]) -> list[Any]:
        state, fault = chosen(ctx.triggered_id, query or "", values, contents)
        found = picks(state)
        return [
            *(getattr(state, name) for name in _NAMES),
            *(parts.options(name, found[name]) for name in CHOICES),
            *(len(found[name]) == 1 for name in parts.PICKS),
            fault,
        ]

    @app.callback([Output(name, what) for name, what in _SHOWN], inputs={"values": inputs})
    def change(values: dict[str, Any]) -> list[Any]:
        return list(changed(values))

    @app.callback(
        Output("download", "data"),
        inputs={"_csv": Input("csv", "n_clicks"), "_json": Input("json", "n_clicks")},
        state={"values": {name: Kept(name, _property(name)) for name in _NAMES}},
        prevent_initial_call=True,
    )
    def download(_csv: int | None, _json: int | None, values: dict[str, Any]) -> Any:
        state = of_values(values)
        as_json = ctx.triggered_id == "json"
        text = export.to_json(state) if as_json else export.to_csv(state)
        ending = "json" if as_json else "csv"
        return {"content": text, "filename": f"csdplan-{state.kernel}.{ending}", "base64": False}

    keep: Any = app.clientside_callback  # Dash leaves it untyped
    keep(_KEEP_LINK, Output("link", "title"), Input("link", "href"))


def _property(name: str) -> str:
    return "data" if name == "text" else "value"


def _labels(values: dict[str, Any]) -> list[str]:
    return [parts.shown(slider, float(values[slider.name])) for slider in SLIDERS]


def _read_upload(contents: str) -> str:
    try:
        data = base64.b64decode(contents.partition(",")[2], validate=True)
    except (binascii.Error, ValueError) as error:
        raise ModelError("upload", "damaged", "a profile as a TOML file") from error
    if len(data) > PROFILE_BYTES_MAX:
        raise ModelError("upload", f"{len(data)} bytes", f"at most {PROFILE_BYTES_MAX} bytes")
    parse(data, file="the uploaded profile")
    return data.decode("utf-8")


def _only_this_machine() -> None:
    # A page elsewhere may have a name point here: it is then not ours that was asked for.
    if request.host.partition(":")[0] not in _OURS:
        abort(403)
