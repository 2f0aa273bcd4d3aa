"""A disk for the machine, with the ``csd`` that is tested."""

import shutil
from pathlib import Path

from image import run

# What a file system of one file needs beside the file.
ROOM_BYTES = 8 << 20


def prepare(folder: Path, csd: Path) -> Path:
    """Make the image; without debugging symbols where there is a tool to remove them."""
    inside = folder / "programs"
    inside.mkdir()
    copy = inside / "csd"
    if shutil.which("strip"):
        run("strip", "-o", str(copy), str(csd), log=folder)
    else:
        shutil.copy(csd, copy)
    image = folder / "programs.img"
    with image.open("wb") as file:
        file.truncate(copy.stat().st_size + ROOM_BYTES)
    features = ("-O", "^has_journal", "-E", "lazy_itable_init=0,nodiscard")
    run("mke2fs", "-q", "-t", "ext4", *features, "-d", str(inside), str(image), log=folder)
    shutil.rmtree(inside)
    return image
