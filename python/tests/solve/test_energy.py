"""Energy of a job: by hand, and equal to the power of a purchase that is at work throughout."""

import pytest

from csdplan.errors import ModelError
from csdplan.model.overlap import Overlap
from csdplan.solve.energy import energy_of
from csdplan.solve.optimize import optimize
from csdplan.solve.purchase import Cpu, Demand, DriveKind, Limits, Request


def request(*, rate: float, computes: bool, idle_W: float | None = 4.0) -> Request:
    cpu = Cpu("a", 10, 1000.0, 50e9, 8, idle_W=100.0, core_W=5.0)
    kind = DriveKind("x", 100.0, 1e12, 5e9, active_W=10.0, idle_W=idle_W)
    inside = {"x": 1 / 2e9} if computes else {}
    demand = Demand("w", rate, {"a": 1e-9}, inside)
    return Request((cpu,), (kind,), (demand,), Limits(power_W=1e9), Overlap.PIPELINED)


def test_a_job_on_hosts_by_hand() -> None:
    # 10 GB/s: ten cores, and two drives of 5 GB/s, all of them at work.
    asked = request(rate=10e9, computes=False)
    plan = optimize(asked, explain=False)
    assert plan is not None
    assert plan.bought == {"a": 1, "x": 2}
    (found,) = energy_of(asked, plan, 1e12)
    assert found.time_s == pytest.approx(100)
    assert found.cores_J == pytest.approx(1000 * 5.0)
    assert found.drives_J == pytest.approx(2 * 100 * 6.0)
    assert found.rest_J == pytest.approx(100 * (100 + 2 * 4.0))
    assert plan.power_W is not None
    assert found.all_J == pytest.approx(plan.power_W * 100)


def test_a_job_inside_drives_by_hand() -> None:
    # 4 GB/s in two drives that do 2 GB/s each; the host's cores rest.
    asked = request(rate=14e9, computes=True)
    plan = optimize(asked, explain=False)
    assert plan is not None
    (found,) = energy_of(asked, plan, 14e12)
    inside = sum(share.rate_Bps for share in plan.shares if share.in_drive)
    outside = sum(share.rate_Bps for share in plan.shares if not share.in_drive)
    assert inside > 0
    share = 14e12 / (inside + outside)
    assert found.cores_J == pytest.approx(share * outside * 1e-9 * 5.0)
    assert found.drives_J == pytest.approx(share * (inside / 2e9 + outside / 5e9) * 6.0)


def test_half_the_load_draws_the_same_at_rest_for_twice_as_long() -> None:
    asked = request(rate=5e9, computes=False, idle_W=None)
    plan = optimize(asked, explain=False)
    assert plan is not None
    (found,) = energy_of(asked, plan, 1e12)
    # A drive whose power at rest is unknown draws that of work.
    assert found.drives_J == 0
    assert found.rest_J == pytest.approx(200 * (100 + 10.0))


def test_unknown_power_is_not_zero() -> None:
    cpu = Cpu("a", 10, 1000.0, 50e9, 8)
    kind = DriveKind("x", 100.0, 1e12, 5e9)
    asked = Request((cpu,), (kind,), (Demand("w", 1e9, {"a": 1e-9}, {}),))
    plan = optimize(asked, explain=False)
    assert plan is not None
    with pytest.raises(ModelError, match="watts = a"):
        energy_of(asked, plan, 1e12)
