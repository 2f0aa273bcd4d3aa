"""Solvers: from the equations to the number of drives at which they cross.

- ``bep``: the general break-even point, exact for every k_limit, and the closed form beside it.
- ``inverse``: what would have to change for a given break-even point; the iso-BEP curve.
- ``ec``, ``overload``, ``tco``: erasure coding, overloaded hosts, cost of ownership.
- ``ratios``: the closed form in the paper's ratio parameters (equations 11 to 13).
- ``exact``: the rational arithmetic that decides where floating point cannot.

Solvers take numbers and return numbers; they know nothing of profiles, tables or plots.
"""

from csdplan.solve.bep import Solution, Verdict, break_even
from csdplan.solve.ratios import break_even_by_ratios

__all__ = ["Solution", "Verdict", "break_even", "break_even_by_ratios"]
