"""Kills a drive of an array and all of its operating system at once, as a power cut does.

kill.py ARRAY.toml NAME
"""

import json
import os
import pathlib
import signal
import sys
import tomllib


def processes(array: pathlib.Path, name: str) -> set[int]:
    """The drive's process, those that serve its operating system, and all inside."""
    drives = tomllib.loads(array.read_text())["drives"]
    found = {drive["pid"] for drive in drives if drive["name"] == name}
    record = json.loads((array.with_suffix("") / "os" / name / "record.json").read_text())
    found |= {process["pid"] for process in record["processes"]}
    for group in pathlib.Path("/sys/fs/cgroup").glob(f"**/{record['id']}"):
        for members in group.glob("**/cgroup.procs"):
            found |= {int(line) for line in members.read_text().split()}
    return found


def main() -> None:
    for pid in processes(pathlib.Path(sys.argv[1]).absolute(), sys.argv[2]):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it ended with the others


if __name__ == "__main__":
    main()
