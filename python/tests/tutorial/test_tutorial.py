"""Every notebook of the tutorial runs, and what it says about its tables holds."""

import subprocess
import sys
from pathlib import Path

import pytest

TUTORIAL = Path(__file__).parents[3] / "docs" / "tutorial"
NOTEBOOKS = sorted(TUTORIAL.glob("*.py"))


def test_the_notebooks_are_found() -> None:
    assert [path.name[0] for path in NOTEBOOKS] == ["1", "2", "3"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook(path: Path, tmp_path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# %% [markdown]\n# # ")
    assert "\nassert " in text
    ran = subprocess.run(
        [sys.executable, "-W", "error::FutureWarning", str(path)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert not list(tmp_path.iterdir())
