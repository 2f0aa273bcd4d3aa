"""Every option of every command, with values at and beyond its bounds: an answer, or one line."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from typer.testing import CliRunner

from csdplan import commands
from csdplan.cli import app
from csdplan.cli.derive import flags
from csdplan.cli.root import names
from csdplan.options import Declared, options_of
from csdplan.page import server

#: What a command needs, little of it: its answers are not looked at.
NEEDED = {
    "bep": "--profile newport --kernel count",
    "sweep": "--profile newport --kernel count --over k-limit --values 4,8",
    "surface": "--profile newport-b --kernel vector-add --bandwidth 1,2 --compute 1,2",
    "overload": "--profile newport --kernel count",
    "mix": "--profile newport --kernel count=1",
    "plan": "--store 1TB",
    "upgrade": "--have epyc-7763=1 --store 1TB",
    "day": "--window 8-10,write=1GB/s --store 1TB",
    "steps": "--store 1TB --growth 10%",
    "durability": "12 --part samsung-pm9a3-7.68tb --protect rs:8+2",
    "energy": "--store 1TB --workload count=1GB/s",
    "cloud": "--store 1TB",
    "optimize": "epyc",
    "simulate": "--profile newport --kernel count --tasks 100 --drives 2",
    "uncertainty": "--profile newport --kernel count --samples 10",
    "validate": "--csd ./no-such-program",
    "report": "--out report.html",
    "import": "x --kernel k:1GB:0.1 --host-cores 4 --read-bps 7GB/s --out x.toml",
}
VALUES = ("0", "-1", "nan", "inf", "1e400", "9" * 40, "2000%", "5parsecs", "")
#: A message says with one of these what is allowed, and with one of those what is the matter.
ALLOWED = (
    "expected ", "Input should be ", "is at least ", "at most ", "is not a list ", "is not NAME",
    "is not one of ", "there are: ", "it has: ", "a figure's name ends in ",
    "a report's name ends in ", "as well",
)  # fmt: skip
ABSENT = ("cannot be read", "no such program", "Is a directory")


class Reached(Exception):
    """The input was found to be right, and an answer is sought."""


def reached(*_: object, **__: object) -> None:
    raise Reached


@pytest.fixture(autouse=True)
def _nothing_is_sought(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for solver in ("milp", "linprog"):
        monkeypatch.setattr(f"scipy.optimize.{solver}", reached)
    monkeypatch.setattr(server, "serve", reached)
    monkeypatch.setattr("csdplan_reproduce.report._finding", reached)


def options(name: str) -> list[Declared]:
    """Return the options of a command that take a value."""
    found = options_of(getattr(commands, name.replace("import", "import_profile")))
    return [one for one in found if not one.option.python_only and "bool" not in str(one.hint)]


def spellings(one: Declared) -> Sequence[str]:
    """Return how a message may name an option: a unit at the end of its name may be left out."""
    # Values of a sweep are of the quantity that it is over.
    plain = "k_limit" if one.name == "values" else one.name.lower()
    return plain, plain.replace("_", "-"), plain.rpartition("_")[0] or plain, flags(one)[-1]


def fault(name: str, one: Declared, value: str) -> str | None:
    """Return what is wrong with how a command takes a value of an option."""
    needed = NEEDED.get(name, "").split()
    given = ["--", value] if one.option.argument else [f"{flags(one)[0]}={value}"]
    rest = needed[1:] if one.option.argument else needed
    result = CliRunner(env={"COLUMNS": "200", "NO_COLOR": "1"}).invoke(app, [name, *rest, *given])
    said = result.stderr.strip()
    is_absent = any(text in said for text in ABSENT)
    if isinstance(result.exception, Reached) or result.exit_code in {0, 4}:
        return None
    if not isinstance(result.exception, SystemExit):
        return f"raises {result.exception!r}"
    if result.exit_code == 1:
        # An answer that nothing will do, or a file or program that cannot be used.
        return None if result.stdout or is_absent else f"exits with 1: {said}"
    is_named = any(text in said for text in (*spellings(one), repr(value), "name ends in"))
    wrong = {
        "more than one line": bool(result.stdout) or "\n" in said,
        "not what is allowed": not (is_absent or any(text in said for text in ALLOWED)),
        "not the option": not (is_absent or is_named),
    }
    return next((f"{what}: {said}" for what, is_so in wrong.items() if is_so), None)


@pytest.mark.parametrize("name", names())
def test_an_option_takes_a_value_or_says_in_one_line_what_it_takes(name: str) -> None:
    found = {
        f"{flags(one)[0]}={value}": fault(name, one, value)
        for one in options(name)
        for value in VALUES
    }
    assert {case: why for case, why in found.items() if why} == {}


def test_no_command_is_left_out() -> None:
    assert sum(len(options(name)) for name in names()) > 300
    assert set(NEEDED) <= set(names())


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("plan --store 1TB --growth 2000%", "growth = 2000%: expected at most 1000%"),
        ("plan --store 1TB --growth 20", "growth = 20: expected at most 10"),
        ("plan --store 1TB --years 101years", "years = 101years: expected at most 100years"),
        ("plan --store 1e30PB", "store = 1e30PB: expected at most 1e+09PB"),
        ("plan --store 1TB --compression 50%", "compression = 50%: expected at least 100%"),
        ("bep --profile newport --kernel count --host-cores 0", "Invalid value for '--host-cores'"),
        ("plan --hosts-max 0", "Invalid value for '--hosts-max': "),
        ("plan --hosts-maxx 1", "No such option: --hosts-maxx"),
        ("plann", "No such command 'plann'"),
        ("bep", "Missing option '--profile'"),
        ("profile check", "Missing argument 'file'"),
        ("--nothing", "No such option: --nothing"),
    ],
)
def test_wrong_use_is_one_line(arguments: str, said: str) -> None:
    result = CliRunner(env={"COLUMNS": "40"}).invoke(app, arguments.split())
    assert result.exit_code == 2
    assert result.stderr.startswith("csdplan: ")
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1


def test_without_arguments_the_help_is_printed() -> None:
    for arguments in ([], ["profile"]):
        result = CliRunner().invoke(app, arguments)
        assert "Commands" in result.output
