#!/usr/bin/env python3
"""LMCache over a drive: its own check and its own benchmark, with the connector of csdstore.

LMCache comes from PyPI with PyTorch and CUDA's libraries, 6 GB, into ``build/llm``. Where it cannot
be installed, the lane prints ``SKIPPED`` and the reason. The last line is ``N passed, N failed, N
skipped``; the exit status is 1 if anything failed.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
LMCACHE = "lmcache==0.5.6"
# What the installation takes, and pip's downloads next to it.
ROOM_BYTES = 14 << 30
INSTALL_LIMIT_S = 3600
STEP_LIMIT_S = 600
NQN = "nqn.2026-11.io.csdstore:llm"
ROWS = ("LOOKUP (absent)", "STORE", "LOOKUP (exist)", "LOAD")
# Elements of two bytes: of one value, and of several pieces.
OBJECT_ELEMENTS = (1024, 9 << 20)


class Unavailable(Exception):
    """LMCache cannot be installed here."""


def main() -> int:
    """Run the lane."""
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--csd", type=Path, default=ROOT / "target/debug/csd")
    parser.add_argument("--wheel", type=Path, required=True, help="wheel of csdstore")
    parser.add_argument("--dir", type=Path, default=ROOT / "build/llm")
    options = parser.parse_args()
    try:
        python = installed(options.dir, options.wheel)
    except Unavailable as reason:
        print(f"SKIPPED llm: {reason}")
        print("0 passed, 0 failed, 1 skipped")
        return 0
    lane = Lane(python, options.csd, options.dir)
    try:
        for elements in OBJECT_ELEMENTS:
            lane.check(f"basic check, {elements} elements", lambda e=elements: lane.basic(e))
        lane.check("benchmark, with its verification", lane.benchmark)
        lane.check("benchmark finds all after a restart of the drive", lane.restarted)
        lane.check("basic check names what a missing drive fails", lane.gone)
    finally:
        lane.drive_stops()
    print(f"{lane.passed} passed, {lane.failed} failed, 0 skipped")
    return 1 if lane.failed else 0


def installed(folder: Path, wheel: Path) -> Path:
    """Make, or find, the environment with LMCache and the wheel; return its Python."""
    environment, stamp = folder / "venv", folder / "venv.stamp"
    python = environment / "bin/python"
    if not (stamp.is_file() and stamp.read_text() == LMCACHE):
        stamp.unlink(missing_ok=True)
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
        if free < ROOM_BYTES:
            raise Unavailable(f"{free >> 30} GiB are free, and LMCache needs {ROOM_BYTES >> 30}")
        install(sys.executable, "-m", "venv", "--clear", str(environment))
        install(str(python), "-m", "pip", "install", "-q", LMCACHE)
        stamp.write_text(LMCACHE)
    pip = (str(python), "-m", "pip", "install", "-q", "--force-reinstall", "--no-deps")
    subprocess.run([*pip, str(wheel)], check=True)
    return python


def install(*command: str) -> None:
    """Run a step of the installation."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=INSTALL_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"its installation took longer than {INSTALL_LIMIT_S} s") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [""])[-1]
        raise Unavailable(f"{' '.join(command[1:])} failed: {last}")


class Lane:
    """The checks, and the drive that they use."""

    def __init__(self, python: Path, csd: Path, folder: Path) -> None:
        """Start the drive."""
        self.python = python
        self.csd = csd
        self.folder = folder
        self.media = folder / "drive.media"
        self.media.unlink(missing_ok=True)
        self.port = 0
        self.process: subprocess.Popen[str] | None = None
        self.passed = self.failed = 0
        self.drive_starts()

    def check(self, name: str, body: Callable[[], None]) -> None:
        """Run one check and print how it ends."""
        try:
            body()
        except (AssertionError, subprocess.SubprocessError) as error:
            print(f"  FAILED  {name}: {error}", flush=True)
            self.failed += 1
        else:
            print(f"  ok      {name}", flush=True)
            self.passed += 1

    def drive_starts(self) -> None:
        """Serve a file, at the port that it had before."""
        serve = [self.csd, "drive", "serve", "--media", self.media, "--size", "2G", "--kv", "60%"]
        serve += ["--listen", f"127.0.0.1:{self.port}", "--nqn", NQN, "--json"]
        with (self.folder / "drive.log").open("a") as log:
            self.process = subprocess.Popen(serve, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        url = json.loads(self.process.stdout.readline())["result"]["url"]
        self.port = int(re.search(r":(\d+)/", url)[1])

    def drive_stops(self) -> None:
        """End the drive."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()
            self.process = None

    def adapter(self, **parameters: Any) -> str:
        """Return LMCache's configuration of the connector."""
        parameters["url"] = f"nvme+tcp://127.0.0.1:{self.port}/{NQN}"
        adapter = {"type": "native_plugin", "adapter_params": parameters}
        adapter |= {"module_path": "csdstore.lmcache", "class_name": "Connector"}
        return json.dumps(adapter)

    def run(self, *words: str, **settings: str) -> str:
        """Run a command of LMCache, and return its output."""
        done = subprocess.run(
            [self.python, *words],
            capture_output=True,
            text=True,
            timeout=STEP_LIMIT_S,
            check=False,
            env={**os.environ, **settings},
        )
        (self.folder / "last.log").write_text(done.stdout + done.stderr)
        assert done.returncode == 0, f"exit code {done.returncode}, see {self.folder}/last.log"
        return done.stdout

    def basic(self, elements: int) -> None:
        """Expect 5 of 5 in every row: the exit code is 0 whatever failed."""
        self.expect_rows(self.table(self.adapter(), elements), dict.fromkeys(ROWS, "5/5"))

    def table(self, adapter: str, elements: int) -> str:
        """Run LMCache's check of an adapter."""
        # Its keys are Python's hashes.
        words = ("-m", "lmcache.v1.basic_check", "--mode", "test_l2_adapter", "--num-keys", "5")
        more = ("--obj-size", str(elements), "--l2-adapter", adapter)
        return self.run(*words, *more, PYTHONHASHSEED=str(elements))

    def expect_rows(self, output: str, expected: dict[str, str]) -> None:
        """Compare the table's rows."""
        rows = {}
        for line in output.splitlines():
            cells = [cell.strip() for cell in line.split("|")]
            if len(cells) > 6 and cells[1] in ROWS:
                rows[cells[1]] = cells[5]
        assert rows == expected, f"{rows}, see {self.folder}/last.log"

    def benchmark(self, *more: str) -> None:
        """Store, look up and load; every key of every round succeeds."""
        result = self.folder / "bench.json"
        result.unlink(missing_ok=True)
        lmcache = ("-m", "lmcache.cli.main", "bench", "l2", "--l2-adapter", self.adapter())
        size = ("--num-keys", "8", "--in-flight", "2", "--data-size-kb", "1024", "--rounds", "3")
        form = ("--lookup-max-hit-rate", "1", "--format", "json", "--output", str(result))
        self.run(*lmcache, *size, *form, *(more or ("--no-skip-verify",)))
        metrics = json.loads(result.read_text())["metrics"]
        for operation in (metrics[name] for name in metrics if name.startswith("op_")):
            assert operation["rounds_timed_out"] == 0, operation
            assert operation["total_success"] == operation["total_keys"] > 0, operation
            speed, time = operation["throughput_avg_mbps"], operation["latency_per_key_ms"]
            print(f"          {operation['operation']}: {speed} MB/s, {time} ms a key")

    def restarted(self) -> None:
        """Load what the last benchmark has stored, from a drive that has started again."""
        self.drive_stops()
        self.drive_starts()
        for operation in ("lookup", "load"):
            self.benchmark("--only", operation)

    def gone(self) -> None:
        """Expect failures in words, and no hang."""
        adapter = self.adapter(tries=0)
        self.drive_stops()
        try:
            self.run(
                "-m", "lmcache.v1.basic_check", "--mode", "test_l2_adapter", "--l2-adapter", adapter
            )
        except AssertionError:
            words = (self.folder / "last.log").read_text()
            assert "cannot be reached" in words, f"see {self.folder}/last.log"
        else:
            raise AssertionError("the check succeeded without a drive")
        finally:
            self.drive_starts()


if __name__ == "__main__":
    sys.exit(main())
