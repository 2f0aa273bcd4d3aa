"""Fair sharing of links, against times worked out by hand."""

from collections.abc import Generator
from typing import Any

import pytest
import simpy
from hypothesis import given
from hypothesis import strategies as st

from csdplan.sim.links import FairLinks, Path

UP: Path = (("up",),)


def ends(capacity: dict[Any, float], flows: list[tuple[float, Path, float]]) -> list[float]:
    """Return when each flow (start, path, size) ends."""
    env = simpy.Environment()
    links = FairLinks(env, capacity)
    ended = [0.0] * len(flows)

    def one(index: int, start: float, path: Path, size: float) -> Generator[Any, Any, None]:
        yield env.timeout(start)
        yield links.transfer(path, size)
        ended[index] = env.now

    for index, (start, path, size) in enumerate(flows):
        env.process(one(index, start, path, size))
    env.run()
    return ended


def test_two_transfers_share_and_the_longer_then_has_all() -> None:
    # 10 B/s: both at 5 until the short one's 20 bytes are through at 4 s, then 40 bytes at 10.
    assert ends({("up",): 10.0}, [(0, UP, 20.0), (0, UP, 60.0)]) == pytest.approx([4.0, 8.0])


def test_a_late_comer_slows_the_first() -> None:
    # 30 bytes alone in 3 s; then 5 B/s each: the first's other 30 take 6 s more.
    found = ends({("up",): 10.0}, [(0, UP, 60.0), (3, UP, 100.0)])
    assert found == pytest.approx([9.0, 16.0])


def test_what_a_narrow_port_leaves_goes_to_the_others() -> None:
    # Max-min: the port holds its flow at 2; the other two share the 10 that are left of 12.
    capacity = {("up",): 12.0, ("port", 0): 2.0}
    narrow: Path = (("port", 0), ("up",))
    found = ends(capacity, [(0, narrow, 20.0), (0, UP, 50.0), (0, UP, 50.0)])
    assert found == pytest.approx([10.0, 10.0, 10.0])


def test_a_link_that_carries_a_transfer_and_a_share_of_it_carries_both() -> None:
    # A drive that fetches spread data takes it all in, and sends a quarter of it: 25 bytes at 10.
    env = simpy.Environment()
    links = FairLinks(env, {("port", 0): 10.0})
    done = links.transfer((("port", 0),), 20.0, ((("port", 0), 0.25),))
    env.run(done)
    assert env.now == pytest.approx(2.5)
    assert links.carried_bytes["port", 0] == pytest.approx(25.0)


@given(st.lists(st.tuples(st.floats(0, 50), st.floats(0.1, 100)), min_size=1, max_size=12))
def test_a_shared_link_is_never_idle_and_never_overfull(flows: list[tuple[float, float]]) -> None:
    found = ends({("up",): 7.0}, [(start, UP, size) for start, size in flows])
    # Work conservation: by hand, the backlog drains at 7 B/s whenever there is any.
    busy_until = 0.0
    for start, size in sorted(flows):
        busy_until = max(busy_until, start) + size / 7.0
    assert max(found) == pytest.approx(busy_until, rel=1e-6)
    for (start, size), end in zip(flows, found, strict=True):
        assert end >= start + size / 7.0 * (1 - 1e-6)


def test_links_that_a_transfer_connects_share_from_then_on() -> None:
    a, b = ("a",), ("b",)
    # From 0.5 s on the third takes half of each link, and ends with the first.
    found = ends({a: 10.0, b: 10.0}, [(0, (a,), 10.0), (0, (b,), 20.0), (0.5, (a, b), 5.0)])
    assert found == pytest.approx([1.5, 2.5, 1.5])


def test_a_transfer_shorter_than_the_clocks_rounding_ends() -> None:
    """A late and small transfer, in a class that has served much: the clock does not move."""
    env = simpy.Environment(initial_time=1e6)
    links = FairLinks(env, {"a": 3e9})
    for size in (1e15, 1e-3, 7e-9):
        links.transfer(("a",), size)
    env.run(until=1e6 + 1e7)
    assert not links._groups["a"].classes
