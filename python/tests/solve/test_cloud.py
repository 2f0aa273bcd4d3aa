"""Rent, traffic and the number of instances, by hand."""

from math import inf

import pytest

from csdplan import published
from csdplan.model.rent import (
    egress_usd,
    egress_years_usd,
    hourly_even_usd,
    hours_even,
    rent_usd,
)
from csdplan.solve.cloud import Instance, needed
from csdplan.solve.purchase import Limits

TIERS = [(1.0, 0.0), (10.0, 0.1), (inf, 0.05)]
ONE = Instance("one", 2.0, 10e12, 4, 8, 5e9, 1e9, 0.5)


def test_traffic_by_the_tier() -> None:
    assert egress_usd(0.5e12, TIERS) == 0
    assert egress_usd(3e12, TIERS) == pytest.approx(200)
    assert egress_usd(12e12, TIERS) == pytest.approx(900 + 100)
    assert egress_years_usd(3e12, TIERS, 2.0) == pytest.approx(24 * 200)


def test_the_published_tiers_are_as_their_source_has_them() -> None:
    tiers = [tuple(one) for one in published.read("cloud.toml")["egress"]["tiers"]]
    # 100 GB free, then 10, 40 and 100 TB: $900, $3,400 and $7,000.
    for end, usd in ((0.1, 0), (10.1, 900), (50.1, 4300), (150.1, 11300)):
        assert egress_usd(end * 1e12, tiers) == pytest.approx(usd)
    assert egress_usd(1150.1e12, tiers) == pytest.approx(11300 + 50000)


def test_rent_and_where_it_is_even() -> None:
    cost = rent_usd(3, 2.0, 12.0, 5.0)
    assert cost == pytest.approx(3 * 2.0 * 0.5 * 8766 * 5)
    assert hours_even(cost, 3, 2.0, 5.0) == pytest.approx(12.0)
    assert hourly_even_usd(cost, 3, 12.0, 5.0) == pytest.approx(2.0)
    assert hours_even(-1.0, 3, 2.0, 5.0) == 0


def test_each_requirement_needs_instances() -> None:
    limits = Limits(capacity_bytes=25e12, drives_min=10, write_Bps=3.5e9)
    found = needed(ONE, limits, {"w": 1e-9, "v": 2e-9}, {"w": 4e9, "v": 3e9})
    # 10 core-seconds a second over 8 cores at half speed; 7 GB/s over 5.
    assert found == {
        "capacity": 3, "drives of a stripe": 3, "cores": 3, "reads": 2,
        "writes over the network": 4,
    }  # fmt: skip
    assert set(needed(ONE, Limits(), {}, {}).values()) == {1}
