"""Limits for a process: control groups of version 1 or 2, and calls that the kernel refuses."""

import contextlib
import ctypes
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from mounts import Unavailable

ROOT = Path("/sys/fs/cgroup")
# io_uring_setup, io_uring_enter and io_uring_register have these numbers on every architecture.
IO_URING = (425, 426, 427)


@contextlib.contextmanager
def group(memory_bytes: int, cores: float) -> Iterator[list[str]]:
    """Make a control group with limits; yields the words before a command that runs in it."""
    name = f"csd-places-{os.getpid()}"
    two = (ROOT / "cgroup.controllers").exists()
    folders = [ROOT / name] if two else [ROOT / "memory" / name, ROOT / "cpu" / name]
    period = 100_000
    quota = int(cores * period)
    if two:
        limits = {
            folders[0] / "memory.max": memory_bytes,
            folders[0] / "cpu.max": f"{quota} {period}",
        }
    else:
        limits = {
            folders[0] / "memory.limit_in_bytes": memory_bytes,
            folders[1] / "cpu.cfs_period_us": period,
            folders[1] / "cpu.cfs_quota_us": quota,
        }
    made = []
    try:
        for folder in folders:
            folder.mkdir()
            made.append(folder)
        for path, limit in limits.items():
            path.write_text(str(limit))
    except OSError as error:
        for folder in made:
            folder.rmdir()
        raise Unavailable(f"no control group can be limited: {error}") from error
    entered = " && ".join(f"echo $$ >{folder}/cgroup.procs" for folder in folders)
    try:
        yield ["sh", "-c", f'{entered} && exec "$@"', "sh"]
    finally:
        for folder in folders:
            folder.rmdir()


def without_io_uring(error: int) -> list[str]:
    """Return the words before a command whose calls of io_uring fail with this error."""
    return [sys.executable, __file__, str(error)]


def refuse_io_uring(error: int) -> None:
    """Let the kernel refuse io_uring to this process, as in containers."""
    load, equal, ret = 0x20, 0x15, 0x06
    last = len(IO_URING) - 1
    jumps = [
        struct.pack("HBBI", equal, last - index, int(index == last), call)
        for index, call in enumerate(IO_URING)
    ]
    program = [
        struct.pack("HBBI", load, 0, 0, 0),
        *jumps,
        struct.pack("HBBI", ret, 0, 0, 0x00050000 | error),
        struct.pack("HBBI", ret, 0, 0, 0x7FFF0000),
    ]
    code = ctypes.create_string_buffer(b"".join(program))
    head = struct.pack("HxxxxxxP", len(program), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, seccomp, filtered = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.prctl(seccomp, filtered, head, 0, 0):
        raise OSError(ctypes.get_errno(), "no filter of system calls")


def check_filter() -> None:
    """Say if this machine takes no filter of system calls."""
    done = subprocess.run([*without_io_uring(1), "true"], capture_output=True, check=False)
    if done.returncode:
        raise Unavailable("the kernel takes no filter of system calls")


if __name__ == "__main__":
    refuse_io_uring(int(sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])
