"""Time the page's answers to changes: at the server, and until the browser has drawn them.

    python bench/planner/page.py --out bench/planner/records

At the server, each run changes one number and sends all fields, as the browser does. On the screen,
a slider is moved by an arrow key in headless Chromium, and the time ends with the frame after the
answer was put into the page. The first answer is not timed. Without Chromium the screen is left
out, and the record says so.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from csdplan.page.quantities import QUANTITIES
from csdplan.page.server import updated
from csdplan.page.state import State, to_values

from bench import commit, machine

SERVER_PROMISE_S, SCREEN_PROMISE_S = 0.1, 0.25
MOVES = 12
SCREEN_MOVES = 40
FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def at_server() -> dict[str, dict[str, list[float]]]:
    """Return processor and wall times [s], and lengths [bytes], of changes of each number."""
    plain = to_values(State())
    updated({"a": plain, "b": None})
    runs = {}
    for one in QUANTITIES:
        found: dict[str, list[float]] = {"cpu_s": [], "wall_s": [], "bytes": []}
        stops = [stop for stop in one.stops if stop >= one.low]
        for move in range(1, MOVES + 1):
            value = stops[move * (len(stops) - 1) // MOVES]
            wall, cpu = time.perf_counter(), time.process_time()
            answer = updated({"a": {**plain, one.name: one.text(value)}, "b": None, "width": 960})
            body = json.dumps(answer)
            found["cpu_s"].append(round(time.process_time() - cpu, 4))
            found["wall_s"].append(round(time.perf_counter() - wall, 4))
            found["bytes"].append(len(body))
            # An error answer comes sooner and must not be timed.
            assert "<figure" in answer["html"]["curves"], "an answer, not a fault"
        runs[one.name] = found
    return runs


def on_screen() -> tuple[list[float], float]:
    """Return the times [s] from the move of a slider to the drawn answer; none without Chromium.

    The second number is the processor time of the page's main thread for each move [s].
    """
    chromium = shutil.which("chromium")
    if chromium is None:
        return [], 0.0
    from playwright.sync_api import sync_playwright  # noqa: PLC0415 - only here

    command = [sys.executable, "-m", "csdplan", "ui", "--port", "0"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server,
        sync_playwright() as playwright,
    ):
        assert server.stdout is not None
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        page.goto(server.stdout.readline().split()[1])
        page.wait_for_selector("#buy[aria-busy=false]")
        page.focus("#a-cores-slide")
        tools = page.context.new_cdp_session(page)
        tools.send("Performance.enable", {"timeDomain": "threadTicks"})
        found, before = [], busy_s(tools)
        for _ in range(SCREEN_MOVES):
            page.evaluate("delete document.body.dataset.tookMs")
            page.keyboard.press("ArrowRight")
            page.wait_for_selector("body[data-took-ms]")
            found.append(float(page.get_attribute("body", "data-took-ms") or 0) / 1e3)
        spent = (busy_s(tools) - before) / SCREEN_MOVES
        browser.close()
        server.terminate()
    return found, spent


def busy_s(tools: Any) -> float:
    """Return the processor time that the page's main thread has spent [s]."""
    metrics = {one["name"]: one["value"] for one in tools.send("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"])


def median(values: list[float]) -> float:
    """Return the middle value."""
    return sorted(values)[len(values) // 2]


def main() -> int:
    """Change every number, write the record, and say whether the promises hold."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    out: Path = parser.parse_args().out
    runs, (screen, spent) = at_server(), on_screen()
    medians = {name: median(found["cpu_s"]) for name, found in runs.items()}
    body: dict[str, Any] = {
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "commit": commit(),
        "command": "python bench/planner/page.py",
        "machine": machine(),
        "load": os.getloadavg(),
        "server_promise_s": SERVER_PROMISE_S,
        "server_cpu_s_median": medians,
        "server_cpu_s_worst": max(max(found["cpu_s"]) for found in runs.values()),
        "screen_promise_s": SCREEN_PROMISE_S,
        "screen_wall_s": screen or "no Chromium: not measured",
        "screen_wall_s_median": median(screen) if screen else None,
        "screen_main_thread_cpu_s": round(spent, 4),
        "runs": runs,
    }
    out.mkdir(parents=True, exist_ok=True)
    file = out / f"{datetime.now(UTC):%Y-%m-%d}-page.json"
    file.write_text(json.dumps(body, indent=1) + "\n", encoding="utf-8")
    for name, found in medians.items():
        print(f"{name:14} median {found:.3f} s, worst {max(runs[name]['cpu_s']):.3f} s")
    wall = body["screen_wall_s_median"]
    print(f"on the screen: median {wall} s, of it {spent:.3f} s of the page's main thread")
    print(f"load {os.getloadavg()[0]:.1f}")
    print(f"promises {SERVER_PROMISE_S} s and {SCREEN_PROMISE_S} s; wrote {file}")
    late = bool(screen) and median(screen) >= SCREEN_PROMISE_S
    return 0 if max(medians.values()) < SERVER_PROMISE_S and not late else 1


if __name__ == "__main__":
    sys.exit(main())
