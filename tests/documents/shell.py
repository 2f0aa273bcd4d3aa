"""A shell that runs a page's commands one after another, as a reader would."""

import contextlib
import os
import pty
import select
import signal
import subprocess
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

# Longest wait for a command. It only ends what hangs.
LIMIT_S = 600.0
LOOK_EVERY_S = 0.02


@cache
def apart() -> list[str]:
    """Return a prefix that gives a command its own network with free ports, if that is allowed."""
    up = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    try:
        tried = subprocess.run([*up, "true"], check=False, capture_output=True)
    except OSError:
        return []
    return up if tried.returncode == 0 else []


@dataclass(frozen=True)
class Outcome:
    """Outcome of a command."""

    code: int
    output: str


class Shell:
    """One ``bash`` in a folder, so that what a command changes holds for the next."""

    def __init__(self, folder: Path, environment: dict[str, str], scratch: Path) -> None:
        self.scratch = scratch
        self.number = 0
        self.status, theirs = os.pipe()
        self.terminal, self.theirs = pty.openpty()
        self.fd = theirs
        self.bash = subprocess.Popen(
            [*apart(), "bash", "--norc", "--noprofile"],
            cwd=folder,
            env=environment,
            stdin=subprocess.PIPE,
            pass_fds=(theirs,),
            start_new_session=True,
            text=True,
        )
        os.close(theirs)
        self.write("set -o pipefail")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the shell and all processes of its session."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.bash.pid, signal.SIGKILL)
        self.bash.wait()
        for fd in (self.status, self.terminal, self.theirs):
            os.close(fd)

    def write(self, line: str) -> None:
        """Give the shell a line; one that has ended is noticed by the missing exit code."""
        assert self.bash.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.bash.stdin.write(line + "\n")
            self.bash.stdin.flush()

    def run(self, command: str, *, answers: str = "", in_background: bool = False) -> Outcome:
        """Run a command; one in the background until it says that it serves."""
        self.number += 1
        output = self.scratch / f"output-{self.number}"
        source = "/dev/null"
        if answers:
            source = os.ttyname(self.theirs)
            os.write(self.terminal, f"{answers}\n".encode())
        self.write(f"{{ {command}\n}} >{output} 2>&1 <{source} {self.fd}>&-")
        self.write(f"echo $? >&{self.fd}")
        code = self.answer()
        if in_background:
            code = self.serving(output)
        said = output.read_text(encoding="utf-8", errors="replace") if output.exists() else ""
        return Outcome(code, said)

    def answer(self) -> int:
        """Wait for a command's exit code; 124 when it hangs, 125 when the shell has ended."""
        ready, _, _ = select.select([self.status], [], [], LIMIT_S)
        if not ready:
            return 124
        said = os.read(self.status, 64).decode()
        return int(said) if said else 125

    def serving(self, output: Path) -> int:
        """Wait until a drive in the background serves; 1 when it ends instead."""
        until = time.monotonic() + LIMIT_S
        while time.monotonic() < until:
            said = output.read_text(encoding="utf-8", errors="replace")
            if said.startswith("serving ") or "\nserving " in said:
                return 0
            if "error: " in said:
                return 1
            time.sleep(LOOK_EVERY_S)
        return 124
