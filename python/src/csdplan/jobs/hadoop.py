"""Counters of a MapReduce job, as Hadoop prints them when it is done."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from csdplan.errors import ProfileIncomplete
from csdplan.files import read_text

#: Hadoop's names of the counters that a job of reduces has, by ours.
_NAMES = {
    "maps": "Launched map tasks",
    "map_ms": "Total time spent by all map tasks (ms)",
    "reduces": "Launched reduce tasks",
    "reduce_ms": "Total time spent by all reduce tasks (ms)",
    "local_maps": "Data-local map tasks",
    "shuffle_bytes": "Reduce shuffle bytes",
    "input_bytes": "HDFS: Number of bytes read",
    "output_bytes": "HDFS: Number of bytes written",
}
#: Counters that Hadoop leaves out where they are 0.
_MAY_LACK = frozenset({"reduces", "reduce_ms", "local_maps", "shuffle_bytes", "output_bytes"})


@dataclass(frozen=True)
class Counters:
    """Work of a job's tasks.

    Attributes
    ----------
    maps, reduces, local_maps : int
        Tasks, and maps on machines that held their block.
    map_ms, reduce_ms : int
        Time of all of each kind, summed [ms].
    input_bytes, shuffle_bytes, output_bytes : int
        Bytes read of HDFS, fetched by reduces, and written, one copy [bytes].
    """

    maps: int
    reduces: int
    local_maps: int
    map_ms: int
    reduce_ms: int
    input_bytes: int
    shuffle_bytes: int
    output_bytes: int


def counters(path: Path) -> Counters:
    """Return the counters in a job's log; of several jobs, those of the last.

    Raises
    ------
    ProfileNotFound
        If the file cannot be read.
    ProfileIncomplete
        If the job failed, or its counters are not there.
    """
    text = read_text(path)
    last = text.rfind("Counters: ")
    if last < 0:
        raise ProfileIncomplete(
            f"{path}: no counters of a job: give what Hadoop printed, such as by 2>&1 | tee"
        )
    found = {}
    for name, words in _NAMES.items():
        match = re.search(rf"^\s*{re.escape(words)}=([0-9]{{1,18}})\s*$", text[last:], re.MULTILINE)
        if match is None and name not in _MAY_LACK:
            raise ProfileIncomplete(f"{path}: the job's counters lack {words!r}: run it again")
        found[name] = int(match[1]) if match else 0
    if found["reduces"] and not found["reduce_ms"]:
        raise ProfileIncomplete(f"{path}: the job's counters lack {_NAMES['reduce_ms']!r}")
    return Counters(**found)
