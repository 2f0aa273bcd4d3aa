"""Tables as HTML text, for the report and the page."""

from __future__ import annotations

import html

from csdplan.result.sheet import Sheet, Value
from csdplan.result.words import PROVENANCES

#: Where there is little room, a row of many columns becomes a card: a line for each value, with its
#: name.
STYLE = """
.wide { overflow-x: auto; container-type: inline-size; }
table { border-collapse: collapse; font-size: .9rem; margin: .6rem 0; }
caption { text-align: left; font-weight: 600; padding: .2rem 0; }
th, td { text-align: left; padding: .25rem .9rem .25rem 0; border-bottom: 1px solid var(--rule);
  vertical-align: top; }
.n { text-align: right; font-variant-numeric: tabular-nums; }
.badge { display: inline-block; font-size: .78rem; font-weight: 600; padding: .05rem .5rem;
  border-radius: 9px; border: 1.5px solid var(--soft); white-space: nowrap; }
.badge.measured { border-color: var(--s2); } .badge.given { border-color: var(--s0); }
.badge.inferred { border-style: dashed; }
.badge.assumed { border-color: var(--s1); border-style: dotted; }
@container (max-width: 40rem) {
  .many, .many tbody, .many tr, .many td, .many caption { display: block; }
  .many thead { position: absolute; width: 1px; height: 1px; overflow: hidden;
    clip-path: inset(50%); }
  .many tr { border-bottom: 1px solid var(--rule); padding: .3rem 0; }
  .many td { display: flex; justify-content: space-between; gap: 1rem; border: 0; padding: .05rem 0;
    text-align: right; }
  .many td:empty { display: none; }
  .many td::before { content: attr(data-name); color: var(--soft); text-align: left; }
}
"""
#: From so many columns on a row is a card on a phone.
_MANY = 5
_RATE = "_Bps"
#: Units at the end of columns' names, and as people read them; rates are shown in GB/s.
_UNITS = {
    _RATE: "GB/s", "_GBps": "GB/s", "MBps_per_usd": "MB/s per USD", "_usd": "USD", "_s": "s",
    "_W": "W",
}  # fmt: skip


def table(sheet: Sheet) -> str:
    """Return a sheet as a table with its title above and its note below."""
    known = [i for i in range(len(sheet.columns)) if any(row[i] is not None for row in sheet.rows)]
    names = {i: _safe(heading(sheet.columns[i])) for i in known}
    numeric = {i: all(not isinstance(row[i], str) for row in sheet.rows) for i in known}
    kind = {i: ' class="n"' if numeric[i] else "" for i in known}
    heads = "".join(f'<th scope="col" role="columnheader"{kind[i]}>{names[i]}</th>' for i in known)
    tags = {i: f'<td role="cell" data-name="{names[i]}"{kind[i]}>' for i in known}
    rows = "\n".join(
        '<tr role="row">'
        + "".join(f"{tags[i]}{_cell(row[i], sheet.columns[i])}</td>" for i in known)
        + "</tr>"
        for row in sheet.rows
    )
    many = ' class="many"' if len(known) >= _MANY else ""
    note = f'<p class="note">{_safe(sheet.note)}</p>' if sheet.note else ""
    # The roles are said: a table that is laid out as cards would lose them.
    return (
        f'<div class="wide"><table role="table"{many}><caption>{_safe(sheet.title)}</caption>\n'
        f'<thead role="rowgroup"><tr role="row">{heads}</tr></thead>\n'
        f'<tbody role="rowgroup">\n{rows}\n</tbody></table></div>\n{note}'
    )


def heading(column: str) -> str:
    """Return a column's name as people read it, with its unit in brackets."""
    for ending, unit in _UNITS.items():
        if column.endswith(ending):
            return f"{column.removesuffix(ending).replace('_', ' ')} [{unit}]".strip()
    return column.replace("_", " ")


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
        return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:,.4g}"  # noqa: PLR2004
    return f"{value:,}" if isinstance(value, int) else _safe(str(value))


def _safe(text: str) -> str:
    return html.escape(text, quote=True)
