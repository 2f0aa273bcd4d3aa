"""The page's server, for this machine alone.

A change of any field sends all fields, and one answer comes back: the server keeps no session, so
two windows never disturb each other. Faults of the input become sentences on the page. It runs on
Python's own HTTP server; `Page.respond` is the whole protocol, without a socket.
"""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from csdplan.document import signed
from csdplan.errors import CsdplanError, ModelError
from csdplan.page import layout, parts, purchase
from csdplan.page.answer import answer
from csdplan.page.export import tables
from csdplan.page.fields import choices, works
from csdplan.page.link import LINK_MAX, from_query, to_query
from csdplan.page.question import from_file, question, to_file
from csdplan.page.state import (
    PROFILE_BYTES_MAX,
    UPLOADED,
    State,
    Work,
    check_choices,
    checked,
    normalized,
    of_values,
    to_values,
)
from csdplan.plot.svg import safe
from csdplan.profile.read import parse
from csdplan.result.planned import Planned

#: The only address that the page listens on.
ADDRESS = "127.0.0.1"
#: A request of the page is at most this long: two profiles and the fields [bytes].
BODY_BYTES_MAX = 4 * PROFILE_BYTES_MAX
_OURS = frozenset({"127.0.0.1", "localhost"})
_WIDTH = 640
_HTML, _JSON = "text/html; charset=utf-8", "application/json"
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
#: Asks for a purchase, as ``csdplan plan`` does: values by the names of its options, and a profile.
Planner = Callable[..., Planned]


@dataclass(frozen=True)
class Response:
    """Status, type and body of a response."""

    status: int
    kind: str
    body: bytes


class Page:
    """The page's protocol: from a request to a response."""

    def __init__(self, planner: Planner) -> None:
        self._planner = planner

    def respond(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes = b""
    ) -> Response:
        """Return the response to one request."""
        # A page elsewhere may have a name point here: it is then not ours that was asked for.
        if headers.get("Host", "").partition(":")[0] not in _OURS:
            return _plain(403, "this page is for this machine alone")
        link = urlsplit(target)
        if method == "GET":
            return self._get(link.path, link.query)
        # Another site's page can post forms here, but not JSON.
        if headers.get("Content-Type", "").partition(";")[0] != _JSON:
            return _plain(415, "expected JSON")
        try:
            asked = json.loads(body)
            if not isinstance(asked["a"], dict):
                raise TypeError("fields")
            return self._post(link.path, asked)
        except CsdplanError as error:
            return _json({"fault": str(error)})
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            return _plain(400, f"not a request of this page: {type(error).__name__}")

    def _get(self, path: str, query: str) -> Response:
        if path == "/page.css":
            return Response(200, "text/css; charset=utf-8", layout.STYLE.encode())
        if path == "/page.js":
            return Response(200, "text/javascript; charset=utf-8", layout.SCRIPT.encode())
        if path != "/":
            return _plain(404, "there is one page: /")
        states, refused = opened(query)
        shown, link = _shown(states, _WIDTH), _link(states)
        second = states[1] if len(states) > 1 else None
        text = layout.page(states[0], second, shown, refused, link)
        return Response(200, _HTML, text.encode())

    def _post(self, path: str, asked: dict[str, Any]) -> Response:
        if path == "/answer":
            return _json(updated(asked))
        if path not in {"/purchase", "/save"}:
            return _plain(404, "there are /answer, /purchase and /save")
        states = [normalized(checked(asked[which])) for which in "ab" if asked.get(which)]
        if path == "/purchase":
            return _json(self._bought(states, int(asked.get("width") or _WIDTH)))
        name, text = self._saved(states, asked["form"], asked.get("which", "a"))
        return _json({"name": name, "text": text})

    def _saved(self, states: list[State], form: str, which: str) -> tuple[str, str]:
        """Return the name and the text of a file to save."""
        chosen = states["ab".index(which)]
        if form == "request":
            return f"csdplan-{chosen.kernel}.toml", to_file(chosen)
        if form == "parts":
            if not chosen.parts:
                raise ModelError("parts", "none", "at least one part of your own, added above")
            return parts.FILE, chosen.parts
        if form == "report":
            text = signed.render(question(chosen), self._purchase(chosen), date.today())
            return "csdplan-purchase.html", text
        text = tables(states, [self._purchase(state) for state in states], form)
        return f"csdplan-{states[0].kernel}.{form}", text

    def _purchase(self, state: State) -> Planned:
        return self._planner(state.chosen_profile(), parts=state.parts, **question(state))

    def _bought(self, states: list[State], width: int) -> dict[str, str]:
        """Return what to buy in each scenario, and the same in a line."""
        found, lines = [], []
        for at, state in enumerate(states):
            name = "AB"[at] if len(states) > 1 else ""
            head = f"<h3>Scenario {name}</h3>" if name else ""
            try:
                planned = self._purchase(state)
                shown, line = (
                    purchase.shown(planned, width),
                    purchase.short(planned, among=bool(name)),
                )
            except CsdplanError as error:
                shown, line = f'<p class="fault">{safe(str(error))}</p>', "no purchase"
            found.append(f"<div>{head}{shown}</div>")
            lines.append(f"{name}: {line}" if name else f"Buy: {line}")
        buy = f'<div class="pair">{"".join(found)}</div>' if len(found) > 1 else found[0]
        return {"buy": buy, "short": safe(" · ".join(lines))}


def opened(query: str) -> tuple[list[State], str]:
    """Return the scenarios that a link asks for, and a fault; then it is the default one."""
    try:
        first, second = from_query(query)
        states = [first] if second is None else [first, second]
        for state in states:
            check_choices(state)
        return [normalized(state) for state in states], ""
    except CsdplanError as error:
        return [normalized(State())], str(error)


def updated(asked: dict[str, Any]) -> dict[str, Any]:
    """Return what changes on the page for the fields' texts, and what was done to them.

    The answer holds ``html`` by part, ``values`` of each scenario, and ``faults`` by field; with
    faults there is no new answer. ``do`` may add or remove a workload, upload a profile, open a
    request file or a catalogue of one's own, add a part to it, compare, or ``redraw`` the same for
    another width.
    """
    read = {which: of_values(asked[which]) for which in "ab" if asked.get(which)}
    states = {which: state for which, (state, _) in read.items()}
    do, refused = asked.get("do") or {}, ""
    faults = {
        f"{which}-{name}": fault
        for which, (_, wrong) in read.items()
        for name, fault in wrong.items()
    }
    # A file replaces what was wrong.
    if do.get("what") == "open":
        faults = {key: one for key, one in faults.items() if not key.startswith(do["which"])}
    if faults:
        return {"faults": faults}
    try:
        states = _done(states, do)
    except CsdplanError as error:
        refused = str(error)
    states = {which: normalized(state) for which, state in states.items()}
    listed = list(states.values())
    found = _shown(listed, int(asked.get("width") or _WIDTH))
    link = _link(listed)
    if link == "?" and listed != [normalized(State())]:
        found["warnings"] += (
            '<p class="note">what was uploaded or typed in is too long for a link</p>'
        )
    # A window that is drawn again keeps the fault of its link.
    told = {} if do.get("what") == "redraw" else {"refused": safe(refused)}
    return {
        "faults": {},
        "html": {**found, **told},
        "forms": {
            f"{which}-{part}": made(which, state)
            for which, state in states.items()
            for part, made in (("choices", choices), ("works", works))
        },
        "values": {which: to_values(state) for which, state in states.items()},
        "link": link,
    }


def _done(states: dict[str, State], do: dict[str, Any]) -> dict[str, State]:
    """Return the scenarios after an action."""
    what, which = do.get("what"), do.get("which", "a")
    if what is None:
        return states
    if what == "compare":
        return {"a": states["a"], "b": states["a"]}
    state = states[which]
    if what == "upload":
        state = replace(state, text=_profile_text(do["text"]), profile=UPLOADED)
    elif what == "open":
        state = replace(from_file(do["text"], state.text), parts=state.parts)
    elif what == "open-parts":
        parts.check(_short(do["text"]))
        state = replace(state, parts=do["text"])
    elif what == "add-part":
        state = replace(state, parts=_short(parts.added(state.parts, do["part"])))
    elif what == "remove":
        kept = tuple(one for at, one in enumerate(state.works) if at != int(do["at"]))
        state = replace(state, works=kept)
    elif what in {"add", "add-own"}:
        state = replace(state, works=(*state.works, _new_work(state, own=what == "add-own")))
    return {**states, which: state}


def _new_work(state: State, *, own: bool) -> Work:
    taken = {work.name for work in state.works}
    if own:
        names = (f"my workload {at}" for at in range(1, len(taken) + 2))
        return Work(next(name for name in names if name not in taken), 1.0, core=1.0)
    free = [one for one in state.chosen_profile().kernels() if one not in taken]
    if not free:
        raise ModelError("workload", "one more kernel", "at most as many as the profile has")
    return Work(free[0], 1.0)


def _shown(states: list[State], width: int) -> dict[str, str]:
    try:
        return layout.parts(tuple((state, answer(state)) for state in states), width)
    except CsdplanError as error:
        return layout.blank(str(error))


def _link(states: list[State]) -> str:
    link = to_query(*states)
    return link if len(link) <= LINK_MAX else "?"


def _profile_text(text: str) -> str:
    parse(_short(text), file="the uploaded profile")
    return text


def _short(text: str) -> str:
    """Return a text that is no longer than what the page takes."""
    size = len(text.encode())
    if size > PROFILE_BYTES_MAX:
        raise ModelError("upload", f"{size} bytes", f"at most {PROFILE_BYTES_MAX} bytes")
    return text


def _json(body: dict[str, Any]) -> Response:
    return Response(200, _JSON, json.dumps(body, ensure_ascii=False).encode())


def _plain(status: int, text: str) -> Response:
    return Response(status, "text/plain; charset=utf-8", f"{text}\n".encode())


def serve(port: int, planner: Planner) -> None:
    """Serve the page until interrupted.

    Raises
    ------
    OSError
        If the port cannot be had; the message says what to do.
    """
    shown = Page(planner)

    class Handler(BaseHTTPRequestHandler):
        """Passes requests of a connection to the page."""

        protocol_version = "HTTP/1.1"
        # Head and body go out together: apart, the second would wait for the first's receipt.
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            """Answer a GET."""
            self._answer(shown.respond("GET", self.path, self._headers()))

        def do_POST(self) -> None:
            """Answer a POST, whose length is bounded."""
            length = self.headers.get("Content-Length", "")
            if not length.isdigit() or int(length) > BODY_BYTES_MAX:
                self.close_connection = True
                return self._answer(_plain(413, f"expected at most {BODY_BYTES_MAX} bytes"))
            body = self.rfile.read(int(length))
            return self._answer(shown.respond("POST", self.path, self._headers(), body))

        def log_message(self, format: str, *args: object) -> None:
            """Log no requests."""

        def _headers(self) -> dict[str, str]:
            return {name.title(): value for name, value in self.headers.items()}

        def _answer(self, response: Response) -> None:
            self.send_response(response.status)
            for name, value in _HEADERS.items():
                self.send_header(name, value)
            self.send_header("Content-Type", response.kind)
            self.send_header("Content-Length", str(len(response.body)))
            self.end_headers()
            self.wfile.write(response.body)

    class Server(ThreadingHTTPServer):
        """Listens on a port that nothing else has."""

        allow_reuse_address = True
        daemon_threads = True
        request_queue_size = socket.SOMAXCONN

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Report a fault, unless it is a browser that has gone."""
            if not isinstance(sys.exception(), ConnectionError):
                super().handle_error(request, client_address)

    try:
        server = Server((ADDRESS, port), Handler)
    except OSError as error:
        why = f"port {port} of {ADDRESS} is in use or not allowed; choose another with --port"
        raise OSError(f"{why} ({error.strerror})") from error
    # SciPy's solver takes a second to come in: better now than under the first slider.
    shown.respond("GET", "/", {"Host": ADDRESS})
    with server:
        print(f"csdplan: http://{ADDRESS}:{server.server_port}/ (stop with Ctrl-C)", flush=True)
        with suppress(KeyboardInterrupt):
            server.serve_forever()
