"""The lists of package contents are complete; ``make release`` builds the packages."""

import re
import shutil
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


def test_what_programs_need_is_in_the_package() -> None:
    guide = (ROOT / "docs/guide/programs.md").read_text(encoding="utf-8")
    assert "/usr/share/csd/examples" in guide
    assert ASSETS["sdk/built/*.wasm"] == "usr/share/csd/examples/"
    assert ASSETS["sdk/c/csd.h"] == "usr/share/csd/"
    assert 'cp sdk/built/*.wasm "$out/$name/examples"' in RELEASE


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


def analyze(folder: Path, *arguments: str) -> str:
    """Run systemd's own checks of the unit, as if the package were installed."""
    tool = shutil.which("systemd-analyze")
    if tool is None:
        pytest.skip("no systemd-analyze: the unit is not checked")
    unit = (ROOT / "packaging/csd-drive@.service").read_text(encoding="utf-8")
    path = folder / "csd-drive@d0.service"
    path.write_text(unit.replace("/usr/bin/csd ", "/bin/true "), encoding="utf-8")
    done = subprocess.run([tool, *arguments, path], capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    return said


def test_systemd_takes_every_line_of_the_unit(tmp_path: Path) -> None:
    assert path_lines(analyze(tmp_path, "verify")) == []


def path_lines(said: str) -> list[str]:
    """Return the lines about the unit; others are about this machine's own units."""
    return [line for line in said.splitlines() if "csd-drive" in line]


def test_the_unit_is_confined(tmp_path: Path) -> None:
    # systemd counts exposure from 0 to 100, and calls what is below 20 safe.
    analyze(tmp_path, "security", "--offline=true", "--threshold=20")


def test_the_maintainers_address_is_no_placeholder() -> None:
    name, domain = re.fullmatch(r"(.+) <[^@<>]+@([^@<>]+)>", DEB["maintainer"]).groups()
    assert DEB["copyright"].endswith(f", {name}")
    # Names that can never be anybody's: RFC 2606 and RFC 6761.
    reserved = re.compile(r"(^|\.)(example(\.(com|net|org))?|invalid|test|localhost|local)$")
    assert not reserved.search(domain), domain
    # GitHub's own form for an account that takes no mail: the one that holds the repository.
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    account = workspace["workspace"]["package"]["repository"].split("/")[-2]
    assert DEB["maintainer"] == f"{name} <{account}@users.noreply.github.com>"


@pytest.mark.parametrize("name", SCRIPTS)
def test_maintainer_scripts_are_shell(name: str) -> None:
    path = ROOT / DEB["maintainer-scripts"].removeprefix("../../") / name
    assert path.stat().st_mode & 0o111
    subprocess.run(["sh", "-n", path], check=True)
