"""The page in a real browser: a slider changes the answer, a link restores it, downloads work.

Needs Chromium (Debian's package) and Playwright; without them the test is skipped and says so.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from csdplan.profile import load
from csdplan.profile.write import tables

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


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Run the command itself, on a free port."""
    command = [sys.executable, "-m", "csdplan", "ui", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        line = server.stdout.readline()
        yield line.split()[1]
        server.terminate()


def picture(page: Any, name: str) -> None:
    """Keep a picture of the page if CSDPLAN_PICTURES names a folder."""
    if folder := os.environ.get("CSDPLAN_PICTURES"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def says(page: Any, start: str) -> None:
    sync_api.expect(page.locator("#says")).to_contain_text(start, timeout=WAIT_MS)


def reach(page: Any, name: str) -> None:
    """Move the focus to a control by the Tab key alone."""
    for _ in range(60):
        if page.evaluate("document.activeElement.id || document.activeElement.name") == name:
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{name} cannot be reached by keyboard")


def several() -> str:
    """Return a profile in which two drives compute."""
    newport, smartssd = load("newport").as_dict(), load("smartssd").as_dict()
    drives = [point for point in smartssd["point"] if point["where"] == "drive"]
    return tables({**newport, "point": newport["point"] + drives})


@pytest.mark.parametrize("width", [1280, 800, 400])
def test_nothing_is_cut_off(address: str, width: int) -> None:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": width, "height": 900})
        page.goto(address)
        page.wait_for_selector("#cost .main-svg", timeout=WAIT_MS)
        says(page, "Break-even point: 28 newport drives")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        for name in ("cores", "csd_usd", "json"):
            page.focus(f"#{name}")
            box = page.locator(f"#{name}").bounding_box()
            assert box["x"] >= 0
            assert box["x"] + box["width"] <= width
        picture(page, f"width-{width}")
        browser.close()


def test_by_keyboard_alone(address: str, tmp_path: Path) -> None:
    file = tmp_path / "several.toml"
    file.write_text(several(), encoding="utf-8")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900}, accept_downloads=True)
        page.goto(address)
        says(page, "Break-even point: 28 newport drives")
        # An arrow picks the next profile.
        page.keyboard.press("Tab")
        page.keyboard.press("ArrowDown")
        says(page, "Break-even point: 31 newport drives")
        reach(page, "cores")
        page.keyboard.press("ArrowRight")
        says(page, "SSDs on Host(5)")
        reach(page, "json")
        with page.expect_download(timeout=WAIT_MS):
            page.keyboard.press("Enter")

        # What a profile has several of can be picked; else there is nothing to pick.
        sync_api.expect(page.locator("#device-box")).to_be_hidden(timeout=WAIT_MS)
        page.set_input_files("#upload input[type=file]", file)
        sync_api.expect(page.locator("#device-box")).to_be_visible(timeout=WAIT_MS)
        sync_api.expect(page.locator("#ssd-box")).to_be_hidden(timeout=WAIT_MS)
        says(page, "newport drives against smartssd SSDs")
        page.focus("#device input")
        page.keyboard.press("ArrowDown")
        says(page, "smartssd drives against smartssd SSDs")
        page.wait_for_url("**device=smartssd**", timeout=WAIT_MS)
        picture(page, "several")
        browser.close()


def test_the_page(address: str, tmp_path: Path) -> None:
    asked: list[str] = []
    faults: list[str] = []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        page = browser.new_page(viewport={"width": 1440, "height": 1000}, accept_downloads=True)
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(address)
        says(page, "Break-even point: 28 newport drives")
        page.wait_for_selector("#curves .main-svg", timeout=WAIT_MS)
        picture(page, "first")

        # By keyboard alone: four cores more move the break-even point.
        page.focus("#cores")
        for _ in range(4):
            page.keyboard.press("ArrowRight")
        sync_api.expect(page.locator("#cores-shown")).to_have_text("8", timeout=WAIT_MS)
        says(page, "Break-even point: 37 newport drives")
        sync_api.expect(page.locator("#curves")).to_contain_text("BEP 37", timeout=WAIT_MS)
        page.wait_for_url("**cores=8**", timeout=WAIT_MS)
        link = page.url

        with page.expect_download(timeout=WAIT_MS) as waiting:
            page.click("#json")
        file = tmp_path / "result.json"
        waiting.value.save_as(file)
        body = json.loads(file.read_text(encoding="utf-8"))
        assert body["result"]["state"]["cores"] == 8
        assert body["result"]["tables"][0]["rows"][1]["break_even_drives"] == 37

        # The link alone, in another window, shows the same.
        other = browser.new_page(viewport={"width": 1440, "height": 1000})
        other.goto(link)
        says(other, "Break-even point: 37 newport drives")
        assert other.input_value("#cores") == "8"
        other.goto(f"{address}?cores=1000")
        sync_api.expect(other.locator("#refused")).to_have_text(
            "cores = 1000: expected a number from 1 to 64", timeout=WAIT_MS
        )

        upload = Path(__file__).parents[2] / "src/csdplan/profile/shipped/smartssd.toml"
        other.set_input_files("#upload input[type=file]", upload)
        says(other, "smartssd drives")
        other.wait_for_url("**text=**", timeout=WAIT_MS)
        picture(other, "uploaded")
        browser.close()
    assert not faults
    assert {url.partition("?")[0].startswith((address, "data:", "blob:")) for url in asked} == {
        True
    }
