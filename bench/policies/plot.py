#!/usr/bin/env python3
"""Draw docs/reference/figures/policies.svg from the last run in `bench/records/policies.jsonl`."""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from compared import ROOT
from curves import Panel, draw

RECORD = ROOT / "bench/records/policies.jsonl"
FIGURE = ROOT / "docs/reference/figures/policies.svg"
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
    panels = [
        Panel(title, {case: [row[key] for row in rows] for case, rows in cases.items()})
        for key, title in PANELS.items()
    ]
    across = [row["threads"] for row in cases["none"]]
    draw(FIGURE, panels, "puts in flight", across)
    return 0


if __name__ == "__main__":
    sys.exit(main())
