"""The page in a real browser: fields and sliders, two scenarios, files, keyboard, phone, contrast.

Needs Chromium (Debian's package) and Playwright; without them the test is skipped and says so.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from csdplan.hardware import load_catalogue
from csdplan.page.question import from_file
from csdplan.profile import load
from csdplan.profile.write import as_toml

CHROMIUM = shutil.which("chromium")
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed: the page was NOT tested in a browser"
)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
WAIT_MS = 20_000
PHONE = {"width": 390, "height": 844}
#: What a buyer has: the width of a small laptop, and that of a phone.
BUYER, SMALL = {"width": 1280, "height": 900}, {"width": 420, "height": 900}
DESK = {"width": 1440, "height": 1000}
#: Contrast of small text that WCAG 2.2 asks for at level AA.
TEXT_CONTRAST = 4.5
#: Finds texts whose color is too near to what they stand on; opaque ancestors give the ground.
FAINT = """
(least) => {
  const part = (one) => {
    const c = one / 255;
    return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  };
  const bright = (color) => {
    const [r, g, b] = color.match(/[0-9.]+/g).map(Number);
    return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
  };
  const ground = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if (!/, 0\\)$|transparent/.test(color)) return color;
    }
    return "rgb(255, 255, 255)";
  };
  const found = [];
  for (const one of document.querySelectorAll("body *")) {
    const isText = (node) => node.nodeType === 3 && node.textContent.trim();
    const other = "title, option, .on, .star, .button input, :disabled";
    if (![...one.childNodes].some(isText) || !one.checkVisibility() || one.matches(other)) continue;
    const svg = one.closest("svg");
    const color = svg ? getComputedStyle(one).fill : getComputedStyle(one).color;
    const [a, b] = [bright(color), bright(ground(one))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    const name = `${one.tagName} ${one.className.baseVal ?? one.className}`;
    if (ratio < least) found.push(`${name} ${ratio.toFixed(2)}: ${one.textContent.slice(0, 30)}`);
  }
  return found;
}
"""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Run the command itself, on a free port."""
    command = [sys.executable, "-m", "csdplan", "ui", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        yield line.split()[1]
        server.terminate()


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)


class Shown:
    """A page with the faults and requests that it made."""

    def __init__(self, browser: Any, address: str, size: dict[str, int], mode: str = "light"):
        self.faults: list[str] = []
        self.asked: list[str] = []
        self._context = browser.new_context(viewport=size, color_scheme=mode, accept_downloads=True)
        self.page = self._context.new_page()
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("console", lambda said: self.faults.append(said.text))
        self.page.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(address)
        # The figures are drawn once more, for this width.
        self.page.wait_for_selector("body[data-took-ms]", timeout=WAIT_MS)

    def close(self, address: str) -> None:
        """Close the page, which has made no fault and asked nothing of another address."""
        self._context.close()
        assert self.faults == []
        assert all(url.startswith((address, "data:", "blob:")) for url in self.asked)


def picture(page: Any, name: str) -> None:
    """Keep a picture of the page if CSDPLAN_PICTURES names a folder."""
    if os.environ.get("CSDPLAN_PICTURES"):
        page.wait_for_selector("#buy[aria-busy=false]", timeout=WAIT_MS)
    picture_of(page, name)


def picture_of(page: Any, name: str) -> None:
    """Keep a picture of what stands there now, if it is wished for."""
    if folder := os.environ.get("CSDPLAN_PICTURES"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def says(page: Any, text: str) -> None:
    sync_api.expect(page.locator("#says")).to_contain_text(text, timeout=WAIT_MS)


def reach(page: Any, name: str) -> None:
    """Move the focus to a control by the Tab key alone."""
    for _ in range(90):
        if page.evaluate("document.activeElement.id") == name:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{name} cannot be reached by keyboard")


@pytest.mark.parametrize("mode", ["light", "dark"])
@pytest.mark.parametrize("size", [DESK, {"width": 800, "height": 900}, PHONE], ids=str)
def test_nothing_is_cut_off_or_faint(
    browser: Any, address: str, size: dict[str, int], mode: str
) -> None:
    shown = Shown(browser, address, size, mode)
    page = shown.page
    says(page, "28 newport drives")
    for details in page.locator("details").all():
        details.evaluate("(one) => { one.open = true; }")
    assert page.evaluate("document.documentElement.scrollWidth") == size["width"]
    for figure in page.locator(".plot > svg").all():
        box = figure.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= size["width"]
    for name in ("a-cores", "a-cores-slide", "a-csd_usd", "json"):
        page.focus(f"#{name}")
        box = page.locator(f"#{name}").bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= size["width"]
    page.wait_for_selector("#buy[aria-busy=false]", timeout=WAIT_MS)
    assert page.evaluate(FAINT, TEXT_CONTRAST) == []
    picture(page, f"{size['width']}-{mode}")
    shown.close(address)


def test_a_phone_keeps_the_answer_in_one_line_above_everything(browser: Any, address: str) -> None:
    shown = Shown(browser, f"{address}?b.profile=newport&b.cores=16", PHONE)
    page = shown.page
    line = page.locator(".short")
    sync_api.expect(page.locator("#bought")).to_have_text(
        re.compile(r"A: \$[0-9,]+ · B: \$[0-9,]+"), timeout=WAIT_MS
    )
    assert line.bounding_box()["height"] < 44
    assert line.evaluate("(one) => one.scrollWidth <= one.clientWidth"), "the line is whole"
    page.locator("details", has=page.locator("#b-cores")).locator("summary").first.click()
    for name in ("b-cores-slide", "b-bandwidth-slide", "basis"):
        page.locator(f"#{name}").evaluate("(one) => one.scrollIntoView({ block: 'start' })")
        box = line.bounding_box()
        assert box["y"] == pytest.approx(0, abs=1)
        top = "([x, y]) => document.elementFromPoint(x, y).closest('.short') !== null"
        for x in (20, 195, 370):
            assert page.evaluate(top, [x, box["y"] + box["height"] / 2])
    shown.close(address)


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


def test_by_keyboard_alone(browser: Any, address: str) -> None:
    shown = Shown(browser, address, DESK)
    page = shown.page
    reach(page, "a-profile")
    page.keyboard.press("ArrowDown")
    says(page, "newport drives")
    page.wait_for_url("**profile=**", timeout=WAIT_MS)
    page.keyboard.press("ArrowUp")
    says(page, "28 newport drives")
    # A field steps through round values, or takes a number; a slider takes arrows.
    reach(page, "a-cores")
    page.keyboard.press("ArrowUp")
    says(page, "on a host with 5 cores")
    page.keyboard.press("Control+a")
    page.keyboard.type("16")
    says(page, "44 newport drives")
    assert page.input_value("#a-cores-slide") == "15"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.id") == "a-cores-slide"
    page.keyboard.press("ArrowLeft")
    says(page, "on a host with 15 cores")
    assert page.input_value("#a-cores") == "15"
    assert page.get_attribute("#a-cores-slide", "aria-valuetext") == "15 cores"
    # The focus is seen.
    outline = "getComputedStyle(document.activeElement).outlineWidth"
    assert page.evaluate(outline) == "3px"
    # A figure reads its values aloud.
    page.locator("#curves svg[data-hover]").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    sync_api.expect(page.locator("#curves .read")).to_contain_text("number of drives 2:")
    reach(page, "json")
    with page.expect_download(timeout=WAIT_MS):
        page.keyboard.press("Enter")
    shown.close(address)


def test_fields_links_and_downloads(browser: Any, address: str, tmp_path: Path) -> None:
    shown = Shown(browser, address, DESK)
    page = shown.page
    page.fill("#a-cores", "8")
    says(page, "37 newport drives")
    page.wait_for_url("**cores=8**", timeout=WAIT_MS)
    link = page.url
    # What cannot be is marked, and the answer stays.
    page.fill("#a-cores", "many")
    sync_api.expect(page.locator("#a-cores-wrong")).to_contain_text(
        "cores = many: expected a number from 1 to 4,096", timeout=WAIT_MS
    )
    assert page.get_attribute("#a-cores", "aria-invalid") == "true"
    says(page, "37 newport drives")
    page.fill("#a-cores", "8")
    sync_api.expect(page.locator("#a-cores-wrong")).to_have_text("", timeout=WAIT_MS)
    with page.expect_download(timeout=WAIT_MS) as waiting:
        page.click("#json")
    file = tmp_path / "result.json"
    waiting.value.save_as(file)
    body = json.loads(file.read_text(encoding="utf-8"))
    assert body["result"]["state"]["cores"] == 8
    assert body["result"]["tables"][0]["rows"][1]["break_even_drives"] == 37
    shown.close(address)
    # The link alone, in another window, shows the same.
    other = Shown(browser, link, DESK)
    says(other.page, "37 newport drives")
    assert other.page.input_value("#a-cores") == "8"
    other.close(address)
    for query, said in (("cores=0", "cores = 0: expected"), ("kernel=counts", "kernel = counts")):
        wrong = Shown(browser, f"{address}?{query}", DESK)
        sync_api.expect(wrong.page.locator("#refused")).to_contain_text(said, timeout=WAIT_MS)
        wrong.close(address)


def test_two_scenarios_and_files(browser: Any, address: str, tmp_path: Path) -> None:
    shown = Shown(browser, address, DESK)
    page = shown.page
    page.click("#compare")
    sync_api.expect(page.locator("#curves figure")).to_have_count(2, timeout=WAIT_MS)
    page.fill("#b-cores", "16")
    says(page, "B: For count, 44 newport drives")
    says(page, "A: For count, 28 newport drives")
    boxes = [one.bounding_box() for one in page.locator("#curves svg[data-hover]").all()]
    assert boxes[0]["y"] == pytest.approx(boxes[1]["y"], abs=40)
    assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"]
    # A workload more, of one's own, in scenario B alone.
    page.click("#form-b [data-do=add-own]")
    page.wait_for_selector("[id='b-work1.core']", timeout=WAIT_MS)
    page.fill("[id='b-work1.rate']", "4 GB/s")
    page.wait_for_url(re.compile("b.work=my"), timeout=WAIT_MS)
    picture(page, "two")
    with page.expect_download(timeout=WAIT_MS) as waiting:
        page.click("#request")
    file = tmp_path / "scenario.toml"
    waiting.value.save_as(file)
    state = from_file(file.read_text(encoding="utf-8"))
    assert (state.cores, state.works[1].rate) == (16, 4)
    page.click("#compare")
    sync_api.expect(page.locator("#curves figure")).to_have_count(1, timeout=WAIT_MS)
    says(page, "28 newport drives")
    page.set_input_files("#open", file)
    says(page, "44 newport drives")
    assert page.input_value("#a-cores") == "16"
    shown.close(address)


def test_uploads(browser: Any, address: str, tmp_path: Path) -> None:
    shown = Shown(browser, address, DESK)
    page = shown.page
    file = tmp_path / "mine.toml"
    file.write_text(as_toml(load("smartssd")), encoding="utf-8")
    page.set_input_files("#a-upload", file)
    says(page, "smartssd drives")
    page.wait_for_url("**text=**", timeout=WAIT_MS)
    file.write_text("#" * 300_000, encoding="utf-8")
    page.set_input_files("#a-upload", file)
    sync_api.expect(page.locator("#refused")).to_contain_text(
        "upload = 300000 bytes: expected at most 262144 bytes", timeout=WAIT_MS
    )
    file.write_text("schema = 2", encoding="utf-8")
    page.set_input_files("#a-upload", file)
    sync_api.expect(page.locator("#refused")).to_contain_text("schema", timeout=WAIT_MS)
    says(page, "smartssd drives")
    shown.close(address)


def test_dark_and_light_can_be_switched(browser: Any, address: str) -> None:
    shown = Shown(browser, address, DESK, "dark")
    page = shown.page
    ground = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(ground)
    page.click("#mode")
    light = page.evaluate(ground)
    assert dark != light
    page.click("#mode")
    assert page.evaluate(ground) == dark
    shown.close(address)
