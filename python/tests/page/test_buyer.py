"""The page in a real browser as a buyer uses it: answer, busy state, own parts, page to sign."""

import re
from pathlib import Path
from typing import Any

import pytest

from csdplan.hardware import load_catalogue

from .browser import BUYER, NEEDED, SMALL, WAIT_MS, Shown, picture, picture_of, sync_api

pytestmark = NEEDED


@pytest.mark.parametrize("size", [BUYER, SMALL], ids=str)
def test_the_page_opens_on_what_to_buy(browser: Any, address: str, size: dict[str, int]) -> None:
    shown = Shown(browser, address, size)
    page = shown.page
    page.wait_for_selector("#buy[aria-busy=false] .says", timeout=WAIT_MS)
    assert page.locator("#buy .says").bounding_box()["y"] < size["height"] / 2
    sync_api.expect(page.locator("#buy .says")).to_contain_text("Buy ")
    headings = ["What is in which host", "Risk", "What would change it"]
    assert page.locator("#buy h3").all_text_contents() == headings
    # Every drive is drawn, inside of the figure.
    drawn = page.locator("#buy figure svg")
    counts = re.findall(r"([0-9]+) x ", page.locator("#buy .says").inner_text())
    assert drawn.locator(".bay").count() == sum(map(int, counts[1:]))
    edge = drawn.bounding_box()
    for one in drawn.locator("text, rect").all():
        box = one.bounding_box()
        assert box["x"] >= edge["x"] - 1
        assert box["x"] + box["width"] <= edge["x"] + edge["width"] + 1
    sync_api.expect(page.locator("#buy .risk")).to_contain_text("data is lost once in")
    picture(page, f"buy-{size['width']}")
    shown.close(address)


def test_it_says_when_it_works(browser: Any, address: str) -> None:
    shown = Shown(browser, address, BUYER)
    page = shown.page
    page.wait_for_selector("#buy[aria-busy=false] .says", timeout=WAIT_MS)
    held: list[Any] = []

    def hold(route: Any) -> None:
        held.append(route)

    page.route("**/purchase", hold)
    page.fill("#a-store", "400")
    sync_api.expect(page.locator("#working")).to_contain_text("Working: what to buy, for")
    sync_api.expect(page.locator("#working")).to_contain_text("Below is the answer of before")
    sync_api.expect(page.locator("#bought")).to_contain_text("Working")
    assert page.get_attribute("#buy", "aria-busy") == "true"
    sync_api.expect(page.locator("#working")).to_contain_text("for 1 s", timeout=WAIT_MS)
    while not held:
        page.wait_for_timeout(50)
    # An answer that comes after a field was changed to what is wrong is of before.
    page.fill("#a-store", "much")
    sync_api.expect(page.locator("#bought")).to_contain_text("One of the fields is wrong")
    sync_api.expect(page.locator("#working")).to_be_hidden()
    with page.expect_response("**/purchase", timeout=WAIT_MS):
        held[0].continue_()
    sync_api.expect(page.locator("#bought")).to_contain_text("One of the fields is wrong")
    page.unroute("**/purchase")
    page.fill("#a-store", "400")
    sync_api.expect(page.locator("#bought")).to_contain_text("Buy: $", timeout=WAIT_MS)
    sync_api.expect(page.locator("#working")).to_be_hidden()
    shown.close(address)


@pytest.mark.parametrize("size", [BUYER, SMALL], ids=str)
def test_two_scenarios_fit(browser: Any, address: str, size: dict[str, int]) -> None:
    shown = Shown(browser, f"{address}?b.profile=newport&b.cores=16&b.store=50", size)
    page = shown.page
    page.wait_for_selector("#buy[aria-busy=false] .says", timeout=WAIT_MS)
    for details in page.locator("details").all():
        details.evaluate("(one) => { one.open = true; }")
    assert page.evaluate("document.documentElement.scrollWidth") == size["width"]
    wider = """() => [...document.querySelectorAll(".wide, .panel, .plot")]
      .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.textContent.slice(0, 60))
    """
    assert page.evaluate(wider) == []
    picture(page, f"two-{size['width']}")
    shown.close(address)


def test_a_part_is_typed_in_and_kept(browser: Any, address: str, tmp_path: Path) -> None:
    shown = Shown(browser, address, BUYER)
    page = shown.page
    page.locator("summary", has_text="Parts of your own").first.click()
    page.fill("#a-part-title", "ACME big")
    page.click("#form-a [data-do=add-part]")
    sync_api.expect(page.locator("#a-parts-wrong")).to_contain_text("price of ACME big = absent")
    numbers = {"capacity_bytes": "122.88TB", "read_Bps": "13 GB/s", "price_usd": "9k"}
    for name, text in numbers.items():
        page.fill(f"#a-part-{name}", text)
    page.click("#form-a [data-do=add-part]")
    sync_api.expect(page.locator("#buy .says")).to_contain_text("ACME big", timeout=WAIT_MS)
    with page.expect_download(timeout=WAIT_MS) as waiting:
        page.click("#parts")
    file = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(file)
    assert load_catalogue(None, [file]).parts["acme-big"].value("capacity_bytes") == 122.88e12
    # The link holds it; what was kept is opened again.
    other = Shown(browser, page.url, BUYER)
    sync_api.expect(other.page.locator("#buy .says")).to_contain_text("ACME big", timeout=WAIT_MS)
    other.close(address)
    page.fill("#a-parts", "schema = 1 [")
    sync_api.expect(page.locator("#a-parts-wrong")).to_contain_text("your parts")
    page.fill("#a-parts", "")
    sync_api.expect(page.locator("#buy .says")).not_to_contain_text("ACME", timeout=WAIT_MS)
    page.set_input_files("#open-parts", file)
    sync_api.expect(page.locator("#buy .says")).to_contain_text("ACME big", timeout=WAIT_MS)
    # Kinds have numbers of their own.
    page.select_option("#a-part-kind", "cpu")
    sync_api.expect(page.locator("#a-part-cores")).to_be_visible()
    sync_api.expect(page.locator("#a-part-capacity_bytes")).to_be_hidden()
    shown.close(address)


@pytest.mark.parametrize("query", ["", "?store=3000&protect=replica:3&work=count:500"])
def test_the_page_to_sign_prints_on_one_page(
    browser: Any, address: str, tmp_path: Path, query: str
) -> None:
    shown = Shown(browser, f"{address}{query}", BUYER)
    with shown.page.expect_download(timeout=WAIT_MS) as waiting:
        shown.page.click("#report")
    file = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(file)
    shown.close(address)
    page = browser.new_page()
    page.goto(file.as_uri())
    assert "signature" in page.inner_text("body")
    printed = page.pdf(prefer_css_page_size=True)
    assert len(re.findall(rb"/Type */Page\b", printed)) == 1
    picture_of(page, f"signed-{len(query)}")
    page.close()
