"""A virtual machine and its reports.

Runs QEMU with software emulation: nothing depends on the host's virtualisation. The guest reports
on its second serial port, which is QEMU's standard output, in lines that begin with ``@``; its
console goes to a file. Invariant: every check has an end. The guest limits a check's time; when
it cannot (a task that waits in the kernel for ever), the watchdog here ends the machine, and the
check has failed.
"""

import queue
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

COMMAND_LINE = (
    "console=ttyS0 panic=-1 quiet nokaslr mitigations=off random.trust_cpu=on tsc=reliable "
    "clocksource=tsc no_timer_check"
)
BOOT_LIMIT_S = 90.0
# What the guest gets to end a check that overran, before the host does.
GRACE_S = 45.0


@dataclass(frozen=True)
class Outcome:
    """Outcome of a check."""

    name: str
    result: str  # pass, fail or skip
    seconds: float
    reason: str
    log: tuple[str, ...] = ()


class Machine:
    """A running machine."""

    def __init__(
        self,
        image: Path,
        archive: bytes,
        folder: Path,
        factor: float,
        disks: Sequence[Path] = (),
    ) -> None:
        self.console = folder / "console.log"
        self.factor = factor
        initramfs = folder / "initramfs"
        base = (image / "initramfs").read_bytes()
        initramfs.write_bytes(base + bytes(-len(base) % 512) + archive)
        command = ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max,la57=off"]
        command += ["-M", "q35,hpet=off", "-smp", "2", "-m", "1024", "-nodefaults", "-no-reboot"]
        command += ["-display", "none", "-kernel", str(image / "vmlinux")]
        command += ["-initrd", str(initramfs), "-append", COMMAND_LINE]
        for disk in (image / "root.img", *disks):
            command += ["-drive", f"file={disk},if=virtio,format=raw,snapshot=on"]
        command += ["-netdev", "user,id=net", "-device", "virtio-net-pci,netdev=net"]
        command += ["-device", "virtio-rng-pci"]
        command += ["-serial", f"file:{self.console}"]
        command += ["-chardev", "stdio,id=report,signal=off", "-serial", "chardev:report"]
        self.stderr = (folder / "qemu.log").open("wb")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr
        )
        self.lines: queue.Queue[str | None] = queue.Queue()
        # What the guest said first.
        self.first: str | None = None
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line.decode(errors="replace").strip())
        self.lines.put(None)

    def booted(self) -> bool:
        """Wait until the first check begins; false when none does in time."""
        try:
            self.first = self.lines.get(timeout=BOOT_LIMIT_S * self.factor)
        except queue.Empty:
            return False
        return self.first is not None

    def outcomes(self, ask: Callable[[str], str]) -> Iterator[Outcome]:
        """Yield how the checks end, as they do; ``ask`` does what the guest asks of the host.

        A machine that did not boot says nothing about the drive: that is a check skipped.
        """
        if self.first is None:
            yield Outcome("boot", "skip", 0.0, f"the machine does not boot, see {self.console}")
            return
        self.lines.queue.appendleft(self.first)
        running, began, log = "boot", time.monotonic(), []
        limit = began + GRACE_S * self.factor
        while True:
            try:
                line = self.lines.get(timeout=max(0.0, limit - time.monotonic()))
            except queue.Empty:
                reason = "no answer in time; the machine was ended"
                yield Outcome(running, "fail", time.monotonic() - began, reason, self._tail(log))
                return
            kind, _, rest = (line or "").partition(" ")
            if line is None:
                reason = "the machine ended by itself"
                yield Outcome(running, "fail", time.monotonic() - began, reason, self._tail(log))
                return
            if kind == "@BEGIN":
                name, seconds = rest.split()
                running, began, log = name, time.monotonic(), []
                limit = began + float(seconds) + GRACE_S * self.factor
            elif kind == "@LOG":
                log.append(rest)
            elif kind == "@ASK":
                self._reply(ask(rest))
            elif kind == "@END":
                name, result, reason = (*rest.split(" ", 2), "")[:3]
                yield Outcome(name, result, time.monotonic() - began, reason, tuple(log))
                running = f"after-{name}"
                limit = time.monotonic() + GRACE_S * self.factor
            elif kind == "@DONE":
                return

    def _reply(self, text: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode() + b"\n")
        self.process.stdin.flush()

    def _tail(self, log: list[str]) -> tuple[str, ...]:
        console = self.console.read_text(errors="replace") if self.console.exists() else ""
        return (*log, *(f"console: {line}" for line in console.splitlines()[-30:]))

    def end(self, *, at_once: bool = False) -> None:
        """End the machine; it has powered off by itself when all went well."""
        try:
            self.process.wait(timeout=0 if at_once else 10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.stderr.close()
