#!/usr/bin/env python3
"""Draw docs/reference/figures/policies.svg from the last run in `bench/records/policies.jsonl`."""

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from compared import ROOT

RECORD = ROOT / "bench/records/policies.jsonl"
FIGURE = ROOT / "docs/reference/figures/policies.svg"
NAMES = {
    "none": "no counting (case 1)",
    "inline": "inline (case 2)",
    "local": "local",
    "bts": "bts (case 3)",
    "adaptive": "adaptive",
}
PANELS = {
    "puts_per_s": "puts a second",
    "p99_us": "99th percentile of a put, us",
    "counted_ms": "counted after the last put, ms",
}


def last_run(lines: list[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of each case in the last run, by rising numbers of puts in flight."""
    cases: dict[str, list[dict[str, Any]]] = {}
    for row in map(json.loads, lines):
        case = cases.setdefault(row["policy"], [])
        if case and row["threads"] <= case[-1]["threads"]:
            case.clear()
        case.append(row)
    return cases


def main() -> int:
    """Draw."""
    cases = last_run(RECORD.read_text().splitlines())
    figure, axes = plt.subplots(1, len(PANELS), figsize=(12, 3.6))
    for panel, (key, label) in zip(axes, PANELS.items(), strict=True):
        for case, name in NAMES.items():
            rows = cases[case]
            across = [row["threads"] for row in rows]
            panel.plot(across, [row[key] for row in rows], "o-", markersize=3, label=name)
        panel.set_xscale("log", base=2)
        panel.set_xticks(across, [str(number) for number in across])
        panel.set_xlabel("puts in flight")
        panel.set_title(label)
        panel.set_ylim(bottom=0)
    axes[0].legend(frameon=False, fontsize=8)
    figure.tight_layout()
    # Without a date, so that it only changes with its contents.
    figure.savefig(FIGURE, metadata={"Date": None})
    return 0


if __name__ == "__main__":
    sys.exit(main())
