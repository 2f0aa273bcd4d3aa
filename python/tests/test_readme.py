"""The read-me's examples run, and print the output that it shows."""

import contextlib
import io
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from csdplan.cli import app

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
PYTHON = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_there_are_examples() -> None:
    assert len(PYTHON) == 4


@pytest.mark.parametrize("code", PYTHON)
def test_python_examples_print_their_comments(code: str) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    promised = re.findall(r"^print\(.*\)  # (.*)$", code, re.MULTILINE)
    assert promised
    assert printed.getvalue().splitlines() == promised


def test_the_shown_table_is_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (command,) = re.findall(r"^\$ csdplan (bep .*)$", README, re.MULTILINE)
    (shown,) = re.findall(r"```text\n(.*?)```", README, re.DOTALL)
    result = CliRunner(env={"COLUMNS": "110", "NO_COLOR": "1"}).invoke(app, command.split())
    assert result.exit_code == 0
    lines = [line.rstrip() for line in result.stdout.strip().splitlines()]
    assert lines == shown.strip().splitlines()
