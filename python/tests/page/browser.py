"""The page in a real browser: what its tests share.

Needs Chromium (Debian's package) and Playwright; without them the tests are skipped and say so.
"""

import os
import shutil
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium")
sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
NEEDED = pytest.mark.skipif(
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
