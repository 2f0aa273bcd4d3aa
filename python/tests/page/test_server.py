"""The page's server: changes, files, faults, and the protocol."""

import json
import re
import socket
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

import csdplan as cp
from csdplan.cli import app
from csdplan.commands.reports import PriceChoice
from csdplan.errors import ModelError
from csdplan.page.export import tables
from csdplan.page.server import BODY_BYTES_MAX, Page, opened, serve, updated
from csdplan.page.state import PROFILE_BYTES_MAX, UPLOADED, State, Work, normalized, to_values
from csdplan.profile import load
from csdplan.profile.write import as_toml
from csdplan.profile.write import tables as profile_tables

from .test_page import BOUGHT, OURS, PAGE, planner

TOML = as_toml(load("smartssd"))


def post(path: str, body: object) -> dict[str, Any]:
    response = PAGE.respond("POST", path, OURS, json.dumps(body).encode())
    assert response.status == 200, response.body
    found: dict[str, Any] = json.loads(response.body)
    return found


def test_two_scenarios_stand_side_by_side() -> None:
    values = {which: to_values(State(cores=cores)) for which, cores in (("a", 4), ("b", 16))}
    found = updated({**values, "width": 500})
    assert found["html"]["short"] == "A: 28 drives (25-32) · B: 44 drives (39-52)"
    assert found["html"]["curves"].count("<figure") == 2
    assert "b.cores=16" in found["link"]
    copied = updated({**values, "do": {"what": "compare"}})
    assert copied["values"]["b"]["cores"] == "4"


def test_wrong_fields_are_named_and_nothing_else_changes() -> None:
    found = updated({"a": {**to_values(State()), "cores": "many", "store": "x"}, "b": None})
    assert set(found) == {"faults"}
    assert set(found["faults"]) == {"a-cores", "a-store"}


def test_workloads_are_added_and_removed() -> None:
    values = to_values(State())
    more = updated({"a": values, "do": {"what": "add", "which": "a"}})["values"]["a"]
    assert (more["works"], more["work1.name"]) == ("2", "array-merge")
    mine = updated({"a": more, "do": {"what": "add-own", "which": "a"}})["values"]["a"]
    assert (mine["work2.name"], mine["work2.core"]) == ("my workload 1", "1")
    less = updated({"a": mine, "do": {"what": "remove", "which": "a", "at": "0"}})["values"]["a"]
    assert (less["works"], less["work0.name"]) == ("2", "array-merge")


def test_picking_a_profile_keeps_what_it_has() -> None:
    values = {**to_values(State(cores=2)), "profile": "catalina"}
    found = updated({"a": values})["values"]["a"]
    assert (found["profile"], found["kernel"], found["cores"]) == ("catalina", "dft", "2")


def test_uploading_a_profile() -> None:
    values = to_values(State(cores=2))
    do = {"what": "upload", "which": "a", "text": TOML}
    found = updated({"a": values, "do": do})
    assert found["values"]["a"]["profile"] == UPLOADED
    assert found["values"]["a"]["cores"] == "2"
    bad = updated({"a": values, "do": {**do, "text": "schema = 2"}})
    assert "schema" in bad["html"]["refused"]
    assert bad["values"]["a"]["profile"] == "newport"
    long = updated({"a": values, "do": {**do, "text": "#" * (PROFILE_BYTES_MAX + 1)}})
    assert f"expected at most {PROFILE_BYTES_MAX} bytes" in long["html"]["refused"]


def test_several_drives_of_a_profile_can_be_picked() -> None:
    newport, smartssd = load("newport").as_dict(), load("smartssd").as_dict()
    drives = [point for point in smartssd["point"] if point["where"] == "drive"]
    text = profile_tables({**newport, "point": newport["point"] + drives})
    found = updated({"a": {**to_values(State()), "text": text, "profile": UPLOADED}})
    assert (
        '<select id="a-device" name="device"><option value="newport"' in found["forms"]["a-choices"]
    )
    assert 'id="a-ssd-box" hidden' in found["forms"]["a-choices"]


def test_a_profile_that_is_gone_is_said_so() -> None:
    values = {**to_values(State()), "profile": UPLOADED}
    assert "profile = uploaded" in post("/answer", {"a": values, "b": None})["fault"]


def test_saving_and_opening_a_scenario() -> None:
    values = to_values(State(cores=12, store=77))
    file = post("/save", {"a": values, "b": None, "form": "request", "which": "a"})
    assert file["name"] == "csdplan-count.toml"
    do = {"what": "open", "which": "a", "text": file["text"]}
    # A file replaces fields that are wrong.
    found = updated({"a": {**to_values(State()), "cores": "many"}, "do": do})
    assert found["values"]["a"] == values
    refused = updated({"a": to_values(State()), "do": {**do, "text": "store = 5 parsecs"}})
    assert "a TOML file" in refused["html"]["refused"]


def test_downloads_hold_every_table() -> None:
    first, second = State(cores=2), State(cores=3)
    body = json.loads(tables([first], [BOUGHT], "json"))["result"]
    assert body["state"]["cores"] == 2
    titles = [table["title"] for table in body["tables"]]
    assert titles[2:4] == ["What each system costs, and how fast it is", "What it rests on"]
    assert titles[-1] == "Bill"
    both = json.loads(tables([first, second], [BOUGHT, BOUGHT], "json"))["result"]
    assert both["second"]["cores"] == 3
    assert both["tables"][0]["title"].startswith("A: ")
    text = post("/save", {"a": to_values(first), "b": None, "form": "csv"})["text"]
    assert "host_cores,break_even_drives" in text
    assert text.count("\n\n") == len(titles) - 1
    with pytest.raises(ModelError, match="csv or json"):
        tables([first], [BOUGHT], "pdf")


def test_the_purchase_is_that_of_the_command() -> None:
    page = Page(PriceChoice((), None, None).planned)
    state = State(store=20, works=(Work("count", 10.0),), protect="none")
    body = json.dumps({"a": to_values(state), "b": None}).encode()
    shown = json.loads(page.respond("POST", "/purchase", OURS, body).body)["buy"]
    bill = cp.plan("20TB", workload=["count=10GB/s"])["bill"]
    for name, count in zip(bill["name"], bill["count"], strict=True):
        if name:
            assert f'data-name="name">{name}</td>' in shown
            assert f">{count:g}</td>" in shown
    poor = to_values(replace(state, budget=1.0))
    shown = json.loads(
        page.respond("POST", "/purchase", OURS, json.dumps({"a": poor, "b": None}).encode()).body
    )["buy"]
    assert "Nothing can be bought" in shown


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ("kernel=counts", "kernel = counts: expected one that newport has: array-merge, count"),
        ("profile=smartssd&device=newport", "device = newport: expected one that smartssd has"),
        ("size=12", "size = 12: expected one that newport has"),
        ("ssd_profile=nothing", "profile = nothing"),
        ("work=sort:5", "workload = sort: expected one that newport has"),
        ("b.kernel=counts", "kernel = counts"),
    ],
)
def test_a_link_that_names_what_is_not_there_says_so(link: str, said: str) -> None:
    found, fault = opened(link)
    assert said in fault
    assert found == [normalized(State())]
    text = PAGE.respond("GET", f"/?{link}", OURS).body.decode()
    assert said in text


def test_text_from_outside_cannot_become_markup() -> None:
    text = PAGE.respond("GET", "/?kernel=<script>alert(1)</script>", OURS).body.decode()
    assert "<script>alert" not in text
    assert "&lt;script&gt;" in text
    evil = load("newport").as_dict()
    evil["meta"] = {**evil["meta"], "note": "<script>alert(1)</script>"}
    do = {"what": "upload", "which": "a", "text": profile_tables(evil)}
    found = updated({"a": to_values(State()), "do": do})
    assert "<script" not in json.dumps(found["html"]) + json.dumps(found["forms"])


def test_the_server_is_for_this_machine() -> None:
    assert PAGE.respond("GET", "/", {"Host": "localhost"}).status == 200
    assert PAGE.respond("GET", "/", {"Host": "elsewhere.example"}).status == 403
    assert PAGE.respond("GET", "/", {}).status == 403
    assert PAGE.respond("GET", "/etc/passwd", OURS).status == 404
    form = {**OURS, "Content-Type": "text/plain"}
    assert PAGE.respond("POST", "/answer", form, b"{}").status == 415


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"a": 5}', b'{"a": {"works": []}, "do": []}', b"\xff"]
)
@pytest.mark.parametrize("path", ["/answer", "/purchase", "/save"])
def test_nonsense_is_refused(path: str, body: bytes) -> None:
    assert PAGE.respond("POST", path, OURS, body).status in {200, 400}


def test_the_command_serves_the_page_and_refuses_long_requests() -> None:
    command = [sys.executable, "-m", "csdplan", "ui", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address = urlsplit(server.stdout.readline().split()[1])
        host, port = str(address.hostname), address.port or 0
        with closing(HTTPConnection(host, port)) as link:
            link.request("GET", "/?cores=16", headers={"host": address.netloc})
            response = link.getresponse()
            assert "44 newport drives" in response.read().decode()
            assert "script-src 'self'" in (response.getheader("Content-Security-Policy") or "")
        for length in (str(BODY_BYTES_MAX + 1), "-1", "many"):
            with closing(HTTPConnection(host, port)) as link:
                link.putrequest("POST", "/answer")
                link.putheader("Content-Length", length)
                link.endheaders()
                response = link.getresponse()
                assert (response.status, response.read()[:8]) == (413, b"expected")
        server.terminate()


def test_a_busy_port_is_refused_in_words() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"port {port} .* choose another with --port"):
            serve(port, planner)
        result = CliRunner().invoke(app, ["ui", "--port", str(port)])
    assert result.exit_code == 1
    assert f"port {port} of 127.0.0.1 is in use" in result.stderr


def test_one_price_list_serves_the_whole_page(tmp_path: Path) -> None:
    """In a process of its own: the page's fields have its prices from their import on."""
    quotes = tmp_path / "quotes.toml"
    quotes.write_text(
        'schema = 1\ndate = "2026-11-20"\nprov = "given"\n[usd]\n"samsung-pm9a3-7.68tb" = 77\n',
        encoding="utf-8",
    )
    # In place of a server that answers for ever, one that is asked twice.
    code = (
        "import json, sys, types\n"
        "def served(port, planner):\n"
        "    del sys.modules['csdplan.page.server']\n"
        "    from csdplan.page.server import Page\n"
        "    from csdplan.page.state import State, to_values\n"
        "    body = json.dumps({'a': to_values(State(store=20, works=())), 'b': None}).encode()\n"
        "    head = {'Host': 'localhost', 'Content-Type': 'application/json'}\n"
        "    page = Page(planner)\n"
        "    print(page.respond('GET', '/', head).body.decode())\n"
        "    print(json.loads(page.respond('POST', '/purchase', head, body).body)['buy'])\n"
        "sys.modules['csdplan.page.server'] = types.SimpleNamespace(serve=served)\n"
        "import csdplan.commands.reports as r\n"
        "r.ui(0, prices=sys.argv[1])\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(quotes)], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    costs, _, buys = ran.stdout.partition("</html>")
    assert re.search(r'"ssd_usd"[^>]* value="77"', costs)
    assert "samsung-pm9a3-7.68tb" in buys
    assert ">77</td>" in buys
