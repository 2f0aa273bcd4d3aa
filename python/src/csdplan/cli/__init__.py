"""The ``csdplan`` command.

- ``root``: the commands and their help.
- ``derive``: from the options that functions of `csdplan.commands` declare to those of typer.
- ``acts``, ``validate``: commands that do more than print tables.
- ``common``: error reporting, and the three ways to print.
- ``tables``: results as tables for a terminal.

The command line computes nothing: it prints what `csdplan.commands` returns. Exit codes: 0 done,
1 failed, 2 wrong use (a bad option, profile, kernel or quantity), 4 done in part (validate).
Results go to standard output; warnings and errors go to standard error.
"""

from csdplan.cli.root import app, main

__all__ = ["app", "main"]
