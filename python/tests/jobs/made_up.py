"""Made-up records of a job whose parameters are known; no figure in them was measured."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

#: What Hadoop prints at the end of a job, shortened.
LOG = """INFO mapreduce.Job: Job job_1_0001 completed successfully
INFO mapreduce.Job: Counters: 54
\tFile System Counters
\t\tFILE: Number of bytes read=1
\t\tHDFS: Number of bytes read={read}
\t\tHDFS: Number of bytes written={written}
\tJob Counters
\t\tLaunched map tasks={maps}
\t\tLaunched reduce tasks={reduces}
\t\tData-local map tasks={maps}
\t\tTotal time spent by all maps in occupied slots (ms)=1
\t\tTotal time spent by all map tasks (ms)={map_ms}
\t\tTotal time spent by all reduce tasks (ms)={reduce_ms}
\tMap-Reduce Framework
\t\tReduce shuffle bytes={shuffle}
"""


@dataclass(frozen=True)
class Truth:
    """A job as it is: CPU times of a core, rates by bytes, noise of every measurement."""

    begin_s: float = 20.0
    drive_cores: float = 0.8
    os_fixed_s: float = 15.0
    byte_s: float = 2e-7
    maps_share: float = 0.75
    shuffle: float = 1.0
    output: float = 1.0
    host_fixed_s: float = 4.0
    host_byte_s: float = 5e-9
    routing_byte_s: float = 2e-9
    inside_byte_s: float = 3e-9
    watts: float | None = 6.0
    block: float = 8e6
    reduces: int = 8
    noise: float = 0.0
    seed: int = 1
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rng", np.random.default_rng(self.seed))

    def _seen(self, value: float) -> float:
        return float(value * (1 + self.noise * self.rng.standard_normal()))

    def wall_s(self, size: float, drives: int) -> float:
        """Return the wall time of work that divides evenly; drives compute, and then send."""
        routed_s = self.routing_byte_s * self.ends(size, drives)
        return self.begin_s + self.byte_s * size / (drives * self.drive_cores) + routed_s

    def ends(self, size: float, drives: int) -> float:
        """Return the bytes at ends of tunnels: of shuffle, and of a copy of the output."""
        copies = 1 if drives > 1 else 0
        return 2 * size * (self.shuffle * (1 - 1 / drives) + self.output * copies)

    def record(self, folder: Path, name: str, size: float, drives: int = 1) -> str:
        """Write a record and its log; return the text that names them."""
        ends = self.ends(size, drives) + 1e6  # heartbeats
        cpu = {
            "host": self._seen(self.host_fixed_s + self.host_byte_s * size),
            "os": self._seen(self.os_fixed_s + self.byte_s * size),
            "drives": self._seen(1e-9 * size),
            "tunnels_inside": self._seen(self.inside_byte_s * ends),
            "tunnels_outside": self._seen(self.routing_byte_s * ends),
        }
        joules = None if self.watts is None else self._seen(self.watts * sum(cpu.values()))
        drive = {
            "name": "d", "read_inside_bytes": size / drives, "read_outside_bytes": 0.0,
            "tunnel_sent_bytes": ends / 2 / drives, "tunnel_received_bytes": ends / 2 / drives,
        }  # fmt: skip
        energy = {"source": "rapl", "joules": joules, "note": None}
        if joules is None:
            energy |= {"source": None, "note": "no counters"}
        result = {
            "command": ["recipes/hadoop/run"], "failed": False, "exit_code": 0, "signal": None,
            "wall_s": self._seen(self.wall_s(size, drives)), "cpu_s": cpu,
            "memory_peak_bytes": None, "drives": [drive] * drives, "energy": energy,
        }  # fmt: skip
        body = {"schema": 1, "command": "meter", "result": result, "warnings": []}
        (folder / f"{name}.json").write_text(json.dumps(body))
        work_ms = self.byte_s * size / self.drive_cores * 1e3
        log = LOG.format(
            read=int(size), written=int(self.output * size), maps=max(1, round(size / self.block)),
            reduces=self.reduces, map_ms=int(self.maps_share * work_ms),
            reduce_ms=int((1 - self.maps_share) * work_ms), shuffle=int(self.shuffle * size),
        )  # fmt: skip
        (folder / f"{name}.log").write_text(log)
        return f"{folder / name}.json,log={folder / name}.log"

    def records(self, folder: Path, sizes: list[tuple[float, int]]) -> list[str]:
        """Write several; return the texts that name them."""
        return [
            self.record(folder, f"job{index}", size, drives)
            for index, (size, drives) in enumerate(sizes)
        ]
