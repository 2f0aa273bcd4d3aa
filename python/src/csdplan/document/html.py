"""Sections and figures as HTML text.

Everything that comes from a profile or a user is escaped here. A page has no script and no link to
another file; its figures are SVG within it.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

from csdplan.document.table import STYLE
from csdplan.plot import Panel, screen

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto;
  padding: 0 1.5rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; }
h2 { font-size: 1.25rem; margin-top: 2.2rem; border-bottom: 1px solid var(--rule); }
.answer { font-size: 1.15rem; font-weight: 600; border-left: 5px solid var(--s0);
  padding: .4rem 1rem; }
.note { color: var(--soft); }
.warn { border-left: 5px solid var(--s1); padding: .2rem 1rem; }
.phone { display: none; }
@media screen and (max-width: 40rem) { .phone { display: block; } .desk { display: none; } }
@media print { body { margin: 0; max-width: none; } section, figure { break-inside: avoid; } }
"""
#: Widths of a report's figures [px].
_WIDTHS = {"desk": 960, "phone": 340}


def page(title: str, under: str, sections: Sequence[str]) -> str:
    """Return a whole document."""
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_safe(title)}</title>\n<style>{screen.STYLE}{STYLE}{_STYLE}</style>\n"
        "</head>\n<body>\n"
        f"<h1>{_safe(title)}</h1>\n<p class='note'>{_safe(under)}</p>\n"
        + "\n".join(sections)
        + "\n</body>\n</html>\n"
    )


def section(heading: str, *parts: str) -> str:
    """Return a section with its heading."""
    return f"<section>\n<h2>{_safe(heading)}</h2>\n" + "\n".join(parts) + "\n</section>"


def paragraph(text: str, kind: str = "") -> str:
    """Return a paragraph; `kind` is ``answer``, ``note``, ``warn`` or empty."""
    return f'<p class="{kind}">{_safe(text)}</p>' if kind else f"<p>{_safe(text)}</p>"


def items(texts: Sequence[str], kind: str = "") -> str:
    """Return a list; nothing if there is nothing to list."""
    if not texts:
        return ""
    inside = "\n".join(f"<li>{_safe(text)}</li>" for text in texts)
    return f'<div class="{kind}"><ul>\n{inside}\n</ul></div>'


def figure(panels: Sequence[Panel]) -> str:
    """Return panels as figures, which are text and follow the reader's light or dark mode.

    Each is drawn for a desk and for a phone; the style shows the one that fits.
    """
    return "\n".join(
        f'<div class="{room}">{screen.figure(panel, width, reads=False)}</div>'
        for panel in panels
        for room, width in _WIDTHS.items()
    )


def _safe(text: str) -> str:
    return html.escape(text, quote=True)
