"""Kernels of the lane, and the commands that they are given; one runs as a process."""

import os
import queue
import signal
import subprocess
import threading
import time
from pathlib import Path

BOOT_LIMIT_S = 120.0


class Failed(Exception):
    """A step that did not end as it must."""


class Kernel:
    """A kernel on one side of the drive, which reads commands and says how they end."""

    # The drive's blocks.
    disk = "/dev/ubda"

    def __init__(self, name: str, log: Path, factor: float) -> None:
        self.name, self._factor, self._count = name, factor, 0
        self._log = log.open("ab")
        beats = round(1 + 20 * factor)
        # Heartbeats after which a node is dead, and the silence after which a connection is.
        self.patience = (f"beat={beats}", f"idle_ms={beats * 3000}")

    def start(self, command: list[str]) -> None:
        """Start the process that has the kernel."""
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._log.write(line)
            self._log.flush()
            self._lines.put(line.decode(errors="replace").rstrip("\r\n"))
        self._lines.put(None)

    def _until(self, mark: str, seconds: float) -> tuple[list[str], str]:
        """Return the lines before the one that begins with a mark, and the rest of that one."""
        before: list[str] = []
        end = time.monotonic() + seconds * self._factor
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise Failed(f"{self.name}: no {mark} in time; it said {before}") from None
            if line is None:
                raise Failed(f"{self.name}: the kernel ended; it said {before[-10:]}")
            if line.startswith(mark):
                return before, line[len(mark) :].strip()
            before.append(line)

    def booted(self) -> None:
        """Wait until the kernel takes commands."""
        self._until("@READY", BOOT_LIMIT_S)

    def run(self, command: str, seconds: float = 120.0) -> str:
        """Run a line of shell, and return what it prints; it must succeed."""
        self._count += 1
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{self._count} {command}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            raise Failed(f"{self.name}: the kernel has ended") from None
        said, status = self._until(f"@END {self._count}", seconds)
        if status != "0":
            raise Failed(f"{self.name}: {command}: exit code {status}: {said}")
        return "\n".join(said)

    def kill(self) -> None:
        """Kill the kernel with all its processes, as a power cut would."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        """End the kernel, if it runs."""
        if self._process.poll() is None:
            self.kill()
        self._log.close()


class Node(Kernel):
    """A kernel that is a process (user-mode-linux), on one door of the drive."""

    def __init__(
        self, number: int, image: Path, block: Path, namespace: str, log: Path, factor: float
    ) -> None:
        super().__init__(("host", "drive")[number], log, factor)
        command = ["nsenter", f"--net=/run/netns/{namespace}", str(image / "usr/bin/linux.uml")]
        command += ["mem=512M", "root=/dev/root", "rootfstype=hostfs", f"rootflags={image}", "ro"]
        # The letter c: another kernel has the same disk.
        command += ["init=/csd-node", f"node={number}", f"ubd0c={block}", "quiet"]
        command += [*self.patience, "device=vec0"]
        command += ["vec0:transport=tap,ifname=tap0,depth=128", "con=null", "con0=fd:0,fd:1"]
        command += [f"umid={self.name}", f"uml_dir={log.parent}/"]
        self.start(command)
