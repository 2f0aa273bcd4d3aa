"""No option takes what is no number, and no file that is named is read without end."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from csdplan import commands
from csdplan.cli import app
from csdplan.options import options_of

#: Commands with options, and what each needs before any of them is looked at.
NEEDED = {
    "bep": "--profile newport --kernel count",
    "sweep": "--profile newport --kernel count --over compute",
    "surface": "--profile newport-b --kernel vector-add",
    "ec": "",
    "tco": "",
    "overload": "--profile newport --kernel count",
    "mix": "--profile newport --kernel count=1",
    "plan": "--store 1TB",
    "optimize": "epyc",
    "simulate": "--profile newport --kernel count",
    "uncertainty": "--profile newport --kernel count",
    "import": "x -o - --kernel k:1GB:0.1 --host-cores 4",
}
FUNCTIONS = {name: getattr(commands, name.replace("import", "import_profile")) for name in NEEDED}
#: Forms of values that are numbers with a unit.
QUANTITIES = {"RATE", "SIZE", "SHARE", "USD", "POWER", "RATIO", "YEARS", "HEIGHT"}
FLAGS = [
    (name, (one.option.flag.split() or [f"--{one.name.lower().replace('_', '-')}"])[0])
    for name, function in FUNCTIONS.items()
    for one in options_of(function)
    if not (one.option.python_only or one.option.argument)
    and ("float" in str(one.hint) or one.option.metavar in QUANTITIES)
]


def run(*arguments: str) -> Result:
    return CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(app, list(arguments))


def test_the_options_are_found() -> None:
    assert len(FLAGS) > 50
    assert {name for name, _ in FLAGS} == set(NEEDED)


@pytest.mark.parametrize(("name", "flag"), FLAGS)
def test_an_option_refuses_what_is_no_number(name: str, flag: str) -> None:
    for value in ("nan", "-inf", "-1e400", "true", ""):
        result = run(name, *NEEDED[name].split(), f"{flag}={value}")
        assert result.exit_code == 2, (flag, value, result.output)
        assert isinstance(result.exception, SystemExit), (flag, value)
        assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("bep --profile newport --kernel count --k-limit inf", "k_limit = inf: expected a finite"),
        ("ec --drive-power 1e-308", "drive_power = 1e-308"),
        ("tco --prices 1e308", "at most 1e+100"),
        ("surface --profile newport-b --kernel count --bandwidth 1e-308", "bandwidth = 1e-308"),
        ("simulate --profile newport --kernel count --task-spread 1e308", "task-spread"),
        ("simulate --profile newport --kernel count --result-ratio 1e308", "result-ratio"),
        ("simulate --profile newport --kernel count --result-ratio 1e-99", "result_ratio = 1e-99"),
        ("simulate --profile newport --kernel count --dispatch 1e9", "dispatch"),
        ("simulate --profile newport --kernel count --sd-comp 1e12", "sd-comp"),
        ("import ../x -o - --kernel k:1GB:0.1 --host-cores 4 --read-bps 7GB/s", "name = ../x"),
        ("import x -o - --kernel k:1GB:0.1 --host-cores 4 --read-bps -5", "read_Bps = -5"),
        ("import x -o - --kernel k:1GB:0.1 --host-cores 4 --read-bps 7GB/s --price-usd 0",
         "price_usd = 0: expected more than 0"),
    ],
)  # fmt: skip
def test_numbers_out_of_all_proportion_are_named(arguments: str, said: str) -> None:
    result = run(*arguments.split())
    assert result.exit_code == 2, result.output
    assert said in " ".join(result.stderr.replace("│", " ").split())


SYSTEM = """
profile = "newport"
kernel = "count"
host_cores = 1
[service]
years = 5.0
[[system]]
name = "a"
cpu = "b"
computes = "host"
host_usd = 1.0
drive_usd = 1.0
drives = 2
drive_bytes = 1.0
"""


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("drives = 2", "drives = []", "drives = []: expected a whole number"),
        ("drives = 2", "drives = true", "drives = True: expected a whole number"),
        ("drives = 2", "drives = 2.5", "drives = 2.5: expected a whole number"),
        ("host_usd = 1.0", 'host_usd = "1"', "host_usd = 1: expected a number"),
        ("host_usd = 1.0", "host_usd = nan", "host_usd = nan"),
        ('name = "a"', "name = 5", "name = 5: expected text"),
        ('profile = "newport"', "profile = 5", "profile = 5: expected text"),
        ("host_cores = 1", 'host_cores = "x"', "host_cores = x: expected a whole number"),
        ("host_cores = 1", "host_cores = 0", "host_cores = 0: expected at least 1"),
        ("years = 5.0", "years = inf", "years = inf"),
    ],
)
def test_values_of_a_scenario_have_types(
    before: str, after: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "s.toml"
    file.write_text(SYSTEM.replace(before, after, 1), "utf-8")
    result = run("tco", "--scenario", str(file))
    assert result.exit_code == 2, result.output
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


#: Every way to name a file.
FILES = (
    "bep --kernel count --profile {}",
    "bep --profile newport --kernel count --ssd-profile {}",
    "ec --points {}",
    "overload --profile newport --kernel count --points {}",
    "tco --scenario {}",
    "optimize {}",
    "plan --store 1TB --ask {}",
    "plan --store 1TB --profile {}",
    "plan --store 1TB --prices {}",
    "plan --store 1TB --catalogue {}",
    "plan --store 1TB --drive {}",
    "plan --workload @{}",
    "catalogue --catalogue {}",
    "import x -o - --kernel k:1GB:0.1 --host-cores 4 --fio {}",
    "import x -o - --kernel k:1GB:0.1 --host-cores 4 --fio-inside {}",
    "profile check {}",
)


@pytest.mark.parametrize("command", FILES)
def test_a_file_that_is_none_is_named_in_few_words(command: str, tmp_path: Path) -> None:
    deep, text = tmp_path / "deep.toml", tmp_path / "binary.toml"
    deep.write_text("a = " + "[" * 50_000, "utf-8")
    text.write_bytes(b"\xff\xfe\x00\xd8" * 9)
    for path in ("/dev/zero", str(tmp_path), str(tmp_path / "none.toml"), str(deep), str(text)):
        result = run(*command.format(path).split())
        assert result.exit_code == 2, (path, result.output)
        assert isinstance(result.exception, SystemExit), path
        assert path.rpartition("/")[2] in result.stderr
        assert len(result.stderr.splitlines()) <= 2
        assert len(result.stderr) < 500
