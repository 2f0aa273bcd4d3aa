"""Full disks under everything but media: logs, folders of arrays, results of commands."""

import contextlib
import errno
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import mounts
from served import HANG, Failed, Served, last, value, wait_until

# Each line of a log begins with the time.
TIME = re.compile(r"\d{4}-\d\d-\d\dT")
NO_SPACE = os.strerror(errno.ENOSPC)


@contextlib.contextmanager
def filled(folder: Path) -> Iterator[None]:
    """Fill the file system of a folder, for a while."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    try:
        yield
    finally:
        ballast.unlink()


def contents(folder: Path) -> dict[str, bytes]:
    """Return the files of a folder, without the ballast."""
    files = [path for path in folder.iterdir() if path.is_file() and path.name != "ballast"]
    return {path.name: path.read_bytes() for path in files}


def run(csd: Path, folder: Path, words: str) -> tuple[int, str]:
    """Run a command in a folder; returns its exit code and what it said."""
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" {words}', csd],
        cwd=folder,
        capture_output=True,
        timeout=HANG,
        check=False,
    )
    return done.returncode, done.stderr.decode(errors="replace")


def under_results(csd: Path) -> None:
    """Check the commands that write files.

    Each says at once what it cannot write, leaves what was there, and works once there is space.
    """
    with (
        mounts.scratch() as disk,
        mounts.tmpfs("2M") as folder,
        Served(csd, disk / "medium") as drive,
    ):
        drive.start()
        if said := drive.put("key", value(1, 64 << 10)):
            raise Failed(said)
        (folder / "old").write_bytes(b"dear\n" * 1000)
        profile = "characterize --kernels count --size 64K --repeat 1 --media memory"
        commands = {
            f"{profile} -o old": 1,
            f"{profile} -o new": 1,
            "secret new >secrets": 1,
            f"kv get key got --drive {drive.url}": 1,
            f"kv get key old --force --drive {drive.url}": 1,
            "array up --drives 1 --size 128M --media memory": 1,
            "bench verify --engine rtl --record old": 4,
            "drive serve --media memory --size 128M --listen 127.0.0.1:0 --ready-file r": 1,
        }
        for words, code in commands.items():
            before = contents(folder)
            with filled(folder):
                found, said = run(csd, folder, words)
            after = contents(folder)
            # The shell made it.
            after.pop("secrets", None)
            (folder / "secrets").unlink(missing_ok=True)
            if found != code or NO_SPACE not in said:
                raise Failed(f"csd {words}: exit code {found}: {last(said)}")
            if after != before and not is_whole_record(words, before, after):
                raise Failed(f"csd {words}: files were {list(before)}, are {list(after)}")
        for words in ("secret new >secrets", f"kv get key got --drive {drive.url}"):
            found, said = run(csd, folder, words)
            if found:
                raise Failed(f"csd {words}, with space: {last(said)}")
        drive.stop()


def is_whole_record(words: str, before: dict[str, bytes], after: dict[str, bytes]) -> bool:
    """Say if only a record has grown, by whole lines."""
    grown = after["old"].startswith(before["old"]) and after["old"].endswith(b"\n")
    return "--record old" in words and grown and list(before) == list(after)


def under_a_log(csd: Path) -> None:
    """Check a log on a disk that is full at the start, and again later.

    The drive says so and serves; the lines that were lost are counted once there is space.
    """
    lost = "lines of the log were lost"
    with mounts.scratch() as disk, mounts.tmpfs("1M") as folder:
        log = folder / "d.log"
        with Served(csd, disk / "medium", f"--size 192M --log-file {log}") as drive:
            for start in (True, False):
                with filled(folder):
                    if start:
                        drive.start()
                        if NO_SPACE not in drive.log():
                            raise Failed("a full disk under the log is not said")
                    # Each host that connects is a line.
                    for number in range(40):
                        if said := drive.put(f"key-{number}", value(number, 1000)):
                            raise Failed(f"put while the log's disk is full: {said}")
                before = log.read_text().count(lost)

                def told(before: int = before) -> bool:
                    drive.put("key", b"x")
                    return log.read_text().count(lost) > before

                wait_until("the log counts the lines that were lost", told)
            drive.stop()
            times = [len(TIME.findall(line)) for line in log.read_text().splitlines()]
            if max(times) > 1:
                raise Failed("lines of the log run into each other")
