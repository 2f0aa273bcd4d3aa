"""The drawing of hosts, drives, cards and the network."""

import re

import pytest

from csdplan.plot import topology
from csdplan.result.sheet import Sheet, Value, sheet_of

COLUMNS = (
    "host",
    "what",
    "name",
    "count",
    "port",
    "computes_Bps",
    "read_Bps",
    "returned_Bps",
    "written_Bps",
)
TITLES = {"big": "A drive with a name that is longer than a line of a phone, 122.88 TB"}


def sheet(*rows: tuple[Value, ...]) -> Sheet:
    return sheet_of("What is in which host", COLUMNS, rows)


def drive(host: str, name: str, count: int, computes: float = 0.0) -> tuple[Value, ...]:
    return (host, "drive", name, count, f"bay 1 to {count}", computes, 5e9, 0.0, 0.0)


def host(where: str) -> tuple[Value, ...]:
    return (where, "host", "cpu", 1, "", 1e10, None, None, None)


def test_every_drive_is_a_square_and_those_that_compute_are_filled() -> None:
    drawn = topology.figure(
        sheet(host("1"), drive("1", "big", 19), drive("1", "csd", 3, 2e9)), TITLES, 600
    )
    assert drawn.count('class="bay"') == 19
    assert drawn.count('class="bay works"') == 3
    assert "filled: it computes" in drawn
    assert "each computes 2 GB/s, is read at 5 GB/s" in drawn


def test_equal_hosts_are_drawn_once_and_cards_lead_to_the_network() -> None:
    card = ("1 to 5", "network card", "nic", 1, "slot", None, 2e9, 3e9, 0.0)
    switch = ("network", "switch", "sw", 1, "32 ports each", None, None, None, None)
    alone = topology.figure(sheet(host("1 to 5"), drive("1 to 5", "big", 4)), TITLES, 600)
    assert "Hosts 1 to 5, each: cpu" in alone
    assert alone.count('class="bay"') == 4
    assert alone.count('class="case"') == 3
    assert "Network" not in alone
    joined = topology.figure(sheet(host("1 to 5"), card, switch), TITLES, 600)
    assert "slot: 2 GB/s with drives on the network, 3 GB/s to clients<" in joined
    assert "1 x sw, 32 ports each" in joined
    assert joined.count('class="wire"') > alone.count('class="wire"')


@pytest.mark.parametrize("width", [300, 600, 900])
def test_nothing_reaches_out_of_the_drawing(width: int) -> None:
    rows = [one for at in "123" for one in (host(at), drive(at, "big", 24), drive(at, "csd", 90))]
    drawn = topology.figure(sheet(*rows), TITLES, width)
    columns = 2 if "translate" in drawn else 1
    assert columns == (2 if width >= 720 else 1)
    edge = width / columns
    for x, size in re.findall(
        r'<rect class="[^"]*" x="([0-9.]+)" y="[0-9.]+" width="([0-9.]+)"', drawn
    ):
        assert float(x) + float(size) <= edge
    for x, said in re.findall(r'<text class="[^"]*" x="([0-9.]+)"[^>]*>([^<]*)', drawn):
        assert float(x) + 7.4 * len(said) <= edge
    assert "drive with a name" in drawn


def test_equal_hosts_behind_the_first_cross_no_text_of_it() -> None:
    drawn = topology.figure(sheet(host("1 to 5"), drive("1 to 5", "big", 4)), TITLES, 600)
    (front,) = re.findall(r'<rect class="case" x="([0-9.]+)" y="[0-9.]+" width="([0-9.]+)"', drawn)
    edge = float(front[0]) + float(front[1])
    behind = re.findall(r'<path class="case" d="M([0-9.]+) ', drawn)
    assert len(behind) == 2
    assert all(float(x) >= edge for x in behind)
