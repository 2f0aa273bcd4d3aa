"""The lists of what packages hold are complete; building them takes minutes, and `make release`."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MANIFEST = tomllib.loads((ROOT / "crates/csd/Cargo.toml").read_text(encoding="utf-8"))
DEB = MANIFEST["package"]["metadata"]["deb"]
RELEASE = (ROOT / "packaging/release.sh").read_text(encoding="utf-8")
# Destination of each source, as paths from the repository's root.
ASSETS = {source.removeprefix("../../"): target for source, target, _mode in DEB["assets"]}
SCRIPTS = ("postinst", "prerm", "postrm")


def test_every_source_is_in_the_repository_or_made() -> None:
    made = ["target/release/csd", "build/release/man/*.1"]
    made += [f"build/release/completions/{name}" for name in ("csd", "_csd", "csd.fish")]
    for name in made:
        assert name in ASSETS
    assert 'csd" man "$out/man"' in RELEASE
    for shell, name in (("bash", "csd"), ("zsh", "_csd"), ("fish", "csd.fish")):
        assert f'completions {shell} >"$out/completions/{name}"' in RELEASE
    for source in ASSETS:
        assert source in made or list(ROOT.glob(source)), source


def test_every_document_that_the_packages_pages_link_to_is_in_it() -> None:
    packed = {path for source in ASSETS for path in ROOT.glob(source)}
    pages = [path for path in packed if path.suffix == ".md"]
    assert ROOT / "docs/guide/arrays.md" in pages
    for page in (ROOT / "docs/guide").iterdir():
        assert page in packed, page
    for name in ("LICENSE-MIT", "LICENSE-APACHE", "SECURITY.md", "docs/system.svg"):
        assert ROOT / name in packed, name
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    linked = {ROOT / path for path in re.findall(r"\]\((docs/[^)#]+\.md)", readme)}
    assert linked
    assert linked <= packed


def test_the_unit_runs_the_packaged_program_with_the_packaged_user() -> None:
    unit = (ROOT / "packaging/csd-drive@.service").read_text(encoding="utf-8")
    assert ASSETS["target/release/csd"] == "usr/bin/"
    assert "\nExecStart=/usr/bin/csd " in unit
    (user,) = re.findall(r"^User=(\S+)$", unit, re.MULTILINE)
    postinst = (ROOT / "packaging/debian/postinst").read_text(encoding="utf-8")
    assert re.search(rf"^ *adduser .* {user}$", postinst, re.MULTILINE)
    # cargo-deb leaves the second out of what it finds.
    assert {"adduser", "libgcc-s1"} <= set(DEB["depends"].split(", "))
    assert DEB["conf-files"] == ["/etc/csd/example.env"]
    assert ASSETS["packaging/example.env"] == "etc/csd/"


@pytest.mark.parametrize("name", SCRIPTS)
def test_maintainer_scripts_are_shell(name: str) -> None:
    path = ROOT / DEB["maintainer-scripts"].removeprefix("../../") / name
    assert path.stat().st_mode & 0o111
    subprocess.run(["sh", "-n", path], check=True)
