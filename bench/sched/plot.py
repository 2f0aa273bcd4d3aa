#!/usr/bin/env python3
"""Draw docs/reference/figures/simulated-policies.svg from `bench/records/sched.jsonl`."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from compared import ROOT
from curves import Panel, draw

RECORD = ROOT / "bench/records/sched.jsonl"
FIGURE = ROOT / "docs/reference/figures/simulated-policies.svg"
CASES = ("none", "inline", "local", "bts", "adaptive")
VARIANTS = ("inline", "bts", "adaptive", "adaptive-90us", "bts-classes", "bts-threshold")


def puts(lines: Sequence[str], background_us: float) -> list[dict[str, Any]]:
    """Return the rows of steady puts to six cores, by rising numbers of threads: the last run."""
    wanted = {"bench": "sched", "shape": "steady", "cores": 6, "gets_percent": 0}
    wanted["background_us"] = background_us
    rows = (row for row in map(json.loads, lines) if wanted.items() <= row.items())
    by_threads = {row["threads"]: row["cases"] for row in rows}
    return [by_threads[threads] for threads in sorted(by_threads)]


def panel(
    title: str,
    rows: Sequence[dict[str, Any]],
    cases: Sequence[str],
    key: str = "mean_us",
    *,
    is_log: bool = False,
) -> Panel:
    """Return the panel of one figure of some cases."""
    return Panel(title, {case: [row[case][key] for row in rows] for case in cases}, is_log)


def main() -> int:
    """Draw."""
    lines = RECORD.read_text().splitlines()
    long, short = puts(lines, 100.0), puts(lines, 16.7)
    panels = [
        panel("mean, us; 100 us of background work", long, CASES),
        panel("99th percentile, us; 100 us", long, CASES, "p99_us", is_log=True),
        panel("mean, us; 16.7 us of background work", short, CASES),
        panel("mean, us; variants, 100 us", long, VARIANTS, is_log=True),
    ]
    draw(FIGURE, panels, "client threads", range(1, len(long) + 1), columns=2)
    return 0


if __name__ == "__main__":
    sys.exit(main())
