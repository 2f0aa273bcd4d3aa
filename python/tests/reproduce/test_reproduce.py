"""Every claim has a verdict; verdicts agree with an independent reading, and may be failures."""

import ast
import re
import tomllib
from importlib import resources
from itertools import count
from pathlib import Path

import pytest
from csdplan_reproduce import Report, Verdict, equations, planning, reproduce
from csdplan_reproduce.basis import Basis
from csdplan_reproduce.check import CHECKS, MEASURED, Claim, by_digits, by_ratio, claims, if_holds
from csdplan_reproduce.report import MODULES

from csdplan.profile import load, workload_of

CLAIM = Claim("X", "000", "here", "a claim", "2.0", "reproduced")


@pytest.fixture(scope="module")
def report() -> Report:
    return reproduce()


def test_every_claim_that_software_can_check_is_checked(report: Report) -> None:
    for row in report.rows:
        checked = row.claim.id in CHECKS
        assert checked == (row.claim.listed != "needs_hardware"), row.claim.id
        assert row.finding.why
        if checked:
            assert row.finding.ours
    assert set(CHECKS) <= {claim.id for claim in claims()}
    assert len({claim.id for claim in claims()}) == len(claims())


def test_measurements_are_of_claims_that_no_check_decides(report: Report) -> None:
    page = "docs/reference/background.md"
    text = (Path(__file__).parents[3] / page).read_text(encoding="utf-8")
    why = {row.claim.id: row.finding.why for row in report.rows if row.claim.id not in CHECKS}
    for claim, outcome in MEASURED.items():
        assert why[claim] == outcome
        assert page in outcome
        assert f"({claim})" in text


def scanned(system: str, kernel: str, cores: int) -> int:
    """Return a break-even point by equations 5 and 7, tried drive by drive from the profile's text.

    No solver, no resolver: the profile's TOML and the two equations.
    """
    file = resources.files("csdplan.profile") / "shipped" / f"{system}.toml"
    body = tomllib.loads(file.read_text(encoding="utf-8"))
    points = [p for p in body["point"] if p["kernel"] == kernel and "overload" not in p]
    size = max(p["bytes"] for p in points)
    (host,) = [p for p in points if (p["where"], p["units"], p["bytes"]) == ("host", 1, size)]
    drives = [p for p in points if (p["where"], p["bytes"]) == ("drive", size)]
    drive_s = min(p["load_s"]["median"] + p["comp_s"]["median"] for p in drives)
    tx, comp = host["load_s"]["median"], host["comp_s"]["median"] / cores
    return next(
        m for m in range(1, 400) if all(tx / min(k, 8) + comp > drive_s / k for k in (m, m + 1))
    )


@pytest.mark.parametrize(
    ("claim", "system", "kernel", "cores", "printed"),
    [
        ("P0-43", "smartssd", "count", 1, 2),
        ("P0-44", "smartssd", "count", 4, 8),
        ("P0-45", "smartssd", "count", 16, 13),
        ("P0-46", "newport", "count", 1, 12),
        ("P0-48", "newport", "array-merge", 1, 12),
        ("P0-54", "smartssd", "vector-add", 1, 5),
    ],
)
def test_break_even_points_are_the_printed_ones(
    report: Report, claim: str, system: str, kernel: str, cores: int, printed: int
) -> None:
    (row,) = [row for row in report.rows if row.claim.id == claim]
    assert row.claim.number() == printed
    assert f"A: {printed}," in row.finding.ours
    assert scanned(system, kernel, cores) == printed


#: Values of other claims that exercise the model, worked out by hand from the papers' tables.
VALUES = {
    "P0-35": [1.32],
    "P0-37": [1.2, 1.2],
    "P0-38": [2.21],
    "P0-39": [10.4],
    "EC-04": [2],
    "EC-05": [3],
    "EC-06": [2],
    "M0-07": [13, 18, 22],
    "P0-73": [4],
    "CA-14": [2.2],
    "CA-16": [5.4],
}


def test_values_are_compared_and_not_verdicts(report: Report) -> None:
    ours = {row.claim.id: row.finding.ours for row in report.rows}
    for claim, expected in VALUES.items():
        found = [float(text) for text in re.findall(r"\d+(?:\.\d+)?", ours[claim])]
        assert found == pytest.approx(expected, rel=0.01), claim


def test_reproduced_numbers_are_near_the_printed_ones(report: Report) -> None:
    """Wherever both sides are as many plain numbers, they agree: no verdict stands by itself."""
    compared = 0
    for row in report.rows:
        plain = re.fullmatch(r"[\d.;, %x~<>]+", row.finding.ours) is not None
        found = [float(text) for text in re.findall(r"\d+(?:\.\d+)?", row.finding.ours)]
        printed = row.claim.numbers()
        if row.finding.verdict is Verdict.REPRODUCED and plain and len(found) == len(printed):
            compared += 1
            for ours, text in zip(found, printed, strict=True):
                assert ours == pytest.approx(text, rel=0.05, abs=0.5), row.claim.id
    assert compared >= 25


def test_claims_are_counted_by_what_they_exercise(report: Report) -> None:
    apart = report.counts_by_basis()
    reproduced = {basis.value: counts["reproduced"] for basis, counts in apart.items()}
    assert sum(reproduced.values()) == report.counts()["reproduced"]
    assert reproduced["model"] < report.counts()["reproduced"]
    assert sum(apart[Basis.NONE].values()) == report.counts()["needs_hardware"]


def test_no_check_reads_the_listed_status() -> None:
    """A check that could see the answer would be no check."""
    for module in MODULES:
        assert module.__file__ is not None
        tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
        named = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        assert not named & {"listed", "as_listed"}


def test_a_wrong_profile_fails_the_claims(monkeypatch: pytest.MonkeyPatch) -> None:
    """With drives that compute half as fast, the printed break-even points must not come out."""
    found = workload_of(load("smartssd"), "count")
    slow = type(found)(**{**found.__dict__, "csd_comp_s": 2 * found.csd_comp_s})
    monkeypatch.setattr(planning, "system", lambda *_args: slow)
    verdicts = {row.claim.id: row.finding.verdict for row in reproduce(["P0-43", "P0-44"]).rows}
    assert set(verdicts.values()) == {Verdict.CONTRADICTED}


@pytest.mark.parametrize(
    ("took_s", "ours", "verdict"),
    [
        (0.9, "2000 in under a second", Verdict.REPRODUCED),
        (1.1, "2000 in over a second", Verdict.CONTRADICTED),
    ],
)
def test_the_claim_of_speed_is_timed(
    took_s: float, ours: str, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(equations, "perf_counter", count(0.0, took_s).__next__)
    (row,) = reproduce(["P0-85"]).rows
    assert (row.finding.ours, row.finding.verdict) == (ours, verdict)


@pytest.mark.parametrize(
    ("printed", "ours", "verdict"),
    [
        ("2.21", 2.214, "reproduced"),
        ("2.21", 2.218, "consistent"),
        ("2.21", 2.23, "contradicted"),
        ("8", 8.4, "reproduced"),
        ("8", 8.9, "consistent"),
        ("8", 9.1, "contradicted"),
    ],
)
def test_digits(printed: str, ours: float, verdict: str) -> None:
    assert by_digits([printed], [ours], "why").verdict == verdict
    # One bad number among good ones is enough, wherever it stands.
    for order in (1, -1):
        pairs = [("1.0", 1.0), (printed, ours)][::order]
        texts, values = zip(*pairs, strict=True)
        assert by_digits(texts, values, "why").verdict == verdict


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [(2.09, "reproduced"), (2.2, "consistent"), (2.6, "contradicted"), (1.4, "contradicted")],
)
def test_ratios(ours: float, verdict: str) -> None:
    assert by_ratio(CLAIM, [ours], "why").verdict == verdict


def test_statements() -> None:
    assert if_holds(True, 1, "why", then=Verdict.CONSISTENT).verdict is Verdict.CONSISTENT
    assert if_holds(False, 1, "why", then=Verdict.CONSISTENT).verdict is Verdict.CONTRADICTED


def test_a_selection() -> None:
    assert [row.claim.id for row in reproduce(["CR-0", "EC-13"]).rows] == [
        "EC-13", "CR-02", "CR-04", "CR-06", "CR-07", "CR-08", "CR-09",
    ]  # fmt: skip


def test_equal_code_gives_equal_findings(report: Report) -> None:
    assert reproduce().sheet() == report.sheet()
