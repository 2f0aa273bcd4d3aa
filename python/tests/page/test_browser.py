"""The page in a real browser: a slider moves the answer, a link brings it back, results come out.

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
