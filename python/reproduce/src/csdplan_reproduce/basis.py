"""Basis of each check: the model, arithmetic on printed numbers, or a reading of the text.

Only checks of the first kind say anything of the planner. The others say that a paper adds up, or
agrees with itself.
"""

from __future__ import annotations

from enum import StrEnum

from csdplan_reproduce import devices, equations, planning, tables
from csdplan_reproduce.check import CHECKS


class Basis(StrEnum):
    """Kinds of things that a check can exercise."""

    MODEL = "model"
    ARITHMETIC = "arithmetic"
    READING = "reading"
    NONE = "none"


_OF_MODULE = {
    planning.__name__: Basis.MODEL,
    equations.__name__: Basis.MODEL,
    tables.__name__: Basis.ARITHMETIC,
    devices.__name__: Basis.ARITHMETIC,
}
#: Checks that compare statements or tables with each other, and compute nothing of their own.
_READINGS = frozenset(
    ["BT-04", "CR-10", "CR-14", "EC-18", "EC-19", "EC-20", "P0-17", "P0-18", "P0-19", "P0-67"]
)
#: Checks that stand among others of a kind but run the planner's equations on a profile.
_MODELS = frozenset(["CA-10", "CA-11", "CA-14", "CA-15", "CA-16", "M0-13", "P0-15"])
#: Checks that multiply or divide printed numbers only.
_ARITHMETIC = frozenset(["M0-03", "M0-04", "P0-20", "P0-21", "P0-22", "P0-23", "P0-27"])


def basis_of(claim_id: str) -> Basis:
    """Return the basis of a claim's check; ``none`` where there is no check."""
    function = CHECKS.get(claim_id)
    if function is None:
        return Basis.NONE
    if claim_id in _READINGS:
        return Basis.READING
    if claim_id in _MODELS:
        return Basis.MODEL
    return Basis.ARITHMETIC if claim_id in _ARITHMETIC else _OF_MODULE[function.__module__]
