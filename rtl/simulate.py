"""Simulate the verifier against software, over a matrix of parameters: `make rtl-short`, `rtl`.

Every model runs streams of random and adversarial pages under random stalls on both sides, then
streams that break off and resets. Wrong parameters must not elaborate. With Cargo, the checksums
are also compared with those of the `verify` kernel that drives run.
"""

import argparse
import os
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tools import BUILD, ROOT, Failed, Parameters, Tally, bench, build, has_verilator, run, sources

# Every kind of shape: one page, one unit, words narrower than, as wide as and wider than the bus,
# runs of banks that wrap round, numbers of pages that nothing divides.
SHORT = [
    Parameters(1, 1, 512, 512),
    Parameters(3, 2, 64, 512),
    Parameters(5, 3, 8, 64),
]
MATRIX = [
    *SHORT,
    Parameters(1, 1, 8, 512),
    Parameters(1, 3, 128, 64),
    Parameters(2, 1, 1024, 256),
    Parameters(4, 2, 32, 32),
    Parameters(7, 1, 16, 512),
    Parameters(8, 2, 64, 512),
    Parameters(13, 5, 32, 256),
    Parameters(3, 4, 4, 4),
    Parameters(2, 2, 1, 8),
]
LONG = [
    *MATRIX,
    Parameters(1, 15, 8, 512),
    Parameters(2, 2, 4096, 512),
    Parameters(1, 2, 64, 32768),
    Parameters(6, 2, 512, 1024),
    Parameters(25, 12, 8, 512),
    Parameters(60, 5, 8, 512),
    Parameters(150, 2, 8, 512),
    Parameters(300, 1, 8, 512),
]
WRONG = {
    "PAGES": (0, -1),
    "UNITS": (0, -3),
    "LANE_BITS": (0, 3, 24, 65536),
    "BUS_BITS": (0, 48, 65536),
}


def wrong_parameters() -> int:
    """Check that wrong parameters end elaboration with a sentence; return how many were tried."""
    tried = 0
    for name, values in WRONG.items():
        for value in values:
            flags = ["--lint-only", "-Wno-fatal", "--top-module", "verifier", f"-G{name}={value}"]
            try:
                run(["verilator", *flags, *sources()])
            except Failed as said:
                if f"verifier: {name}" not in str(said):
                    raise Failed(f"{name}={value}: no sentence: {said}") from said
            else:
                raise Failed(f"{name}={value} elaborates")
            tried += 1
    return tried


def simulate(parameters: Parameters, seeds: range) -> tuple[int, int, float]:
    """Simulate one verifier; return checked results, cycles, and seconds for building."""
    begin = time.monotonic()
    program = build(parameters)
    built = time.monotonic() - begin
    results = cycles = 0
    pages = min(400, 4 * parameters.pages * parameters.units + 20)
    for seed in seeds:
        for words in (("random", seed, pages), ("bad", seed)):
            found = bench(program, *words)
            results += int(str(found["results"]))
            cycles += int(str(found["cycles"]))
    return results, cycles, built


def against_kernel(parameters: Parameters, seed: int) -> str:
    """Compare checksums with those of the `verify` kernel; return what was done, or skipped."""
    if shutil.which("cargo") is None:
        return "no cargo: not compared with the verify kernel (skipped)"
    cargo = ["cargo", "build", "--release", "--locked", "-q", "-p", "csd-kernels"]
    run([*cargo, "--example", "oracle"], cwd=ROOT)
    target = run(["cargo", "metadata", "--format-version", "1", "--no-deps"], cwd=ROOT)
    oracle = Path(target.split('"target_directory":"')[1].split('"')[0])
    pages, ours, theirs = (BUILD / name for name in ("pages.bin", "rtl.bin", "kernel.bin"))
    bench(build(parameters), "dump", seed, 500, pages, ours)
    run([oracle / "release/examples/oracle", "verify", "4096", "4", pages, theirs])
    if ours.read_bytes() != theirs.read_bytes() or ours.stat().st_size != 4 * 500:
        raise Failed("the verify kernel gives other checksums")
    return "500 checksums equal those of the verify kernel (examples/oracle)"


def main() -> int:
    """Run a form of the lane; exit with 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--form", choices=("short", "usual", "long"), default="usual")
    parser.add_argument("--seed", type=int, default=1, help="first seed")
    arguments = parser.parse_args()
    if not has_verilator():
        return 0
    form = arguments.form
    matrix = {"short": SHORT, "usual": MATRIX, "long": LONG}[form]
    count = {"short": 2, "usual": 3, "long": 20}[form]
    print(f"{'PAGES x UNITS':32} {'results':>8} {'cycles':>10} {'build s':>8}")
    seeds = range(arguments.seed, arguments.seed + count)

    def one(parameters: Parameters) -> str:
        results, cycles, built = simulate(parameters, seeds)
        return f"{parameters!s:32} {results:8} {cycles:10} {built:8.1f}"

    tally = Tally()
    # The first compiles what all share; the others then run on all cores.
    tally.attempt(str(matrix[0]), lambda: one(matrix[0]))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        rest = [(str(parameters), pool.submit(one, parameters)) for parameters in matrix[1:]]
        for name, running in rest:
            tally.attempt(name, running.result)
    tally.attempt("parameters", lambda: f"{wrong_parameters()} wrong parameters do not elaborate")
    if form != "short":
        tally.attempt("kernel", lambda: against_kernel(MATRIX[1], arguments.seed))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
