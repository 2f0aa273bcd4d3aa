"""The page without a browser: answers, figures, and the server's responses."""

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings

import csdplan as cp
from csdplan.page import figures as own
from csdplan.page import layout
from csdplan.page.answer import answer, resolved
from csdplan.page.server import Page, updated
from csdplan.page.state import State, Work, computing_names, normalized, picks, to_values
from csdplan.plot import figures
from csdplan.profile import Profile
from csdplan.result.planned import Planned
from csdplan.result.sheet import sheet_of

from .test_state import states

OURS = {"Host": "127.0.0.1:8050", "Content-Type": "application/json"}
BOUGHT = Planned("Buy nothing.", {"x": sheet_of("Bill", ("name", "price_usd"), [("x", 1.5)])})


def planner(_profile: Profile, **_values: object) -> Planned:
    return BOUGHT


PAGE = Page(planner)


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
    assert [(mark.x, mark.low, mark.high) for mark in panel.marks] == [(12, 11, 13), (28, 25, 32)]
    assert panel.limits[0].x == 8
    for line in panel.lines:
        inside = zip(line.low, line.values, line.high, strict=True)
        assert all(low <= (value or 0) <= high for low, value, high in inside)


def test_the_sentence_says_how_sure_it_is() -> None:
    said = own.sentences(answer(State()))
    assert said[0].startswith("For count, 28 newport drives (25-32 in 90 % of cases) or more beat")
    assert own.short(answer(State()).result) == "count: break-even 28 drives (25-32)"


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
    assert "Most of the spread comes from one time, SSD: load into the host (assumed)" in shown
    found = answer(State())
    assert found.widest is not None
    name, low, high = found.widest
    host = found.system.hosts[-1]
    assert name == "ssd_tx_s", "as the thorough analysis has it (tutorial 3)"
    assert (host.devices_low or 0) <= low < high <= (host.devices_high or 0)


@pytest.mark.parametrize("profile", computing_names())
def test_every_shipped_profile_has_answers(profile: str) -> None:
    for kernel in picks(State(profile=profile))["kernel"]:
        state = normalized(State(profile=profile, kernel=kernel))
        found = updated({"a": to_values(state), "b": None})
        assert found["html"]["fault"] == ""
        assert found["html"]["short"].startswith(f"{kernel}: break-even ")


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
