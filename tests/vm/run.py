#!/usr/bin/env python3
"""A stock Linux kernel against our drive: boots it in QEMU and runs checks inside.

The last line is ``N passed, N failed, N skipped``; the exit status is 0 when nothing failed. What
cannot run says ``SKIPPED`` and why. See ``tests/vm/README.md``.
"""

import argparse
import base64
import os
import re
import shutil
import subprocess
import sys
import time
import zlib
from collections import Counter
from pathlib import Path

import image
from machine import Machine, Outcome
from served import Drive

ROOT = Path(__file__).resolve().parents[2]
GUEST = Path(__file__).parent / "guest"
HOST_ID = "5d0c4b1a-26c8-4f6b-9d6d-0f5a3f1c7e11"
HOST_NQN = f"nqn.2014-08.org.nvmexpress:uuid:{HOST_ID}"


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--csd", type=Path, default=ROOT / "target/release/csd")
    parser.add_argument("--dir", type=Path, default=ROOT / "build/vm", help="images and logs")
    parser.add_argument("--form", choices=("short", "long"), default="short")
    parser.add_argument("--factor", type=float, default=1.0, help="stretches every time limit")
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
        print(f"SKIPPED: vm lane: no {', no '.join(missing)} on this machine")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    options.dir.mkdir(parents=True, exist_ok=True)
    counts: Counter[str] = Counter()
    for kernel, block in rounds(options):
        try:
            made = image.prepare(options.dir, kernel)
        except image.Unavailable as reason:
            print(f"SKIPPED: vm lane: {kernel}: {reason}", flush=True)
            counts["skip"] += 1
            continue
        if not options.prepare:
            counts += one_round(options, made, block)
    print(f"{counts['pass']} passed, {counts['fail']} failed, {counts['skip']} skipped")
    return 1 if counts["fail"] else 0


def rounds(options: argparse.Namespace) -> list[tuple[str, int]]:
    """List the pairs of kernel and block size to boot."""
    long = options.form == "long"
    kernels = options.kernel or (image.KERNELS if long else image.KERNELS[:1])
    blocks = options.block or ((4096, 512) if long else (4096,))
    return [(kernel, block) for kernel in kernels for block in blocks]


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
        "ONLY": options.only,
        "BLOCK": str(block),
        "AUTH_PORT": "",
    }
    if offers(options.csd, "secrets"):
        secrets = {"HOST_SECRET": secret(), "CONTROLLER_SECRET": secret()}
        drives.append(with_secrets(options, folder, block, secrets))
        known |= secrets
        known |= {"AUTH_PORT": str(drives[1].port), "AUTH_NQN": drives[1].nqn}
    machine = Machine(made, archive(known), folder, options.factor)
    try:
        for outcome in machine.outcomes(lambda wish: grant(drive, wish)):
            show(outcome)
            counts[outcome.result] += 1
        for ended in (each for each in drives if not each.running()):
            show(Outcome("drive", "fail", 0.0, f"the drive ended by itself, see {ended.log}"))
            counts["fail"] += 1
    finally:
        machine.end()
        for each in drives:
            each.stop()
        # Gigabytes that nobody reads; the logs stay.
        for media in folder.glob("*.media"):
            media.unlink()
    if not counts["pass"] and not counts["fail"]:
        show(Outcome("round", "fail", 0.0, "no check ran"))
        counts["fail"] += 1
    print(f"round: {time.monotonic() - began:.0f} s; logs in {folder}", flush=True)
    return counts


def archive(known: dict[str, str]) -> bytes:
    """Pack the checks and what they must know."""
    settings = "".join(f"{key}='{value}'\n" for key, value in known.items())
    files = image.folder("vm")
    files["vm/settings.sh"] = (0o100644, settings.encode())
    for script in sorted(GUEST.glob("*.sh")):
        files[f"vm/{script.name}"] = (0o100755, script.read_bytes())
    return image.cpio(files)


def secret() -> str:
    """Make a secret of 32 bytes in the standard's text form, transformed with SHA-256."""
    key = os.urandom(32)
    return f"DHHC-1:01:{base64.b64encode(key + zlib.crc32(key).to_bytes(4, 'little')).decode()}:"


def with_secrets(
    options: argparse.Namespace, folder: Path, block: int, secrets: dict[str, str]
) -> Drive:
    """Start a drive that lets in only the host that has its secret."""
    file = folder / "secrets"
    file.touch(mode=0o600)
    file.write_text(
        f"host {HOST_NQN} {secrets['HOST_SECRET']}\ncontroller {secrets['CONTROLLER_SECRET']}\n"
    )
    return Drive(options.csd, folder, "secret", block, ["--secrets", str(file)])


def offers(csd: Path, option: str) -> bool:
    """Tell whether the drive has an option of this name."""
    command = [str(csd), "drive", "serve", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return re.search(rf"^\s+--{option}\b", shown, re.MULTILINE) is not None


def grant(drive: Drive, wish: str) -> str:
    """Do to the drive what a check asks for."""
    if wish in ("restart", "kill"):
        drive.stop(kill=wish == "kill")
        drive.start()
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
