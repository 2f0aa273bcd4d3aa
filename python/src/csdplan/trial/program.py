"""The ``csd`` program: found, run, and its JSON read."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

#: Exit code of a command that is done and has a warning.
_WARNED = 4
#: PR_SET_PDEATHSIG of prctl(2).
_SET_DEATH_SIGNAL = 1


def _end_with_parent() -> Callable[[], object] | None:
    """Return what a new process does so that Linux stops it when its parent is killed."""
    if not sys.platform.startswith("linux"):
        return None
    # Loaded before the fork: the new process only calls.
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_SET_DEATH_SIGNAL, int(signal.SIGTERM))


class WrongAnswerError(ChildProcessError):
    """Drives and host give different answers: no fault of the moment, and no measurement."""


class Csd:
    """The ``csd`` program.

    Parameters
    ----------
    program : str or Path, optional
        The program; by default ``$CSD``, or else ``csd`` on the path.

    Raises
    ------
    FileNotFoundError
        If there is no such program.
    """

    def __init__(self, program: str | Path | None = None) -> None:
        named = str(program or os.environ.get("CSD") or "csd")
        found = shutil.which(named)
        if found is None:
            raise FileNotFoundError(
                errno.ENOENT,
                "no such program: install CSDStore, or name the program by --csd or in $CSD",
                named,
            )
        self.path = str(Path(found).absolute())
        #: Warnings that a script must see, of the commands so far.
        self.warnings: list[str] = []

    def version(self) -> str:
        """Return the program's version, as it prints it."""
        done = subprocess.run([self.path, "--version"], check=False, capture_output=True, text=True)
        return done.stdout.strip()

    def start(self, *words: str | Path) -> subprocess.Popen[bytes]:
        """Start a command that goes on by itself, and return its process."""
        return subprocess.Popen(
            [self.path, "--quiet", *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=_end_with_parent(),  # noqa: PLW1509 - it takes no lock
        )

    def run(self, array: Path, *words: str | Path) -> dict[str, Any]:
        """Run a command with an array, and return the result that it prints as JSON.

        Raises
        ------
        ChildProcessError
            If it fails; with its own message.
        """
        command = [self.path, "--array", str(array), "--json", *map(str, words)]
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            preexec_fn=_end_with_parent(),
        )
        try:
            answer = json.loads(done.stdout)
        except ValueError:
            answer = {}
        if done.returncode not in {0, _WARNED} or "result" not in answer:
            said = answer.get("error", {}).get("message") or done.stderr.strip()
            raise ChildProcessError(f"csd {words[0]} failed ({done.returncode}): {said}")
        if done.returncode == _WARNED:
            self.warnings += [f"csd {words[0]}: {said}" for said in answer.get("warnings", [])]
        return dict(answer["result"])
