"""The report for a meeting: complete, self-contained, and clear about the closed form's errors."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typer.testing import CliRunner

import csdplan as cp
from csdplan.cli import app
from csdplan.document import Question, render
from csdplan.hardware import load_catalogue
from csdplan.profile import load, workload_of
from csdplan.request import load_request
from csdplan.request.scenario import load_scenario
from csdplan.result.listed import listed

NEWPORT = load("newport")


def asked(**options: object) -> Question:
    held = workload_of(NEWPORT, "count", name="newport")
    prices = listed(load_catalogue())
    drives = (1, 4, 16)
    return Question("newport", NEWPORT, held, drives, prices, **options)  # type: ignore[arg-type]


class Balanced(HTMLParser):
    """Fails at a tag that does not close the one that is open."""

    VOID = frozenset({"meta", "path", "rect", "circle"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag that must be closed."""
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the tag that is open."""
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_the_report_says_it_all(tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    result = CliRunner().invoke(app, ["report", "-o", str(out), "--request", "epyc"])
    assert result.exit_code == 0, result.output
    text = out.read_text(encoding="utf-8")
    parser = Balanced()
    parser.feed(text)
    assert not parser.open
    said = (
        "For count, newport drives that compute are faster than as many smartssd SSDs: against "
        "a host with 1 core from 12 drives on (11-13), against a host with 4 cores from 28 drives "
        "on (25-32), against a host with 16 cores from 44 drives on (39-52)."
    )
    assert f'<p class="answer">{said}' in text
    assert "Host(4): the closed form says 48, and is wrong here" in text
    assert "Host(1): the closed form" not in text
    headings = ["The answer", "The bill", "How fast", "What would have to change"]
    headings += ["How sure this is", "What it rests on"]
    assert re.findall("<h2>(.*?)</h2>", text) == headings
    assert "assumed" in text
    assert "2 x AMD EPYC 7352, Newport" in text


def test_it_needs_no_other_file_and_no_script() -> None:
    text = render(asked())
    assert not re.search(r"(src|href)=|<script|url\(|@import|tabindex", text)
    assert "prefers-color-scheme: dark" in text
    assert text.index("<table") < text.index("<svg"), "the bill comes before the pictures"


def test_every_figure_is_about_the_kernel_of_the_report() -> None:
    text = render(asked())
    titles = re.findall("<figcaption>(.*?)</figcaption>", text)
    # Each is drawn for a desk and for a phone.
    assert titles[::2] == titles[1::2]
    assert titles[::2] == [
        "What each system costs, and the work that it does",
        "count: throughput of newport drives that compute, and of smartssd drives as SSDs",
        "count: break-even point of newport drives, Host(16)",
        "How likely each break-even point is: count on newport against Host(16)",
        "What to measure to be surer: the time it hangs on",
    ]
    # Costs are those of the kernel too: 44 drives are as fast as the SSDs on 16 cores.
    assert "44 drives with their host are as fast as 8 SSDs on a host with 16 cores" in text
    assert "array-merge" not in text


def test_one_table_holds_how_sure_each_host_is() -> None:
    text = render(asked())
    assert text.count("<caption>Break-even points, from the spreads of the times") == 1
    assert text.count("<caption>What it hangs on") == 1


def test_a_report_plans_a_purchase(tmp_path: Path) -> None:
    (tmp_path / "ask.toml").write_text(
        'store = "20TB"\nworkload = ["count=10GB/s"]\n', encoding="utf-8"
    )
    out = cp.report(tmp_path / "r.html", ask=tmp_path / "ask.toml")
    text = out.read_text(encoding="utf-8")
    assert '<p class="answer">Buy 1 x ' in text
    assert "<caption>What would change the answer" in text


def test_one_price_list_serves_costs_and_purchase(tmp_path: Path) -> None:
    (tmp_path / "ask.toml").write_text('store = "20TB"\n', encoding="utf-8")
    quotes = tmp_path / "quotes.toml"
    quotes.write_text(
        'schema = 1\ndate = "2026-11-20"\nprov = "given"\n'
        '[usd]\n"samsung-pm9a3-7.68tb" = 77\n"chassis-2u24" = 3000\n',
        encoding="utf-8",
    )
    out = cp.report(tmp_path / "r.html", ask=tmp_path / "ask.toml", prices=quotes)
    text = out.read_text(encoding="utf-8")
    assert "a host at 4,080 USD" in text
    assert "SSDs at 77 USD (Catalogue: Samsung PM9A3 7.68 TB" in text
    assert "3 x Samsung PM9A3" in text
    assert "2022" not in cp.report(tmp_path / "r.html").read_text(encoding="utf-8")


def test_a_scenario_of_systems_is_costed(tmp_path: Path) -> None:
    text = render(asked(scenario=load_scenario(None)))
    assert "<caption>As configured" in text
    assert "What each system costs, and the work that it does" not in text


def test_equal_questions_give_equal_bytes() -> None:
    assert render(asked()) == render(asked())


def test_text_of_a_profile_cannot_become_markup() -> None:
    meta = NEWPORT.meta.model_copy(update={"note": "<script>alert(1)</script>"})
    usual, named = asked(), NEWPORT.model_copy(update={"meta": meta})
    question = Question("<b>x</b>", named, usual.workload, (1,), usual.prices)
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
