"""One HTML file for a decision meeting: what was asked, the answer, and what it rests on.

- ``content``: which results and figures go into it, and in which words;
- ``html``: sections, tables and figures as HTML, and nothing else.

The file needs no network and no other file. Equal inputs give equal bytes.
"""

from csdplan.document.content import Question, render, write

__all__ = ["Question", "render", "write"]
