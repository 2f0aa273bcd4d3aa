"""Quantities as people write them, and what is no quantity."""

import pytest

from csdplan import ModelError
from csdplan.units import UNITS, quantity


@pytest.mark.parametrize(
    ("text", "measures", "expected"),
    [
        ("500TB", "bytes", 5e14),
        ("4.8 GB", "bytes", 4.8e9),
        ("4.8e9", "bytes", 4.8e9),
        ("1TiB", "bytes", 2.0**40),
        (4_800_000_000, "bytes", 4.8e9),
        ("120GB/s", "Bps", 120e9),
        ("200Gb/s", "Bps", 25e9),
        ("12 kW", "W", 12_000.0),
        ("400k", "USD", 400_000.0),
        ("$1_500", "USD", 1500.0),
        ("20%", "share", 0.2),
        ("20%/year", "share", 0.2),
        ("20U", "U", 20.0),
        ("5 years", "years", 5.0),
    ],
)
def test_quantities(text: object, measures: str, expected: float) -> None:
    assert quantity("x", text, measures) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("text", "measures"),
    [
        ("500 apples", "bytes"),
        ("-5TB", "bytes"),
        ("TB", "bytes"),
        ("", "bytes"),
        ("nan", "bytes"),
        ("1e400", "bytes"),
        ("5TB", "W"),
        ("12kw", "W"),
        (True, "bytes"),
        (None, "bytes"),
        ("1e99999999999", "bytes"),
    ],
)
def test_nonsense_names_the_units(text: object, measures: str) -> None:
    with pytest.raises(ModelError, match="with a unit") as caught:
        quantity("x", text, measures)
    assert max(UNITS[measures], key=len) in str(caught.value)
