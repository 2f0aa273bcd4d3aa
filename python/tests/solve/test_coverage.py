"""Ranges contain the truth in 85 to 97 % of simulated worlds, by where numbers are from.

A world has true numbers, and what is stated about them is off. Errors have the size that each kind
of number is taken to have, but not the form: they are heavier in the tails than the draws of a
range are. Quartiles come from runs that are drawn. The true cost of a purchase is added up here.
"""

from collections.abc import Mapping

import numpy as np
import pytest

from csdplan.model.inputs import FloatArray
from csdplan.model.overlap import Overlap
from csdplan.request.ask import SPREAD
from csdplan.request.doubt import CORES, MOVES, PRICES
from csdplan.solve.bep import break_even
from csdplan.solve.draws import Doubt, Draws
from csdplan.solve.optimize import optimize
from csdplan.solve.purchase import Cpu, Demand, DriveKind, Limits, Request
from csdplan.solve.regret import HIGH, LOW, weigh
from csdplan.solve.uncertainty import SPREADS, sigma_measured

GB, TB = 1e9, 1e12
WORLDS = 200
#: Times of one drive and of one core, and of the drive inside [s].
TRUE = {"ssd_tx_s": 1.5, "ssd_comp_s": 0.73, "csd_tx_s": 200.0, "csd_comp_s": 90.0}


def errors(rng: np.random.Generator, sigma: float, count: int) -> FloatArray:
    """Return factors with a deviation of `sigma` of their logarithm, and tails of six degrees."""
    return np.asarray(np.exp(sigma * rng.standard_t(6, count) / np.sqrt(6 / 4)))


def devices_of(times: Mapping[str, float | FloatArray]) -> FloatArray:
    tx, comp, csd_tx, csd_comp = (np.atleast_1d(times[name]) for name in TRUE)
    return np.asarray(break_even(tx, comp, csd_tx, csd_comp, k_limit=None).devices)


def share_within(found: list[bool]) -> float:
    return sum(found) / len(found)


def stated(rng: np.random.Generator, prov: str) -> tuple[dict[str, float], dict[str, float]]:
    """Return what is stated of the times, and the deviation that it is taken to have."""
    if prov != "measured":
        off = errors(rng, SPREADS[prov], len(TRUE))
        times = {name: true * one for (name, true), one in zip(TRUE.items(), off, strict=True)}
        return times, dict.fromkeys(TRUE, SPREADS[prov])
    times, sigmas = {}, {}
    session = errors(rng, SPREADS["measured"], len(TRUE))
    for (name, true), day in zip(TRUE.items(), session, strict=True):
        runs = int(rng.choice([3, 5, 9, 25]))
        low, times[name], high = np.quantile(
            true * day * errors(rng, 0.08, runs), (0.25, 0.5, 0.75)
        )
        sigmas[name] = sigma_measured(float(low), float(high), runs, SPREADS["measured"])
    return times, sigmas


@pytest.mark.parametrize("prov", ["measured", "given", "inferred", "assumed"])
def test_break_even_points(prov: str) -> None:
    rng = np.random.default_rng([3, sorted(SPREADS).index(prov)])
    true = devices_of(TRUE)[0]
    assert true > 100, "whole numbers must not widen the ranges"
    within = []
    for _ in range(WORLDS):
        times, sigmas = stated(rng, prov)
        drawn = {
            name: times[name] * np.exp(sigmas[name] * rng.standard_normal(1000)) for name in TRUE
        }
        low, high = np.quantile(devices_of(drawn), (LOW, HIGH))
        within.append(bool(low <= true <= high))
    assert 0.85 <= share_within(within) <= 0.97


@pytest.mark.parametrize("prov", ["measured", "given", "inferred", "assumed"])
def test_costs_of_purchases(prov: str) -> None:
    """Prices, speeds of cores and of drives are all of one kind, and all of them are off."""
    rng = np.random.default_rng([5, sorted(SPREADS).index(prov)])
    within = []
    for _ in range(WORLDS):
        price, core, read = (errors(rng, table[prov], 4) for table in (PRICES, CORES, MOVES))
        if prov == "measured":
            # Of a core a median of a few runs is known, in a session that is off, too.
            runs = rng.choice([3, 5, 9, 25], 4)
            core = core * np.array([np.median(errors(rng, 0.08, number)) for number in runs])
        cpus = tuple(
            Cpu(f"c{i}", 32, usd * price[i], 80 * GB, 12) for i, usd in enumerate((5e3, 6e3))
        )
        kinds = tuple(
            DriveKind(f"k{i}", usd * price[2 + i], 8 * TB, 6 * GB * read[i])
            for i, usd in enumerate((1000.0, 1100.0))
        )
        core_s = {cpu.name: 1.0 / GB * core[i] for i, cpu in enumerate(cpus)}
        work = Demand("w", float(rng.uniform(50, 110)) * GB, core_s, {})
        asked = Request(cpus, kinds, (work,), Limits(hosts_max=16), Overlap.PIPELINED)
        plan = optimize(asked, explain=False)
        assert plan is not None
        names = [*(cpu.name for cpu in cpus), *(kind.name for kind in kinds)]
        doubt = Doubt(
            prices=dict.fromkeys(names, PRICES[prov]),
            speeds={cpu.name: CORES[prov] for cpu in cpus},
            moves={kind.name: MOVES[prov] for kind in kinds},
            works={"w": SPREAD} if prov == "measured" else {},
        )
        (found,) = weigh(asked, [plan], Draws(doubt, 400, seed=int(rng.integers(1 << 30))))
        said = [*(cpu.price_usd for cpu in cpus), *(kind.price_usd for kind in kinds)]
        true = {name: usd / off for name, usd, off in zip(names, said, price, strict=True)}
        usd = sum(count * true[name] for name, count in plan.bought.items())
        # Bought as often as the slowest of its cores, or of its drives, asks for.
        rates = [sum(share.rate_Bps for share in one.shares) for one in plan.placed]
        reads = [sum(held.count * 6 * GB for held in one.drives) for one in plan.placed]
        seconds = [core_s[one.name] / core[names.index(one.name)] / 32 for one in plan.placed]
        cores = max(rate * each for rate, each in zip(rates, seconds, strict=True))
        reads_short = max(rate / most for rate, most in zip(rates, reads, strict=True))
        need = max(1.0, cores, reads_short)
        within.append(found.quantile_usd(LOW) <= usd * need <= found.quantile_usd(HIGH))
    assert 0.85 <= share_within(within) <= 0.97


def test_nothing_assumed_is_exact_and_it_is_the_least_certain() -> None:
    for table in (SPREADS, PRICES, CORES, MOVES):
        assert table["assumed"] == max(table.values()) > table["inferred"] > table["given"] > 0
