"""Sweeps and surfaces: rows against the solver, iso lines against the surface, bad input."""

import pytest

from csdplan import ModelError
from csdplan.profile import load, workload_of
from csdplan.result.costs import cost_sheet, price_sensitivity
from csdplan.result.encoding import encode_plan
from csdplan.result.overload import overload_plan
from csdplan.result.sheet import sheet_of
from csdplan.result.sweeps import AXES, needed, surface, sweep
from csdplan.solve import break_even
from csdplan.solve.ec_fit import EncodeFit, EncodePoint, EncodeTimes
from csdplan.solve.inverse import drive_time_limit_s
from csdplan.solve.overload import step_slow_downs
from csdplan.solve.tco import Service, System, cost_of

NEWPORT = workload_of(load("newport"), "vector-add", name="newport")


@pytest.mark.parametrize("axis", AXES)
def test_each_axis_moves_what_it_names(axis: str) -> None:
    found = sweep(NEWPORT, axis, [1, 2, 4], host_cores=[1])
    host = NEWPORT.host(1)
    for value, devices in zip([1, 2, 4], found.column("devices"), strict=True):
        change = dict.fromkeys(("bandwidth", "compute", "sd_tx", "sd_comp"), 1.0)
        change |= {axis: float(value)}
        expected = break_even(
            host.tx_s,
            host.comp_s,
            NEWPORT.csd_tx_s / change["bandwidth"],
            NEWPORT.csd_comp_s / change["compute"],
            k_limit=value if axis == "k_limit" else 8,
            host_cores=value if axis == "host_cores" else 1,
            sd_tx=change["sd_tx"],
            sd_comp=change["sd_comp"],
        )
        assert devices == expected.devices


def test_hosts_stand_one_after_another() -> None:
    found = sweep(NEWPORT, "compute", [1.0, 2.0], host_cores=[1, 4])
    assert found.column("host_cores") == [1, 1, 4, 4]
    assert found.column("compute") == [1.0, 2.0, 1.0, 2.0]
    assert "host_cores" not in sweep(NEWPORT, "cores", [1, 4]).columns


def test_iso_lines_part_the_surface() -> None:
    """Above its line a surface is at C or less, below it is above C."""
    places = [1 + step / 4 for step in range(29)]
    found = surface(NEWPORT, places, places, iso=[3, 4, 9])
    for wanted, thresholds in found.iso:
        for across, threshold in enumerate(thresholds):
            for up, compute in enumerate(places):
                devices = found.devices[up][across]
                assert devices is not None
                assert (devices <= wanted) == (threshold is not None and compute > threshold)
    assert len(found.sheet().rows) == 29**2
    assert len(found.iso_sheet().rows) == 3 * 29


def test_the_drawn_line_is_the_curve_itself_and_reaches_the_edges() -> None:
    """Vector addition, eight times the compute: 4 drives from 2.27 times the bandwidth on."""
    workload = workload_of(load("newport"), "vector-add")
    places = [1 + step / 2 for step in range(15)]
    found = surface(workload, places, places, iso=[4])
    ((_, points),) = found.curves
    limit = float(
        drive_time_limit_s(
            4, workload.host(1).tx_s, workload.host(1).comp_s, k_limit=workload.k_limit
        )
    )
    for bandwidth, compute in points:
        time_s = workload.csd_tx_s / bandwidth + workload.csd_comp_s / compute
        assert time_s == pytest.approx(limit, rel=1e-9)
    assert points[0][1] == pytest.approx(8)  # it ends at the upper edge, not in the air
    assert len(points) > 100


@pytest.mark.parametrize("cores", [1, 4])
@pytest.mark.parametrize("target", [1, 3, 7, 12, 40])
def test_what_is_needed_is_enough_and_less_is_not(target: int, cores: int) -> None:
    found = needed(NEWPORT, target, host_cores=[cores])
    assert found.column("quantity") == ["compute", "bandwidth", "sd_comp", "sd_tx"]
    for name, above in zip(found.column("quantity"), found.column("above"), strict=True):
        if above is None:
            continue
        assert isinstance(name, str)
        assert isinstance(above, float)
        least = 1.0 if name.startswith("sd") else 0.0
        for factor, enough in ((1 + 1e-9, True), (1 - 1e-9, False)):
            if above * factor < least:
                continue
            (devices,) = sweep(NEWPORT, name, [above * factor], host_cores=[cores]).column(
                "devices"
            )
            assert isinstance(devices, int)
            assert (devices <= target) == enough


@pytest.mark.parametrize(
    ("axis", "values"),
    [
        ("speed", [1]),
        ("compute", []),
        ("compute", [0.0]),
        ("compute", [float("nan")]),
        ("cores", [1.5]),
        ("k_limit", [0]),
        ("k_limit", [float("inf")]),
        ("sd_tx", [0.5]),
    ],
)
def test_bad_axes_and_values_are_refused(axis: str, values: list[float]) -> None:
    with pytest.raises(ModelError):
        sweep(NEWPORT, axis, values)


def test_a_surface_needs_ascending_places() -> None:
    with pytest.raises(ModelError, match=r"^compute = .*ascending"):
        surface(NEWPORT, [1.0, 2.0], [2.0, 1.0])


def test_encode_plan() -> None:
    fast = EncodeTimes((EncodePoint(4, 64e6, 1.16),), EncodeFit(1.0, 0.01, 0.0))
    slow = EncodeTimes((EncodePoint(4, 64e6, 2.8),), EncodeFit(2.0, 0.05, 0.1))
    found = encode_plan(fast, slow, blocks=[10, 20], block_MB=[64], drive_power=[1, 100])
    # 2 + 5 s against 1 + 1 s, and 2 + 20 s against 1 + 4 s.
    assert found.column("devices") == [4, 1, 5, 1]
    assert "10%" in found.note


def test_overload_plan_and_its_note() -> None:
    factors = step_slow_downs([2e9, 9e9], 4.8e9, sd_tx=4.0, sd_comp=11.0)
    found = overload_plan(NEWPORT, factors)
    assert found.column("devices") == [1, 15]
    assert "4.8 GB" in found.note


def test_cost_sheet_leaves_unknown_energy_unknown() -> None:
    systems = [
        System("a", "x", "host", 1000.0, 100.0, 10, 1e12),
        System("b", "y", "drives", 500.0, 100.0, 5, 1e12, mark=1.0),
    ]
    costs = [cost_of(each, None, Service()) for each in systems]
    found = cost_sheet("t", costs)
    assert found.column("saved") == [0.0, 0.5]
    assert found.column("energy_usd") == [None, None]
    assert found.column("level_drive_usd") == [None, 300.0]
    priced = price_sensitivity(costs, [100.0, 300.0, 400.0])
    assert priced.column("cheaper") == [True, False, False]


def test_sheets_refuse_what_no_table_can_say() -> None:
    with pytest.raises(AssertionError, match="finite"):
        sheet_of("t", ["a"], [[float("nan")]])
    with pytest.raises(AssertionError, match="as long as"):
        sheet_of("t", ["a", "b"], [[1]])
