"""The sixteen configurations of paper 004, Table 3: what the model says, and what is printed.

A drive's share of the host is fitted to the one speed-up that the paper prints of a kind of job, so
that row comes out by construction, and the others follow. The model of jobs then hands out whole
tasks, as many as the paper's maps; its phases after the maps need bytes and times that only metered
runs give (``csdplan simulate --job``), and the paper prints none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from csdplan.jobs.check import TABLE_3, Configuration
from csdplan.jobs.foretold import foretold
from csdplan.jobs.model import NAMES, Model, Number
from csdplan.model.scaling import augmented_speed_up
from csdplan.profile import load
from csdplan.sim import Cluster
from csdplan_reproduce.devices import drive_ratio, low_host, routing
from csdplan_reproduce.printed import read

#: What the paper prints of its measurements: kind of job, host, engines.
_PRINTED = {
    ("hadoop", "high", 16): "hadoop_speed_up",
    ("dft", "high", 16): "dft_speed_up",
}
_HEADS = (
    "no.", "host", "engines", "Hadoop: predicted, shares", "Hadoop: predicted, tasks",
    "Hadoop: measured, paper", "DFT: predicted, shares", "DFT: predicted, tasks",
    "DFT: measured, paper",
)  # fmt: skip
_TEXT = """\
## Configurations of paper 004

How many times as fast a host is with so many drives that compute as without them.

- **Predicted, shares**: the closed form, host and drives finishing together. A drive does
  {hadoop:.3f} (Hadoop) and {dft:.3f} (DFT) of what the high host does, fitted to the bold numbers;
  its packets cost the host {routing:.2%}. The low host is {low:.2f} of the high one, because the
  paper says that six drives bring it there.
- **Predicted, tasks**: the model of jobs (`csdplan simulate --job`) with the same shares, and
  {maps} whole tasks, the paper's maps (of DFT as many, assumed), {slots} at once in a drive.
  Shuffle and reduces are left out: the paper prints neither their bytes nor their time.
- **Measured, paper**: what it prints; of Hadoop "up to", of three jobs.

Nothing here is measured by this project; the next section has what follows from metered runs, and
`csdplan simulate --job` with `--check` says it of a user's own. The paper prints no speed-up of the
medium host, and none from which its share follows; its DFT ran on the high host alone. Of energy it
prints 36 % less on the low host with six drives, and 4.3 (Hadoop) and 8.9 (DFT) times less on the
high host with sixteen: CA-13, CA-14 and CA-16."""


@dataclass(frozen=True)
class Predicted:
    """Speed-ups of one kind of job: by shares, in whole tasks, and as printed, where it is."""

    shares: float
    tasks: float
    printed: float | None


def predicted(kind: str, row: Configuration) -> Predicted | None:
    """Return what the model says of a configuration; None where nothing fixes the host's speed."""
    if row.host == "medium" or (kind == "dft" and row.host != "high"):
        return None
    # The host's speed, in that of the high one.
    host = low_host() if row.host == "low" else 1.0
    ratio = drive_ratio(kind) / host
    shares = float(augmented_speed_up(row.enabled, ratio, routing()))
    c = read("numbers.toml")["catalina"]
    key = _PRINTED.get((kind, row.host, row.enabled))
    drive_cores = (ratio - routing()) * row.cores
    alone, helped = (
        _time_s(row.cores, row.drives, n, drive_cores, c["maps"]) for n in (0, row.enabled)
    )
    return Predicted(shares, alone / helped, None if key is None else c[key])


def _slots() -> int:
    """Return the tasks that a drive runs at once: one a core."""
    cores = load("catalina").device["catalina"].cores
    assert cores is not None, "the shipped profile has them"
    return cores


@cache
def _time_s(cores: int, drives: int, enabled: int, drive_cores: float, maps: int) -> float:
    """Return the time of so many equal tasks, a second of a host core each."""
    values = dict.fromkeys(NAMES, 0.0) | {
        "input_bytes": float(maps), "block_bytes": 1.0, "map_byte_s": 1.0, "replication": 1.0,
        "slots": float(_slots()), "drive_cores": drive_cores,
    }  # fmt: skip
    numbers = {name: Number(value, "fitted", "paper 004") for name, value in values.items()}
    found = foretold(Model(numbers), Cluster(cores, drives, enabled, drive_cores))
    return found.run.time_s


def section() -> str:
    """Return the section of the reference page."""
    maps = read("numbers.toml")["catalina"]["maps"]
    text = _TEXT.format(
        hadoop=drive_ratio("hadoop"), dft=drive_ratio("dft"), routing=routing(), low=low_host(),
        maps=maps, slots=_slots(),
    )  # fmt: skip
    lines = [f"| {' | '.join(_HEADS)} |", f"|---:|---|{'---:|' * (len(_HEADS) - 2)}"]
    for row in TABLE_3:
        cells = [str(row.number), row.host, str(row.enabled)]
        for kind in ("hadoop", "dft"):
            found = predicted(kind, row)
            printed = found.printed if found else None
            shares = f"{found.shares:.2f}" if found else ""
            cells += [f"**{shares}**" if printed else shares, f"{found.tasks:.2f}" if found else ""]
            cells.append(f"{printed:g}" if printed else "")
        lines.append(f"| {' | '.join(cells)} |")
    return text + "\n\n" + "\n".join(lines)
