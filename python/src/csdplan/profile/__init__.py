"""Profiles: measured or published performance of a machine and its drives.

- ``schema``: schema 1 as strict types; what each key means is in ``docs/internals/profile.md``.
- ``load``: from a file or a shipped name to a `Profile`, every fault reported at once.
- ``workload``: from a `Profile` to the four times and the k_limit that the equations take.
- ``shipped``: published profiles, as data.

A profile is only ever read here. A number that it does not hold is unknown (None), never zero.
"""

from csdplan.profile.read import load, parse, shipped_names
from csdplan.profile.schema import Profile
from csdplan.profile.workload import Workload, k_limit, workload_of

__all__ = ["Profile", "Workload", "k_limit", "load", "parse", "shipped_names", "workload_of"]
