"""Figures of results, described once and rendered twice: for files and for screens.

A figure shows what a result holds and computes nothing of its own. Equal results give equal
bytes: no date, no host name and no random identifier goes into a file.

- ``panels``: lines, bars and maps as plain data.
- ``figures``: which panels show which result.
- ``draw``: panels rendered with matplotlib, as SVG and PNG files; ``compact``: SVG files of fewer
  bytes.
- ``screen``, ``bars``, ``svg``: panels rendered as HTML for screens, light and dark; ``scale``:
  axes and colors that they share.
- ``files``: a figure written to a file, in the format that its suffix names.
"""

from csdplan.plot.files import check_paths, write
from csdplan.plot.panels import Bar, Bars, Iso, Limit, Line, Lines, Map, Mark, Panel

__all__ = [
    "Bar",
    "Bars",
    "Iso",
    "Limit",
    "Line",
    "Lines",
    "Map",
    "Mark",
    "Panel",
    "check_paths",
    "write",
]
