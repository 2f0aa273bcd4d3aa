"""Spreads from a profile: from quartiles if it has them, else from provenance."""

import math
from pathlib import Path

import pytest

from csdplan import ModelError, ProfileIncomplete
from csdplan.profile import load, parse, workload_of
from csdplan.result.confidence import uncertain, uncertainty
from csdplan.solve.uncertainty import Lognormal, Uniform

SHIPPED = Path(str(__import__("csdplan").__file__)).parent / "profile" / "shipped"


def measured() -> str:
    """Return newport's profile with the drive's load time of count measured in 16 runs."""
    text = (SHIPPED / "newport.toml").read_text(encoding="utf-8")
    spread = "load_s = { median = 9.0, p25 = 8.5, p75 = 9.6, n = 16 }"
    return text.replace("load_s = { median = 9.0 }", spread, 1)


def sigmas(text: str, **options: object) -> dict[str, float]:
    profile = parse(text)
    workload = workload_of(profile, "count")
    question = uncertain(profile, workload, **options)  # type: ignore[arg-type]
    return {held.name: held.sigma for held in question.inputs if isinstance(held, Lognormal)}


def test_quartiles_count_where_there_are_any() -> None:
    of_run, of_median = sigmas(measured(), of="run"), sigmas(measured())
    assert of_run["csd_tx_s"] == pytest.approx(0.0902, abs=1e-3)  # ln(9.6 / 8.5) / 1.349
    # That of a median of 16 runs, a quarter wider, and 2 % from one session to another.
    median = of_run["csd_tx_s"] * 1.2533 / 4 * 1.25
    assert of_median["csd_tx_s"] == pytest.approx(math.hypot(median, 0.02), rel=1e-3)
    assert of_run["csd_comp_s"] == of_median["csd_comp_s"] == 0.05  # inferred
    assert of_run["ssd_tx_s"] == 0.1  # assumed: the widest


def test_options_change_what_varies() -> None:
    assert sigmas(measured(), spreads={"inferred": 0.2})["csd_comp_s"] == 0.2
    ranged = sigmas(measured(), ranges=[Uniform("csd_tx_s", 8.0, 10.0)])
    assert "csd_tx_s" not in ranged


def test_the_result_says_what_was_held_fixed_and_what_never_breaks_even() -> None:
    profile = load("smartssd")
    held = workload_of(profile, "count")
    ranges = [Uniform("host_part_s", 0.0, 4.0)]
    still = uncertain(profile, held, ranges=ranges, spreads={"assumed": 0.0})
    result = uncertainty(still, samples=2000, base=64)
    said = " ".join(result.warnings)
    assert "ssd_tx_s held fixed" in said
    assert "never break even" in said
    assert result.indices[0].name == "host_part_s"
    quantiles, hangs, shares = result.sheets()
    assert quantiles.rows[-1][1] is None
    assert hangs.column("spread_from")[0] == "0 to 4, as given"
    assert sum(float(str(share)) for share in shares.column("share")) < 1


def test_host_points_of_their_own_are_not_divided_again() -> None:
    profile = load("newport")
    held = workload_of(profile, "count")
    assert uncertain(profile, held, host_cores=4).fixed["host_cores"] == 4
    with pytest.raises(ModelError, match="one of given"):
        uncertain(profile, held, spreads={"guessed": 0.1})
    text = measured().replace("ingest_bw_Bps = 32_000_000_000", "")
    text = text.replace('ingest_bw_Bps = "given", ', "")
    bare = parse(text)
    with pytest.raises(ProfileIncomplete, match="k_limit"):
        uncertain(bare, workload_of(bare, "count"))
