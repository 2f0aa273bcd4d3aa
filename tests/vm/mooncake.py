"""A disk for the machine with Mooncake's wheel, and the Debian packages that it needs.

Kept in ``build/vm`` and rebuilt only when its sources change. Invariant: an image with a stamp is
complete.
"""

import hashlib
import os
import shutil
import sys
import zipfile
from pathlib import Path

from image import SUITE, Unavailable, remove, run

# Its NVMe KV back end sends commands through `/dev/ngXnY`.
WHEEL = "mooncake-transfer-engine-non-cuda==0.3.13.post1"
# Of the suite's Python.
PYTHON = ("--python-version", "3.11", "--platform", "manylinux_2_28_x86_64")
PACKAGES = ("python3", "libcurl4", "libibverbs1", "libnuma1", "libstdc++6")
IMAGE_BYTES = 1 << 30


def prepare(build: Path) -> Path:
    """Make, or find, the image: a root folder for ``chroot``, the wheel in ``/opt/mooncake``."""
    made = build / "mooncake"
    image, stamp = made / "root.img", made / "stamp"
    recipe = hashlib.sha256(Path(__file__).read_bytes() + SUITE.encode()).hexdigest()
    if stamp.is_file() and stamp.read_text() == recipe:
        return image
    if os.geteuid() != 0:
        raise Unavailable("making the image needs root (once)")
    remove(made, log=build)
    made.mkdir(parents=True)
    pip = (sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", *PYTHON)
    run(*pip, "--dest", str(made), WHEEL, log=made)
    root = made / "root"
    options = ("--variant=minbase", f"--include={','.join(PACKAGES)}")
    run("mmdebstrap", *options, SUITE, str(root), log=made)
    (wheel,) = made.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(root / "opt/mooncake")
    (root / "opt/mooncake/mooncake/mooncake_master").chmod(0o755)
    (root / "vm").mkdir()
    with image.open("wb") as file:
        file.truncate(IMAGE_BYTES)
    features = ("-O", "^has_journal", "-E", "lazy_itable_init=0,nodiscard")
    run("mke2fs", "-q", "-t", "ext4", *features, "-d", str(root), str(image), log=made)
    shutil.rmtree(root)
    wheel.unlink()
    stamp.write_text(recipe)
    return image
