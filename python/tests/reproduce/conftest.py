"""One claim is about speed: here its clock is set, so that no test depends on the machine."""

from collections.abc import Iterator
from itertools import count

import pytest
from csdplan_reproduce import equations


@pytest.fixture(scope="session", autouse=True)
def _fast() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(equations, "perf_counter", count(0.0, 0.25).__next__)
        yield
