"""Commands that compute nothing load none of the packages that compute or draw."""

import subprocess
import sys

import pytest

SCRIPT = """
import sys
from csdplan.cli import app
try:
    app(sys.argv[1:])
except SystemExit as end:
    assert not end.code, end.code
heavy = {"numpy", "scipy", "pandas", "matplotlib", "simpy", "xarray", "SALib"} & set(sys.modules)
print(*sorted(heavy), file=sys.stderr)
"""
IMPORT = "import x -o - --kernel k:1GB:0.1:0.1 --host-cores 4 --read-bps 1GB/s --inside-bps 1GB/s"


@pytest.mark.parametrize(
    "arguments",
    ["--help", "--version", "catalogue", "catalogue --help", IMPORT, "profiles",
     "profile check newport"],
)  # fmt: skip
def test_what_computes_nothing_loads_nothing_that_computes(arguments: str) -> None:
    command = [sys.executable, "-c", SCRIPT, *arguments.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert not done.stderr.split()
    assert done.stdout
