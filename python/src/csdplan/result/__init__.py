"""Plans as plain records that tables, JSON and plots all read.

- ``break_even``: break-even points of one kernel on several systems.
- ``throughput``: throughput against the number of devices, from a break-even result.
- ``mixed``, ``purchase``, ``simulated``, ``confidence``: mixed drives, purchases, simulated runs
  and distributions.
- ``durability``, ``network``, ``duties``, ``energy``, ``timed``, ``upgraded``, ``rented``: sheets
  and paragraphs of the commands of these questions; ``sourced``: numbers with their sources.
- ``envelope``: the one JSON object that a command prints.

Records are frozen dataclasses of plain Python values: no arrays, no profile, no behavior beyond
``as_dict``. Figures and tables show only values that one of them holds.
"""

from typing import TYPE_CHECKING

from csdplan.late import getter
from csdplan.result.envelope import as_json

if TYPE_CHECKING:
    from csdplan.result.break_even import BepResult, HostResult, SystemResult, bep
    from csdplan.result.throughput import Curve, SystemCurves, curves

# They compute, by NumPy.
__getattr__ = getter(
    __name__,
    {
        **dict.fromkeys(("BepResult", "HostResult", "SystemResult", "bep"), "break_even"),
        **dict.fromkeys(("Curve", "SystemCurves", "curves"), "throughput"),
    },
)

__all__ = [
    "BepResult",
    "Curve",
    "HostResult",
    "SystemCurves",
    "SystemResult",
    "as_json",
    "bep",
    "curves",
]
