"""The repository's first command and ``csdplan bep``: one plan, from the same profiles.

The arguments are those of the demo itself, and the expected text that of the page that shows it, so
neither can drift from the planner unseen.
"""

import importlib.util
import json
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from typer.testing import CliRunner

from csdplan.cli import app

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^│ Host\((\d+)\) +│([^│]+)│([^│]+)│([^│]+)│([^│]+)│([^│]+)│$", re.MULTILINE)


def demo(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Load the demo's script, which is no package."""
    spec = importlib.util.spec_from_file_location("csdstore_demo", ROOT / "demo" / "demo.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what the demo's plan passes to ``python -m csdplan``, without its figures."""
    ran: list[list[str]] = []

    def run(words: Sequence[str], **_: Any) -> subprocess.CompletedProcess[str]:
        ran.append(list(words))
        return subprocess.CompletedProcess(words, 0)

    monkeypatch.setattr(subprocess, "run", run)
    demo(monkeypatch).plan(tmp_path)
    ((_, *rest),) = ran
    assert rest[:2] == ["-m", "csdplan"]
    return [word for word in rest[2:] if word != "--plot" and not word.startswith(str(tmp_path))]


def test_the_page_shows_what_the_demo_runs(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    printed = CliRunner().invoke(app, arguments)
    assert printed.exit_code == 0
    page = (ROOT / "docs/demo.md").read_text(encoding="utf-8")
    shown = [tuple(cell.strip() for cell in row) for row in ROW.findall(page)]
    assert len(shown) == 6
    assert shown == [tuple(cell.strip() for cell in row) for row in ROW.findall(printed.stdout)]
    said = [line.strip() for line in printed.stdout.splitlines() if line and line[0] not in "┏┃┡│└"]
    assert any("k_limit: " in line for line in said)
    assert [line for line in said if line not in page] == []


def test_the_demo_says_why_drives_were_no_faster(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(on: str, wall_s: float, crossed: int) -> dict[str, Any]:
        return {"on": on, "wall_s": wall_s, "crossed_bytes": crossed}

    compared = demo(monkeypatch).compared
    runs = [run("drives", 1.0, 2048), run("host", 4.0, 3 << 20)]
    assert compared({"runs": runs}) == (
        "with drives 2.0 KiB crossed instead of 3.0 MiB, in 0.25 times the host's time"
    )
    runs[0]["wall_s"] = 8.0
    assert "2.00 times the host's time: here drives and host are the same cores" in compared(
        {"runs": runs}
    )


def test_bep_gives_the_numbers_of_the_first_command(arguments: list[str]) -> None:
    page = (ROOT / "docs/demo.md").read_text(encoding="utf-8")
    shown = [
        (int(cores), int(devices.split()[0])) for cores, _, _, devices, *_ in ROW.findall(page)
    ]
    assert arguments[0] == "bep"
    profiles = [arguments[i + 1] for i, word in enumerate(arguments) if word == "--profile"]
    found = []
    for profile in profiles:
        answer = CliRunner().invoke(
            app,
            ["bep", "--profile", profile, "--kernel", "count", "--host-cores", "1,4,16", "--json"],
        )
        (system,) = json.loads(answer.stdout)["result"]["systems"]
        found += [(host["host_cores"], host["devices"]) for host in system["hosts"]]
    assert found == shown
