"""Parts typed in on the page, and the page to sign, without a browser."""

import json
import re
from pathlib import Path

import pytest

from csdplan.commands.reports import PriceChoice
from csdplan.errors import CsdplanError
from csdplan.hardware import load_catalogue
from csdplan.page import parts
from csdplan.page.link import from_query, to_query
from csdplan.page.server import Page, updated
from csdplan.page.state import PROFILE_BYTES_MAX, State, Work, to_values

from .test_page import OURS

DRIVE = {
    "kind": "ssd",
    "title": 'ACME "big"',
    "capacity_bytes": "122.88TB",
    "read_Bps": "13GB/s",
    "price_usd": "9k",
    "source": "ACME, quote 17",
    "date": "2026-11-20",
}
CPU = {"kind": "cpu", "title": "Chip", "cores": "32", "pcie_lanes": "128", "price_usd": "900"}
CARD = {"kind": "nic", "title": "Card", "link_Bps": "200Gb/s", "price_usd": "800"}
CSD = {**DRIVE, "kind": "csd", "title": "Mine", "profile": "smartssd"}


def test_parts_are_a_catalogue_that_the_command_reads(tmp_path: Path) -> None:
    text = ""
    for part in (DRIVE, CPU, CARD, CSD):
        text = parts.added(text, part)
    file = tmp_path / parts.FILE
    file.write_text(text, encoding="utf-8")
    found = load_catalogue(None, [file])
    assert found.parts["acme-big"].title == 'ACME "big"'
    assert found.parts["acme-big"].value("capacity_bytes") == 122.88e12
    assert (found.prices["acme-big"].usd, found.prices["acme-big"].date) == (9000, "2026-11-20")
    assert found.parts["chip"].value("cores") == 32
    assert found.parts["card"].value("link_Bps") == 25e9
    assert found.parts["mine"].profile == "smartssd"
    state = State(parts=text)
    assert from_query(to_query(state))[0] == state


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"kind": "fridge"}, "kind = fridge"),
        ({"title": "!"}, "name of the part"),
        ({"price_usd": ""}, "price of"),
        ({"capacity_bytes": ""}, "capacity_bytes of"),
        ({"read_Bps": "fast"}, "read_Bps"),
        ({"date": "yesterday"}, "date"),
        ({"kind": "csd", "profile": "/etc/passwd"}, "profile of a part"),
        ({"kind": "cpu", "cores": "many"}, "cores = many"),
    ],
)
def test_what_is_no_part_is_refused(change: dict[str, str], said: str) -> None:
    with pytest.raises(CsdplanError, match=said):
        parts.added("", {**DRIVE, **change})


def test_a_link_names_no_file() -> None:
    text = 'schema = 1\n[[part]]\nname = "x"\nprofile = "/etc/passwd"\n'
    found = updated({"a": {**to_values(State()), "parts": text}, "b": None})
    assert "a shipped one" in found["faults"]["a-parts"]
    do = {"what": "open-parts", "which": "a", "text": text}
    assert "a shipped one" in updated({"a": to_values(State()), "do": do})["html"]["refused"]
    do["text"] = "#" * (PROFILE_BYTES_MAX + 1)
    assert "expected at most" in updated({"a": to_values(State()), "do": do})["html"]["refused"]


def test_a_typed_part_is_bought_and_every_figure_to_sign_has_a_source() -> None:
    page = Page(PriceChoice((), None, None).planned)
    state = State(store=200, works=(Work("count", 10.0),), parts=parts.added("", DRIVE))
    body = {"a": to_values(state), "b": None, "form": "report", "which": "a"}
    bought = json.loads(page.respond("POST", "/purchase", OURS, json.dumps(body).encode()).body)
    assert "ACME &quot;big&quot;" in bought["buy"]
    assert re.fullmatch(r"Buy: \$[0-9,]+ \(\$[0-9,]+ to \$[0-9,]+\)", bought["short"])
    saved = json.loads(page.respond("POST", "/save", OURS, json.dumps(body).encode()).body)
    assert saved["name"] == "csdplan-purchase.html"
    text = saved["text"]
    assert "ACME: quote 17" in text
    bill, numbers = re.findall(r"<table>(.*?)</table>", text, re.S)
    listed = re.search(r"<ol>(.*?)</ol>", text, re.S)
    assert listed is not None
    known = listed[1].count("<li>")
    marked = {int(one) for one in re.findall(r"<sup>([0-9]+)[mgia]</sup>", text)}
    assert marked == set(range(1, known + 1))
    # Every price of the bill, and every number of a part, has its mark.
    rows = re.findall(r"<tr><td>(.*?)</tr>", bill)[:-1]
    assert rows
    assert all("<sup>" in row for row in rows)
    for cell in re.findall(r"</td><td>(.*?)</td></tr>", numbers):
        assert all(one.endswith("</sup>") for one in cell.split(", "))
    nothing = {"a": to_values(State(works=())), "b": None, "form": "parts", "which": "a"}
    answer = json.loads(page.respond("POST", "/save", OURS, json.dumps(nothing).encode()).body)
    assert "at least one part of your own" in answer["fault"]
