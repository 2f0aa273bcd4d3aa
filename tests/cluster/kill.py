"""Kills a drive of an array and all of its operating system at once, as a power cut does.

kill.py ARRAY.toml NAME [all|drive|tunnel]

`drive` kills the drive's process alone, `tunnel` this machine's end of its tunnel.
It ends once all of them are gone.
"""

import contextlib
import json
import os
import pathlib
import select
import signal
import sys
import tomllib

# Its name in the record of the operating system.
HOST_END = "csd tunnel up of the host"


def processes(array: pathlib.Path, name: str, what: str) -> set[int]:
    """Return processes of a part of a drive, or of all parts and of all inside."""
    drives = tomllib.loads(array.read_text())["drives"]
    own = {drive["pid"] for drive in drives if drive["name"] == name}
    record = json.loads((array.with_suffix("") / "os" / name / "record.json").read_text())
    serving = record["processes"]
    match what:
        case "drive":
            return own
        case "tunnel":
            return {process["pid"] for process in serving if process["program"] == HOST_END}
    found = own | {process["pid"] for process in serving}
    for group in pathlib.Path("/sys/fs/cgroup").glob(f"**/{record['id']}"):
        for members in group.glob("**/cgroup.procs"):
            found |= {int(line) for line in members.read_text().split()}
    return found


def main() -> None:
    array, name, what = [*sys.argv[1:], "all"][:3]
    found = processes(pathlib.Path(array).absolute(), name, what)
    if not found:
        sys.exit(f"{name}: no process of {what}")
    handles = []
    for pid in found:
        # One may have ended with the others.
        with contextlib.suppress(ProcessLookupError):
            handles.append(os.pidfd_open(pid))
            signal.pidfd_send_signal(handles[-1], signal.SIGKILL)
    # The caller may start them again at once, which is refused while they run. A handle becomes
    # readable when its process has ended.
    for handle in handles:
        select.select([handle], [], [])


if __name__ == "__main__":
    main()
