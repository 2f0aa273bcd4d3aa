"""The command line as users run it: output, JSON, exit codes, messages."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from csdplan.cli import app

GOLDEN = Path(__file__).parents[3] / "docs" / "internals" / "golden" / "profile"


def run(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "120", "NO_COLOR": "1"}).invoke(app, list(arguments))


def plan(*arguments: str) -> dict[str, Any]:
    result = run("bep", *arguments, "--json")
    assert result.exit_code == 0, result.output
    body: dict[str, Any] = json.loads(result.stdout)
    assert (body["schema"], body["command"]) == (1, "bep")
    return body


def devices(body: dict[str, Any]) -> list[list[int | None]]:
    systems = body["result"]["systems"]
    return [[host["devices"] for host in system["hosts"]] for system in systems]


def test_bep_of_two_profiles() -> None:
    chosen = ["--profile", "smartssd", "--profile", "newport", "--kernel", "count"]
    body = plan(*chosen, "--host-cores", "1,4,16,64")
    assert devices(body) == [[2, 8, 13, 15], [12, 28, 44, 52]]
    assert len(body["warnings"]) == 2
    table = run("bep", *chosen, "--host-cores", "1,4,16")
    assert table.exit_code == 0
    for text in (
        "count on smartssd",
        "count on newport",
        "T_tx [s]",
        "Host(16)",
        "44",
        "k_limit: 8 SSDs",
        "which time matters most",
    ):
        assert text in table.stdout
    assert table.stderr == ""


def test_options_reach_the_model() -> None:
    chosen = ["--profile", "smartssd", "--kernel", "count", "--host-cores", "16"]
    assert devices(plan(*chosen)) == [[13]]
    assert devices(plan(*chosen, "--k-limit", "12"))[0][0] == 18
    assert devices(plan(*chosen, "--sd-comp", "8"))[0][0] == 4
    assert devices(plan(*chosen, "--sd-tx", "2"))[0][0] == 1
    assert devices(plan(*chosen, "--host-part", "0.3")) == [[None]]


def test_plots_are_written(tmp_path: Path) -> None:
    svg, png = tmp_path / "a.svg", tmp_path / "a.png"
    chosen = ["--profile", "newport", "--kernel", "count", "--plot", str(svg), "--plot", str(png)]
    assert devices(plan(*chosen)) == [[12]]
    assert svg.stat().st_size > 1000
    assert png.stat().st_size > 1000


_GOOD = ["--profile", "newport", "--kernel", "count"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["bep", "--profile", "newport", "--kernel", "sort"], "it has: array-merge, count"),
        (
            ["bep", "--profile", "newprot", "--kernel", "count"],
            "there are: catalina, fpga-verifier, newport, newport-b, newport-encode",
        ),
        (["bep", "--profile", "no/such.toml", "--kernel", "count"], "cannot be read"),
        (["bep", *_GOOD, "--host-cores", "1,,4"], "not a list of whole numbers"),
        (["bep", *_GOOD, "--host-cores", "0"], "every number is at least 1"),
        (["bep", *_GOOD, "--host-cores", "9" * 5000], "a number has at most 7 digits"),
        (["bep", *_GOOD, "--k-limit", "0"], "k-limit"),
        (["bep", *_GOOD, "--sd-tx", "0.5"], "sd_tx = 0.5: expected a slow-down factor"),
        (["bep", *_GOOD, "--host-part", "nan"], "host_part_s = nan: expected a finite number"),
        (["bep", *_GOOD, "--plot", "a.pdf"], "ends in .svg, .png"),
        (["bep", *_GOOD, "--device", "smartssd"], "there are: newport"),
        (["bep", *_GOOD, "--bytes", "5"], "there are: 4800000000"),
        (["bep", "--kernel", "count"], "--profile"),
        (["profile", "check", "nowhere.toml"], "cannot be read"),
        (["nonsense"], "nonsense"),
    ],
)
def test_wrong_use_is_exit_code_2_with_a_message(arguments: list[str], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_a_figure_that_cannot_be_written_is_exit_code_1(tmp_path: Path) -> None:
    result = run("bep", *_GOOD, "--plot", str(tmp_path / "absent" / "a.svg"))
    assert result.exit_code == 1
    assert "No such file" in result.stderr


def test_store_and_overlap_reach_the_model(tmp_path: Path) -> None:
    text = (GOLDEN / "valid-full.toml").read_text(encoding="utf-8")
    file = tmp_path / "full.toml"
    file.write_text(text, encoding="utf-8")
    plain = plan("--profile", str(file), "--kernel", "count", "--k-limit", "8")
    stored = plan("--profile", str(file), "--kernel", "count", "--k-limit", "8", "--store")
    system, with_store = plain["result"]["systems"][0], stored["result"]["systems"][0]
    assert system["csd_store_s"] == 0.0
    assert with_store["csd_store_s"] + with_store["hosts"][0]["ssd_store_s"] > 0
    chosen = ["--profile", "newport", "--kernel", "vector-add", "--host-cores", "1"]
    # Serial: 12.3 s in a drive against 1.5 s; pipelined: 9 s against the longer of 1.5 and 0.77 s.
    assert devices(plan(*chosen)) == [[15]]
    piped = plan(*chosen, "--overlap", "pipelined")
    assert devices(piped) == [[12]]
    assert piped["result"]["systems"][0]["hosts"][0]["difference"] == "overlap"
    assert run("bep", *chosen, "--overlap", "both").exit_code == 2


def test_the_ssds_may_come_from_another_profile() -> None:
    chosen = ["--profile", "newport", "--kernel", "count", "--k-limit", "8"]
    assert devices(plan(*chosen)) == [[12]]
    assert devices(plan(*chosen, "--ssd-profile", "nvme-ssd")) == [[13]]
    alone = run("bep", "--profile", "nvme-ssd", "--kernel", "count")
    assert alone.exit_code == 2
    assert "no point with where = 'drive'" in alone.stderr


def test_bep_as_csv() -> None:
    chosen = ["bep", "--profile", "smartssd", "--profile", "newport", "--kernel", "count"]
    lines = run(*chosen, "--host-cores", "1,4", "--csv").stdout.splitlines()
    heading = lines[0].split(",")
    rows = [dict(zip(heading, line.split(","), strict=True)) for line in lines[1:]]
    assert [row["devices"] for row in rows] == ["2", "8", "12", "28"]
    assert {row["workload_class"] for row in rows} == {"I/O-intensive"}
    assert run(*chosen, "--csv", "--json").exit_code == 2


def test_profiles_are_listed() -> None:
    body = json.loads(run("profiles", "--json").stdout)
    names = [entry["name"] for entry in body["result"]["profiles"]]
    assert names == [
        "catalina",
        "fpga-verifier",
        "newport",
        "newport-b",
        "newport-encode",
        "nvme-ssd",
        "smartssd",
        "smartssd-b",
    ]
    assert "page-rank" in run("profiles").stdout


def test_profile_check() -> None:
    good = run("profile", "check", str(GOLDEN / "valid-full.toml"))
    assert good.exit_code == 0
    assert "sound (schema 1): 3 points, kernels count" in good.stdout
    bad = run("profile", "check", str(GOLDEN / "invalid-several.toml"))
    assert bad.exit_code == 2
    for key in ("host.cores", "host.foo", "point[0].prov", "point[0].device"):
        assert key in bad.stderr


def test_help_and_version() -> None:
    shown = run("--help").stdout
    for command in ("bep", "profiles", "profile"):
        assert command in shown
    assert run("--version").stdout.startswith("csdplan 0.")


def test_importing_does_not_import_matplotlib() -> None:
    code = "import sys, csdplan.cli; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_k_limit_is_a_bandwidth_and_equation_6_is_shown_as_printed() -> None:
    base = ("bep", "--profile", "newport", "--ssd-profile", "nvme-ssd", "--kernel", "count")
    found = run(*base, "--host-cores", "16", "--json")
    body = json.loads(found.stdout)
    (system,) = body["result"]["systems"]
    assert system["k_limit"] == pytest.approx(32 / 6.5)
    assert system["hosts"][0]["devices"] == 53
    assert any("rounds that down to 4" in text and "45 for" in text for text in body["warnings"])
    whole = run(*base, "--host-cores", "16", "--k-limit", "4.5", "--json")
    assert json.loads(whole.stdout)["result"]["systems"][0]["hosts"][0]["devices"] < 53


def test_import_takes_short_options_and_sizes_with_units(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    base = ("import", "my-ssd", "-o", str(file), "--host-cores", "16", "--read-bps", "7e9")
    for size in ("4.8GB", "4.8e9", "4800000000"):
        found = run(*base, "--kernel", f"count:{size}:0.73")
        assert found.exit_code == 0, found.output
        assert "bytes = 4_800_000_000" in file.read_text().replace("4800000000", "4_800_000_000")
    assert run(*base, "--kernel", "count:4.8furlongs:0.73").exit_code == 2
    alone = run("bep", "--profile", str(file), "--kernel", "count")
    assert alone.exit_code == 2
    assert "give it as --ssd-profile" in " ".join(alone.stderr.split())
