"""One HTML file for a decision meeting: the question, the answer, and its sources.

- ``content``: the results, figures and sentences of a report;
- ``html``: sections, tables and figures as HTML, and nothing else;
- ``signed``: a purchase on one page of paper, to sign;
- ``validated``: the reference page of ``csdplan validate``.

The file needs no network and no other file. Equal inputs give equal bytes.
"""

from csdplan.document.content import Question, render, write

__all__ = ["Question", "render", "write"]
