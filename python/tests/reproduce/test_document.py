"""The reference page is up to date with the code, and has its figures."""

from pathlib import Path

from csdplan_reproduce import Verdict, reproduce
from csdplan_reproduce.document import text
from csdplan_reproduce.figures import FIGURES

from csdplan.plot import write

DOCUMENT = Path(__file__).parents[3] / "docs" / "reference" / "reproduction.md"
RECORD = Path(__file__).parents[3] / "bench" / "records" / "cluster.jsonl"


def test_the_page_is_current() -> None:
    """Else run `csdplan reproduce --document PAGE`, with `--cluster RECORD` if that is there."""
    record = RECORD if RECORD.exists() else None
    assert DOCUMENT.read_text(encoding="utf-8") == text(reproduce(), record)


def test_every_figure_stands_beside_the_page() -> None:
    drawn = {file.stem for file in (DOCUMENT.parent / "figures").glob("*.svg")}
    assert set(FIGURES) <= drawn


def test_every_contradiction_is_explained_as_an_erratum() -> None:
    report = reproduce()
    errata = text(report).partition("## Errata")[2].partition("## Paper")[0]
    for row in report.rows:
        found = f"**{row.claim.id}**" in errata
        assert found == (row.finding.verdict is Verdict.CONTRADICTED)


def test_a_figure_draws(tmp_path: Path) -> None:
    name = "k-limit"
    write(FIGURES[name][1](), tmp_path / "x.svg")
    drawn = (tmp_path / "x.svg").read_bytes()
    # The legend holds the answers that the solver gives.
    assert b"k_limit 8: break-even 13" in drawn
    assert b"k_limit 12: break-even 18" in drawn
