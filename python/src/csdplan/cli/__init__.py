"""The ``csdplan`` command.

- ``root``: commands and options; parses, calls, prints.
- ``plan``: commands that vary a plan.
- ``mix``, ``optimize``, ``simulate``, ``uncertainty``, ``validate``: a command each.
- ``sources``: commands about sources.
- ``options``: options that several commands share.
- ``common``: error reporting, and the three ways to print.
- ``tables``: results as tables for a terminal.

The command line computes nothing: it prints what `csdplan.commands` returns. Exit codes: 0 done,
1 failed, 2 wrong use (a bad option, profile, kernel or quantity). Results go to standard output;
warnings and errors go to standard error.
"""

from csdplan.cli.root import app, main

__all__ = ["app", "main"]
