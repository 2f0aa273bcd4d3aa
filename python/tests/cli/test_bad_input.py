"""Wrong input: exit code 2 or 1, a sentence that names what is wrong, and no traceback."""

from importlib import resources
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

import csdplan as cp
from csdplan import ModelError, ProfileError
from csdplan.cli import app
from csdplan.texts import numbers

SHIPPED = resources.files("csdplan.profile") / "shipped"
BASE = ("--profile", "newport", "--kernel", "count")


def run(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(app, list(arguments))


def words(result: Result) -> str:
    """Return what was said on standard error, without the frame around it."""
    return " ".join(result.stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("bep --profile newport --kernel cuont", "has no kernel 'cuont'; it has: array-merge"),
        ("bep --profile nuport --kernel count", "no shipped profile 'nuport'; there are:"),
        ("bep --profile newport", "Missing option '--kernel'"),
        ("bep --profile ./none.toml --kernel count", "cannot be read: No such file"),
        ("bep --profile ./ --kernel count", "cannot be read: Is a directory"),
        ("bep --profile newport --kernel zähle", "has no kernel 'zähle'"),
        ("bep {base} --host-cores 0", "every number is at least 1"),
        ("bep {base} --host-cores 1.5", "is not a list of whole numbers"),
        ("bep {base} --host-cores 1-4", "is not a list of whole numbers"),
        ("bep {base} --host-cores 1000000000000000000", "at most 7 digits"),
        ("bep {base} --k-limit 0", "greater than or equal to 1"),
        ("bep {base} --k-limit -1", "greater than or equal to 1"),
        ("bep {base} --sd-tx 0.5", "sd_tx = 0.5: expected a slow-down factor of at least 1"),
        ("bep {base} --host-part -1", "host_part_s = -1"),
        ("bep {base} --host-part inf", "host_part_s = inf"),
        ("bep {base} --overlap parallel", "overlap = parallel: expected serial, pipelined"),
        ("bep {base} --plot x.pdf", "x.pdf"),
        ("sweep {base} --over price", "price"),
        ("sweep {base} --over compute --values 8:1:0.5", "do not lead from 8 to 1"),
        ("sweep {base} --over compute --values 1:8:0", "steps of 0"),
        ("sweep {base} --over compute --values 1:8:1e-9", "more than 1000000 values"),
        ("sweep {base} --over compute --values 1:8", "a range such as"),
        ("sweep {base} --over compute --values 1:inf:1", "a range such as"),
        ("simulate {base} --drives 16 --enabled 20", "at most the 16 drives"),
        ("simulate {base} --skew nan", "skew"),
        ("simulate {base} --tasks 100000000", "the fluid mode"),
        ("uncertainty {base} --spread given=-1", "spread of given"),
        ("uncertainty {base} --spread rumour=0.1", "spread = rumour"),
        ("optimize ./none.toml", "cannot be read"),
        ("optimize epic", "no shipped request 'epic'; there are: epyc"),
        ("tco --scenario ./none.toml", "No such file"),
        ("tco --prices -5", "-5"),
        ("ec --csd-s 1", "both csd_s and ssd_s"),
        ("ec --csd-s -1 --ssd-s 1", "-1"),
        ("profile check ./none.toml", "cannot be read"),
        ("plan --store 5TB --budget -4", "budget = -4"),
        ("catalogue --kind tape", "kind = tape: expected one of ssd"),
    ],
)
def test_a_fault_is_named_and_nothing_is_thrown(arguments: str, said: str) -> None:
    result = run(*arguments.format(base=" ".join(BASE)).split())
    assert result.exit_code in {1, 2}, result.output
    assert said in words(result)
    assert "Traceback" not in result.output
    assert not result.stdout


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("median = 9.0", "median = nan"), "finite"),
        (("schema = 1", "schema = 2"), "schema = 2: expected 1"),
        (("schema = 1", "schema = "), "(toml)"),
        (("cores = 48", 'cores = "48"'), "host.cores"),
        (("cores = 48", "cores = 48.0"), "host.cores"),
        (("cores = 48", "cores = -48"), "host.cores"),
        (("cores = 48", "cores = 48\nprize_usd = 3"), "host.prize_usd"),
    ],
)
def test_a_profile_with_a_fault(tmp_path: Path, change: tuple[str, str], said: str) -> None:
    text = (SHIPPED / "newport.toml").read_text(encoding="utf-8")
    assert change[0] in text
    file = tmp_path / "x.toml"
    file.write_text(text.replace(*change), encoding="utf-8")
    for command in (("bep", "--profile", str(file), "--kernel", "count"),
                    ("profile", "check", str(file))):  # fmt: skip
        result = run(*command)
        assert result.exit_code == 2
        assert said in words(result)


@pytest.mark.parametrize("data", [b"", b"\xff\xfe\x00", b"= =", b"schema = 1"])
def test_a_file_that_is_no_profile(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "x.toml"
    file.write_bytes(data)
    for command in ("bep", "sweep", "simulate"):
        more = ("--over", "compute") if command == "sweep" else ()
        result = run(command, "--profile", str(file), "--kernel", "count", *more)
        assert result.exit_code == 2
        assert "x.toml" in words(result)


def test_ranges_hold_the_numbers_that_a_person_means() -> None:
    assert numbers("2.05:2.25:0.05") == [2.05, 2.1, 2.15, 2.2, 2.25]
    assert numbers("8:1:-3.5") == [8.0, 4.5, 1.0]
    assert numbers("1:1:5") == [1.0]


def test_python_takes_one_number_of_cores_and_names_faults() -> None:
    assert cp.bep("newport", "count", 4)["devices"].tolist() == [28]
    serial = cp.simulate("newport", "count", tasks=40, enabled=[0], overlap="serial")
    whole = cp.simulate("newport", "count", tasks=40, enabled=[0], layout="whole")
    piped = cp.simulate("newport", "count", tasks=40, enabled=[0], overlap="pipelined")
    assert piped["time_s"].iloc[0] <= serial["time_s"].iloc[0] <= whole["time_s"].iloc[0]
    with pytest.raises(ValueError, match="sideways"):
        cp.simulate("newport", "count", overlap="sideways")
    with pytest.raises(ModelError):
        cp.simulate("newport", "count", skew=float("nan"))
    with pytest.raises(ProfileError):
        cp.bep("newport", "cuont")
