"""The page without a browser: answers, figures, and the server's responses."""

import json
import re
import socket
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from html.parser import HTMLParser
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from typer.testing import CliRunner

import csdplan as cp
from csdplan.cli import app
from csdplan.commands.reports import _planned
from csdplan.errors import ModelError
from csdplan.page import figures as own
from csdplan.page import layout
from csdplan.page.answer import answer, resolved
from csdplan.page.export import tables
from csdplan.page.server import BODY_BYTES_MAX, Page, opened, serve, updated
from csdplan.page.state import PROFILE_BYTES_MAX, UPLOADED, State, Work, normalized, to_values
from csdplan.plot import figures
from csdplan.profile import Profile, load
from csdplan.profile.write import as_toml
from csdplan.profile.write import tables as profile_tables
from csdplan.result.planned import Planned
from csdplan.result.sheet import sheet_of

from .test_state import states

TOML = as_toml(load("smartssd"))
OURS = {"Host": "127.0.0.1:8050", "Content-Type": "application/json"}
_BOUGHT = Planned("Buy nothing.", (sheet_of("Bill", ("name", "price_usd"), [("x", 1.5)]),))


def planner(_profile: Profile, **_values: object) -> Planned:
    return _BOUGHT


PAGE = Page(planner)


def post(path: str, body: object) -> dict[str, Any]:
    response = PAGE.respond("POST", path, OURS, json.dumps(body).encode())
    assert response.status == 200, response.body
    found: dict[str, Any] = json.loads(response.body)
    return found


class Balanced(HTMLParser):
    """Fails at a tag that does not close the one that is open; collects identifiers and labels."""

    VOID = frozenset({"meta", "link", "input", "path", "rect", "circle"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.named: set[str] = set()
        self.inputs: list[dict[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag that must be closed, and what it is called."""
        found = dict(attrs)
        if tag not in self.VOID:
            self.open.append(tag)
        if found.get("id"):
            self.ids.append(str(found["id"]))
        if tag == "label" and found.get("for"):
            self.named.add(str(found["for"]))
        if tag in {"input", "select"} and found.get("type") != "hidden":
            self.inputs.append({**found, "inside": "label" if "label" in self.open else None})

    def handle_endtag(self, tag: str) -> None:
        """Close the tag that is open."""
        if tag not in self.VOID:
            assert self.open.pop() == tag


@pytest.mark.parametrize("cores", [1, 4, 16])
def test_the_page_agrees_with_the_command(cores: int) -> None:
    found = answer(State(cores=cores)).system.hosts[-1]
    assert found.devices == cp.bep("newport", "count", [cores])["devices"].tolist()[0]


def test_each_number_of_the_drive_and_host_reaches_the_answer() -> None:
    grid = cp.grid(
        "newport", "count", host_cores=[4], bandwidth=[2.0], compute=[3.0], k_limit=[10],
        sd_tx=[1.5], sd_comp=[2.0],
    )  # fmt: skip
    state = State(cores=4, bandwidth=2, compute=3, k_limit=10, sd_tx=1.5, sd_comp=2)
    assert answer(state).system.hosts[-1].devices == int(grid["devices"].item())


def test_the_ssds_can_be_those_of_another_profile() -> None:
    found = answer(State(ssd_profile="nvme-ssd", cores=16)).system
    table = cp.bep("newport", "count", [16], ssd_profile="nvme-ssd")
    assert found.hosts[-1].devices == table["devices"].tolist()[0]
    assert found.ssd == "nvme-ssd"


def test_every_kernel_of_the_workloads_has_its_break_even_point() -> None:
    state = State(works=(Work("count", 1.0), Work("page-rank", 1.0), Work("mine", 1.0, core=1.0)))
    found = answer(state).workloads()
    assert found.column("kernel") == ["count", "page-rank"]
    expected = [
        cp.bep("newport", kernel, [4])["devices"].item() for kernel in ("count", "page-rank")
    ]
    assert found.column("break_even_drives") == expected


def test_the_surface_holds_the_answer() -> None:
    found = answer(State(bandwidth=2, compute=3))
    row, column = found.surface.compute.index(3.0), found.surface.bandwidth.index(2.0)
    assert found.surface.devices[row][column] == found.system.hosts[-1].devices


def test_costs_follow_prices() -> None:
    plain, dear = (answer(State(csd_usd=price)).costs for price in (110, 210))
    assert dear[0].purchase_usd == plain[0].purchase_usd
    assert dear[2].purchase_usd == plain[2].purchase_usd + 100 * plain[2].system.drives
    assert plain[2].time_s is not None
    assert plain[0].time_s is not None
    assert plain[2].time_s <= plain[0].time_s


def test_the_cost_figure_shows_throughput_too() -> None:
    costs = answer(State()).costs
    drawn = figures.compared(costs)
    drives, hosts = (part.values for part in drawn.parts)
    totals = [(one or 0) + (other or 0) for one, other in zip(drives, hosts, strict=True)]
    assert totals == [cost.purchase_usd for cost in costs]
    assert [round((rate or 0) * 1e9) for rate in drawn.rates] == [
        round(cost.throughput_Bps or 0) for cost in costs
    ]
    # As many drives are cheaper and slower: neither the figure nor the sentence hides that.
    assert drawn.rates[1] < drawn.rates[0]  # type: ignore[operator]
    assert "do 3.5 times less work" in own.sentences(answer(State()))[1]


def test_the_figure_marks_what_the_results_say() -> None:
    panel = figures.throughput(answer(State(cores=4)).curves)
    assert [(mark.x, mark.low, mark.high) for mark in panel.marks] == [(12, 11, 13), (28, 26, 30)]
    assert panel.limits[0].x == 8
    for line in panel.lines:
        inside = zip(line.low, line.values, line.high, strict=True)
        assert all(low <= (value or 0) <= high for low, value, high in inside)


def test_the_sentence_says_how_sure_it_is() -> None:
    said = own.sentences(answer(State()))
    assert said[0].startswith("For count, 28 newport drives (26-30 in 90 % of cases) or more beat")
    assert own.short(answer(State()).result) == "count: break-even 28 drives (26-30)"


def test_a_drive_that_never_breaks_even_is_said_so() -> None:
    found = answer(State())
    (system,) = found.result.systems
    host = replace(system.hosts[-1], verdict="never", devices=None)
    result = replace(found.result, systems=(replace(system, hosts=(host,)),))
    assert "never beat" in own.sentences(replace(found, result=result))[0]
    assert "never" in own.short(result)


def test_every_number_bears_its_provenance() -> None:
    shown = layout.parts(((State(), answer(State())),), 640)["basis"]
    for badge in ("given", "inferred", "assumed", "measured"):
        assert f'<span class="badge {badge}"' in shown
    table = answer(State()).basis()
    assert table.column("provenance")[:4] == list(resolved(State()).prov.values())


@settings(max_examples=60)
@given(states)
def test_no_scenario_breaks_the_page(state: State) -> None:
    found = updated({"a": to_values(state), "b": None, "width": 358})
    assert found["faults"] == {}
    parser = Balanced()
    for part in (*found["html"].values(), *found["forms"].values()):
        parser.feed(part)
    assert parser.open == []


def test_the_page_says_what_to_measure_next() -> None:
    shown = layout.parts(((State(), answer(State())),), 640)["basis"]
    assert "Most of the spread comes from one time, drive: read its own flash (inferred)" in shown
    found = answer(State())
    assert found.widest is not None
    name, low, high = found.widest
    host = found.system.hosts[-1]
    assert name == "csd_tx_s", "as the thorough analysis has it (tutorial 3)"
    assert (host.devices_low or 0) <= low < high <= (host.devices_high or 0)


def test_the_page_is_whole_without_a_script() -> None:
    response = PAGE.respond("GET", "/?cores=16&b.cores=1", OURS)
    text = response.body.decode()
    parser = Balanced()
    parser.feed(text)
    assert parser.open == []
    assert len(parser.ids) == len(set(parser.ids))
    assert "44 newport drives" in text
    assert "12 newport drives" in text
    for one in parser.inputs:
        labeled = one.get("id") in parser.named or one.get("aria-label") or one["inside"]
        assert labeled, f"{one} has a label"


def test_the_page_needs_nothing_of_a_network_and_runs_only_its_own_script() -> None:
    text = PAGE.respond("GET", "/", OURS).body.decode()
    assert not re.search(r"https?://", text)
    assert re.findall(r'(?:src|href)="([^"?]*)', text) == ["data:,", "page.css", "", "page.js"]
    for name in ("page.css", "page.js"):
        body = PAGE.respond("GET", f"/{name}", OURS).body.decode()
        assert not re.search(r"url\(|@import|https?://(?!www\.w3\.org)", body)


def test_two_scenarios_stand_side_by_side() -> None:
    values = {which: to_values(State(cores=cores)) for which, cores in (("a", 4), ("b", 16))}
    found = updated({**values, "width": 500})
    assert found["html"]["short"] == "A: 28 drives (26-30) · B: 44 drives (41-48)"
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


def test_saving_and_opening_a_scenario() -> None:
    values = to_values(State(cores=12, store=77))
    file = post("/save", {"a": values, "b": None, "form": "request", "which": "a"})
    assert file["name"] == "csdplan-count.toml"
    do = {"what": "open", "which": "a", "text": file["text"]}
    # A file replaces fields that are wrong.
    found = updated({"a": {**to_values(State()), "cores": "many"}, "do": do})
    assert found["values"]["a"] == values
    refused = updated({"a": to_values(State()), "do": {**do, "text": "store = 5 parsecs"}})
    assert "a request in TOML" in refused["html"]["refused"]


def test_downloads_hold_every_table() -> None:
    first, second = State(cores=2), State(cores=3)
    body = json.loads(tables([first], [_BOUGHT], "json"))["result"]
    assert body["state"]["cores"] == 2
    titles = [table["title"] for table in body["tables"]]
    assert titles[2:4] == ["What each system costs, and how fast it is", "What it rests on"]
    assert titles[-1] == "Bill"
    both = json.loads(tables([first, second], [_BOUGHT, _BOUGHT], "json"))["result"]
    assert both["second"]["cores"] == 3
    assert both["tables"][0]["title"].startswith("A: ")
    text = post("/save", {"a": to_values(first), "b": None, "form": "csv"})["text"]
    assert "host_cores,break_even_drives" in text
    assert text.count("\n\n") == len(titles) - 1
    with pytest.raises(ModelError, match="csv or json"):
        tables([first], [_BOUGHT], "pdf")


def test_the_purchase_is_that_of_the_command() -> None:
    page = Page(_planned)
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
