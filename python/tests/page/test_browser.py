"""The page in a real browser: fields, sliders, two scenarios, files, keyboard, phone, contrast."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from csdplan.page.question import from_file
from csdplan.profile import load
from csdplan.profile.write import as_toml

from .browser import DESK, NEEDED, PHONE, WAIT_MS, Shown, picture, says, sync_api

pytestmark = NEEDED
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
