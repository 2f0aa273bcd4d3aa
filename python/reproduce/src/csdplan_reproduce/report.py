"""All checks run, and their findings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from csdplan.errors import ModelError
from csdplan.result.sheet import Sheet, sheet_of
from csdplan_reproduce import devices, equations, planning, tables
from csdplan_reproduce.basis import Basis, basis_of
from csdplan_reproduce.check import CHECKS, MEASURED, Claim, Finding, Verdict, claims

#: Importing these modules fills the register of checks.
MODULES = (planning, equations, tables, devices)

_NO_CHECK = "a measurement: no equation or printed number decides it"


@dataclass(frozen=True)
class Row:
    """One claim and its finding.

    Attributes
    ----------
    claim : Claim
        The claim.
    finding : Finding
        The finding.
    """

    claim: Claim
    finding: Finding

    @property
    def basis(self) -> Basis:
        """Kind of thing that the check exercises."""
        return basis_of(self.claim.id)

    @property
    def as_listed(self) -> bool:
        """True if our verdict is the one that the list of claims gives."""
        return self.finding.verdict.value == self.claim.listed


@dataclass(frozen=True)
class Report:
    """All rows, in the order of the list."""

    rows: tuple[Row, ...]

    def counts(self) -> dict[str, int]:
        """Return how many claims came to each verdict."""
        found = Counter(row.finding.verdict for row in self.rows)
        return {verdict.value: found.get(verdict, 0) for verdict in Verdict}

    def counts_by_basis(self) -> dict[Basis, dict[str, int]]:
        """Return how many claims came to each verdict, by what their check exercises."""
        return {
            basis: Report(tuple(row for row in self.rows if row.basis is basis)).counts()
            for basis in Basis
        }

    def sheet(self) -> Sheet:
        """Return the report as a table."""
        counts = ", ".join(f"{count} {name}" for name, count in self.counts().items())
        columns = ("id", "verdict", "basis", "paper", "place", "claim", "printed", "ours", "why")
        rows = [
            (
                row.claim.id,
                row.finding.verdict.value,
                row.basis.value,
                row.claim.paper,
                row.claim.where,
                row.claim.statement,
                row.claim.value,
                row.finding.ours,
                row.finding.why,
            )
            for row in self.rows
        ]
        return sheet_of("Published claims, computed again", columns, rows, counts)


def reproduce(only: Sequence[str] = ()) -> Report:
    """Check every claim, or those whose id begins with one of `only`.

    Raises
    ------
    ModelError
        If no claim's id begins with one of them.
    """
    every = claims()
    for text in only:
        if not any(claim.id.startswith(text) for claim in every):
            expected = f"what ids of claims begin with, such as {every[0].id}"
            raise ModelError("only", text, expected)
    chosen = [c for c in every if not only or c.id.startswith(tuple(only))]
    return Report(tuple(Row(claim, _finding(claim)) for claim in chosen))


def _finding(claim: Claim) -> Finding:
    function = CHECKS.get(claim.id)
    if function is None:
        return Finding(Verdict.NEEDS_HARDWARE, "", MEASURED.get(claim.id, _NO_CHECK))
    return function(claim)
