"""A drive for each test, served by the `csd` program that ``$CSD`` names."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
CSD = Path(os.environ.get("CSD", ROOT / "target/debug/csd"))
HOST_NQN = "nqn.2026-11.io.csdstore:host"
# Longest wait for a thread that can run, in seconds.
LIMIT = 60


class Drive:
    """A drive in a process of its own."""

    def __init__(self, *options: str, media: str = "memory") -> None:
        """Start it, and wait until it serves."""
        self.options = ("--media", media, *options)
        self.listen = "127.0.0.1:0"
        self.start()

    def start(self) -> None:
        """Start it, at the address that it had before."""
        serve = [CSD, "drive", "serve", "--size", "256M"]
        serve += ["--listen", self.listen, "--json", *self.options]
        self.process = subprocess.Popen(serve, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.url: str = json.loads(self.process.stdout.readline())["result"]["url"]
        self.listen = self.url.removeprefix("nvme+tcp://").partition("/")[0]

    def halt(self) -> None:
        """Stop the process, which keeps its connections and answers nothing."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitpid(self.process.pid, os.WUNTRACED)

    def kill(self) -> None:
        """End it without a word to its hosts."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """End it, also when it was halted."""
        self.process.terminate()
        self.process.send_signal(signal.SIGCONT)
        self.process.wait()


def secrets_files(folder: Path) -> tuple[Path, Path]:
    """Write a host's secrets file, and one with another secret."""
    secret = "01:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR:"

    def file(name: str, secret: str) -> Path:
        path = folder / name
        path.touch(mode=0o600)
        path.write_text(f"host {HOST_NQN} DHHC-1:{secret}\n")
        return path

    return file("right", secret), file("wrong", secret.replace("01:", "00:", 1))


def together(works: Iterable[Callable[[], None]]) -> None:
    """Run in threads; raise the first failure."""
    failed: list[BaseException] = []

    def guard(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=guard, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for error in failed:
        raise error


class Gated:
    """Python code in a process of its own, and a gate before each of the drives that it uses.

    A gate lets what the process sends to the drive through only after a second thread of the
    process has answered. If a call holds the interpreter's lock while it waits for a drive, that
    thread cannot answer, and the call never ends. Code that sets `shut` shuts the gates for good;
    `asked` is set once something waits at one.
    """

    ANSWER = """
import os, threading
shut, asked = threading.Event(), threading.Event()
def answer():
    while os.read(0, 1):
        if shut.is_set():
            return asked.set()
        os.write(1, b".")
threading.Thread(target=answer, daemon=True).start()
"""

    def __init__(self, code: str, drives: Iterable[str], *words: str) -> None:
        """Run the code; its arguments are the words and the gates' addresses."""
        self.lock = threading.Lock()
        self.answers = 0
        gates = {socket.create_server(("127.0.0.1", 0)): drive for drive in drives}
        addresses = [f"127.0.0.1:{gate.getsockname()[1]}" for gate in gates]
        # When it is aborted, it says where its threads are.
        python = [sys.executable, "-X", "faulthandler", "-c", self.ANSWER + code]
        self.process = subprocess.Popen(
            [*python, *words, *addresses],
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for gate, drive in gates.items():
            threading.Thread(target=self.accept, args=(gate, drive), daemon=True).start()

    def accept(self, gate: socket.socket, drive: str) -> None:
        """Connect every host to the drive."""
        address, _, port = drive.rpartition(":")
        while True:
            host, _ = gate.accept()
            to = socket.create_connection((address, int(port)))
            for ways in ((host, to, self.is_answered), (to, host, lambda: True)):
                threading.Thread(target=self.pass_on, args=ways, daemon=True).start()

    def pass_on(
        self, source: socket.socket, target: socket.socket, is_open: Callable[[], bool]
    ) -> None:
        """Pass bytes on while the gate is open."""
        with contextlib.suppress(OSError):
            while (piece := source.recv(1 << 16)) and is_open():
                target.sendall(piece)
            target.shutdown(socket.SHUT_WR)

    def is_answered(self) -> bool:
        """Ask the second thread, and wait for its answer."""
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        with self.lock, contextlib.suppress(BrokenPipeError):
            stdin.write(b"?")
            if not select.select([stdout], [], [], LIMIT)[0]:
                self.process.send_signal(signal.SIGABRT)
            elif stdout.read(1):
                self.answers += 1
                return True
        return False

    def end(self) -> int:
        """Wait for the end of the code, which must succeed; return the number of answers."""
        assert self.process.stderr is not None
        said = self.process.stderr.read().decode()
        assert (self.process.wait(), said) == (0, ""), said
        return self.answers


@pytest.fixture
def drive() -> Iterator[Drive]:
    """Serve a drive."""
    drive = Drive()
    yield drive
    drive.stop()


class Array:
    """An array of three drives, in processes of their own."""

    def __init__(self, folder: Path, media: str) -> None:
        """Start its drives."""
        self.file = folder / "array.toml"
        self.csd("array", "up", "--drives", "3", "--media", media, "--size", "256M")

    def csd(self, *words: str, **options: Any) -> bytes:
        """Run `csd` on the array, and return its output."""
        command = [str(CSD), "--array", str(self.file), *words]
        return subprocess.run(command, check=True, stdout=subprocess.PIPE, **options).stdout

    def kill(self, place: int) -> None:
        """End a drive without a word to its hosts, and wait for its end."""
        one = tomllib.loads(self.file.read_text())["drives"][place]
        process = os.pidfd_open(one["pid"])
        signal.pidfd_send_signal(process, signal.SIGKILL)
        select.select([process], [], [])
        os.close(process)

    def restart(self, place: int) -> None:
        """Kill a drive, and start it again."""
        self.kill(place)
        self.csd("array", "up")


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Array]:
    """Serve an array."""
    array = Array(tmp_path, "memory")
    yield array
    array.csd("array", "down")
