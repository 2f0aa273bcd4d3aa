"""A drive under test: the process of ``csd drive serve``."""

import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

READY_LIMIT_S = 60.0
MEDIA_SIZE = "768M"
KV_SHARE = "25%"


class Drive:
    """A drive over a file, on a port of the host's loopback that stays over restarts."""

    def __init__(
        self, csd: Path, folder: Path, name: str, block: int, more: Sequence[str] = ()
    ) -> None:
        self.nqn = f"nqn.2026-11.io.csdstore:vm-{name}"
        self.ready_file = folder / f"{name}.ready"
        self.log = folder / f"{name}.log"
        self.command = [str(csd), "drive", "serve", "--media", str(folder / f"{name}.media")]
        self.command += ["--size", MEDIA_SIZE, "--kv", KV_SHARE, "--nqn", self.nqn]
        self.command += ["--block", str(block), "--ready-file", str(self.ready_file), *more]
        self.port = 0
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start it, at the address that it had before, and wait until it serves."""
        self.ready_file.unlink(missing_ok=True)
        listen = ["--listen", f"127.0.0.1:{self.port}"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([*self.command, *listen], stdout=log, stderr=log)
        end = time.monotonic() + READY_LIMIT_S
        while not self.ready_file.exists():
            if self.process.poll() is not None or time.monotonic() > end:
                self.stop(kill=True)
                said = self.log.read_text().splitlines()
                raise RuntimeError(f"the drive did not start: {said[-1] if said else ''}")
            time.sleep(0.02)
        address = self.ready_file.read_text().removeprefix("nvme+tcp://").split("/")[0]
        self.port = int(address.rsplit(":", 1)[1])

    def running(self) -> bool:
        """Return true if the process lives."""
        return self.process is not None and self.process.poll() is None

    def stop(self, *, kill: bool = False) -> None:
        """Stop it by SIGTERM, or by SIGKILL."""
        if self.process is None:
            return
        if kill:
            self.process.kill()
        else:
            self.process.terminate()
        try:
            self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
