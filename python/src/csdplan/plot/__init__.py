"""Figures drawn from results.

A figure shows what a result holds and computes nothing of its own. Equal results give equal
bytes: no date, no host name and no random identifier goes into a file. matplotlib is imported
when the first figure is drawn, not before, and pyplot (its global state) never.
"""

from csdplan.plot.throughput import check_path, throughput

__all__ = ["check_path", "throughput"]
