"""A drive for each test, served by the `csd` program that ``$CSD`` names."""

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
CSD = Path(os.environ.get("CSD", ROOT / "target/debug/csd"))
HOST_NQN = "nqn.2026-11.io.csdstore:host"


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

    def stop(self) -> None:
        """End it."""
        self.process.terminate()
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


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Array]:
    """Serve an array."""
    array = Array(tmp_path, "memory")
    yield array
    array.csd("array", "down")
