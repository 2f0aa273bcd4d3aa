"""Claims, findings, and the register of checks.

A check is a function of a claim that computes its own value from a profile, an equation or printed
numbers of another place, and compares it with what the claim prints. It never sees the claim's
listed status. How a comparison becomes a verdict is decided here, the same way for all:

- *reproduced*: the value comes out as printed;
- *consistent*: it does not come out exactly, or only under values that the paper leaves open, but
  nothing speaks against it;
- *contradicted*: it does not come out, or contradicts another statement of the same papers;
- *needs_hardware*: only a measurement can tell; where this project made one, its page is named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from csdplan_reproduce.printed import read


class Verdict(StrEnum):
    """Outcome of a check."""

    REPRODUCED = "reproduced"
    CONSISTENT = "consistent"
    CONTRADICTED = "contradicted"
    NEEDS_HARDWARE = "needs_hardware"


@dataclass(frozen=True)
class Claim:
    """One claim of a paper.

    Attributes
    ----------
    id, paper, where : str
        Its name here, the paper's number, and the place in it.
    statement : str
        The claim in words.
    value : str
        The number or trend that is printed.
    listed : str
        The status that the list of claims gives it.
    """

    id: str
    paper: str
    where: str
    statement: str
    value: str
    listed: str

    def numbers(self) -> list[float]:
        """Return the numbers in `value`, in order."""
        return [float(text) for text in re.findall(r"\d+(?:\.\d+)?", self.value)]

    def number(self) -> float:
        """Return the only number in `value`."""
        (only,) = self.numbers()
        return only


@dataclass(frozen=True)
class Finding:
    """Result of a check.

    Attributes
    ----------
    verdict : Verdict
        The outcome.
    ours : str
        Our value, as text.
    why : str
        Method of computation, and the reason of an erratum.
    """

    verdict: Verdict
    ours: str
    why: str


Check = Callable[[Claim], Finding]
CHECKS: dict[str, Check] = {}

#: Measurements of claims that no check decides, and what they come to.
MEASURED = {
    "BT-09": "a measurement, consistent on other hardware: docs/reference/background.md",
    "BT-12": "a measurement, not reproduced in a simulation: docs/reference/background.md",
    "BT-13": "a measurement, reproduced in part in a simulation: docs/reference/background.md",
}

#: Relative deviation up to which a printed ratio counts as reproduced, and as consistent.
REPRODUCED_WITHIN, CONSISTENT_WITHIN = 0.05, 0.25


def check(*ids: str) -> Callable[[Check], Check]:
    """Register a check for claims."""

    def register(function: Check) -> Check:
        for claim_id in ids:
            assert claim_id not in CHECKS, f"{claim_id} has two checks"
            CHECKS[claim_id] = function
        return function

    return register


def claims() -> list[Claim]:
    """Return every claim that is shipped, in the order of the files."""
    entries = [*read("claims.toml")["claim"], *read("more.toml")["claim"]]
    return [
        Claim(
            id=entry["id"],
            paper=entry["paper"][:3],
            where=entry["where"],
            statement=entry["statement"],
            value=entry["value"],
            listed=entry["status"],
        )
        for entry in entries
    ]


def if_holds(holds: bool, ours: object, why: str, *, then: Verdict = Verdict.REPRODUCED) -> Finding:
    """Return `then` if a statement holds, and ``contradicted`` if it does not."""
    return Finding(then if holds else Verdict.CONTRADICTED, str(ours), why)


def by_digits(printed: Sequence[str], ours: Sequence[float], why: str) -> Finding:
    """Compare with printed digits: equal when rounded to them, or within one of the last.

    A value that is off by less than one unit of the last digit was truncated, or computed from
    rounded numbers, and counts as consistent.
    """
    verdict = Verdict.REPRODUCED
    for text, value in zip(printed, ours, strict=True):
        places = len(text.partition(".")[2])
        if round(value, places) == float(text):
            continue
        near = abs(value - float(text)) < 10.0**-places
        verdict = Verdict.CONSISTENT if near and verdict is not Verdict.CONTRADICTED else _NO
    return Finding(verdict, "; ".join(f"{value:.4g}" for value in ours), why)


def by_ratio(claim: Claim, ours: Sequence[float], why: str) -> Finding:
    """Compare ratios read off a figure with the printed one (one number, or one for each)."""
    printed = claim.numbers()
    if len(printed) == 1:
        printed = printed * len(ours)
    worst = max(abs(value / text - 1) for value, text in zip(ours, printed, strict=True))
    verdict = _NO
    if worst <= CONSISTENT_WITHIN:
        verdict = Verdict.REPRODUCED if worst <= REPRODUCED_WITHIN else Verdict.CONSISTENT
    return Finding(verdict, "; ".join(f"{value:.3g}" for value in ours), why)


_NO = Verdict.CONTRADICTED
