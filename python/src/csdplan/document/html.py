"""Sections, tables and figures as HTML text.

Everything that comes from a profile or a user is escaped here. A page has no script and no link to
another file; its figures are SVG within it.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

from csdplan.plot import Panel, screen
from csdplan.result.sheet import Sheet, Value
from csdplan.result.words import PROVENANCES

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto;
  padding: 0 1.5rem; }
h1 { font-size: 1.7rem; margin-bottom: .2rem; }
h2 { font-size: 1.25rem; margin-top: 2.2rem; border-bottom: 1px solid var(--rule); }
.answer { font-size: 1.15rem; font-weight: 600; border-left: 5px solid var(--s0);
  padding: .4rem 1rem; }
.note { color: var(--soft); }
.warn { border-left: 5px solid var(--s1); padding: .2rem 1rem; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; margin: .8rem 0; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { padding: .25rem .7rem; border-bottom: 1px solid var(--rule); text-align: left;
  vertical-align: top; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
.badge { border: 1.5px solid var(--soft); border-radius: 9px; padding: 0 .5rem; font-size: .85em; }
@media print { body { margin: 0; max-width: none; } section, figure { break-inside: avoid; } }
"""
#: Width of a report's figures [px].
_WIDTH = 960
_RATE = "_Bps"
#: Units at the end of columns' names, and as people read them; rates are shown in GB/s.
_UNITS = {
    _RATE: "GB/s", "_GBps": "GB/s", "MBps_per_usd": "MB/s per USD", "_usd": "USD", "_s": "s",
    "_W": "W",
}  # fmt: skip


def page(title: str, under: str, sections: Sequence[str]) -> str:
    """Return a whole document."""
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_safe(title)}</title>\n<style>{screen.STYLE}{_STYLE}</style>\n</head>\n<body>\n"
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


def table(sheet: Sheet) -> str:
    """Return a sheet as a table with its title above and its note below."""
    known = [i for i in range(len(sheet.columns)) if any(row[i] is not None for row in sheet.rows)]
    numeric = {i: all(not isinstance(row[i], str) for row in sheet.rows) for i in known}
    heads = "".join(
        f'<th scope="col"{_kind(numeric[i])}>{_safe(heading(sheet.columns[i]))}</th>' for i in known
    )
    rows = "\n".join(
        "<tr>"
        + "".join(f"<td{_kind(numeric[i])}>{_cell(row[i], sheet.columns[i])}</td>" for i in known)
        + "</tr>"
        for row in sheet.rows
    )
    note = paragraph(sheet.note, "note") if sheet.note else ""
    return (
        f'<div class="wide"><table><caption>{_safe(sheet.title)}</caption>\n'
        f"<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}\n</tbody></table></div>\n{note}"
    )


def heading(column: str) -> str:
    """Return a column's name as people read it, with its unit in brackets."""
    for ending, unit in _UNITS.items():
        if column.endswith(ending):
            return f"{column.removesuffix(ending).replace('_', ' ')} [{unit}]".strip()
    return column.replace("_", " ")


def figure(panels: Sequence[Panel]) -> str:
    """Return panels as figures, which are text and follow the reader's light or dark mode."""
    return "\n".join(screen.figure(panel, _WIDTH, reads=False) for panel in panels)


def _kind(numeric: bool) -> str:
    return ' class="n"' if numeric else ""


def _cell(value: Value, column: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if column == "provenance" and value in PROVENANCES:
        return f'<span class="badge {value}" title="{PROVENANCES[str(value)]}">{value}</span>'
    if column.endswith(_RATE) and not isinstance(value, str):
        value = value / 1e9
    if isinstance(value, float):
        # From 10,000 on digits, not powers of ten.
        return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:.4g}"  # noqa: PLR2004
    return f"{value:,}" if isinstance(value, int) else _safe(str(value))


def _safe(text: str) -> str:
    return html.escape(text, quote=True)
