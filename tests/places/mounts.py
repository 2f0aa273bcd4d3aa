"""File systems to put a medium on. A place that this machine cannot mount is named."""

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path


class Unavailable(Exception):
    """A place that this machine does not have."""


def command(*words: object) -> None:
    """Run a tool of the system; its absence or refusal makes the place unavailable."""
    texts = [str(word) for word in words]
    if shutil.which(texts[0]) is None:
        raise Unavailable(f"{texts[0]} is not installed")
    done = subprocess.run(texts, capture_output=True, timeout=120, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines() or ["it says nothing"]
        raise Unavailable(f"{texts[0]}: {said[-1]}")


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """Make a folder on the disk of this machine."""
    with tempfile.TemporaryDirectory(prefix="csd-places-", dir="/var/tmp") as folder:
        yield Path(folder)


@contextlib.contextmanager
def mounted(at: Path, *words: object) -> Iterator[Path]:
    """Mount something at a new folder."""
    at.mkdir()
    command("mount", *words, at)
    try:
        yield at
    finally:
        # A process that was killed just now may still hold it.
        subprocess.run(["umount", "--lazy", at], check=False)


@contextlib.contextmanager
def image(make: str, size: str, options: str = "loop") -> Iterator[Path]:
    """Make a file system in a file, and mount it through a loop device."""
    with scratch() as folder:
        file = folder / "image"
        command("truncate", "-s", size, file)
        command(*make.split(), file)
        with mounted(folder / "mounted", "-o", options, file) as at:
            yield at


@contextlib.contextmanager
def tmpfs(size: str) -> Iterator[Path]:
    """Mount memory."""
    with (
        scratch() as folder,
        mounted(folder / "mounted", "-t", "tmpfs", "-o", f"size={size}", "x") as at,
    ):
        yield at


@contextlib.contextmanager
def overlay() -> Iterator[Path]:
    """Mount layers, as containers have them."""
    with scratch() as folder:
        for name in ("lower", "upper", "work"):
            (folder / name).mkdir()
        layers = f"lowerdir={folder}/lower,upperdir={folder}/upper,workdir={folder}/work"
        with mounted(folder / "mounted", "-t", "overlay", "-o", layers, "x") as at:
            yield at


@contextlib.contextmanager
def bindfs() -> Iterator[Path]:
    """Mount a folder again through FUSE, by a program without fallocate."""
    with scratch() as folder:
        (folder / "source").mkdir()
        at = folder / "mounted"
        at.mkdir()
        command("bindfs", folder / "source", at)
        try:
            yield at
        finally:
            subprocess.run(["umount", "--lazy", at], check=False)


# Name, and how to mount it. ext2 has no fallocate, which journals of the other two have.
FILE_SYSTEMS: dict[str, Callable[[], contextlib.AbstractContextManager[Path]]] = {
    "ext4": lambda: image("mkfs.ext4 -q", "320M"),
    "ext2, without fallocate": lambda: image("mkfs.ext4 -q -t ext2", "320M"),
    "xfs": lambda: image("mkfs.xfs -q", "512M"),
    "btrfs": lambda: image("mkfs.btrfs -q", "512M"),
    "tmpfs": lambda: tmpfs("320M"),
    "overlay": overlay,
    "FUSE (bindfs), without fallocate": bindfs,
}
