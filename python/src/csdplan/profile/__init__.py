"""Profiles: measured or published performance of a machine and its drives.

- ``schema``: schema 1 as strict types; what each key means is in ``docs/internals/profile.md``.
- ``read``: from a file or a shipped name to a `Profile`, every fault reported at once.
- ``workload``: from a `Profile` to the four times and the k_limit that the equations take.
- ``shipped``: published profiles, as data.

Reading a profile does not change it. A number that it does not hold is unknown (None), not zero.
"""

from typing import TYPE_CHECKING

from csdplan.late import getter
from csdplan.profile.read import load, parse, shipped_names
from csdplan.profile.schema import Profile

if TYPE_CHECKING:
    from csdplan.profile.workload import Workload, k_limit, workload_of

# They compute, by NumPy.
__getattr__ = getter(__name__, dict.fromkeys(("Workload", "k_limit", "workload_of"), "workload"))

__all__ = ["Profile", "Workload", "k_limit", "load", "parse", "shipped_names", "workload_of"]
