"""The commands optimize, simulate and uncertainty, as users run them."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from csdplan.cli import app

SIMULATE = ["simulate", "--profile", "newport", "--kernel", "count"]
UNCERTAIN = ["uncertainty", "--profile", "newport", "--kernel", "count", "--base", "64"]


def run(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "160", "NO_COLOR": "1"}).invoke(app, list(arguments))


def tables(*arguments: str) -> list[list[dict[str, Any]]]:
    result = run(*arguments, "--json")
    assert result.exit_code == 0, result.output
    body = json.loads(result.stdout)
    assert (body["schema"], body["command"]) == (1, arguments[0])
    return [table["rows"] for table in body["result"]["tables"]]


def test_optimize_prints_a_bill_that_adds_up() -> None:
    bill, work, _, needs = tables("optimize", "epyc")
    assert bill[-1]["cost_usd"] == sum(row["cost_usd"] for row in bill[:-1])
    assert {row["workload"] for row in work} == {"count", "page-rank"}
    for kernel in ("count", "page-rank"):
        assert sum(r["share"] for r in work if r["workload"] == kernel) == pytest.approx(1)
    assert {row["requirement"] for row in needs} >= {"capacity", "budget", "hosts"}
    shown = run("optimize", "epyc").stdout
    for text in ("What to buy", "EPYC 7251", "smartssd", "What binds"):
        assert text in shown


def test_optimize_compares_and_draws(tmp_path: Path) -> None:
    figure = tmp_path / "front.svg"
    *_, front, kinds = tables(
        "optimize", "epyc", "--front", "3", "--by-kind", "--plot", str(figure)
    )
    costs = [row["cost_usd"] for row in front]
    assert costs == sorted(costs)
    by_kind = {row["only"]: row["cost_usd"] for row in kinds}
    assert by_kind["any mix"] <= min(cost for cost in by_kind.values() if cost is not None)
    assert figure.stat().st_size > 1000


def test_an_infeasible_request_is_explained_and_exits_with_1(tmp_path: Path) -> None:
    import csdplan  # noqa: PLC0415 - only for its place

    shipped = Path(csdplan.__file__).parent / "request" / "shipped" / "epyc.toml"
    tight = tmp_path / "tight.toml"
    tight.write_text(shipped.read_text().replace("budget_usd = 5000", "budget_usd = 1200"))
    result = run("optimize", str(tight), "--json")
    assert result.exit_code == 1
    body = json.loads(result.stdout)
    assert body["result"]["verdict"] == "infeasible"
    (rows,) = (table["rows"] for table in body["result"]["tables"])
    (bought,) = tables("optimize", "epyc")[0][-1:]
    assert {"requirement": "budget", "required": 1200.0}.items() <= rows[0].items()
    assert rows[0]["possible_alone"] == pytest.approx(bought["cost_usd"])


def test_simulate_shows_the_closed_form_beside_it(tmp_path: Path) -> None:
    figure = tmp_path / "a.html"
    (rows,) = tables(*SIMULATE, "--host-cores", "4", "--drives", "8", "--plot", str(figure))
    assert [row["enabled_drives"] for row in rows] == list(range(9))
    assert rows[0]["of_closed_form"] == pytest.approx(1)
    assert all(0.9 < row["of_closed_form"] < 1.1 for row in rows)
    assert all(row["net_energy_J"] is None for row in rows)
    assert figure.read_text().startswith("<!doctype html>")


def test_simulate_options_reach_the_simulator() -> None:
    base = [*SIMULATE, "--host-cores", "0", "--drives", "8", "--enabled", "8"]

    def of_closed(*more: str) -> float:
        return float(tables(*base, *more)[0][0]["of_closed_form"])

    assert of_closed() == pytest.approx(1)
    assert of_closed("--stragglers", "1", "--straggler-factor", "4") == pytest.approx(0.25)
    assert of_closed("--skew", "1") < 0.6
    assert of_closed("--skew", "1", "--steal") > 0.9
    assert of_closed("--result-ratio", "9", "--k-limit", "1") < 0.2
    assert of_closed("--fluid") == pytest.approx(1)


def test_simulate_knows_energy_where_a_profile_has_watts(tmp_path: Path) -> None:
    import csdplan  # noqa: PLC0415

    shipped = Path(csdplan.__file__).parent / "profile" / "shipped" / "newport.toml"
    watts = shipped.read_text().replace("[host]\n", "[host]\nidle_W = 90\ncore_W = 4\n", 1)
    watts = watts.replace("[device.newport]\n", "[device.newport]\nidle_W = 6\nactive_W = 12\n", 1)
    mine = tmp_path / "watts.toml"
    mine.write_text(watts)
    result = run("simulate", "--profile", str(mine), "--kernel", "count", "--json")
    body = json.loads(result.stdout)
    assert not any("energy" in warning for warning in body["warnings"])
    for row in body["result"]["tables"][0]["rows"]:
        idle_W = 90 + 16 * 6
        assert row["energy_J"] == pytest.approx(row["net_energy_J"] + idle_W * row["time_s"])


def test_uncertainty_says_where_the_point_falls(tmp_path: Path) -> None:
    figure = tmp_path / "u.png"
    quantiles, hangs, shares = tables(*UNCERTAIN, "--samples", "5000", "--plot", str(figure))
    assert [row["devices"] for row in quantiles] == sorted(row["devices"] for row in quantiles)
    assert quantiles[2]["devices"] == 12
    assert {row["input"] for row in hangs} == {"ssd_tx_s", "csd_tx_s", "ssd_comp_s", "csd_comp_s"}
    assert sum(row["share"] for row in shares) == pytest.approx(1)
    assert figure.stat().st_size > 1000


def test_uncertainty_takes_spreads_and_ranges() -> None:
    fixed = ["--spread", "inferred=0", "--spread", "assumed=0", "--samples", "100"]
    quantiles, hangs, _ = tables(*UNCERTAIN, *fixed)
    assert {row["devices"] for row in quantiles} == {12}
    assert hangs == []
    _, hangs, _ = tables(*UNCERTAIN, *fixed, "--vary", "k_limit=4:12", "--host-cores", "16")
    assert [(row["input"], row["total"]) for row in hangs] == [("k_limit", 1.0)]
    median, single = (
        tables(*UNCERTAIN, "--of", of, "--samples", "2000")[0][0]["devices"]
        for of in ("median", "run")
    )
    assert median == single  # this profile has no quartiles, so both take the same spreads


def test_csv_is_rows() -> None:
    result = run(*SIMULATE, "--enabled", "0,16", "--csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [row["enabled_drives"] for row in rows] == ["0", "16"]
    assert float(rows[1]["throughput_Bps"]) > float(rows[0]["throughput_Bps"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["optimize", "epic"], "no shipped request"),
        (["optimize", "epyc", "--plot", "a.svg"], "give --front"),
        (["optimize", "epyc", "--plot", "a.gif", "--front", "2"], ".svg"),
        ([*SIMULATE, "--enabled", "17"], "at most the 16 drives"),
        ([*SIMULATE, "--enabled", "x"], "a list of whole numbers"),
        ([*SIMULATE, "--skew", "nan"], "skew = nan"),
        ([*SIMULATE, "--host-cores", "0", "--enabled", "4"], "a host core, or steal"),
        ([*SIMULATE, "--tasks", "2000000"], "the fluid mode"),
        ([*UNCERTAIN, "--spread", "guessed=1"], "one of given"),
        ([*UNCERTAIN, "--spread", "inferred=much"], "such as inferred=0.05"),
        ([*UNCERTAIN, "--vary", "k_limit=3"], "such as k_limit=6:10"),
        ([*UNCERTAIN, "--vary", "weather=1:2"], "one of ssd_tx_s"),
        ([*UNCERTAIN, "--base", "100"], "a power of two"),
        ([*UNCERTAIN, "--of", "mean"], "run or median"),
    ],
)
def test_wrong_use_is_exit_code_2_with_a_message(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert message in result.stderr.replace("\n", " ")
    assert result.stdout == ""
