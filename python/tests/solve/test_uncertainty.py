"""Distributions and indices against cases that can be worked out by hand."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from csdplan import ModelError
from csdplan.solve.bep import break_even
from csdplan.solve.uncertainty import (
    Distribution,
    Input,
    Lognormal,
    Uniform,
    monte_carlo,
    sigma_of_quartiles,
    sobol,
)

COUNT: dict[str, float | None] = {
    "ssd_tx_s": 1.5,
    "ssd_comp_s": 0.7317073,
    "csd_tx_s": 9.0,
    "csd_comp_s": 1.243902,
    "k_limit": 8.0,
}


def without(*names: str) -> dict[str, float | None]:
    return {name: value for name, value in COUNT.items() if name not in names}


def test_no_spread_gives_the_one_answer() -> None:
    found = monte_carlo([Lognormal("csd_tx_s", 9.0, 0.0)], without("csd_tx_s"), samples=50)
    assert found.counts() == {12: 50}
    assert found.never == 0


def test_a_uniform_input_gives_the_shares_that_its_crossings_say() -> None:
    """BEP = floor(t) + 1 for t = csd_tx uniform on 2 to 6: each of 3 to 6 a quarter."""
    fixed: dict[str, float | None] = {"ssd_tx_s": 1.0, "ssd_comp_s": 1.0, "csd_comp_s": 1.0}
    fixed["k_limit"] = None
    found = monte_carlo([Uniform("csd_tx_s", 2.0, 6.0)], fixed, samples=40_000)
    assert set(found.counts()) == {3, 4, 5, 6}
    for devices, expected in ((3, 0.25), (4, 0.5), (5, 0.75)):
        assert found.probability(devices) == pytest.approx(expected, abs=0.01)
    assert found.quantile(0.5) in {4, 5}
    assert found.quantile(0.6) == 5


def test_the_distribution_is_that_of_the_solver() -> None:
    """Every draw's answer is `break_even` at that draw."""
    varied: list[Input] = [Lognormal("csd_tx_s", 9.0, 0.1), Uniform("k_limit", 4, 12)]
    found = monte_carlo(varied, without("csd_tx_s", "k_limit"), samples=500, seed=3)
    least = break_even(1.5, 0.7317073, 5.0, 1.243902, k_limit=4).devices
    most = break_even(1.5, 0.7317073, 15.0, 1.243902, k_limit=12).devices
    assert least <= found.devices.min() <= found.devices.max() <= most
    again = monte_carlo(varied, without("csd_tx_s", "k_limit"), samples=500, seed=3)
    assert np.array_equal(found.devices, again.devices)


def test_draws_that_never_break_even_are_counted_and_not_averaged() -> None:
    varied = [Uniform("host_part_s", 0.0, 2.0)]
    fixed = {**COUNT}
    found = monte_carlo(varied, fixed, samples=20_000)
    # Drives approach the host part, SSDs 1.5 / 8 + 0.7317: beyond that they never win.
    assert found.never / 20_000 == pytest.approx(1 - (1.5 / 8 + 0.7317073) / 2, abs=0.01)
    assert found.quantile(0.1) is not None
    assert found.quantile(0.95) is None


def test_quantiles_are_numbers_of_drives() -> None:
    held = Distribution(np.array([2, 2, 3, 9]), samples=5, never=1)
    assert [held.quantile(share) for share in (0.0, 0.2, 0.4, 0.41, 0.8, 0.81)] == [
        2,
        2,
        2,
        3,
        9,
        None,
    ]
    assert held.probability(2) == 0.4
    assert held.probability(100) == 0.8


@given(st.floats(0.01, 1.0), st.floats(0.1, 100.0))
@settings(max_examples=50)
def test_quartiles_give_back_the_spread_they_came_from(sigma: float, median: float) -> None:
    held = Lognormal("csd_tx_s", median, sigma)
    p25, p75 = held.at(np.array([0.25, 0.75]))
    assert sigma_of_quartiles(float(p25), float(p75)) == pytest.approx(sigma)
    assert sigma_of_quartiles(float(p25), float(p75), 100) == pytest.approx(0.12533 * sigma, 1e-4)
    assert sigma_of_quartiles(float(p25), float(p75), 1) == pytest.approx(sigma)


def test_indices_find_the_input_that_matters() -> None:
    """9 s of 10 in the drive's transfer: its spread is nearly all there is."""
    varied = [Lognormal(name, float(COUNT[name] or 0), 0.1) for name in list(COUNT)[:4]]
    found = sobol(varied, {"k_limit": 8.0}, base=2048)
    by_name = {index.name: index for index in found}
    assert by_name["csd_tx_s"].total > 0.4
    assert by_name["csd_comp_s"].total < 0.1
    assert found[0].total == max(index.total for index in found)
    # The model is close to additive here, so first-order indices sum to about 1.
    assert sum(index.first for index in found) == pytest.approx(1, abs=0.1)
    for index in found:
        assert index.first <= index.total + index.first_within + index.total_within


def test_an_input_without_spread_accounts_for_nothing() -> None:
    varied = [Lognormal("csd_tx_s", 9.0, 0.1), Lognormal("csd_comp_s", 1.243902, 0.0)]
    found = {i.name: i for i in sobol(varied, without("csd_tx_s", "csd_comp_s"), base=256)}
    assert found["csd_comp_s"].total == 0
    assert found["csd_tx_s"].total == pytest.approx(1, abs=0.1)
    still = [Lognormal(name, float(COUNT[name] or 0), 0.0) for name in ("csd_tx_s", "csd_comp_s")]
    assert {i.total for i in sobol(still, without("csd_tx_s", "csd_comp_s"), base=64)} == {0.0}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Lognormal("csd_tx_s", 0.0, 0.1), "csd_tx_s"),
        (lambda: Lognormal("csd_tx_s", 1.0, float("nan")), "spread of csd_tx_s"),
        (lambda: Lognormal("speed", 1.0, 0.1), "one of ssd_tx_s"),
        (lambda: Uniform("k_limit", 2.5, 4), "whole numbers"),
        (lambda: Uniform("sd_tx", 3, 2), "a lower bound"),
        (lambda: sigma_of_quartiles(2.0, 1.0), "at least p25"),
        (lambda: monte_carlo([], without("k_limit")), "k_limit"),
        (lambda: monte_carlo([Lognormal("csd_tx_s", 1.0, 0.1)], COUNT), "every name once"),
        (lambda: monte_carlo([], COUNT, samples=0), "samples"),
        (lambda: sobol([], COUNT), "at least two"),
    ],
)
def test_bad_questions_are_refused(make: object, message: str) -> None:
    assert callable(make)
    with pytest.raises(ModelError, match=message):
        make()
