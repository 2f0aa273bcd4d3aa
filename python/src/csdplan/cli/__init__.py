"""The ``csdplan`` command.

- ``main``: commands and options; parses, calls, prints.
- ``plan``: commands that vary a plan.
- ``mix``, ``optimize``, ``simulate``, ``uncertainty``: a command each.
- ``published``: commands about sources.
- ``common``: reporting, list options, and the three ways to print.
- ``tables``: results as tables for a terminal.

The command line computes nothing: all that it prints stands in a result. Exit codes: 0 done,
1 failed, 2 wrong use (a bad option, profile, kernel or quantity). Results go to standard output;
warnings and errors go to standard error.
"""

from csdplan.cli.main import app, main

__all__ = ["app", "main"]
