"""A drive's process on a medium in some place, and the commands that use it."""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

# A wait that takes so long is a hang, in seconds.
HANG = 120


class Failed(Exception):
    """A check found something wrong."""


class Served:
    """A drive that serves a medium; leaving the context kills it."""

    def __init__(
        self,
        csd: Path,
        medium: Path,
        options: str = "--size 192M",
        before: Sequence[str] = (),
    ) -> None:
        """Name the drive; ``before`` are words before its command line."""
        self._csd, self._medium, self._before = csd, medium, before
        self._options = options.split()
        self._folder = tempfile.TemporaryDirectory(prefix="csd-places-")
        self._process: subprocess.Popen[bytes] | None = None
        self.url = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()
        self._folder.cleanup()

    @property
    def folder(self) -> Path:
        """Folder of this drive's log, and for the files of a check."""
        return Path(self._folder.name)

    def log(self) -> str:
        """Return everything that the drive has logged."""
        path = self.folder / "log"
        return path.read_text(errors="replace") if path.exists() else ""

    def begin(self) -> None:
        """Start the drive, and wait until it serves or has ended."""
        ready = self.folder / "ready"
        ready.unlink(missing_ok=True)
        words = f"{self._csd} drive serve --listen 127.0.0.1:0 --media {self._medium}".split()
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [*self._before, *words, "--ready-file", str(ready), *self._options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        wait_until("the drive serves or ends", lambda: ready.exists() or self.has_ended())
        self.url = ready.read_text() if ready.exists() else ""

    def start(self) -> None:
        """Start the drive; it has to serve."""
        self.begin()
        if not self.url:
            raise Failed(f"the drive does not start: {last(self.log())}")

    def has_ended(self) -> bool:
        """Say whether the process has ended."""
        return self._process is None or self._process.poll() is not None

    def code(self) -> int:
        """Wait for the end of the process, and return its exit code."""
        assert self._process
        return self._process.wait(HANG)

    def kill(self) -> None:
        """End the drive at once, as a crash does."""
        if self._process and not self.has_ended():
            self._process.kill()
            self._process.wait()

    def stop(self) -> None:
        """Ask the drive to stop; it has to end without an error."""
        assert self._process
        self._process.send_signal(signal.SIGTERM)
        if code := self.code():
            raise Failed(f"the drive stops with exit code {code}: {last(self.log())}")

    def run(self, *words: object) -> subprocess.CompletedProcess[bytes]:
        """Run a command of csd."""
        texts = [str(word) for word in words]
        return subprocess.run(
            [self._csd, *texts], capture_output=True, timeout=HANG, cwd=self.folder, check=False
        )

    def put(self, key: str, value: bytes) -> str:
        """Store a value; return what was said if it was refused, else nothing."""
        path = self.folder / f"value-{key}"
        path.write_bytes(value)
        done = self.run("kv", "put", path, key, "--drive", self.url)
        path.unlink()
        if done.returncode and not done.stderr:
            raise Failed(f"put of {key} fails without a word (exit code {done.returncode})")
        return last(done.stderr.decode(errors="replace")) if done.returncode else ""

    def holds(self, values: dict[str, bytes]) -> None:
        """Check that every value is there as it was stored."""
        for key, value in values.items():
            done = self.run("kv", "get", key, "--drive", self.url)
            if done.returncode or done.stdout != value:
                said = last(done.stderr.decode(errors="replace"))
                raise Failed(f"{key}, which was stored, is not there: {said or 'other bytes'}")

    def keeps_over_a_stop(self, values: dict[str, bytes]) -> None:
        """Check that the values are there, and again after a clean stop of a sound medium."""
        self.holds(values)
        self.stop()
        self.check()
        self.start()
        self.holds(values)
        self.stop()

    def check(self) -> None:
        """Check the medium of the stopped drive."""
        done = self.run("drive", "check", self._medium)
        if done.returncode:
            raise Failed(f"drive check: {last((done.stdout + done.stderr).decode())}")


def last(text: str) -> str:
    """Return the last line that says something."""
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def wait_until(what: str, holds: Callable[[], bool]) -> None:
    """Poll until something holds."""
    end = time.monotonic() + HANG
    while not holds():
        if time.monotonic() > end:
            raise Failed(f"never: {what}")
        time.sleep(0.01)


def value(seed: int, length: int) -> bytes:
    """Return bytes that follow from a seed."""
    return seed.to_bytes(8, "little") + os.urandom(max(0, length - 8))
