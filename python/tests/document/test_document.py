"""The report for a meeting: complete, self-contained, and clear about the closed form's errors."""

import base64
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

from csdplan.cli import app
from csdplan.document import Question, render
from csdplan.profile import load, workload_of
from csdplan.request import load_request

NEWPORT = load("newport")


def asked(**options: object) -> Question:
    held = workload_of(NEWPORT, "count", name="newport")
    return Question("newport", NEWPORT, held, (1, 4, 16), **options)  # type: ignore[arg-type]


class Balanced(HTMLParser):
    """Fails at a tag that does not close the one that is open."""

    VOID = frozenset({"meta", "img"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag that must be closed."""
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the tag that is open."""
        assert self.open.pop() == tag


def test_the_report_says_it_all(tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    result = CliRunner().invoke(app, ["report", "-o", str(out), "--request", "epyc"])
    assert result.exit_code == 0, result.output
    text = out.read_text(encoding="utf-8")
    parser = Balanced()
    parser.feed(text)
    assert not parser.open
    for host, devices in (
        (1, "12 drives (11-13"),
        (4, "28 drives (26-30"),
        (16, "44 drives (41-48"),
    ):
        faster = "newport is faster than as many smartssd SSDs"
        some = f"From {devices} in 90 % of cases) on, {faster} on {host} "
        assert some in text
    assert "Host(4): the closed form says 48, and is wrong here" in text
    assert "Host(1): the closed form" not in text
    for heading in ("Cost of ownership", "What to buy", "What it rests on", "How sure this is"):
        assert f"<h2>{heading}</h2>" in text
    assert "assumed" in text
    assert "2 x AMD EPYC 7352, Newport" in text


def test_it_needs_no_other_file() -> None:
    text = render(asked())
    sources = re.findall(r'(?:src|href)="([^"]*)"', text)
    assert len(sources) == 2
    for source in sources:
        kind, _, data = source.partition(",")
        assert kind == "data:image/svg+xml;base64"
        assert b"</svg>" in base64.b64decode(data)
    assert "<script" not in text
    assert "What to buy" not in text


def test_equal_questions_give_equal_bytes() -> None:
    assert render(asked()) == render(asked())


def test_text_of_a_profile_cannot_become_markup() -> None:
    meta = NEWPORT.meta.model_copy(update={"note": "<script>alert(1)</script>"})
    question = Question(
        "<b>x</b>", NEWPORT.model_copy(update={"meta": meta}), asked().workload, (1,)
    )
    text = render(question)
    assert "<script" not in text
    assert "&lt;script&gt;" in text
    assert "<b>x" not in text


def test_what_cannot_be_bought_is_explained() -> None:
    request = load_request("epyc")
    poor = type(request)(
        request.cpus,
        request.drives,
        request.demands,
        type(request.limits)(capacity_bytes=16e12, budget_usd=700.0),
    )
    assert "Nothing can be bought: what is in the way" in render(asked(request=poor))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("-o", "report.txt"), "ends in .html"),
        (("-o", "r.html", "--kernel", "sort"), "sort"),
        (("-o", "r.html", "--sd-tx", "0.5"), "sd_tx"),
    ],
)
def test_faults_are_reported(
    options: tuple[str, ...], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, ["report", *options])
    assert result.exit_code == 2
    assert says in result.stderr
    assert not list(tmp_path.iterdir())
