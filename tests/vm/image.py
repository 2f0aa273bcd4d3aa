"""The machine's image: kernel, initramfs and root file system, made of Debian packages.

Kept in ``build/vm`` and rebuilt only when its sources change. The checks are not part of it: they
are packed at every start, see :func:`cpio`. Writes only in the given folder. Invariant: a folder
with a stamp is complete.
"""

import hashlib
import lzma
import os
import re
import shutil
import struct
import subprocess
import zlib
from pathlib import Path

SUITE = "bookworm"
PACKAGES = ("nvme-cli", "fio", "e2fsprogs", "kmod")
# The newest first: it has in-band authentication. The other is the release's own.
KERNELS = ("linux-image-6.12-cloud-amd64", "linux-image-cloud-amd64")
# What the initramfs loads to reach the root disk and the network.
# Those that a kernel has built in are passed over.
EARLY_MODULES = ("virtio_pci", "virtio_blk", "virtio_net", "crc32c_generic", "ext4")
ROOT_IMAGE_BYTES = 1 << 30
INSTALL = "apt-get install qemu-system-x86 mmdebstrap e2fsprogs zstd lz4"
# Longest step of the preparation: a mirror that does not answer.
STEP_LIMIT_S = 300
TOOLS = ("qemu-system-x86_64", "mmdebstrap", "mke2fs", "apt-get", "apt-cache", "dpkg-deb")


class Unavailable(Exception):
    """The image cannot be made on this machine: the lane is skipped, with this reason."""


def missing_tools() -> list[str]:
    """Programs that the lane needs and this machine does not have."""
    return [tool for tool in TOOLS if shutil.which(tool) is None]


def cpio(files: dict[str, tuple[int, bytes]]) -> bytes:
    """Pack files (path: mode and content) as an archive that a kernel takes as initramfs."""
    out = bytearray()
    trailer = {"TRAILER!!!": (0, b"")}
    for number, (path, (mode, content)) in enumerate({**files, **trailer}.items()):
        name = path.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name), 0)
        out += b"070701" + b"".join(b"%08x" % field for field in fields) + name
        out += bytes(-len(out) % 4) + content
        out += bytes(-len(out) % 4)
    return bytes(out)


def folder(*paths: str) -> dict[str, tuple[int, bytes]]:
    """Folders, as :func:`cpio` takes them."""
    return dict.fromkeys(paths, (0o040755, b""))


def prepare(build: Path, kernel: str) -> Path:
    """Make, or find, the folder with ``vmlinux``, ``initramfs`` and ``root.img`` of a kernel."""
    made = build / kernel
    early = (Path(__file__).parent / "guest" / "early.sh").read_bytes()
    recipe = hashlib.sha256(early + Path(__file__).read_bytes()).hexdigest()
    stamp = made / "stamp"
    if stamp.is_file() and stamp.read_text() == recipe:
        return made
    if os.geteuid() != 0:
        raise Unavailable("making the image needs root (once)")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir(parents=True)
    packages = unpacked(build, made, kernel)
    (version,) = (entry.name for entry in (packages / "lib/modules").iterdir())
    (made / "version").write_text(version)
    image = (packages / f"boot/vmlinuz-{version}").read_bytes()
    (made / "vmlinux").write_bytes(uncompressed(image))
    busybox = (packages / "bin/busybox").read_bytes()
    (made / "initramfs").write_bytes(initramfs(early, busybox, packages / "lib/modules"))
    root_image(root_folder(build), packages / "lib/modules", version, made / "root.img")
    shutil.rmtree(packages)
    stamp.write_text(recipe)
    return made


def unpacked(build: Path, made: Path, kernel: str) -> Path:
    """Download and unpack the kernel that a package stands for, and a static busybox."""
    real = resolved(kernel)
    folder_of_packages = made / "packages"
    folder_of_packages.mkdir()
    run("apt-get", "download", "-q", real, "busybox-static", cwd=folder_of_packages, log=build)
    unpacked_to = made / "unpacked"
    for package in folder_of_packages.glob("*.deb"):
        run("dpkg-deb", "-x", str(package), str(unpacked_to), log=build)
    shutil.rmtree(folder_of_packages)
    return unpacked_to


def resolved(kernel: str) -> str:
    """Name the package that holds the kernel a meta-package stands for."""
    for attempt in range(2):
        shown = subprocess.run(
            ["apt-cache", "depends", kernel], capture_output=True, text=True, check=False
        )
        found = re.search(r"Depends: (linux-image-\S+)", shown.stdout)
        if found:
            return found[1]
        if attempt == 0:
            subprocess.run(["apt-get", "update", "-q"], capture_output=True, check=False)
    raise Unavailable(f"apt knows no package {kernel}")


def uncompressed(image: bytes) -> bytes:
    """Take vmlinux out of a bzImage: its own decompressor is slow under emulation."""
    if image[0x202:0x206] != b"HdrS":
        raise Unavailable("the kernel is no bzImage")
    setup_sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    payload = image[start : start + length]
    if payload.startswith(b"\xfd7zXZ"):
        return lzma.LZMADecompressor().decompress(payload)
    if payload.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(31).decompress(payload)
    tool = {b"\x28\xb5\x2f\xfd": "zstd", b"\x02\x21\x4c\x18": "lz4"}.get(payload[:4])
    if tool is None or shutil.which(tool) is None:
        raise Unavailable(f"no tool to unpack the kernel ({tool or payload[:4].hex()})")
    # The last four bytes are the uncompressed size, no part of the stream.
    command = [tool, "-dc"]
    return subprocess.run(command, input=payload[:-4], stdout=subprocess.PIPE, check=True).stdout


def initramfs(early: bytes, busybox: bytes, modules: Path) -> bytes:
    """Pack busybox, the script that runs first, and the modules that it loads, in order."""
    found = {
        entry.name.split(".ko")[0].replace("-", "_"): entry for entry in modules.rglob("*.ko*")
    }
    ordered: dict[str, bytes] = {}

    def add(name: str) -> None:
        path = found.get(name)
        if path is None or name in ordered:  # absent: built into the kernel
            return
        packed = path.read_bytes()
        content = lzma.decompress(packed) if path.suffix == ".xz" else packed
        depends = re.search(rb"\0depends=([^\0]*)\0", content)
        for needed in (depends[1].decode() if depends else "").split(","):
            add(needed.replace("-", "_"))
        ordered[name] = content

    for name in EARLY_MODULES:
        add(name)
    files = folder("bin", "proc", "sys", "dev", "root", "modules", "vm")
    files |= {"init": (0o100755, early), "bin/busybox": (0o100755, busybox)}
    for number, (name, content) in enumerate(ordered.items()):
        files[f"modules/{number:02}-{name}.ko"] = (0o100644, content)
    return cpio(files)


def root_folder(build: Path) -> Path:
    """Make, or find, the root file system as a folder."""
    root = build / "root"
    stamp = build / "root.stamp"
    wanted = " ".join((SUITE, *PACKAGES))
    if not (stamp.is_file() and stamp.read_text() == wanted):
        remove(root, log=build)
        include = ",".join(PACKAGES)
        options = ("--variant=minbase", f"--include={include}")
        run("mmdebstrap", *options, SUITE, str(root), log=build)
        stamp.write_text(wanted)
    return root


def remove(root: Path, log: Path) -> None:
    """Remove a folder. Mounts below it, left by a step that was killed, are unmounted before."""
    for mount in reversed(mounts_below(root)):
        run("umount", str(mount), log=log)
    if mounts_below(root):
        raise Unavailable(f"remove what is mounted first: umount --recursive {root}")
    shutil.rmtree(root, ignore_errors=True)


def mounts_below(root: Path) -> list[Path]:
    """List what is mounted in a folder or on it, in the order of mounting."""
    inside = root.resolve()
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    escaped = (line.split()[4] for line in lines)
    mounts = [Path(re.sub(r"\\(\d{3})", lambda m: chr(int(m[1], 8)), path)) for path in escaped]
    return [mount for mount in mounts if mount.is_relative_to(inside)]


def root_image(root: Path, modules: Path, version: str, image: Path) -> None:
    """Make an ext4 image of the root folder with the kernel's modules in it."""
    inside = root / "usr/lib/modules"
    shutil.rmtree(inside, ignore_errors=True)
    shutil.copytree(modules, inside)
    run("chroot", str(root), "depmod", version, log=image.parent)
    with image.open("wb") as file:
        file.truncate(ROOT_IMAGE_BYTES)
    # Without a journal and with everything initialised, the guest has no work but ours.
    features = ("-O", "^has_journal", "-E", "lazy_itable_init=0,nodiscard")
    run("mke2fs", "-q", "-t", "ext4", *features, "-d", str(root), str(image), log=image.parent)


def run(*command: str, log: Path, cwd: Path | None = None) -> None:
    """Run a step of the preparation; its output is in ``prepare.log`` of ``log``."""
    with (log / "prepare.log").open("ab") as output:
        try:
            ended = subprocess.run(
                command,
                cwd=cwd,
                stdout=output,
                stderr=subprocess.STDOUT,
                check=False,
                timeout=STEP_LIMIT_S,
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"{command[0]} took longer than {STEP_LIMIT_S} s") from None
    if ended.returncode != 0:
        raise Unavailable(f"{command[0]} failed, see {log / 'prepare.log'}")
