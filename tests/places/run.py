#!/usr/bin/env python3
"""Drives where their users run them: file systems, control groups, full disks, forbidden calls.

Each check prints a line; the last line is ``N passed, N failed, N skipped``, and the exit status is
0 if no check failed. A place that this machine lacks is skipped, and named. See
``tests/places/README.md``.
"""

import argparse
import contextlib
import errno
import os
import subprocess
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import faults
import full
import limits
import mounts
import quotas
from mounts import Unavailable
from served import Failed, Served, last, value, wait_until

ROOT = Path(__file__).resolve().parents[2]
SMALL = 12
LONG_BYTES = 8 << 20


def keeps(csd: Path, folder: Path, before: Sequence[str] = ()) -> None:
    """Kill a drive under load; it has everything that it acknowledged, and its medium is sound."""
    with Served(csd, folder / "medium", before=before) as drive:
        drive.start()
        kept = {f"small-{n}": value(n, 100 * n) for n in range(SMALL)}
        kept["long"] = value(99, LONG_BYTES)
        for key, content in kept.items():
            if said := drive.put(key, content):
                raise Failed(f"put of {key}: {said}")
        under_load(drive, kept)
        drive.start()
        drive.keeps_over_a_stop(kept)


def under_load(drive: Served, kept: dict[str, bytes]) -> None:
    """Kill the drive while it stores; adds what it acknowledged."""
    ended = threading.Event()

    def store() -> None:
        for number in range(1000):
            key, content = f"load-{number}", value(number, 20_000)
            if ended.is_set() or drive.put(key, content):
                return
            kept[key] = content

    writer = threading.Thread(target=store)
    writer.start()
    wait_until("some values are stored", lambda: "load-5" in kept or not writer.is_alive())
    drive.kill()
    ended.set()
    writer.join()


def on_file_system(csd: Path, place: str) -> None:
    """Check a drive on a file system."""
    with mounts.FILE_SYSTEMS[place]() as folder:
        keeps(csd, folder)
        if "FUSE" in place:
            chooses_epoll(csd, folder)


def chooses_epoll(csd: Path, folder: Path) -> None:
    """Check the back end of a drive on FUSE, and the warning if another one is asked for."""
    for options, words in (
        ("", "FUSE file system: epoll, not io_uring"),
        (" --backend uring", "use --backend auto or epoll"),
    ):
        with Served(csd, folder / "other", f"--size 192M{options}") as drive:
            drive.start()
            if words not in drive.log():
                raise Failed(f"the log has not {words!r}: {last(drive.log())}")


def without_io_uring(csd: Path, error: int) -> None:
    """Check a drive where io_uring is forbidden."""
    limits.check_filter()
    before = limits.without_io_uring(error)
    with mounts.scratch() as folder:
        keeps(csd, folder, before)
        with Served(csd, folder / "other", "--size 192M --backend uring", before) as drive:
            drive.begin()
            if drive.url or "io_uring" not in drive.log():
                raise Failed(f"--backend uring does not name io_uring: {last(drive.log())}")


def in_a_group(csd: Path) -> None:
    """Check that the limits of a control group are those that are used and said."""
    memory = 512 << 20
    with mounts.scratch() as folder, limits.group(memory, 0.5) as within:
        words = "characterize --kernels count --size 64K --repeat 1 --media memory -o p.toml"
        characterize = [*within, str(csd), *words.split()]
        done = subprocess.run(characterize, cwd=folder, capture_output=True, check=False)
        if done.returncode:
            raise Failed(f"characterize: {last(done.stderr.decode())}")
        host = tomllib.loads((folder / "p.toml").read_text())["host"]
        found = (host["cores"], host["dram_bytes"])
        if found != (1, memory):
            raise Failed(f"the profile has cores and memory {found}, not (1, {memory})")
        if b"0.50 cores" not in done.stderr:
            raise Failed("characterize does not say that the group has half a core")
        with Served(csd, folder / "medium", before=within) as drive:
            drive.start()
            if "limited to 512 MiB of memory" not in drive.log():
                raise Failed("the drive does not say which memory it may use")
            if said := drive.put("key", value(1, 1000)):
                raise Failed(said)
            drive.stop()


def no_space_for_a_medium(csd: Path) -> None:
    """Check that a medium that does not fit is refused, leaves no file, and fits later."""
    with mounts.tmpfs("300M") as folder:
        ballast = folder / "ballast"
        mounts.command("fallocate", "-l", "200M", ballast)
        medium = folder / "medium"
        with Served(csd, medium) as drive:
            drive.begin()
            if drive.url or "space" not in drive.log():
                raise Failed(f"a full disk is not named: {last(drive.log())}")
            if medium.exists():
                raise Failed("a file stays where there was no space for a medium")
            ballast.unlink()
            drive.start()
            if said := drive.put("key", value(1, 1000)):
                raise Failed(said)
            drive.stop()


def full_under_a_medium(csd: Path) -> None:
    """Check that a disk that is full for a while costs nothing that was acknowledged.

    A copied medium has holes, whose space is only taken when they are written.
    """
    with mounts.tmpfs("300M") as folder:
        full_for_a_while(csd, folder, full.filled(folder))


def beyond_a_quota(csd: Path, kind: str) -> None:
    """Check that a quota that is reached while a drive serves is said, and can be raised."""
    with quotas.QUOTAS[kind]() as (folder, limit):

        @contextlib.contextmanager
        def reached() -> Iterator[None]:
            os.sync()
            used = sum(path.stat().st_blocks * 512 for path in folder.iterdir())
            limit(used + (4 << 20))
            try:
                yield
            finally:
                limit(1 << 30)

        full_for_a_while(csd, folder, reached(), quotas.BOUND, errno.EDQUOT)


def full_for_a_while(
    csd: Path,
    folder: Path,
    is_full: contextlib.AbstractContextManager[None],
    before: Sequence[str] = (),
    error: int = errno.ENOSPC,
) -> None:
    """Store while there is no space for a medium with holes, and again once there is."""
    medium = folder / "medium"
    with Served(csd, medium, "--size 256M --kv 80%", before) as drive:
        drive.start()
        drive.stop()
        mounts.command("cp", "--sparse=always", medium, folder / "copy")
        (folder / "copy").rename(medium)
        drive.start()
        kept = {"before": value(1, LONG_BYTES)}
        drive.put("before", kept["before"])
        with is_full:
            refused = [drive.put(f"full-{n}", value(n, LONG_BYTES)) for n in range(4)]
            if not any(refused):
                raise Failed("values fit where there is no space")
            if os.strerror(error) not in drive.log():
                raise Failed(f"the log does not say {os.strerror(error)!r}")
        after = value(2, LONG_BYTES)
        wait_until("values fit again", lambda: not drive.put("after", after))
        kept["after"] = after
        drive.keeps_over_a_stop(kept)


def checks(csd: Path) -> dict[str, Callable[[], None]]:
    """List the checks by name."""
    all_of_them: dict[str, Callable[[], None]] = {
        f"kill -9 under load on {place}": partial(on_file_system, csd, place)
        for place in mounts.FILE_SYSTEMS
    }
    for error in (errno.EPERM, errno.ENOSYS):
        name = f"without io_uring ({errno.errorcode[error]})"
        all_of_them[name] = partial(without_io_uring, csd, error)
    all_of_them["control group of half a core and 512 MiB"] = partial(in_a_group, csd)
    all_of_them["no space for a new medium"] = partial(no_space_for_a_medium, csd)
    all_of_them["a disk that is full for a while"] = partial(full_under_a_medium, csd)
    for kind in quotas.QUOTAS:
        all_of_them[f"a quota of {kind} that is reached"] = partial(beyond_a_quota, csd, kind)
    all_of_them["a full disk under results"] = partial(full.under_results, csd)
    all_of_them["a full disk under a log"] = partial(full.under_a_log, csd)
    for call, error in faults.FAULTS:
        name = f"a {call} that fails once ({errno.errorcode[error]})"
        all_of_them[name] = partial(faults.fails_once, csd, call, error)
    return all_of_them


def main() -> int:
    """Run the lane."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--csd", type=Path, default=ROOT / "target/release/csd")
    parser.add_argument("--only", default="", help="checks whose names contain this")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    for name, check in checks(options.csd.resolve()).items():
        if options.only not in name:
            continue
        begun = time.monotonic()
        outcome, said = "passed", ""
        try:
            if os.geteuid():
                raise Unavailable("needs root")
            check()
        except Unavailable as why:
            outcome, said = "skipped", f": {why}"
        except (Failed, subprocess.SubprocessError) as why:
            outcome, said = "failed", f": {why}"
        counts[outcome] += 1
        print(f"{outcome.upper()} {name}{said} ({time.monotonic() - begun:.0f} s)", flush=True)
    print(f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped")
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    raise SystemExit(main())
