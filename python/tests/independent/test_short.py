"""The short forms of the independent checks; each is a command of its own, with its figures."""

import pytest

from csdplan.solve import affordable

from .purchases import run
from .simulations import FAR, differences


@pytest.mark.parametrize("few", [affordable.FEW, 0])
def test_purchases_against_every_purchase_there_is(
    few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(affordable, "FEW", few)
    found = run(60, seed=3)
    assert not [way for way in found if way.startswith("wrong")], found
    assert found["the cheapest, proven"] > 30


def test_simulations_against_another_simulation() -> None:
    far = [one for one, _ in differences(60, seed=5) if abs(one) > FAR]
    assert far == []
