"""Models of the verifier: builds one per set of parameters, and runs the bench on it.

The parts of Verilator's library that all models share are compiled once.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RTL = ROOT / "rtl"
BUILD = ROOT / "build" / "rtl"
NICE = ["nice", "-n", "10"]


@dataclass(frozen=True)
class Parameters:
    """Parameters of one verifier; `PAGES x UNITS` is the paper's AP x MCU."""

    pages: int
    units: int
    lane_bits: int = 8
    bus_bits: int = 512

    def __str__(self) -> str:
        return f"{self.pages}x{self.units} lane {self.lane_bits} bus {self.bus_bits}"

    @property
    def name(self) -> str:
        """Name of the model's folder."""
        return f"p{self.pages}u{self.units}l{self.lane_bits}b{self.bus_bits}"

    def flags(self, form: str) -> list[str]:
        """Return the parameters as options, such as `-GPAGES=4` for the form `-G`."""
        return [
            f"{form}PAGES={self.pages}",
            f"{form}UNITS={self.units}",
            f"{form}LANE_BITS={self.lane_bits}",
            f"{form}BUS_BITS={self.bus_bits}",
        ]


class Failed(Exception):
    """A tool or a bench that said no, with its last words."""


@dataclass
class Tally:
    """Numbers of attempts that passed and that failed."""

    passed: int = 0
    failed: int = 0

    def attempt(self, name: str, work: Callable[[], object]) -> None:
        """Do `work` and print what it returns, or that it FAILED and why."""
        try:
            print(work(), flush=True)
            self.passed += 1
        except Failed as why:
            print(f"FAILED: {name}: {why}", flush=True)
            self.failed += 1

    def end(self) -> int:
        """Print the numbers; return the exit code, 1 if an attempt failed."""
        print(f"{self.passed} passed, {self.failed} failed")
        return 1 if self.failed else 0


def sources(folder: Path = ROOT) -> list[Path]:
    """Return the files of `rtl/files.f`, those of a copy of the tree if `folder` is one."""
    return [folder / line for line in (RTL / "files.f").read_text().split()]


def run(command: Sequence[str | Path], cwd: Path | None = None) -> str:
    """Run a tool at low priority and return what it prints."""
    words = [*NICE, *map(str, command)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=cwd)
    if done.returncode:
        raise Failed(f"{words[3]}: {(done.stderr + done.stdout).strip()[-2000:]}")
    return done.stdout


def has_verilator() -> bool:
    """Return True if models can be built here; say why if not."""
    for tool in ("verilator", "g++"):
        if shutil.which(tool) is None:
            print(f"rtl: no {tool}: nothing simulated (skipped; apt-get install verilator g++)")
            return False
    return True


def _library() -> tuple[list[str], Path]:
    """Compile Verilator's run-time library once; return its flags and objects."""
    output = run(["verilator", "--getenv", "VERILATOR_ROOT"]).strip()
    include = Path(output) / "include"
    flags = [f"-I{include}", f"-I{include}/vltstd", "-std=c++17", "-O2", "-DVM_TRACE=0"]
    version = run(["verilator", "--version"]).split()[1]
    folder = BUILD / f"verilated-{version}"
    folder.mkdir(parents=True, exist_ok=True)
    archive = folder / "verilated.a"
    if not archive.exists():
        objects = []
        for part in ("verilated", "verilated_threads"):
            objects.append(folder / f"{part}-{os.getpid()}.o")
            run(["g++", *flags, "-c", include / f"{part}.cpp", "-o", objects[-1]])
        unfinished = folder / f"{os.getpid()}.a"
        run(["ar", "rcs", unfinished, *objects])
        unfinished.rename(archive)
    return flags, archive


def build(parameters: Parameters, tree: Path = ROOT, into: Path = BUILD) -> Path:
    """Build the bench of one verifier, if it is not there yet; return the program."""
    folder = into / "models" / parameters.name
    program = folder / "testbench"
    inputs = [*sources(tree), *(RTL / "sim").iterdir()]
    if program.exists() and all(f.stat().st_mtime < program.stat().st_mtime for f in inputs):
        return program
    flags, library = _library()
    # In a folder of its own until it is whole, so that two runs do not disturb each other.
    work = folder.with_name(f"{folder.name}-{os.getpid()}")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    # Registers without a reset start at random, so that a missing reset shows.
    model = ["verilator", "--cc", "-O3", "-Wall", "--x-assign", "unique", "--x-initial", "unique"]
    model += ["--top-module", "verifier", "--prefix", "Vverifier", "-Mdir", str(work)]
    run([*model, *parameters.flags("-G"), *sources(tree)])
    # One unit of compilation takes a fraction of the time of many.
    parts = sorted(work.glob("Vverifier*.cpp"))
    joined = "".join(f'#include "{part.name}"\n' for part in parts)
    (work / "all.cpp").write_text(joined + f'#include "{RTL}/sim/testbench.cpp"\n')
    defines = parameters.flags("-D")
    run(["g++", *flags, *defines, f"-I{work}", f"-I{RTL}/sim", work / "all.cpp", library,
         "-pthread", "-o", work / "testbench"])  # fmt: skip
    shutil.rmtree(folder, ignore_errors=True)
    work.rename(folder)
    return program


def bench(program: Path, *words: object, seconds: int = 600) -> dict[str, object]:
    """Run the bench; return what it reports, or raise with the reason that it gives."""
    command = [*NICE, str(program), *map(str, words)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        raise Failed(f"{' '.join(map(str, words))}: not done in {seconds} s") from error
    try:
        found = json.loads(done.stdout.strip().splitlines()[-1])
    except (ValueError, IndexError):
        found = {"ok": False, "why": done.stderr[-500:] or f"exit code {done.returncode}"}
    if done.returncode or not found["ok"]:
        raise Failed(f"{' '.join(map(str, words))}: {found.get('why')}")
    return found
