"""Quotas of file systems, for a folder: a disk that is full for one user of it."""

import contextlib
import ctypes
import os
import struct
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from mounts import Unavailable, command, image

# Number of the project on ext4; any.
PROJECT = 7
# Names and numbers of quotactl(2).
SET_QUOTA, OF_PROJECTS, BLOCK_LIMITS = 0x800008, 2, 1

Limit = Callable[[int], None]


@contextlib.contextmanager
def ext4() -> Iterator[tuple[Path, Limit]]:
    """Mount ext4 with a quota of projects; yields a project's folder, and what limits its bytes."""
    with image("mkfs.ext4 -q -O quota,project", "320M", "loop,prjquota") as at:
        folder = at / "limited"
        folder.mkdir()
        command("chattr", "-p", PROJECT, "+P", folder)
        yield folder, partial(limit_project, at)


def limit_project(at: Path, limit_bytes: int) -> None:
    """Limit the bytes of the project."""
    words = ["findmnt", "--noheadings", "--output", "SOURCE", "--mountpoint", str(at)]
    device = subprocess.run(words, capture_output=True, check=True).stdout.strip()
    # struct if_dqblk; its limits are in KiB.
    limits = struct.pack("8QI4x", limit_bytes >> 10, *[0] * 7, BLOCK_LIMITS)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.quotactl(SET_QUOTA << 8 | OF_PROJECTS, device, PROJECT, limits):
        raise Unavailable(f"no quota can be set: {os.strerror(ctypes.get_errno())}")


@contextlib.contextmanager
def btrfs() -> Iterator[tuple[Path, Limit]]:
    """Mount btrfs with a quota of a subvolume; yields it, and what limits its bytes."""
    with image("mkfs.btrfs -q", "512M") as at:
        folder = at / "limited"
        command("btrfs", "quota", "enable", at)
        command("btrfs", "subvolume", "create", folder)
        words = ["btrfs", "inspect-internal", "rootid", str(folder)]
        number = subprocess.run(words, capture_output=True, check=True, text=True).stdout.strip()
        # Through the top, which has no quota: a change through a full subvolume is refused.
        yield folder, lambda limit: command("btrfs", "qgroup", "limit", limit, f"0/{number}", at)


QUOTAS = {"ext4": ext4, "btrfs": btrfs}
# Words before a command that quotas bind although root runs it.
BOUND = ["setpriv", "--bounding-set=-sys_resource"]
