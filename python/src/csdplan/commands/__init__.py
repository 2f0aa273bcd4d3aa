"""One function for each command: profiles, files and numbers in, sheets out.

The command line prints what these functions return, and `csdplan.api` turns it into pandas tables,
so both take the same options under the same names. Each option is declared once, in the signature
of its function, with what the command line and Python's documentation say of it
(`csdplan.options`). Where a flag takes a quantity with a unit, the name here ends with the unit:
``--nic`` is ``nic_Bps``. A function is imported when it is first asked for.

- ``tables``: answers of commands, and figures as files.
- ``choose``: from a profile and a kernel to a workload; CSV files of measured points.
- ``break_even``: bep, sweep, surface.
- ``scenarios``: ec, tco, overload.
- ``mixed``, ``purchase``, ``simulated``, ``confidence``: mix, optimize, simulate (``jobs`` with
  ``--job``), uncertainty.
- ``planned``, ``listed``: plan, catalogue; ``kinds``: how many kinds of parts a plan buys.
- ``upgraded``: upgrade, of what is there; ``timed``: day, steps; ``question``: what these share.
- ``networked``: network: drives behind a card, latency, front ends.
- ``energies``: energy of a job; ``rented``: cloud: own, or rent; ``shared``: duties.
- ``failures``: durability of an array, and the code that it needs.
- ``validation``: validate, which measures; the others do not.
- ``reports``: report, ui.
- ``sources``: profiles, import, reproduce.
"""

from typing import TYPE_CHECKING

from csdplan.late import getter

if TYPE_CHECKING:
    from csdplan.commands.break_even import bep, surface, sweep
    from csdplan.commands.confidence import uncertainty
    from csdplan.commands.energies import energy
    from csdplan.commands.failures import durability
    from csdplan.commands.listed import catalogue
    from csdplan.commands.mixed import mix
    from csdplan.commands.networked import network
    from csdplan.commands.planned import plan
    from csdplan.commands.purchase import optimize
    from csdplan.commands.rented import cloud
    from csdplan.commands.reports import report, ui
    from csdplan.commands.scenarios import ec, overload, tco
    from csdplan.commands.shared import duties
    from csdplan.commands.simulated import simulate
    from csdplan.commands.sources import import_profile, profiles, reproduce
    from csdplan.commands.tables import BepTables, Tables
    from csdplan.commands.timed import day, steps
    from csdplan.commands.upgraded import upgrade
    from csdplan.commands.validation import validate

_MODULES = {
    "break_even": (
        "bep",
        "surface",
        "sweep",
    ),
    "confidence": ("uncertainty",),
    "energies": ("energy",),
    "failures": ("durability",),
    "listed": ("catalogue",),
    "mixed": ("mix",),
    "networked": ("network",),
    "planned": ("plan",),
    "purchase": ("optimize",),
    "rented": ("cloud",),
    "reports": (
        "report",
        "ui",
    ),
    "scenarios": (
        "ec",
        "overload",
        "tco",
    ),
    "shared": ("duties",),
    "simulated": ("simulate",),
    "sources": (
        "import_profile",
        "profiles",
        "reproduce",
    ),
    "tables": (
        "BepTables",
        "Tables",
    ),
    "timed": (
        "day",
        "steps",
    ),
    "upgraded": ("upgrade",),
    "validation": ("validate",),
}
__getattr__ = getter(
    __name__, {name: module for module, names in _MODULES.items() for name in names}
)

__all__ = [
    "BepTables",
    "Tables",
    "bep",
    "catalogue",
    "cloud",
    "day",
    "durability",
    "duties",
    "ec",
    "energy",
    "import_profile",
    "mix",
    "network",
    "optimize",
    "overload",
    "plan",
    "profiles",
    "report",
    "reproduce",
    "simulate",
    "steps",
    "surface",
    "sweep",
    "tco",
    "ui",
    "uncertainty",
    "upgrade",
    "validate",
]
