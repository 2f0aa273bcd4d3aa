"""The page's own command, and a browser."""

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest


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
    from .browser import CHROMIUM, FLAGS, sync_api  # noqa: PLC0415 - may be absent

    with sync_api.sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
