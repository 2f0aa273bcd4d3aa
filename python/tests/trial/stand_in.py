"""Stands in for the ``csd`` program: serves and answers as a paced drive would, without waiting.

A test copies it into a folder of its own. Files there are the test's wishes: ``broken`` drives do
not serve, answers ``differ``, runs ``hang``, a drive is ``silent`` while it is characterized;
``silent-M`` holds how many runs on M drives fail. It writes the process ids of its drives to
``drives``.
"""

import json
import os
import signal
import sys
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
WORDS = sys.argv[1:]
HOST = """
[[point]]
kernel = "{kernel}"
where = "host"
device = "drive"
units = {cores}
bytes = {size}
overlap = "serial"
load_s = {{ median = {load_s} }}
comp_s = {{ median = 1e-4 }}
prov = "given"
"""


def after(option: str) -> str:
    """Return the value of an option."""
    return WORDS[WORDS.index(option) + 1]


def answer(warnings: tuple[str, ...] = (), **result: object) -> None:
    """Print a result as the program does, and end as it does after a warning."""
    print(json.dumps({"schema": 1, "command": "", "result": result, "warnings": warnings}))
    if warnings:
        sys.exit(4)


def serve() -> None:
    """Serve until a signal comes; the URL is the file of the pace."""
    if (HERE / "broken").exists():
        Path(after("--log-file")).write_text("no media\n", encoding="utf-8")
        sys.exit(1)
    with (HERE / "drives").open("a", encoding="utf-8") as file:
        file.write(f"{os.getpid()}\n")
    Path(after("--ready-file")).write_text(after("--pace"), encoding="utf-8")
    signal.pause()


def characterize(read_Bps: int) -> None:
    """Write the profile of a host that reads at the pace and computes at once."""
    size = int(after("--size"))
    (HERE / "size").write_text(str(size), encoding="utf-8")
    text = 'schema = 1\n[meta]\nmachine = "stand-in"\n[host]\ncores = 2\n'
    text += f"ingest_bw_Bps = {after('--ingest-bw')}\n[device.drive]\next_read_Bps = {read_Bps}\n"
    for kernel in after("--kernels").split(","):
        for cores in after("--cores").split(","):
            text += HOST.format(kernel=kernel, cores=cores, size=size, load_s=size / read_Bps)
    Path(after("--output")).write_text(text, encoding="utf-8")
    answer(("drive d0 did not answer",) if (HERE / "silent").exists() else ())


def run(drives: int, pace: dict[str, Any], read_Bps: int) -> None:
    """Answer as fast as the pace says."""
    if (HERE / "hang").exists():
        (HERE / "hanging").touch()
        signal.pause()
    silent = HERE / f"silent-{drives}"
    left = int(silent.read_text(encoding="utf-8")) if silent.exists() else 0
    if left:
        silent.write_text(str(left - 1), encoding="utf-8")
        sys.exit("no answer to Identify within 5 s")
    kernel, on = after("run"), after("--on")
    size = int((HERE / "size").read_text(encoding="utf-8"))
    passes = 2 if kernel == "page-rank" else 1
    # A core of the host has two parts in hand, and a part lies on one drive.
    by_parts = kernel in {"array-merge", "page-rank"} and on == "host"
    rate = read_Bps * (min(drives, 2 * int(after("--cores"))) if by_parts else drives)
    if on == "drives":
        (point,) = (point for point in pace["point"] if point["kernel"] == kernel)
        rate = drives * point["bytes"] / (point["load_s"]["median"] + point["comp_s"]["median"])
    count = 8 if (HERE / "differ").exists() and on == "host" else 7
    found = [{"on": on, "cores": 1, "count": count, "wall_s": passes * size / rate}]
    answer(("not settled",) if (HERE / "unsettled").exists() else (), runs=found)


def main() -> None:
    """Do what the words say."""
    if "--version" in WORDS:
        print("csd stand-in")
        return
    if "serve" in WORDS:
        serve()
        return
    drives = tomllib.loads(Path(after("--array")).read_text(encoding="utf-8"))["drives"]
    pace = tomllib.loads(Path(drives[0]["url"]).read_text(encoding="utf-8"))
    read_Bps = pace["device"]["paced"]["ext_read_Bps"]
    if "characterize" in WORDS:
        characterize(read_Bps)
    elif "run" in WORDS:
        run(len(drives), pace, read_Bps)
    else:
        answer()


main()
