"""Plans as plain records that tables, JSON and plots all read.

- ``bep``: break-even points of one kernel on several systems.
- ``curves``: throughput against the number of devices, from a ``bep`` result.
- ``mix``, ``purchase``, ``simulation``, ``uncertainty``: mixed drives, purchases, simulated runs
  and distributions.
- ``envelope``: the one JSON object that a command prints.

Records are frozen dataclasses of plain Python values: no arrays, no profile, no behavior beyond
``as_dict``. Whatever a figure or a table shows stands in one of them first.
"""

from csdplan.result.break_even import BepResult, HostResult, SystemResult, bep
from csdplan.result.envelope import as_json
from csdplan.result.throughput import Curve, SystemCurves, curves

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
