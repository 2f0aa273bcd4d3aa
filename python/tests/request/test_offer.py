"""From a question and the catalogue to a request: ports, memory, and writes."""

from pathlib import Path
from typing import Any

import pytest

import csdplan as cp
from csdplan import CsdplanError
from csdplan.hardware import load_catalogue
from csdplan.profile import load
from csdplan.request.ask import read_ask
from csdplan.request.front import carried_Bps
from csdplan.request.offer import to_request
from csdplan.solve.purchase import Request, port_Bps

DAY = 86_400.0
OWN = """schema = 1
[source.sheet]
publisher = "ACME"
document = "data sheet"
date = "2026"
[[part]]
name = "acme"
title = "ACME"
kind = "ssd"
source = "sheet"
capacity_bytes = "10TB"
read_Bps = "14GB/s"
write_Bps = "9GB/s"
price_usd = 100
"""


def asked(tmp_path: Path, lines: str, **values: Any) -> Request:
    own = tmp_path / "own.toml"
    own.write_text(OWN + lines, encoding="utf-8")
    parts = load_catalogue(extra=[own])
    ask = read_ask({"store": "10TB", **values})
    return to_request(ask, parts, load("newport"), {}, only=["acme"]).request


@pytest.mark.parametrize(
    ("lines", "read_GBps", "in_4", "in_5"),
    [
        ("pcie_generation = 5\n", 14.0, 7.876, 14.0),
        ("pcie_generation = 4\n", 7.876, 7.876, 7.876),
        ("pcie_generation = 3\n", 3.94, 3.94, 3.94),
        ("pcie_generation = 5\npcie_lanes = 2\n", 7.876, 3.938, 7.876),
        ("", 14.0, 7.876, 14.0),
    ],
)
def test_lanes_and_generation_of_a_drive_bound_its_port(
    tmp_path: Path, lines: str, read_GBps: float, in_4: float, in_5: float
) -> None:
    found = asked(tmp_path, lines)
    (kind,) = found.drives
    cpus = {cpu.name: cpu for cpu in found.cpus}
    assert kind.read_Bps == pytest.approx(read_GBps * 1e9)
    assert port_Bps(kind, cpus["epyc-7763"]) == pytest.approx(in_4 * 1e9)
    assert port_Bps(kind, cpus["epyc-9354"]) == pytest.approx(in_5 * 1e9)


def test_a_host_takes_in_half_of_what_its_memory_carries() -> None:
    parts = load_catalogue()
    found = to_request(read_ask({"store": "10TB"}), parts, load("newport"), {}).request
    rome = next(cpu for cpu in found.cpus if cpu.name == "epyc-7352")
    assert rome.memory_Bps == pytest.approx(0.8 * 8 * 8 * 3.2e9)
    assert rome.intake_Bps == pytest.approx(0.8 * 8 * 8 * 3.2e9 / 2)
    only = ["epyc-7352", "kioxia-cm6-r-30.72tb"]
    tables = cp.plan(workload=["count=100GB/s"], only=only, hosts_max=1)
    assert "shortfalls" in tables
    tables = cp.plan(workload=["count=160GB/s"], only=only)
    assert tables["bill"].set_index("what").loc["host", "count"] == 2


def test_writes_have_a_peak_and_a_daily_volume_that_grow(tmp_path: Path) -> None:
    dwpd = "dwpd = 1.0\n"
    (kind,) = asked(tmp_path, dwpd, years=10).drives
    # Ten terabytes a day for five years, in ten.
    assert kind.endurance_Bps == pytest.approx(10e12 / DAY / 2)
    (kind,) = asked(tmp_path, "endurance_bytes = 36525e12\n", years=10).drives
    assert kind.endurance_Bps == pytest.approx(10e12 / DAY)
    (kind,) = asked(tmp_path, "dwpd = 1.0\ndwpd_years = 3\n", years=6).drives
    assert kind.endurance_Bps == pytest.approx(10e12 / DAY / 2)
    limits = asked(tmp_path, dwpd, write="1GB/s", protect="rs:8+2").limits
    assert limits.write_Bps == limits.written_Bps == pytest.approx(1.25e9)
    limits = asked(tmp_path, dwpd, write="1GB/s", write_daily="8.64TB", growth="100%").limits
    assert limits.write_Bps == pytest.approx(1e9 * 32)
    # Doubling each year, the five years' average is 31 / (5 ln 2) times the first day.
    assert limits.written_Bps == pytest.approx(1e8 * 31 / (5 * 0.693147), rel=1e-5)
    alone = asked(tmp_path, dwpd, write_daily="8.64TB").limits
    assert alone.write_Bps == alone.written_Bps == pytest.approx(1e8)
    with pytest.raises(CsdplanError, match="at most what a day at the peak"):
        asked(tmp_path, dwpd, write="1GB/s", write_daily="87TB")


def test_an_ingest_of_two_hours_a_day_wears_drives_as_its_volume_does() -> None:
    """30 GB/s all day needs drives for their endurance; two hours of it need a twelfth."""
    wear = cp.plan(write="30GB/s", store="1TB", only=["kioxia-cm6-r-30.72tb"])
    hours = cp.plan(
        write="30GB/s", write_daily=2 * 3600 * 30e9, store="1TB", only=["kioxia-cm6-r-30.72tb"]
    )
    counts = [one["bill"].set_index("what").loc["drive", "count"] for one in (wear, hours)]
    assert counts[0] == -(-30e9 * DAY // 30.72e12)
    # The peak still counts: a CM6-R stores no more than its write speed.
    assert counts[1] == max(-(-30e9 * DAY / 12 // 30.72e12), -(-30e9 // 4e9))


def test_switches_are_offered_that_carry_a_card() -> None:
    parts = load_catalogue()

    def speeds(**choice: Any) -> tuple[list[int], list[int]]:
        found = to_request(
            read_ask({"store": "10TB", "serve": "1GB/s"}), parts, load("newport"), {}, **choice
        ).request
        rates = [(part, round(part.link_Bps / carried_Bps(1e9 / 8))) for part in found.network]
        cards = sorted(rate for part, rate in rates if not part.ports)
        return cards, sorted(rate for part, rate in rates if part.ports)

    # The fastest card is as fast as the fastest port.
    assert speeds() == ([25, 100, 200, 200], [25, 100, 200])
    assert speeds(only=["connectx-6-dx"]) == ([200], [200])
    assert speeds(only=["connectx-6-dx-100g"]) == ([100], [100, 200])
    assert speeds(only=["spectrum-sn2410"]) == ([25, 25, 25, 25], [25])


def test_a_box_is_no_faster_than_its_port() -> None:
    only = ["bluefield2-box", "spectrum-sn2410"]
    ask = read_ask({"store": "100TB"})
    found = to_request(ask, load_catalogue(), load("newport"), {}, only=only).request
    assert [kind.read_Bps for kind in found.drives] == [carried_Bps(25e9 / 8)]
