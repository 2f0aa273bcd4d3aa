"""Scenarios: in fields, in links and in request files, there and back."""

import base64
import inspect
import json
import tomllib
import zlib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import csdplan as cp
from csdplan.errors import CsdplanError, ModelError
from csdplan.page.link import from_query, to_query
from csdplan.page.quantities import BY_NAME, QUANTITIES, Quantity
from csdplan.page.question import from_file, question, to_file
from csdplan.page.state import (
    PROFILE_BYTES_MAX,
    UPLOADED,
    State,
    Work,
    check_choices,
    computing_names,
    normalized,
    of_values,
    to_values,
)
from csdplan.profile import load
from csdplan.profile.write import as_toml
from csdplan.request.ask import Ask, read_ask
from csdplan.request.file import KEYS

TOML = as_toml(load("smartssd"))


def numbers(one: Quantity) -> st.SearchStrategy[float]:
    """Return a strategy of what a quantity can be: round values, and any others."""
    digits = st.floats(one.low, min(one.high, 1e6)).map(
        lambda value: round(float(f"{value:.6g}"), 9)
    )
    inside = digits.filter(lambda value: one.low <= value <= one.high)
    whole = st.integers(int(one.low), int(min(one.high, 10**6))).map(float)
    stops = [stop for stop in one.stops if stop >= one.low or one.zero]
    return st.sampled_from(stops) | (whole if one.whole else inside)


names = st.from_regex(r"[A-Za-z][A-Za-z0-9 ._-]{0,20}", fullmatch=True)
positive = st.floats(1e-3, 1e4).map(lambda value: float(f"{value:.6g}"))
own_works = st.builds(
    Work, name=names, rate=positive, core=positive,
    returns=st.integers(0, 100).map(float), spread=st.integers(0, 90).map(float),
)  # fmt: skip
kernel_works = st.builds(Work, name=st.sampled_from(load("newport").kernels()), rate=positive)
works = st.lists(kernel_works | own_works, max_size=6, unique_by=lambda work: work.name)
states = st.builds(
    State,
    profile=st.sampled_from(("newport", "smartssd", "newport-b")),
    kernel=st.sampled_from(("count", "array-merge", "page-rank")),
    ssd_profile=st.sampled_from(("", "nvme-ssd")),
    works=works.map(tuple),
    protect=st.sampled_from(("none", "replica:3", "rs:8+2", "rs:6+3")),
    usable=st.sampled_from(("yes", "no")),
    overlap=st.sampled_from(("pipelined", "serial")),
    network=st.sampled_from(("auto", "yes", "no")),
    **{one.name: numbers(one) for one in QUANTITIES},
).map(normalized)


def possible(state: State) -> State:
    """Return a scenario that keeps no more cold data than data, and writes no more than it can."""
    cold = min(state.cold, state.store)
    daily = state.write_daily if state.write_daily <= state.write * 86.4 else 0.0
    read = state.cold_read if cold else 0.0
    return replace(state, cold=cold, cold_read=read, write_daily=daily)


@settings(max_examples=80)
@given(states)
def test_fields_hold_the_scenario(state: State) -> None:
    assert of_values(to_values(state)) == (state, {})


@settings(max_examples=80)
@given(states, st.none() | states)
def test_a_link_holds_both_scenarios(first: State, second: State | None) -> None:
    assert from_query(to_query(first, second)) == (first, second)


def test_a_link_holds_an_uploaded_profile() -> None:
    state = State(profile=UPLOADED, text=TOML, cores=2)
    assert from_query(to_query(state)) == (state, None)
    assert len(to_query(state)) < 8000


def test_links_of_earlier_pages_open() -> None:
    first, _ = from_query("?need_TB=16&need_GBps=12&kernel=count&cores=8")
    assert (first.store, first.works, first.cores) == (16, (Work("count", 12.0),), 8)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("?cores=0", "cores = 0: expected a number from 1 to 4,096 cores"),
        ("?cores=2.5", "cores = 2.5: expected a whole number"),
        ("?cores=2.5&sd_tx=nan", "sd_tx = nan"),
        ("?sd_tx=inf", "sd_tx = inf"),
        ("?csd_usd=-1", "csd_usd = -1"),
        ("?store=5 parsecs", "store = 5 parsecs"),
        ("?color=red", "link = color"),
        ("?b.color=red", "link = color"),
        ("?work=count", "work = count: expected NAME:RATE"),
        ("?work=count:1&work=count:2", "workload = count: expected names that differ"),
        ("?work=<b>:1", "workload = <b>"),
        ("?protect=rs:0", "protect = rs:0"),
        ("?overlap=perhaps", "overlap = perhaps"),
        ("?profile=../../etc/passwd", "profile = ../../etc/passwd"),
        ("?profile=uploaded&text=%21", "damaged"),
        ("?profile=uploaded", "profile = uploaded"),
        ("?" + "&".join(f"a{at}=1" for at in range(300)), "link = too long"),
    ],
)
def test_a_bad_link_is_refused_in_words(query: str, says: str) -> None:
    with pytest.raises(CsdplanError, match="expected") as caught:
        check_choices(from_query(query)[0])
    assert says in str(caught.value)


def test_a_link_that_unpacks_to_gigabytes_is_refused() -> None:
    bomb = base64.urlsafe_b64encode(zlib.compress(b" " * (PROFILE_BYTES_MAX + 1))).decode()
    with pytest.raises(ModelError, match="too long"):
        from_query(f"?profile=uploaded&text={bomb}")


@pytest.mark.parametrize(
    ("name", "text", "number"),
    [
        ("store", "1.2 PB", 1200),
        ("store", "500", 500),
        ("budget", "$400k", 400_000),
        ("budget", "", 0),
        ("power", "800 W", 0.8),
        ("growth", "20%", 20),
        ("write", "8 Gbit/s", 1),
    ],
)
def test_fields_take_units(name: str, text: str, number: float) -> None:
    assert BY_NAME[name].checked(text) == number


def test_every_fault_of_the_fields_is_found() -> None:
    _, faults = of_values(
        {"cores": "many", "store": "-1", "work0.name": "count", "work0.rate": "0"}
    )
    assert set(faults) == {"cores", "store", "work0.rate"}


@settings(max_examples=80)
@given(states.map(possible))
def test_a_request_file_holds_the_scenario(state: State) -> None:
    if state.works or state.store or state.serve:
        assert from_file(to_file(state)) == state


@pytest.mark.parametrize(
    "state",
    [
        State(),
        State(profile="smartssd", kernel="page-rank", works=(Work("page-rank", 2.5),), store=20),
        State(works=(Work("count", 40.0), Work("my own", 5.0, 0.8, 10.0, 20.0)), budget=400_000),
    ],
)
def test_plan_reads_the_file_of_the_page(state: State, tmp_path: Path) -> None:
    file = tmp_path / "scenario.toml"
    file.write_text(to_file(state), encoding="utf-8")
    by_file = cp.plan(ask=file)
    asked = cp.plan(profile=state.profile, **question(state))
    assert by_file["bill"].to_csv() == asked["bill"].to_csv()
    assert by_file["bill"].attrs == asked["bill"].attrs
    profile = tomllib.loads(file.read_text(encoding="utf-8"))["profile"]
    assert profile == state.profile


def test_a_request_by_hand_opens() -> None:
    text = 'store = "500TB"\nprotect = "rs:8+2"\nworkload = ["page-rank=3GB/s"]\nbudget = "400k"\n'
    state = from_file(text)
    assert (state.store, state.budget, state.protect) == (500, 400_000, "rs:8+2")
    assert (state.works, state.kernel) == ((Work("page-rank", 3.0),), "page-rank")
    assert from_file(json.dumps(tomllib.loads(text))) == state


#: A value other than the usual of every key that a question's file may have.
ASKED: dict[str, Any] = {
    "profile": "smartssd",
    "store": "500TB",
    "cold": "400TB",
    "cold_read": "2GB/s",
    "usable": False,
    "protect": "rs:8+2",
    "workload": ["count=3GB/s"],
    "write": "3GB/s",
    "write_daily": "20TB",
    "serve": "10GB/s",
    "network": False,
    "filesystem": "3%",
    "spare": "7%",
    "growth": "20%",
    "compression": 2,
    "budget": "400k",
    "power": "12kW",
    "rack": "20U",
    "kwh": 0.3,
    "years": 4,
    "hosts_max": 17,
    "overlap": "serial",
}
#: Options of a plan that are about the parts on offer, or about the search: no file holds them.
OF_THE_OFFER = {
    "ask", "only", "without", "one_kind", "catalogue", "drive", "cores", "unmeasured", "prices",
    "price_date", "draws", "time_limit_s",
}  # fmt: skip


def test_every_option_of_a_plan_is_a_field_of_the_page_or_refused() -> None:
    """An option that is new to `plan` fails here until the page has it, or it is of the offer."""
    assert set(inspect.signature(cp.plan).parameters) == set(ASKED) | OF_THE_OFFER
    assert set(ASKED) == KEYS - {"page"}
    text = json.dumps(ASKED)
    state, asked = from_file(text), read_ask(ASKED)
    assert state.profile == ASKED["profile"]
    assert read_ask(question(state)) == asked
    assert from_file(to_file(state)) == state
    assert from_query(to_query(state)) == (state, None)
    for one in fields(Ask):
        assert getattr(asked, one.name) != getattr(Ask(), one.name), one.name
    for name in OF_THE_OFFER:
        with pytest.raises(ModelError, match=f"= {name}: expected only"):
            from_file(json.dumps({**ASKED, name: "x"}))


@pytest.mark.parametrize("network", [True, False, None])
def test_writes_of_a_day_alone_and_the_network_of_hosts_are_kept(network: bool | None) -> None:
    values: dict[str, Any] = {"store": "10TB", "write_daily": "1TB"}
    if network is not None:
        values["network"] = network
    state = from_file(json.dumps(values))
    assert read_ask(question(state)) == read_ask(values)


def test_a_request_without_workloads_opens() -> None:
    state = from_file('store = "500TB"\n')
    assert state.works == ()
    assert from_file(to_file(state)) == state
    assert from_query(to_query(state)) == (state, None)


def test_a_profile_next_to_the_request_is_read(tmp_path: Path) -> None:
    state = State(profile=UPLOADED, text=TOML, kernel="count")
    text = to_file(state)
    assert from_file(text, TOML) == state
    with pytest.raises(ModelError, match="upload that profile first"):
        from_file(text)
    (tmp_path / "uploaded.toml").write_text(TOML, encoding="utf-8")
    (tmp_path / "scenario.toml").write_text(text, encoding="utf-8")
    found = cp.plan(ask=tmp_path / "scenario.toml")
    asked = cp.plan(profile="smartssd", **question(state))
    assert found["bill"].to_csv() == asked["bill"].to_csv()


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("store = ", "a TOML file"),
        ("{", "a JSON file"),
        ("storage = '1TB'", "the request file = storage"),
        ("store = '5 parsecs'\nbudget = 'free'", "budget = free"),
        ("store = '1TB'\nworkload = ['@mine.toml']", "the page reads no other one"),
        ("store = '1TB'\npage = 3", "page = 3"),
        ("store = '1TB'\n[page]\ncolor = 'red'", "page = color"),
        ("store = '1TB'\n[page]\ncores = 'many'", "cores = many"),
        ("store = '1TB'\nworkload = ['sort=1GB/s']", "workload = sort"),
        ("store = '1TB'\nprofile = '/etc/passwd'", "profile = /etc/passwd"),
        ("store = '1TB'\nworkload = [{ name = 'a' }]", "without core, throughput"),
        ("budget = '5k'", "store, workload"),
        ("write = '1GB/s'\nstore = '1TB'\nwrite_daily = '0TB'", "to the page 0 is all day"),
        (
            "workload = [{ name = 'a', throughput = '1GB/s', core = '1GB/s', cpu = 'epyc-9754' }]",
            "the page has no other one",
        ),
        ("workload = 5", "workload = 5: expected a list"),
        ("workload = [[1]]", "workload"),
    ],
)
def test_a_bad_request_is_refused_in_words(text: str, says: str) -> None:
    with pytest.raises(CsdplanError) as caught:
        from_file(text)
    assert says in str(caught.value)


def test_profiles_to_choose_from_compute() -> None:
    assert "nvme-ssd" not in computing_names()
    assert "newport" in computing_names()
