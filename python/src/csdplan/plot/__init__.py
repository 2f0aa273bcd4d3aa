"""Figures drawn from results.

A figure shows what a result holds and computes nothing of its own. Equal results give equal
bytes: no date, no host name and no random identifier goes into a file. matplotlib is imported
when the first figure is drawn, not before, and pyplot (its global state) never.

- ``throughput``: throughput against devices, with break-even points.
- ``charts``: lines, bars and maps with iso lines, of any sheet.
- ``figure``: style, colors and files.
"""

from csdplan.plot.charts import bars, lines, surface
from csdplan.plot.figure import check_path
from csdplan.plot.throughput import throughput

__all__ = ["bars", "check_path", "lines", "surface", "throughput"]
