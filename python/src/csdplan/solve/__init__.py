"""Solvers: from the equations to the number of drives at which two arrays are equally fast.

- ``bep``: the general break-even point, exact for every k_limit, and the closed form.
- ``inverse``: the changes that lead to a given break-even point; the iso-BEP curve.
- ``ec``, ``overload``, ``tco``: erasure coding, overloaded hosts, cost of ownership.
- ``ratios``: the closed form in the paper's ratio parameters (equations 11 to 13).
- ``floats``, ``crossings``, ``integers``: the two tiers of ``bep``: blocks of floats with a bound
  on their error, and whole numbers for what those leave; ``exact``, their definition in fractions.
- ``ec_fit``: the time model of erasure coding, from measured points.
- ``mix``: a given mix of drives under several workloads, work split so that all finish together.
- ``purchase``, ``program``, ``highs``, ``optimize``: products and requirements as a mixed-integer
  program; the cheapest purchase, binding requirements, shortfalls.
- ``stock``, ``periods``, ``sequence``: purchases with parts that are there, for times of a day, and
  year by year; ``energy``: of a job on a purchase; ``cloud``: instances that do the same.
- ``durability``: the code that an array needs; ``fabric``: drives behind a card, and switches.
- ``uncertainty``: the distribution of a break-even point, and the inputs it depends on.

Solvers take numbers and return numbers; they know nothing of profiles, tables or plots.
"""

from csdplan.solve.bep import Solution, Verdict, break_even
from csdplan.solve.ratios import break_even_by_ratios

__all__ = ["Solution", "Verdict", "break_even", "break_even_by_ratios"]
