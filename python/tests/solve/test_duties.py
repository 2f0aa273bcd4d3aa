"""Two duties on the cores of a drive, against simulated queues."""

import random
from heapq import heappop, heappush

import pytest
from typer.testing import CliRunner

from csdplan.cli import app
from csdplan.model.duties import Duties


def simulated_s(drive: Duties, per_s: float, apart: int, requests: int) -> float:
    """Return the mean time of requests on one of the cores that serve them."""
    dice = random.Random(11)
    rate = per_s / (drive.cores - apart)
    clock, free, total = 0.0, 0.0, 0.0
    # Waiting requests, in the order of arrival: (time, kind).
    queue: list[tuple[float, int]] = []
    for _ in range(requests):
        clock += dice.expovariate(rate)
        heappush(queue, (clock, 0))
    while queue:
        came, kind = heappop(queue)
        begins = max(came, free)
        free = begins + (drive.task_s if kind else drive.request_s)
        if not kind:
            total += free - came
            if not apart:
                heappush(queue, (free, 1))
    return total / requests


@pytest.mark.parametrize("load", [0.2, 0.5, 0.8])
@pytest.mark.parametrize("apart", [0, 2])
@pytest.mark.parametrize("task_s", [0.3, 1.0, 4.0])
def test_against_simulated_queues(load: float, apart: int, task_s: float) -> None:
    drive = Duties(6, 1.0, task_s)
    per_s = load * drive.most_per_s(apart)
    seen = simulated_s(drive, per_s, apart, 60_000)
    assert drive.response_s(per_s, apart) == pytest.approx(seen, rel=0.1)


def test_most_and_best_by_hand() -> None:
    drive = Duties(6, 20e-6, 100e-6)
    assert drive.most_per_s(0) == pytest.approx(50_000)
    assert drive.most_per_s(5) == pytest.approx(50_000)
    assert drive.most_per_s(3) == pytest.approx(30_000)
    # Tasks take five times as long: five cores for them, or all for both.
    assert drive.best_apart(45_000) in {0, 5}
    assert drive.best_apart(1_000) != 0
    assert drive.best_apart(51_000) is None
    # Without a wait a request takes its service.
    assert drive.response_s(1e-3, 0) == pytest.approx(20e-6)


def test_the_command() -> None:
    run = CliRunner(env={"COLUMNS": "160"}).invoke
    done = run(app, ["duties", "--rate", "100000"])
    assert done.exit_code == 0, done.output
    assert done.stdout.startswith("Set ")
    wrong = run(app, ["duties", "--rate", "1e9"])
    assert wrong.exit_code == 2
    assert "expected less than" in wrong.stderr
    assert len(wrong.stderr.strip().splitlines()) == 1
