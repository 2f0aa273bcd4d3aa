"""Jobs on a host and its drives: from metered runs to a model, and to runs on other drives.

- ``runs``: a run, from the record of ``csd meter`` and the log of Hadoop (``hadoop``).
- ``model``: the parameters of a job, each with its source; ``written``: from a file by hand.
- ``fit``: parameters from runs, with ranges and residuals; ``lines``: least squares.
- ``foretold``: time, bytes and energy on other drives; ``check``: against a run that was measured.
"""
