"""Two sides compared in pairs: turns, medians and quartiles, lines of results, and records.

The scripts ``pairs.py`` in the folders next to this file measure; they leave to this module what
all of them do with their figures.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MIB = 1 << 20
Pairs = Sequence[tuple[float, float]]
Result = dict[str, object]


def turns(
    rounds: int, first: Callable[[], float], second: Callable[[], float], *, unit: str = "MiB/s"
) -> list[tuple[float, float]]:
    """Measure both sides in turns, after a round that does not count.

    Every second round begins with the other side. Figures are in ``unit``, which is only said.
    """
    found = []
    for number in range(-1, rounds):
        if number % 2:
            of_second = second()
            of_first = first()
        else:
            of_first = first()
            of_second = second()
        if number >= 0:
            found.append((of_first, of_second))
            say(f"round {number + 1}: {of_first:.4g}, {of_second:.4g} {unit}")
    return found


def run(folder: Path | None, *words: object, codes: tuple[int, ...] = (0,)) -> str:
    """Run a program in a folder that ends with one of these codes, and return what it prints."""
    command = [str(word) for word in words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in codes:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


def say(words: str) -> None:
    """Print progress, apart from results."""
    print(words, file=sys.stderr, flush=True)


def spread(ratios: Sequence[float], digits: int = 3) -> Result:
    """Return median and quartiles of ratios."""
    quartiles = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else [ratios[0]] * 3
    return {
        "ratio": round(statistics.median(ratios), digits),
        "quartiles": [round(quartiles[0], digits), round(quartiles[2], digits)],
    }


def summary(
    pairs: Pairs, names: tuple[str, str] = ("floor", "ours"), digits: tuple[int, int] = (1, 3)
) -> Result:
    """Return the medians of both sides by these names, and the ratios, second over first.

    Medians are rounded to the first number of digits, ratios to the second one.
    """
    medians = (round(statistics.median(side), digits[0]) for side in zip(*pairs, strict=True))
    ratios = spread([second / first for first, second in pairs], digits[1])
    return dict(zip(names, medians, strict=True)) | ratios


def show(results: Mapping[str, object], aims: Mapping[str, object] | None = None) -> None:
    """Print a line for each result, with its aim if there is one that the result does not say."""
    for name, result in results.items():
        aim = f"; aim {aims[name]}" if aims and name in aims else ""
        print(f"{name}: {json.dumps(result)}{aim}")


def record(bench: str, options: argparse.Namespace, names: Iterable[str], results: object) -> None:
    """Append a line to the record, if the options name one.

    It has the options of these names, and how busy the machine is.
    """
    if not options.record:
        return
    about = {name: getattr(options, name) for name in names}
    about |= {"load": os.getloadavg()[0], "cpus": os.cpu_count() or 0}
    with options.record.open("a") as file:
        file.write(json.dumps({"bench": bench, **about, "results": results}) + "\n")


def processor() -> str:
    """Return the name of this machine's processors."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def cpu_s(pid: int) -> float:
    """Return the CPU time of a process and all its threads, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
