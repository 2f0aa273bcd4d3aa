"""The short forms of the independent checks; each is a command of its own, with its figures."""

from .purchases import run
from .simulations import FAR, differences


def test_purchases_against_every_purchase_there_is() -> None:
    found = run(60, seed=3)
    assert not [way for way in found if way.startswith("wrong")], found
    assert found["the cheapest, proven"] > 30


def test_simulations_against_another_simulation() -> None:
    far = [one for one, _ in differences(60, seed=5) if abs(one) > FAR]
    assert far == []
