"""Draw the pictures of docs/reference/verifier.md from `bench/records/rtl.jsonl`."""

import json
import sys
from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
from record import RECORD
from tools import ROOT

FIGURES = ROOT / "docs" / "reference" / "figures"
SOFTWARE = ROOT / "bench" / "records" / "verify.jsonl"
# Table 1 of the paper, percent, by units 12, 10, 6, 5, 4, 3, 2.
TABLE_1 = {
    "lut": (33, 32, 30, 29, 32, 33, 31),
    "lutram": (8, 7, 7, 7, 7, 6, 6),
    "ff": (25, 24, 22, 21, 22, 21, 21),
    "bram": (85, 81, 73, 71, 69, 67, 65),
}
TOGETHER = 300  # pages of all units
LANE_BITS = 8
NAMES = {"lut": "LUT", "lutram": "LUTRAM", "ff": "FF", "bram": "BRAM"}
Row = dict[str, Any]


def of(rows: list[Row], kind: str) -> list[Row]:
    """Return the records of a kind."""
    return [row for row in rows if row["record"] == kind]


def combination(row: Row) -> str:
    """Return a combination as the paper writes it."""
    return f"{row['pages']}x{row['units']}"


def save(figure: Any, name: str) -> None:
    """Write a picture without a date, so that it only changes with its contents."""
    figure.tight_layout()
    figure.savefig(FIGURES / f"{name}.svg", metadata={"Date": None})
    plt.close(figure)


def speed_up(rows: list[Row]) -> None:
    """Draw time on 1 GiB by combination, with one memory and with one for each unit."""
    figure, both = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True)
    for lane in (1, 2, 4, 8):
        found = [row for row in of(rows, "cycles") if row["lane_bits"] == lane]
        names = [combination(row) for row in found]
        label = f"{lane} bit{'s' if lane > 1 else ''} a step"
        for axes, key in zip(both, ("cycles", "own_memories"), strict=True):
            axes.plot(names, [row["sequential"] / row[key] for row in found], "o-", label=label)
    both[0].set_ylabel("speed-up over one unit, one page")
    both[0].set_title("one memory, 64 bytes a cycle (circuit)")
    both[1].set_title("a memory for each unit (arithmetic)")
    for axes in both:
        axes.set_xlabel("AP x MCU (PAGES x UNITS)")
        axes.tick_params(axis="x", labelrotation=45)
        axes.set_ylim(bottom=0)
    both[1].legend(frameon=False, loc="lower left")
    save(figure, "verifier-speed-up")


def size(rows: list[Row]) -> None:
    """Draw cycles of 4 KiB and 60 KiB by start-up cost."""
    figure, both = plt.subplots(1, 2, figsize=(9, 3.2))
    kinds = ("sequential", "copy_first", "pages_15", "units_15")
    labels = ("sequential\n1x1", "copy first\n1x1", "AP\n15x1", "MCU\n1x15")
    for axes, length in zip(both, (4096, 61440), strict=True):
        found = [row for row in of(rows, "size") if row["bytes"] == length]
        for index, row in enumerate(found):
            places = [place + 0.27 * (index - 1) for place in range(len(kinds))]
            label = f"start-up {row['start_up']:,} cycles a unit"
            axes.bar(places, [row[kind] for kind in kinds], 0.25, label=label)
        axes.set_xticks(range(len(kinds)), labels)
        axes.set_yscale("log")
        axes.set_title(f"{length // 1024} KiB")
    both[0].set_ylabel("cycles")
    both[0].legend(frameon=False, fontsize=8)
    save(figure, "verifier-size")


def resources(rows: list[Row]) -> None:
    """Draw shares of a KU15P by combination next to Table 1."""
    figure, axes = plt.subplots(1, 4, figsize=(11, 3.2), sharey=True)
    found = [row for row in of(rows, "synthesis") if row["pages"] * row["units"] == TOGETHER]
    found = [row for row in found if row["lane_bits"] == LANE_BITS]
    order = ["25x12", "30x10", "50x6", "60x5", "75x4", "100x3", "150x2"]
    shares = {combination(row): row["percent"] for row in found}
    for place, (key, name) in zip(axes, NAMES.items(), strict=True):
        place.plot(order, TABLE_1[key], "s--", color="0.5", label="Table 1")
        place.plot(list(shares), [share[key] for share in shares.values()], "o-", label="verifier")
        place.set_title(name)
        place.tick_params(axis="x", labelrotation=60)
        place.set_ylim(0, 100)
    axes[0].set_ylabel("percent of a KU15P")
    axes[0].legend(frameon=False)
    save(figure, "verifier-resources")


def matrix(rows: list[Row]) -> None:
    """Draw the rates of the software by file size: units and unrolling, sequential, adaptive."""
    sizes = sorted({row["bytes"] for row in rows})
    figure, each = plt.subplots(1, len(sizes), figsize=(11, 3.4))
    for axes, size_ in zip(each, sizes, strict=True):
        found = [row for row in rows if row["bytes"] == size_]
        most = max(row["pages_per_unit"] or 0 for row in found)
        shown = [row for row in found if row["pages_per_unit"] in (None, most)]
        names = [
            row["way"] if row["units"] is None else f"{row['units']} x {row['unroll']}"
            for row in shown
        ]
        rates = [[rate / 1e9 for rate in row["rate_quartiles"]] for row in shown]
        middle = [rate[1] for rate in rates]
        spread_ = [[r[1] - r[0] for r in rates], [r[2] - r[1] for r in rates]]
        axes.bar(names, middle, 0.7, yerr=spread_, ecolor="0.4", capsize=2)
        is_large = size_ >= 1 << 30
        axes.set_title(f"{size_ >> 30} GiB" if is_large else f"{size_ >> 10} KiB")
        axes.tick_params(axis="x", labelrotation=75)
    each[0].set_ylabel("GB/s, median and quartiles")
    each[1].set_xlabel("units x unrolling")
    save(figure, "verifier-matrix")


def main() -> int:
    """Draw all pictures."""
    mpl.use("svg")
    plt.rcParams.update({"svg.hashsalt": "verifier", "font.size": 9, "axes.spines.top": False,
                         "axes.spines.right": False})  # fmt: skip
    rows = [json.loads(line) for line in RECORD.read_text().splitlines()]
    speed_up(rows)
    size(rows)
    resources(rows)
    if SOFTWARE.exists():
        software = [json.loads(line) for line in SOFTWARE.read_text().splitlines()]
        matrix([row for row in software if row["engine"] == "cpu"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
