"""Every claim has a verdict; verdicts agree with an independent reading, and may be failures."""

import ast
from pathlib import Path

import pytest
from csdplan_reproduce import Report, Verdict, planning, reproduce
from csdplan_reproduce.check import CHECKS, Claim, by_digits, by_ratio, claims, if_holds
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


def test_verdicts_are_those_of_an_independent_reading(report: Report) -> None:
    """The list was drawn up by hand, before and apart from these checks."""
    differ = [row.claim.id for row in report.rows if not row.as_listed]
    assert differ == []


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
