"""Runs the command line as ``python -m csdplan``."""

from csdplan.cli import main

main()
