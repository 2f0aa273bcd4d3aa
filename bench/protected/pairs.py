#!/usr/bin/env python3
"""Protected objects compared in pairs with plain ones: put, and get while k drives are lost.

The sides take turns within a round, and every second round begins with the other side. A figure is
the median of the rounds' ratios, plain seconds over protected seconds, with quartiles. Drives are
lost by an array file in which k of them have an address where nothing listens; so both sides of a
get read the same object of the same drives.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from compared import MIB, ROOT, Pairs, Result, record, show, summary, turns

# Codes, as data and parity pieces, with the number of drives.
CODES = ((4, 2), (2, 2), (8, 4))
PUT_AIM, GET_AIM = 0.85, 0.8
NAMES = ("plain_MiBps", "protected_MiBps")


def main() -> int:
    """Measure, print a table, and append the record."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--csd", type=Path, default=ROOT / "target/release/csd")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--mib", type=int, default=256, help="size of the object")
    parser.add_argument("--code", action="append", help="only this one, as in 4+2")
    parser.add_argument("--media", default="memory", choices=("memory", "file"))
    parser.add_argument("--dir", help="where the array is, for media in files")
    parser.add_argument("--record", type=Path)
    options = parser.parse_args()
    codes = [code for code in CODES if not options.code or "{}+{}".format(*code) in options.code]
    rows = [row for data, parity in codes for row in measure(options, data, parity)]
    show({str(row["what"]): row for row in rows})
    record("protected", options, ("rounds", "mib", "media"), rows)
    return 0


def measure(options: argparse.Namespace, data: int, parity: int) -> list[Result]:
    """Compare puts and gets of one code."""
    code = f"rs:{data}+{parity}"
    with tempfile.TemporaryDirectory(dir=options.dir) as folder:
        source = Path(folder) / "source"
        with source.open("wb") as file:
            for _ in range(options.mib):
                file.write(os.urandom(MIB))
        array = Path(folder) / "array.toml"
        # A drive holds a piece of both objects, and the log's reserve.
        size = max(256, 6 * options.mib // data)
        drives = ["--drives", str(data + parity), "--size", f"{size}M", "--media", options.media]

        def csd(*words: str, to: Path = array, codes: tuple[int, ...] = (0,)) -> float:
            begun = time.perf_counter()
            command = [str(options.csd), "--array", str(to), *words]
            # An object that is read to standard output goes nowhere.
            pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
            done = subprocess.run(command, check=False, text=True, **pipes)
            if done.returncode not in codes:
                raise RuntimeError(f"{words}: {done.returncode}: {done.stderr}")
            return time.perf_counter() - begun

        csd("array", "up", *drives)
        try:
            lost = Path(folder) / "lost.toml"
            lost.write_text(without(array.read_text(), parity))

            def put(*more: str) -> float:
                took = csd("put", str(source), "x", *more)
                csd("rm", "x")
                return took

            puts = turns(options.rounds, put, lambda: put("--protect", code), unit="s")
            csd("put", str(source), "x", "--protect", code)

            def get(to: Path, codes: tuple[int, ...]) -> float:
                return csd("get", "x", "-", to=to, codes=codes)

            gets = turns(
                options.rounds, lambda: get(array, (0,)), lambda: get(lost, (4,)), unit="s"
            )
        finally:
            csd("array", "down", "--delete", "--yes", codes=(0, 2))
    put_aim = PUT_AIM * data / (data + parity)
    return [
        row(f"put --protect {code}", puts, put_aim, options.mib),
        row(f"get of {code}, {parity} drives lost", gets, GET_AIM, options.mib),
    ]


def without(text: str, count: int) -> str:
    """Return the array file with the first drives at an address where nothing listens."""
    return re.sub(r"nvme\+tcp://127\.0\.0\.1:\d+/", "nvme+tcp://127.0.0.1:1/", text, count=count)


def row(what: str, found: Pairs, aim: float, mib: int) -> Result:
    """Summarize the seconds of the rounds of a comparison, as rates."""
    rates = [(mib / plain, mib / other) for plain, other in found]
    return {"what": what, "aim": round(aim, 3)} | summary(rates, NAMES)


if __name__ == "__main__":
    sys.exit(main())
