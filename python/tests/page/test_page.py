"""The page without a browser: states and links, answers, figures, and the server's responses."""

import base64
import json
import math
import socket
import sys
import zlib
from dataclasses import asdict, replace
from importlib import resources
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plotly.utils import PlotlyJSONEncoder
from typer.testing import CliRunner

import csdplan as cp
from csdplan.cli import app
from csdplan.errors import CsdplanError, ModelError
from csdplan.page import export
from csdplan.page import figures as own
from csdplan.page.answer import answer, purchase, request, resolved
from csdplan.page.server import application, changed, chosen, serve
from csdplan.page.state import (
    PROFILE_BYTES_MAX,
    SLIDERS,
    UPLOADED,
    Slider,
    State,
    computing_names,
    from_query,
    normalized,
    of_values,
    to_query,
)
from csdplan.plot import figures, plotly

SHIPPED = resources.files("csdplan.profile") / "shipped"
TOML = (SHIPPED / "smartssd.toml").read_text(encoding="utf-8")


def places(slider: Slider) -> st.SearchStrategy[float]:
    """Return a strategy of what a slider can be."""
    steps = st.integers(0, int((slider.high - slider.low) / slider.step))
    return steps.map(lambda step: round(slider.low + step * slider.step, 6))


states = st.builds(
    State,
    profile=st.sampled_from(computing_names()),
    kernel=st.sampled_from(("count", "dft", "page-rank")),
    **{slider.name: places(slider) for slider in SLIDERS},
)


@given(states)
def test_a_link_holds_the_state(state: State) -> None:
    assert from_query(to_query(state)) == state


def test_a_link_holds_an_uploaded_profile() -> None:
    state = State(profile=UPLOADED, text=TOML, cores=2)
    assert from_query(to_query(state)) == state
    assert len(to_query(state)) < 8000


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("?cores=0", "cores = 0: expected a number from 1 to 64"),
        ("?cores=2.5", "whole number"),
        ("?sd_tx=nan", "sd_tx = nan"),
        ("?sd_tx=inf", "sd_tx = inf"),
        ("?csd_usd=-1", "csd_usd = -1"),
        ("?color=red", "color"),
        ("?profile=../../etc/passwd", "profile = ../../etc/passwd"),
        ("?profile=uploaded&text=%21", "damaged"),
        ("?profile=uploaded", "profile = uploaded"),
    ],
)
def test_a_bad_link_is_refused_in_words(query: str, says: str) -> None:
    with pytest.raises(CsdplanError, match="expected") as caught:
        from_query(query).chosen_profile()
    assert says in str(caught.value) or says == "whole number" in str(caught.value)


def test_a_link_that_unpacks_to_gigabytes_is_refused() -> None:
    bomb = base64.urlsafe_b64encode(zlib.compress(b" " * (PROFILE_BYTES_MAX + 1))).decode()
    with pytest.raises(ModelError, match="too long"):
        from_query(f"?profile=uploaded&text={bomb}")


@pytest.mark.parametrize("cores", [1, 4, 16])
def test_the_page_agrees_with_the_command(cores: int) -> None:
    found = answer(State(cores=cores)).result.systems[0].hosts[-1]
    assert found.devices == cp.bep("newport", "count", [cores])["devices"].tolist()[0]


def test_each_slider_of_the_drive_and_host_reaches_the_answer() -> None:
    grid = cp.grid(
        "newport", "count", host_cores=[4], bandwidth=[2.0], compute=[3.0], k_limit=[10],
        sd_tx=[1.5], sd_comp=[2.0],
    )  # fmt: skip
    state = State(cores=4, bandwidth=2, compute=3, k_limit=10, sd_tx=1.5, sd_comp=2)
    assert answer(state).result.systems[0].hosts[-1].devices == int(grid["devices"].item())


def test_the_surface_holds_the_answer() -> None:
    found = answer(State(bandwidth=2, compute=3))
    row, column = found.surface.compute.index(3.0), found.surface.bandwidth.index(2.0)
    assert found.surface.devices[row][column] == found.result.systems[0].hosts[-1].devices


def test_costs_follow_prices() -> None:
    plain, dear = (answer(State(csd_usd=price)).costs for price in (110, 210))
    assert dear[0].purchase_usd == plain[0].purchase_usd
    assert dear[2].purchase_usd == plain[2].purchase_usd + 100 * plain[2].system.drives
    assert plain[2].time_s is not None
    assert plain[0].time_s is not None
    assert plain[2].time_s <= plain[0].time_s


def test_the_purchase_follows_prices_and_requirements() -> None:
    cheap = purchase(State())
    assert cheap.title == "What to buy"
    assert purchase(State(ssd_usd=1000, csd_usd=10, need_TB=0)).rows != cheap.rows
    assert purchase(State(need_TB=200)).title.startswith("Nothing can be bought")


def test_the_link_of_the_host_limits_the_purchase() -> None:
    held = resolved(State())
    read = held.bytes / held.host(1).tx_s
    assert request(State(k_limit=3)).cpus[0].ingest_Bps == pytest.approx(3 * read)


def test_the_figures_mark_what_the_results_say() -> None:
    state = State(cores=4)
    found = answer(state)
    drawn = plotly.figure(figures.throughput(found.curves))
    marks = [trace["x"] for trace in drawn["data"] if trace["mode"] == "markers+text"]
    assert marks == [[12], [28]]
    assert drawn["layout"]["shapes"][0]["x0"] == 8
    shown = plotly.figure(own.surface(found.surface, state))["data"]
    assert 10 ** shown[0]["z"][3][3] == pytest.approx(28)
    assert (shown[-1]["x"], shown[-1]["y"]) == ([1], [1])
    bars = plotly.figure(own.purchases(found.costs))["data"]
    totals = [sum(parts) for parts in zip(*(bar["y"] for bar in bars), strict=True)]
    assert totals == [cost.purchase_usd for cost in found.costs]
    json.dumps([drawn, shown, bars], allow_nan=False)


@settings(max_examples=80)
@given(states)
def test_no_state_breaks_the_page(state: State) -> None:
    shown = changed(asdict(state))
    assert shown[3] or shown[4]
    json.dumps(shown[:3], allow_nan=False)


def test_lines_differ_without_color() -> None:
    drawn = plotly.figure(figures.throughput(answer(State()).curves))["data"]
    dashes = [trace["line"].get("dash", "solid") for trace in drawn if trace["mode"] == "lines"]
    assert len(set(dashes)) == len(dashes) == 3


def test_downloads_hold_every_table() -> None:
    state = State(cores=2)
    body = json.loads(export.to_json(state))
    assert body["result"]["state"]["cores"] == 2
    titles = [table["title"] for table in body["result"]["tables"]]
    assert titles[1:3] == ["What to buy", "Cost of ownership"]
    assert "host_cores,break_even_drives" in export.to_csv(state)
    assert export.to_csv(state).count("\n\n") == len(titles) - 1


def test_picking_and_uploading() -> None:
    values: dict[str, Any] = asdict(State(cores=2))
    state, fault = chosen("profile", "", {**values, "profile": "catalina"}, None)
    assert (state.profile, state.kernel, state.cores, fault) == ("catalina", "dft", 2, "")
    packed = "data:;base64," + base64.b64encode(TOML.encode()).decode()
    state, fault = chosen("upload", "", values, packed)
    assert (state.profile, state.cores, fault) == (UPLOADED, 2, "")
    bad = "data:;base64," + base64.b64encode(b"schema = 2").decode()
    state, fault = chosen("upload", "", values, bad)
    assert state.profile == "newport"
    assert "schema" in fault


def test_the_server_is_for_this_machine() -> None:
    client = application().server.test_client()
    assert client.get("/", headers={"Host": "127.0.0.1:8050"}).status_code == 200
    assert client.get("/", headers={"Host": "elsewhere.example"}).status_code == 403
    text = client.get("/", headers={"Host": "localhost"}).get_data(as_text=True)
    assert "http://" not in text
    assert "https://" not in text


def test_a_busy_port_is_refused_in_words() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"port {port} .* choose another with --port"):
            serve(port)
        result = CliRunner().invoke(app, ["ui", "--port", str(port)])
    assert result.exit_code == 1
    assert f"port {port} of 127.0.0.1 is in use" in result.stderr


def test_a_drive_that_never_breaks_even_is_said_so() -> None:
    system = answer(State()).result.systems[0]
    host = replace(system.hosts[-1], verdict="never", devices=None)
    said = own.sentence(replace(system, hosts=(host,)))
    assert "never breaks even" in said
    assert math.isfinite(host.csd_limit_s)


def test_values_are_checked_by_type() -> None:
    with pytest.raises(ModelError, match="cores = many"):
        of_values({"cores": "many"})


def test_without_the_extra_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delitem(sys.modules, "csdplan.page.server")
    monkeypatch.setitem(sys.modules, "dash", None)
    result = CliRunner().invoke(app, ["ui"])
    assert result.exit_code == 1
    assert "the extra ui: pip install './python[ui]'" in result.stderr


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ("?kernel=counts", "kernel = counts: expected one that newport has: array-merge, count"),
        ("?profile=smartssd&device=newport", "device = newport: expected one that smartssd has"),
        ("?size=12", "size = 12: expected one that newport has"),
    ],
)
def test_a_link_that_names_what_is_not_there_says_so(link: str, said: str) -> None:
    state, fault = chosen("location", link, {}, None)
    assert said in fault
    assert state == normalized(State())


def test_an_upload_that_is_too_long_says_so() -> None:
    data = base64.b64encode(b"#" * (PROFILE_BYTES_MAX + 1)).decode()
    _, fault = chosen("upload", "", {}, f"data:text/plain;base64,{data}")
    assert f"expected at most {PROFILE_BYTES_MAX} bytes" in fault
    # With a limit of its own the browser would drop a longer file without a word.
    assert '"max_size":-1' in json.dumps(
        application().layout.to_plotly_json(), cls=PlotlyJSONEncoder, separators=(",", ":")
    )


def test_the_sentence_says_how_sure_it_is() -> None:
    (system,) = answer(State()).result.systems
    assert "28 newport drives" in own.sentence(system)
    assert "Nine times out of ten it is 26-30." in own.sentence(system)
