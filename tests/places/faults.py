"""One access of a medium that fails once, under a drive that goes on."""

import errno
from pathlib import Path

import mounts
from served import Failed, Served, value

SOURCE = Path(__file__).with_name("once.c")
ROUNDS = 12
# The access that fails, and its error.
FAULTS = [
    ("write", errno.EIO),
    ("write", errno.ENOSPC),
    ("sync", errno.EIO),
    ("read", errno.EIO),
]
BYTES = 3 << 20


def fails_once(csd: Path, call: str, error: int) -> None:
    """Let a write, a sync or a read fail, once in each of some puts and gets.

    Values of several segments are stored, so that the heads of segments are among what is written.
    """
    with mounts.scratch() as folder:
        library, trigger = folder / "once.so", folder / "once"
        mounts.command("cc", "-shared", "-fPIC", "-o", library, SOURCE, "-ldl")
        names = {"LD_PRELOAD": library, "ONCE": trigger, "ONCE_CALL": call, "ONCE_ERRNO": error}
        before = ["env", *(f"{name}={word}" for name, word in names.items())]
        with Served(csd, folder / "medium", "--size 192M --backend epoll", before) as drive:
            drive.start()
            kept: dict[str, bytes] = {}
            for number in range(ROUNDS):
                key, content = f"key-{number}", value(number, BYTES)
                trigger.touch()
                refused = drive.put(key, content)
                kept[key] = content
                if call == "read":
                    drive.run("kv", "get", key, "--drive", drive.url)
                if trigger.exists():
                    raise Failed(f"no {call} failed")
                if call == "sync":
                    # Earlier writes may be lost: the medium is read-only until the next start.
                    drive.stop()
                    drive.start()
                if refused and (said := drive.put(key, content)):
                    raise Failed(f"put of {key} after one that failed ({refused}): {said}")
            if "media error" not in drive.log():
                raise Failed("the log does not name the access that failed")
            drive.keeps_over_a_stop(kept)
