"""Time the page's answers to slider moves: whole requests, from values to response bytes.

    python bench/planner/page.py --out bench/planner/records

Each run moves one slider to a new value and sends all values to the running application, as the
browser does. The browser's drawing is not included. The first answer is not timed.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from csdplan.page.server import application
from csdplan.page.state import SLIDERS, State

from bench import commit, machine

PROMISE_S = 0.1
MOVES = 12
HTTP_OK = 200


def sent(client: Any, request: dict[str, Any]) -> tuple[float, float, int]:
    """Send one change; return processor and wall time [s] and the length [bytes] of its answer."""
    wall, cpu = time.perf_counter(), time.process_time()
    answer = client.post("/_dash-update-component", json=request, headers={"Host": "localhost"})
    spent = time.process_time() - cpu, time.perf_counter() - wall
    assert answer.status_code == HTTP_OK, answer.get_data(as_text=True)[:500]
    # An error answer comes sooner and must not be timed.
    assert "Break-even point: " in answer.get_data(as_text=True), "an answer, not a fault"
    return (*spent, len(answer.get_data()))


def request_of(entry: dict[str, Any], values: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the request that the browser sends when slider `name` moves."""
    inputs = [{**given, "value": values[given["id"]]} for given in entry["inputs"]]
    outputs = [
        dict(zip(("id", "property"), part.rsplit(".", 1), strict=True))
        for part in entry["output"].strip(".").split("...")
    ]
    return {
        "output": entry["output"],
        "outputs": outputs,
        "inputs": inputs,
        "changedPropIds": [f"{name}.value"],
    }


def main() -> int:
    """Move every slider, write the record, and say whether the promise holds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    out: Path = parser.parse_args().out
    client = application().server.test_client()
    listed = client.get("/_dash-dependencies", headers={"Host": "localhost"}).get_json()
    (entry,) = (one for one in listed if "curves.figure" in one["output"])
    plain = asdict(State())
    sent(client, request_of(entry, plain, "cores"))
    runs: dict[str, dict[str, list[float]]] = {}
    for slider in SLIDERS:
        found: dict[str, list[float]] = {"cpu_s": [], "wall_s": [], "bytes": []}
        steps = int((slider.high - slider.low) / slider.step)
        for move in range(1, MOVES + 1):
            value = round(slider.low + (move * steps // MOVES) * slider.step, 6)
            values = {**plain, slider.name: value}
            cpu_s, wall_s, size = sent(client, request_of(entry, values, slider.name))
            found["cpu_s"].append(round(cpu_s, 4))
            found["wall_s"].append(round(wall_s, 4))
            found["bytes"].append(size)
        runs[slider.name] = found
    medians = {name: sorted(found["cpu_s"])[MOVES // 2] for name, found in runs.items()}
    worst = max(max(found["cpu_s"]) for found in runs.values())
    body = {
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": commit(),
        "command": "python bench/planner/page.py",
        "machine": machine(),
        "promise_s": PROMISE_S,
        "cpu_s_median": medians,
        "cpu_s_worst": worst,
        "runs": runs,
    }
    out.mkdir(parents=True, exist_ok=True)
    file = out / f"{datetime.now(UTC):%Y-%m-%d}-page.json"
    file.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
    for name, median in medians.items():
        print(f"{name:14} median {median:.3f} s, worst {max(runs[name]['cpu_s']):.3f} s")
    print(f"promise {PROMISE_S} s; wrote {file}")
    return 0 if max(medians.values()) < PROMISE_S else 1


if __name__ == "__main__":
    sys.exit(main())
