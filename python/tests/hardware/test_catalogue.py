"""Every number of the catalogue has a source line; files that contradict themselves are refused."""

import re
import tomllib
from importlib import resources
from pathlib import Path

import pytest

import csdplan as cp
from csdplan import ProfileInvalid
from csdplan.hardware import load_catalogue

DATA = resources.files("csdplan.hardware") / "data"
FILES = ("drives.toml", "cpus.toml", "servers.toml", "network.toml")


@pytest.mark.parametrize("file", FILES)
def test_every_number_has_a_source_with_document_and_date(file: str) -> None:
    """By hand from the text, without our own reader."""
    body = tomllib.loads((DATA / file).read_text(encoding="utf-8"))
    used = set()
    for part in body["part"]:
        for key, value in part.items():
            if key in {"name", "title", "kind", "note", "profile", "device"}:
                continue
            assert set(value) == {"value", "source", "prov"}, (part["name"], key)
            source = body["source"][value["source"]]
            assert source["publisher"]
            assert source["document"]
            assert re.fullmatch(r"\d{4}(-\d{2}){0,2}", source["date"])
            assert (value["prov"] == "assumed") == (source["publisher"] == "assumption")
            if value["prov"] != "assumed":
                assert re.fullmatch(r"\d{4}-\d{2}-\d{2}", source["seen"]), "somebody read it"
                assert source["publisher"].startswith("Torabzadehkashi") or source["url"]
            used.add(value["source"])
    assert used == set(body["source"]), "no source without a number"


def test_what_there_is() -> None:
    found = load_catalogue()
    by_generation = {4: 0, 5: 0}
    for part in found.of_kind("ssd"):
        by_generation[int(part.value("pcie_generation") or 0)] += 1
    assert by_generation[4] >= 5
    assert by_generation[5] >= 5
    dated = [int(part.title[-5:-1]) for part in found.of_kind("cpu")]
    assert sum(year >= 2023 for year in dated) >= 6
    assert sum(year < 2023 for year in dated) >= 2
    for name in ("samsung-smartssd-3.84tb", "scaleflux-csd3000-7.68tb", "bluefield2-box"):
        assert name in found.parts
    assert found.of_kind("nic")
    assert found.of_kind("switch")
    assert len([part for part in found.of_kind("server") if "paper 004" in part.title]) == 3


def test_a_part_without_published_numbers_is_listed_and_says_so() -> None:
    table = cp.catalogue(["csd"])["catalogue"]
    rows = table[table["part"] == "samsung-smartssd-2022"]
    assert len(rows) == 1
    assert "no specifications" in rows["source"].iloc[0]
    assert rows["number"].isna().all()


def test_drives_on_the_network_bring_cards_switches_and_rack_units() -> None:
    workload, only = ["count=100GB/s"], ["bluefield3-box"]
    tables = cp.plan("1PB", workload=workload, only=only, rack="60U", power="20kW")
    bill = tables["bill"].set_index("what")
    boxes, cards = bill.loc["drive", "count"], bill.loc["network card", "count"]
    switch = load_catalogue().parts[bill.loc["switch", "name"]]
    assert bill.loc["switch", "count"] == -(-(boxes + cards) // (switch.value("ports") or 0))
    height = (switch.value("rack_units") or 0) * bill.loc["switch", "count"]
    rack = tables["requirements"].set_index("requirement").loc["rack", "reached"]
    assert rack == boxes + height + 2 * bill.loc["host", "count"]
    network = {*bill.loc[["network card", "switch"], "name"]}
    assert set(tables["certainty"]["name"]) >= network


def test_prices_are_in_one_file_and_are_overridden(tmp_path: Path) -> None:
    own = tmp_path / "quotes.toml"
    own.write_text(
        'schema = 1\ndate = "2026-11-22"\nprov = "given"\n[usd]\n"epyc-9354" = 2500\n', "utf-8"
    )
    found = load_catalogue(own)
    price = found.prices["epyc-9354"]
    assert (price.usd, price.date, price.prov, price.source) == (
        2500.0, "2026-11-22", "given", str(own),
    )  # fmt: skip
    assert found.prices["xeon-6430"].prov == "assumed"
    own.write_text('schema = 1\ndate = "2026"\nprov = "given"\n[usd]\nepyc = 1\n"xeon-6430" = -1\n')
    with pytest.raises(ProfileInvalid, match="xeon-6430"):
        load_catalogue(own)


def test_files_that_contradict_themselves_are_refused_with_all_faults(tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text(
        'schema = 1\n[source.a]\npublisher = "x"\ndocument = "y"\ndate = "2026"\n'
        '[[part]]\nname = "mine"\ntitle = "once"\nkind = "cpu"\n'
        '[[part]]\nname = "mine"\ntitle = "twice"\nkind = "cpu"\n'
        'cores = { value = 8, source = "b", prov = "given" }\n',
        encoding="utf-8",
    )
    with pytest.raises(ProfileInvalid) as caught:
        load_catalogue(extra=[own])
    assert "part[1].name = mine" in str(caught.value)
    assert "part[1].cores.source = b" in str(caught.value)
    own.write_text(
        'schema = 1\n[source.a]\npublisher = "x"\ndocument = "y"\ndate = "2026"\n'
        '[[part]]\nname = "d"\ntitle = "t"\nkind = "ssd"\n'
        'idle_W = { value = 9.0, source = "a", prov = "given" }\n'
        'active_W = { value = 5.0, source = "a", prov = "given" }\n',
        encoding="utf-8",
    )
    with pytest.raises(ProfileInvalid, match="idle_W at most active_W"):
        load_catalogue(extra=[own])


def test_the_sheet_lists_sources() -> None:
    tables = cp.catalogue(["cpu"])
    assert set(tables["catalogue"]["part"]) >= {"epyc-9754", "xeon-8480"}
    assert tables["catalogue"]["source"].str.len().min() > 5
    assert not tables["catalogue"]["source"].str.endswith("(to be checked)").any()
    assert set(tables["prices"]["prov"]) == {"given", "assumed"}
