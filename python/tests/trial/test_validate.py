"""``csdplan validate`` with a stand-in for the ``csd`` program: plumbing, faults, and the end."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from csdplan import commands
from csdplan.cli import app
from csdplan.errors import ModelError, ProfileIncomplete
from csdplan.result.validated import compare
from csdplan.trial import KERNELS, Sample, Setting, load_pace

MB = 1_000_000
SIZE = 1 << 20


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    """Return the stand-in, which reads the test's wishes from its folder."""
    program = tmp_path / "csd"
    # Without site packages it starts in less time.
    text = Path(__file__).with_name("stand_in.py").read_text(encoding="utf-8")
    program.write_text(f"#!{sys.executable} -IS\n{text}", encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "scratch").mkdir()
    return program


def run(stand_in: Path, *words: str) -> Result:
    scratch = str(stand_in.parent / "scratch")
    return CliRunner(env={"COLUMNS": "160", "NO_COLOR": "1"}).invoke(
        app, ["validate", "--csd", str(stand_in), "--dir", scratch, *words]
    )


def all_is_gone(stand_in: Path) -> bool:
    """Return True if every drive that was started has ended, and no scratch is left."""
    pids = (stand_in.parent / "drives").read_text().split()
    running = [pid for pid in pids if Path(f"/proc/{pid}").exists()]
    return not running and not list((stand_in.parent / "scratch").iterdir())


def test_a_plan_and_its_measurement_agree(stand_in: Path, tmp_path: Path) -> None:
    page, figure = tmp_path / "page.md", tmp_path / "figure.svg"
    files = ("--document", str(page), "--plot", str(figure))
    result = run(stand_in, "--size", "1MiB", "--repeat", "1", "--json", *files)
    assert result.exit_code == 0, result.output
    body = json.loads(result.stdout)
    assert body["command"] == "validate"
    facts = body["result"]
    assert (facts["machine"], facts["bytes"], facts["repeat"]) == ("stand-in", SIZE, 1)
    rates, points = facts["tables"]
    assert len(rates["rows"]) == len(KERNELS) * 3 * 3
    assert all(row["within"] for row in rates["rows"])
    expected = {
        "count": 3, "vector-add": 2, "array-merge": 4, "page-rank": 1, "verify": 5, "summarize": 3,
    }  # fmt: skip
    assert {row["kernel"]: row["planned_devices"] for row in points["rows"]} == expected
    assert all(row["agree"] for row in points["rows"])
    won = {row["kernel"]: row["pairs_won_by_drives"] for row in points["rows"]}
    assert won["count"] == "1: 0/1, 2: 0/1, 4: 1/1"
    assert "100%" in result.stderr
    assert "s left" in result.stderr
    text = page.read_text(encoding="utf-8")
    assert "Every measurement is within 15% of its plan." in text
    assert (tmp_path / "figures" / "planned-and-measured.svg").exists()
    assert figure.exists()
    assert all_is_gone(stand_in)


def test_a_drive_that_was_silent_is_said(stand_in: Path) -> None:
    (stand_in.parent / "silent").touch()
    result = run(stand_in, "--short", "--kernel", "count", "--json")
    assert result.exit_code == 0, result.output
    assert "csd characterize: drive d0 did not answer" in json.loads(result.stdout)["warnings"]


def test_what_every_run_warns_of_is_said_once(stand_in: Path) -> None:
    (stand_in.parent / "unsettled").touch()
    result = run(stand_in, "--short", "--kernel", "count", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["warnings"].count("csd run: not settled") == 1


def test_the_short_form_says_that_its_times_say_nothing(stand_in: Path) -> None:
    result = run(stand_in, "--short", "--kernel", "count")
    assert result.exit_code == 0, result.output
    assert "its times say nothing" in result.stderr
    assert "Host(2)" in result.stdout
    # One to characterize, then arrays of 1 and 2.
    assert len((stand_in.parent / "drives").read_text().split()) == 1 + 1 + 2


@pytest.mark.parametrize(
    ("wish", "message"),
    [("broken", "drive 0 ended (1): no media"), ("differ", "give different answers")],
)
def test_a_failure_ends_the_drives(stand_in: Path, wish: str, message: str) -> None:
    (stand_in.parent / "drives").touch()
    (stand_in.parent / wish).touch()
    result = run(stand_in, "--short")
    assert result.exit_code == 1
    assert message in result.stderr
    assert "Traceback" not in result.output
    assert all_is_gone(stand_in)


def test_a_drive_that_is_silent_once_costs_nothing(stand_in: Path) -> None:
    (stand_in.parent / "silent-2").write_text("1")
    result = run(stand_in, "--short", "--kernel", "count", "--json")
    assert result.exit_code == 0, result.output
    body = json.loads(result.stdout)["result"]
    assert body["lost"] == []
    assert {row["devices"] for row in body["tables"][0]["rows"]} == {1, 2}


def test_what_was_measured_is_kept_and_the_rest_goes_on(stand_in: Path, tmp_path: Path) -> None:
    """On two drives every run fails."""
    (stand_in.parent / "silent-2").write_text("1000")
    page = tmp_path / "page.md"
    words = ("--kernel", "count", "--size", "1MiB", "--repeat", "2", "--json")
    result = run(stand_in, *words, "--document", str(page))
    assert result.exit_code == 4, result.output
    body = json.loads(result.stdout)
    lost = body["result"]["lost"]
    assert [text.partition(":")[0] for text in lost] == [
        f"count on 2 drives, repetition {n}" for n in range(3)
    ]
    assert "no answer to Identify within 5 s" in body["warnings"][-1]
    rates, points = body["result"]["tables"]
    assert [row["devices"] for row in rates["rows"]] == [1, 1, 1, 4, 4, 4]
    assert all(row["runs"] == 2 for row in rates["rows"])
    assert {row["pairs_won_by_drives"] for row in points["rows"]} == {"1: 0/2, 4: 2/2"}
    assert all(row["agree"] for row in points["rows"])
    assert "- count on 2 drives, repetition 0" in page.read_text(encoding="utf-8")
    assert all_is_gone(stand_in)


def test_no_run_at_all_is_a_failure(stand_in: Path) -> None:
    for drives in (1, 2):
        (stand_in.parent / f"silent-{drives}").write_text("1000")
    result = run(stand_in, "--short", "--kernel", "count")
    assert result.exit_code == 1
    assert "count on 1 drives, repetition 0: csd run failed (1)" in result.stderr
    assert all_is_gone(stand_in)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_signal_ends_the_drives(stand_in: Path, number: signal.Signals) -> None:
    folder = stand_in.parent
    (folder / "hang").touch()
    command = [sys.executable, "-m", "csdplan", "validate", "--short", "--csd", str(stand_in)]
    command += ["--dir", str(folder / "scratch")]
    # Background jobs of some shells ignore SIGINT, and what they start inherits that.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    planner = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    signal.signal(signal.SIGINT, before)
    with planner:
        while not (folder / "hanging").exists():
            assert planner.poll() is None
            time.sleep(0.02)
        planner.send_signal(number)
        assert planner.wait() != 0
    if number is signal.SIGKILL:
        # Nothing can remove scratch files then; Linux ends the drives, a little later.
        for path in (folder / "scratch").rglob("*"):
            path.unlink() if path.is_file() else None
        for path in sorted((folder / "scratch").rglob("*"), reverse=True):
            path.rmdir()
        while not all_is_gone(stand_in):
            time.sleep(0.02)
    assert all_is_gone(stand_in)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--kernel", "sort"), "kernel = sort: expected one of count"),
        (("--size", "100kB"), "a whole multiple of 64KiB"),
        (("--size", "16 apples"), "a number of at least 0 with a unit"),
        (("--drives", "0"), "at least 1"),
        (("--drives", "1,64"), "whole numbers from 1 to 16"),
        (("--host-cores", "x"), "is not a list of whole numbers"),
        (("--pace", "nvme-ssd"), "give --device, a drive that computes; it has: none"),
        (("--pace", "nuport"), "no shipped profile"),
        (("--device", "other"), "has no points of a drive 'other'"),
        (("--plot", "figure.pdf"), "a figure's name ends in"),
        (("--json", "--csv"), "exclude each other"),
    ],
)
def test_wrong_use_is_named_before_anything_starts(
    stand_in: Path, words: tuple[str, ...], message: str
) -> None:
    result = run(stand_in, *words)
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())
    assert not (stand_in.parent / "drives").exists()


def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CSD", str(tmp_path / "nowhere"))
    result = CliRunner().invoke(app, ["validate", "--short"])
    assert result.exit_code == 1
    assert "nowhere: no such program: install CSDStore" in result.stderr


def test_drives_share_the_intake_of_the_host() -> None:
    pace = load_pace()
    shared = {m: pace.shared(m) for m in (1, 2, 4)}
    assert "ext_read_Bps = 40000000" in shared[1]
    assert "ext_read_Bps = 30000000" in shared[2]
    assert "ext_read_Bps = 15000000" in shared[4]
    (point,) = pace.sized(25 * MB).points("count", "drive")
    assert (point.bytes, point.load_s.median + point.comp_s.median) == (25 * MB, 1.0)
    assert pace.drive_s("count", 25 * MB) == pytest.approx(1.0)


def test_a_profile_without_the_intake_cannot_be_imitated(tmp_path: Path) -> None:
    text = Path(load_pace.__globals__["SHIPPED"]).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if "ingest_bw_Bps" not in line]
    path = tmp_path / "pace.toml"
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(ProfileIncomplete, match=r"host\.ingest_bw_Bps"):
        load_pace(path)


def test_misses_are_explained_by_their_runs() -> None:
    pace = load_pace()
    size = 10 * MB
    setting = Setting(("count", "page-rank"), (4,), (1,), size, 3)
    host = load_pace().sized(size).as_dict()
    host["device"]["paced"]["link_bw_Bps"] = 40 * MB
    for point in host["point"]:
        point |= {"where": "host", "load_s": {"median": size / (40 * MB)}}
        point["comp_s"] = {"median": 0.001}
    profile = type(pace.profile).model_validate(host)

    def explained(kernel: str, cores: int | None, *rates_MBps: float) -> str:
        plan = {("count", None): 100.0, ("count", 1): 60.0, ("page-rank", None): 200.0}
        rates = {(k, c): plan.get((k, c), 30.0) for k in setting.kernels for c in (None, 1)}
        samples = [
            Sample(k, 4, c, (rates_MBps[i] if (k, c) == (kernel, cores) else rate) * MB)
            for i in range(3)
            for (k, c), rate in rates.items()
        ]
        (miss,) = compare(setting, pace, profile, samples).misses()
        return miss.explanation()

    assert "reached 95% of the plan, so other work" in explained("count", None, 80, 80, 95)
    assert explained("count", None, 30, 60, 99).startswith("unsteady: quartiles")
    assert "a cost that the plan leaves out" in explained("count", None, 50, 50, 50)
    assert "from at most 2 of 4 drives" in explained("page-rank", 1, 20, 20, 20)
    assert "longer when they were characterized" in explained("count", 1, 90, 90, 90)


def test_python_has_the_same_checks() -> None:
    with pytest.raises(ModelError, match="repeat"):
        commands.validate(csd=sys.executable, repeat=0)
    assert os.access(sys.executable, os.X_OK)
