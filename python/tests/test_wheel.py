"""The wheels as users install them: the planner alone, and published claims as an extra."""

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

PYTHON = Path(__file__).parents[1]


def built(folder: Path, target: Path) -> Path:
    """Build the wheel of the distribution in `folder`."""
    words = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*words, "--no-deps", "--no-build-isolation", "-w", str(target), str(folder)], check=True
    )
    name = "csdplan_reproduce-*.whl" if folder.name == "reproduce" else "csdplan-*.whl"
    (wheel,) = target.glob(name)
    return wheel


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Return the planner's wheel, and that of the claims."""
    target = tmp_path_factory.mktemp("wheels")
    return built(PYTHON, target), built(PYTHON / "reproduce", target)


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    """Return the Python of a new environment that has our dependencies and none of our packages.

    The dependencies are those of this environment, on its path: its own editable installations
    are not seen from there.
    """
    folder = tmp_path / "clean"
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return folder / "bin" / "python"


def install(python: Path, *wheels: Path) -> None:
    words = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    flags = ["--no-deps", "--no-index", "--ignore-installed"]
    subprocess.run([*words, *flags, *map(str, wheels)], check=True)


def csdplan(python: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [str(python.parent / "csdplan"), *arguments]
    return subprocess.run(command, cwd=python.parent, capture_output=True, text=True, check=False)


def test_the_planner_plans_without_the_extra(wheels: tuple[Path, Path], clean: Path) -> None:
    planner, _ = wheels
    names = zipfile.ZipFile(planner).namelist()
    assert not any("reproduce" in name or "claims" in name for name in names)
    page = {"page/assets/page.css", "page/assets/page.js", "page/assets/break-even.svg"}
    assert {f"csdplan/{name}" for name in {*page, "plot/screen.css", "plot/screen.js"}} <= set(
        names
    )
    install(clean, planner)
    found = csdplan(clean, "bep", "--profile", "newport", "--kernel", "count", "--csv")
    assert found.returncode == 0, found.stderr
    assert ",breaks_even,12,12,none," in found.stdout
    report = ["report", "-o", "report.html"]
    overload = ["overload", "--profile", "newport", "--kernel", "count"]
    for command in (["ec"], ["tco"], overload, report):
        assert csdplan(clean, *command).returncode == 0, command
    refused = csdplan(clean, "reproduce")
    assert refused.returncode == 1
    assert refused.stdout == ""
    assert refused.stderr == (
        "csdplan: published claims come with the extra reproduce: "
        "pip install './python[reproduce]' ./python/reproduce\n"
    )


def test_the_extra_brings_the_claims(wheels: tuple[Path, Path], clean: Path) -> None:
    planner, claims = wheels
    with zipfile.ZipFile(planner) as opened:
        (name,) = (name for name in opened.namelist() if name.endswith("METADATA"))
        metadata = opened.read(name).decode()
    assert "Requires-Dist: csdplan-reproduce==" in metadata
    install(clean, planner, claims)
    found = csdplan(clean, "reproduce", "--only", "P0-46", "--csv")
    assert found.returncode == 0, found.stderr
    assert "P0-46,reproduced" in found.stdout
