"""Catalogues and drives of one's own: over the shipped parts, with their sources, and in plans."""

from datetime import date
from pathlib import Path

import pytest

import csdplan as cp
from csdplan import ModelError, ProfileInvalid
from csdplan.hardware import Price, load_catalogue

MINE = """
schema = 1
[source.acme]
publisher = "ACME"
document = "quote 17"
date = "2026-11-20"

[[part]]
name = "acme-csd"
title = "ACME drive"
kind = "csd"
source = "acme"
capacity_bytes = "15.36TB"
read_Bps = "7GB/s"
pcie_generation = 4
active_W = 18
price_usd = "3k"
until = "2026-12-31"

[[part]]
name = "acme-2u12"
title = "ACME chassis"
kind = "server"
source = "acme"
slots = 12
rack_units = "2U"
idle_W = "120W"
price_usd = 4000

[[part]]
name = "acme-cpu"
title = "ACME processor"
kind = "cpu"
source = "acme"
prov = "inferred"
cores = 32
pcie_lanes = 128
pcie_generation = 6
tdp_W = 200
price_usd = 900

[[part]]
name = "epyc-9354"
source = "acme"
tdp_W = 300

[[price]]
date = "2026-11-21"
prov = "given"
source = "acme"
[price.usd]
"epyc-9354" = 1000
"""


def own(tmp_path: Path, text: str = MINE) -> Path:
    file = tmp_path / "mine.toml"
    file.write_text(text, encoding="utf-8")
    return file


def test_parts_of_ones_own_go_over_the_shipped_ones_with_their_source(tmp_path: Path) -> None:
    shipped, found = load_catalogue(), load_catalogue(extra=[own(tmp_path)])
    drive, cpu = found.parts["acme-csd"], found.parts["epyc-9354"]
    assert drive.value("capacity_bytes") == 15.36e12
    assert (
        str(found.sources[drive.numbers()["read_Bps"].source]) == "ACME: quote 17 (to be checked)"
    )
    assert cpu.value("tdp_W") == 300
    assert cpu.value("cores") == shipped.parts["epyc-9354"].value("cores")
    assert found.parts["acme-cpu"].numbers()["cores"].prov == "inferred"
    price = found.prices["acme-csd"]
    assert (price.usd, price.date, price.until) == (3000, "2026-11-20", "2026-12-31")
    assert found.prices["epyc-9354"].usd == 1000
    assert found.prices["xeon-6430"] == shipped.prices["xeon-6430"]


def test_a_plan_buys_them_and_says_where_the_numbers_are_from(tmp_path: Path) -> None:
    mine, only = own(tmp_path), ["acme-csd", "acme-2u12", "acme-cpu"]
    tables = cp.plan("100TB", catalogue=str(mine), only=only, power="9kW")
    bill = tables["bill"].set_index("what")
    assert bill.loc["drive", ["name", "count"]].tolist() == ["acme-csd", 7]
    assert bill.loc["host", "price_usd"] == 4900
    prices = tables["prices"].set_index("part")
    assert prices.loc[["acme-csd", "acme-2u12", "acme-cpu"], "price_usd"].tolist() == [
        3000,
        4000,
        900,
    ]
    assert prices.loc["acme-csd", "source"].startswith("ACME: quote 17")
    listed = cp.catalogue(["csd"], catalogue=[mine])
    assert "acme-csd" in set(listed["catalogue"]["part"])
    dearer = tmp_path / "quotes.toml"
    dearer.write_text(
        'schema = 1\ndate = "2026-11-25"\nprov = "given"\nuntil = "2026-11-26"\n'
        '[usd]\n"acme-csd" = 5000\n',
        "utf-8",
    )
    tables = cp.plan("100TB", catalogue=[mine], only=only, prices=dearer)
    assert tables["prices"].set_index("part").loc["acme-csd", "price_usd"] == 5000
    assert (
        "price of acme-csd: its source promised it until 2026-11-26"
        in tables["bill"].attrs["warnings"]
    )


OTHER = '\npublisher = "x"\ndocument = "y"\ndate = "2026"\n'
PROFILE = """
schema = 1
[meta]
machine = "bench 3"
date = "2026-11-01"
[host]
cores = 8
[device.my_csd]
cores = 4
ext_read_Bps = 3_000_000_000
int_read_Bps = 6_000_000_000
capacity_bytes = 8_000_000_000_000
active_W = 20.0
price_usd = 900.0
prov = { ext_read_Bps = "measured", capacity_bytes = "given" }
[[point]]
kernel = "count"
where = "drive"
device = "my_csd"
units = 4
bytes = 6_000_000_000
overlap = "pipelined"
load_s = { median = 1.0 }
comp_s = { median = 1.0 }
prov = "given"
"""


def test_a_profile_of_a_drive_is_a_part_that_computes(tmp_path: Path) -> None:
    """Six gigabytes a second inside each drive, three through its port."""
    file = own(tmp_path, PROFILE)
    part = load_catalogue(drives=[file]).parts["my_csd"]
    assert part.numbers()["read_Bps"].prov == "measured"
    assert part.kind == "csd"
    only = ["my_csd", "epyc-7352"]
    tables = cp.plan(workload=["count=300GB/s"], drive=[file], only=only)
    # Flash gives 6 GB/s to the drive and the hosts together; the ports alone would need 100 drives.
    assert tables["bill"].set_index("what").loc["drive", "count"] == 50
    assert tables["work"].set_index("by").loc["my_csd", "where"] == "in the drive"
    quote = tmp_path / "quote.toml"
    quote.write_text(
        'schema = 1\n[source.q]\npublisher = "ACME"\ndocument = "q"\ndate = "2026-11"\n'
        '[[part]]\nname = "my_csd"\nsource = "q"\nprice_usd = 800\n',
        "utf-8",
    )
    found = load_catalogue(extra=[quote], drives=[file])
    assert found.prices["my_csd"].usd == 800
    assert found.parts["my_csd"].value("read_Bps") == 3e9


def test_a_part_names_the_profile_with_its_times(tmp_path: Path) -> None:
    fast = PROFILE.replace("median = 1.0", "median = 0.4")
    own(tmp_path, fast).rename(tmp_path / "drive.toml")
    mine = MINE.replace('title = "ACME drive"', 'title = "ACME drive"\nprofile = "drive.toml"')
    tables = cp.plan(
        workload=["count=300GB/s"], catalogue=[own(tmp_path, mine)], only=["acme-csd", "epyc-7352"]
    )
    assert "in the drive" in set(tables["work"]["where"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('"15.36TB"', '"15.36 apples"'), "part[0].capacity_bytes = 15.36 apples"),
        (('"15.36TB"', "nan"), "part[0].capacity_bytes = nan"),
        (('"15.36TB"', "0"), "part[0].capacity_bytes.value = 0.0"),
        (('"15.36TB"', "-5"), "part[0].capacity_bytes = -5"),
        (('"15.36TB"', "true"), "part[0].capacity_bytes = true"),
        (("cores = 32", "cores = 2.5"), "a whole number of cores"),
        (("cores = 32", 'cores = "many"'), "part[2].cores = many"),
        (("cores = 32", "cores = 1e300"), "part[2].cores.value = 1e+300"),
        (('source = "acme"\ncapacity', "capacity"), "part[0].source = absent"),
        (('source = "acme"\ncapacity', 'source = "b"\ncapacity'), "part[0].source = b"),
        (('kind = "csd"', 'kind = "tape"'), "part[0].kind"),
        (('name = "epyc-9354"', 'name = "epyc-9354"\nkind = "nic"'), "expected cpu"),
        (('"3k"', '"cheap"'), "part[0].price_usd = cheap"),
        (('until = "2026-12-31"', 'until = "2026-02-30"'), "a date that exists"),
        (('date = "2026-11-20"', 'date = "2026-13"'), "a date that exists"),
        (("[source.acme]", "[source.vdura]"), "part[0].source = acme"),
        (
            ("[source.acme]", f"[source.assumed-u2]{OTHER}[source.acme]"),
            "a name that no other source has",
        ),
        (('"epyc-9354" = 1000', '"epyc" = 1000'), "usd.epyc"),
        (('"epyc-9354" = 1000', '"epyc-9354" = inf'), "price[0].usd.epyc-9354 = inf"),
        (("rack_units", "rack"), "part[1].rack"),
        (('[[part]]\nname = "acme-csd"', '[part]\nname = "acme-csd"'), "mine.toml"),
    ],
)
def test_faults_of_a_catalogue_are_named(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    assert change[0] in MINE
    with pytest.raises(ProfileInvalid) as caught:
        load_catalogue(extra=[own(tmp_path, MINE.replace(*change))])
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("pcie_generation = 6", "pcie_generation = 9"), "speed of PCIe 9"),
        (("pcie_lanes = 128", "pcie_lanes = 16"), "pcie_lanes beside the network's 16"),
        (("price_usd = 900", ""), "price unknown"),
        (("cores = 32", ""), "cores unknown"),
    ],
)
def test_a_cpu_that_lacks_a_number_is_left_out(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    mine = own(tmp_path, MINE.replace(*change))
    with pytest.raises(ModelError) as caught:
        cp.plan("1TB", catalogue=[mine], only=["acme-cpu"])
    assert said in str(caught.value)


def test_a_price_is_as_old_as_its_date_at_least() -> None:
    today = date(2026, 11, 28)
    ages = {text: Price(1.0, text, "given", "").age_days(today)
            for text in ("2025", "2026-10", "2026-11-27", "2026", "2027-01")}  # fmt: skip
    assert ages == {"2025": 332, "2026-10": 28, "2026-11-27": 1, "2026": 0, "2027-01": 0}
    assert Price(1.0, "2026", "given", "", "2026-11-27").has_expired(today)
    assert not Price(1.0, "2026", "given", "", "2026-11").has_expired(today)
