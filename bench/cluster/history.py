"""Prints where the tasks of a job of Hadoop ran, and what they moved, by its JobHistoryServer.

history.py ADDRESS JOB, on the host of the cluster: JSON with lists `maps` (node, bytes of output
as they are sent) and `reduces` (node, bytes fetched)
"""

import json
import sys
import time
import urllib.error
import urllib.request

COUNTERS = {"MAP": "MAP_OUTPUT_MATERIALIZED_BYTES", "REDUCE": "REDUCE_SHUFFLE_BYTES"}
# It learns of a job some seconds after its end.
TRIES, PAUSE_S = 60, 0.5


def main() -> None:
    """Ask, and print."""
    address, job = sys.argv[1:]
    root = f"http://{address}:19888/ws/v1/history/mapreduce/jobs/{job}/tasks"

    def ask(path: str) -> dict[str, object]:
        with urllib.request.urlopen(root + path, timeout=20) as answer:
            found: dict[str, object] = json.load(answer)
            return found

    for number in range(TRIES):
        try:
            tasks = ask("")["tasks"]["task"]
            break
        except urllib.error.HTTPError:
            if number == TRIES - 1:
                raise
            time.sleep(PAUSE_S)
    moved: dict[str, list[tuple[str, int]]] = {"MAP": [], "REDUCE": []}
    for task in tasks:
        kind, name = task["type"], task["id"]
        attempt = ask(f"/{name}/attempts/{task['successfulAttempt']}")["taskAttempt"]
        groups = ask(f"/{name}/counters")["jobTaskCounters"]["taskCounterGroup"]
        counted = [one for group in groups for one in group["counter"]]
        value = next((one["value"] for one in counted if one["name"] == COUNTERS[kind]), 0)
        moved[kind].append((attempt["nodeHttpAddress"].partition(":")[0], value))
    print(json.dumps({"maps": moved["MAP"], "reduces": moved["REDUCE"]}))


if __name__ == "__main__":
    main()
