"""Published results, computed again.

- ``check``: claims, findings, and how a comparison becomes a verdict.
- ``planning``, ``equations``, ``tables``, ``devices``: the checks, by subject.
- ``report``: runs them all and holds what they found.
- ``figures``: the papers' figures, redrawn from the same profiles.
- ``metered``: the configurations of a paper, from metered runs of jobs.
- ``document``: the reference page.
- ``printed``: claims and numbers, as data.

A check computes its value from a profile, an equation or numbers printed elsewhere, and only then
looks at the claim. Nothing is adjusted to match; where a claim fails, the finding says why.
"""

from csdplan_reproduce.check import Claim, Finding, Verdict
from csdplan_reproduce.document import write
from csdplan_reproduce.report import Report, Row, reproduce

__all__ = ["Claim", "Finding", "Report", "Row", "Verdict", "reproduce", "write"]
