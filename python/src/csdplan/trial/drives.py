"""Paced drives as processes of this machine, in memory, with the array file that names them."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from uuid import uuid4

from csdplan.trial.program import Csd

#: Longest wait for a drive to serve, and to end [s].
_READY_S, _END_S = 60.0, 15.0
_POLL_S = 0.02
#: Lines of a drive's log that a message shows.
_LINES = 3


@contextmanager
def paced_drives(csd: Csd, count: int, pace: str, folder: Path, size_bytes: int) -> Iterator[Path]:
    """Start `count` drives paced to a profile, and yield their array file.

    The drives end with the block, also if it fails; if this process is killed, Linux ends them.

    Parameters
    ----------
    csd : Csd
        The program.
    count : int
        Number of drives.
    pace : str
        The profile, as TOML; it has one device with points.
    folder : Path
        Folder in which this array has a folder of its own, for its array file and logs.
    size_bytes : int
        Size of each drive [bytes].

    Raises
    ------
    ChildProcessError
        If a drive does not serve.
    """
    folder = Path(mkdtemp(dir=folder))
    paced = folder / "pace.toml"
    paced.write_text(pace, encoding="utf-8")
    run = uuid4().hex
    processes: list[subprocess.Popen[bytes]] = []
    try:
        for index in range(count):
            words = ["drive", "serve", "--media", "memory", "--size", str(size_bytes)]
            words += ["--listen", "127.0.0.1:0", "--nqn", f"nqn.2026-11.io.csdstore:{run}-{index}"]
            words += ["--session", "--pace", str(paced)]
            words += ["--ready-file", str(folder / f"ready-{index}")]
            words += ["--log-file", str(folder / f"log-{index}")]
            processes.append(csd.start(*words))
        urls = [_url(folder, index, process) for index, process in enumerate(processes)]
        array = folder / "array.toml"
        drives = [f'[[drives]]\nname = "d{i}"\nurl = "{url}"\n' for i, url in enumerate(urls)]
        head = f'schema = 1\nname = "csdplan"\nuuid = "{run}"\n'
        array.write_text(head + "".join(drives), encoding="utf-8")
        yield array
    finally:
        _stop(processes)


def _url(folder: Path, index: int, process: subprocess.Popen[bytes]) -> str:
    """Wait until a drive serves, and return its URL."""
    ready, log = folder / f"ready-{index}", folder / f"log-{index}"
    end = time.monotonic() + _READY_S
    while time.monotonic() < end:
        if ready.exists() and (url := ready.read_text(encoding="utf-8").strip()):
            return url
        if process.poll() is not None:
            said = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
            lines = "; ".join(said[-_LINES:]) or "it logged nothing"
            raise ChildProcessError(f"drive {index} ended ({process.returncode}): {lines}")
        time.sleep(_POLL_S)
    raise ChildProcessError(f"drive {index} did not serve within {_READY_S:g} s")


def _stop(processes: list[subprocess.Popen[bytes]]) -> None:
    """Stop drives, those that do not end in time by force."""
    for process in processes:
        process.terminate()
    end = time.monotonic() + _END_S
    for process in processes:
        try:
            process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
