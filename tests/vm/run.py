#!/usr/bin/env python3
"""A stock Linux kernel against our drive: boots it in QEMU and runs checks inside.

The last line is ``N passed, N failed, N skipped``; the exit status is 0 if no check failed. A check
that cannot run prints ``SKIPPED`` with the reason. See ``tests/vm/README.md``.
"""

import argparse
import base64
import os
import shutil
import sys
import tempfile
import time
import zlib
from collections import Counter
from pathlib import Path

import image
import mooncake
import programs
from inside import InsideEnd
from machine import Machine, Outcome
from other import OtherHost, Refused
from served import Drive

ROOT = Path(__file__).resolve().parents[2]
GUEST = Path(__file__).parent / "guest"
HOST_ID = "5d0c4b1a-26c8-4f6b-9d6d-0f5a3f1c7e11"
HOST_NQN = f"nqn.2014-08.org.nvmexpress:uuid:{HOST_ID}"
OTHER_ID = "0b9a4f0e-7c53-4f35-8f0e-4c1d1f6a2b33"
OTHER_NQN = f"nqn.2014-08.org.nvmexpress:uuid:{OTHER_ID}"
# Drives that ask for a secret: hash of the secret and of the exchange (in bits), group. The first
# chooses for itself.
AUTHENTICATING = {
    "secret": (256, ""),
    "sha512": (512, "ffdhe4096"),
    "sha384": (384, "null"),
}


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--csd", type=Path, default=ROOT / "target/release/csd")
    parser.add_argument("--dir", type=Path, default=ROOT / "build/vm", help="images and logs")
    parser.add_argument("--form", choices=("short", "long"), default="short")
    parser.add_argument("--factor", type=float, default=1.0, help="stretches every time limit")
    parser.add_argument("--seconds", type=int, default=0, help="no check begins later than this")
    parser.add_argument("--only", default="", help="pattern of names of checks (bash)")
    parser.add_argument("--kernel", action="append", choices=image.KERNELS)
    parser.add_argument("--block", type=int, action="append", choices=(512, 4096))
    parser.add_argument("--prepare", action="store_true", help="only make the images")
    return parser.parse_args()


def main() -> int:
    """Run the lane."""
    options = arguments()
    missing = image.missing_tools()
    if missing:
        verb = "are" if len(missing) > 1 else "is"
        print(f"SKIPPED vm: {', '.join(missing)} {verb} not installed ({image.INSTALL})")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    options.dir.mkdir(parents=True, exist_ok=True)
    counts: Counter[str] = Counter()
    for kernels, block in rounds(options):
        made = prepared(options.dir, kernels)
        if made is None:
            counts["skip"] += 1
        elif not options.prepare:
            counts += one_round(options, made, block)
    print(f"{counts['pass']} passed, {counts['fail']} failed, {counts['skip']} skipped")
    return 1 if counts["fail"] else 0


def rounds(options: argparse.Namespace) -> list[tuple[tuple[str, ...], int]]:
    """List the machines to boot: kernels, of which the first that can be had counts; block size."""
    long = options.form == "long"
    if options.kernel or long:
        kernels = [(kernel,) for kernel in options.kernel or image.KERNELS]
    else:
        kernels = [image.KERNELS]
    blocks = options.block or ((4096, 512) if long else (4096,))
    return [(kernel, block) for kernel in kernels for block in blocks]


def prepared(folder: Path, kernels: tuple[str, ...]) -> Path | None:
    """Make the image of the first of these kernels that can be had."""
    for kernel in kernels:
        try:
            return image.prepare(folder, kernel)
        except image.Unavailable as reason:
            print(f"SKIPPED vm: {kernel}: {reason}", flush=True)
    return None


def one_round(options: argparse.Namespace, made: Path, block: int) -> Counter[str]:
    """Boot a machine against a fresh drive and print how its checks end."""
    version = (made / "version").read_text()
    print(f"kernel {version}, blocks of {block} bytes, {options.form} form", flush=True)
    folder = options.dir / "run" / f"{version}-{block}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    counts: Counter[str] = Counter()
    began = time.monotonic()
    drive = Drive(options.csd, folder, "plain", block)
    drives = [drive]
    known = {
        "PORT": str(drive.port),
        "NQN": drive.nqn,
        "HOST_ID": HOST_ID,
        "HOST_NQN": HOST_NQN,
        "FORM": options.form,
        "FACTOR": f"{options.factor:g}",
        "SECONDS_MAX": str(options.seconds),
        "ONLY": options.only,
        "BLOCK": str(block),
    }
    for name, (bits, _) in AUTHENTICATING.items():
        secrets = (secret(bits), secret(bits))
        asking = with_secrets(options, folder, block, name, secrets)
        drives.append(asking)
        known[f"AUTH_{name}"] = f"{asking.port} {asking.nqn} {' '.join(secrets)}"
    blocks = Drive(options.csd, folder, "blocks", block, ["--expose", "block"])
    drives.append(blocks)
    known["BLOCKS"] = f"{blocks.port} {blocks.nqn}"
    tunnel, inside_end = with_tunnel(options, folder, block)
    drives.append(tunnel)
    known["TUNNEL"] = f"{tunnel.port} {tunnel.nqn}"
    disks, known["MOONCAKE"] = caches(options)
    # In this order /dev/vdb and /dev/vdc.
    disks.insert(0, programs.prepare(folder, options.csd))

    def boot() -> Machine:
        return Machine(made, archive(known), folder, options.factor, disks)

    machine = boot()
    try:
        if not machine.booted():
            print("  the machine did not boot; once more", flush=True)
            machine.end(at_once=True)
            machine = boot()
            machine.booted()
        for outcome in machine.outcomes(Wishes(drive, block).grant):
            show(outcome)
            counts[outcome.result] += 1
        for ended in (each for each in drives if not each.running()):
            show(Outcome("drive", "fail", 0.0, f"the drive ended by itself, see {ended.log}"))
            counts["fail"] += 1
    finally:
        machine.end()
        inside_end.close()
        for each in drives:
            each.stop()
        # Gigabytes that nobody reads; the logs stay.
        for big in (*folder.glob("*.media"), *folder.glob("*.img")):
            big.unlink()
    if not counts["pass"] and not counts["fail"]:
        show(Outcome("round", "fail", 0.0, "no check ran"))
        counts["fail"] += 1
    print(f"round: {time.monotonic() - began:.0f} s; logs in {folder}", flush=True)
    return counts


def caches(options: argparse.Namespace) -> tuple[list[Path], str]:
    """Find the disks of checks with caches; or the reason why there is none."""
    if options.form != "long":
        return [], "only in the long form"
    try:
        return [mooncake.prepare(options.dir)], ""
    except image.Unavailable as reason:
        return [], str(reason)


def archive(known: dict[str, str]) -> bytes:
    """Pack the checks and what they must know."""
    settings = "".join(f"{key}='{value}'\n" for key, value in known.items())
    files = image.folder("vm")
    files["vm/settings.sh"] = (0o100644, settings.encode())
    for script in sorted((*GUEST.glob("*.sh"), *GUEST.glob("*.py"))):
        files[f"vm/{script.name}"] = (0o100755, script.read_bytes())
    return image.cpio(files)


def secret(bits: int) -> str:
    """Make a secret in the standard's text form, transformed with the hash of so many bits."""
    key = os.urandom(bits // 8)
    text = base64.b64encode(key + zlib.crc32(key).to_bytes(4, "little")).decode()
    return f"DHHC-1:0{bits // 128 - 1}:{text}:"


def with_secrets(
    options: argparse.Namespace, folder: Path, block: int, name: str, secrets: tuple[str, str]
) -> Drive:
    """Start a drive that lets in only the host that has its secret."""
    file = folder / f"{name}.secrets"
    file.touch(mode=0o600)
    file.write_text(f"host {HOST_NQN} {secrets[0]}\ncontroller {secrets[1]}\n")
    more = ["--secrets", str(file)]
    bits, group = AUTHENTICATING[name]
    if group:
        more += ["--auth-hash", str(bits), "--auth-group", group]
    return Drive(options.csd, folder, name, block, more)


def with_tunnel(options: argparse.Namespace, folder: Path, block: int) -> tuple[Drive, InsideEnd]:
    """Start a drive with a tunnel, and an end at its inside that answers echo requests."""
    # The path of a Unix socket is short, and the folder's may not be.
    socket = Path(tempfile.mkdtemp(prefix="csd-vm-")) / "inside"
    more = ["--inside", str(socket), "--tunnel-host", HOST_NQN]
    drive = Drive(options.csd, folder, "tunnel", block, more)
    return drive, InsideEnd(socket, drive.nqn)


class Wishes:
    """Requests of checks to the host: actions on the drive, or by another host of it."""

    def __init__(self, drive: Drive, block: int) -> None:
        self.drive = drive
        self.block = block
        self.other: OtherHost | None = None

    def grant(self, wish: str) -> str:
        """Do it; the answer is one word."""
        match wish.split():
            case ["restart" | "kill" as how]:
                self.drive.stop(kill=how == "kill")
                try:
                    self.drive.start()
                except RuntimeError as error:
                    return f"failed:{error}".replace(" ", "-")
                return "done"
            case ["other", *wanted]:
                try:
                    return self._other(wanted)
                except (Refused, OSError) as error:
                    return f"failed:{error}".replace(" ", "-")
        return "unknown"

    def _other(self, wanted: list[str]) -> str:
        match wanted:
            case ["joins"]:
                drive = self.drive
                self.other = OtherHost(drive.port, drive.nqn, OTHER_ID, OTHER_NQN, self.block)
                return "done"
            case ["writes", offset, count] if self.other:
                return self.other.write_random(int(offset), int(count))
            case ["sums", offset, count] if self.other:
                return self.other.sum(int(offset), int(count))
            case ["leaves"] if self.other:
                self.other.leave()
                self.other = None
                return "done"
        return "unknown"


def show(outcome: Outcome) -> None:
    """Print how a check ended."""
    words = {"pass": "ok", "fail": "FAILED", "skip": "SKIPPED"}
    reason = f": {outcome.reason}" if outcome.reason else ""
    print(f"  {words[outcome.result]:<7} {outcome.name} {outcome.seconds:.1f} s{reason}")
    if outcome.result == "fail":
        for line in outcome.log:
            print(f"          | {line}")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
