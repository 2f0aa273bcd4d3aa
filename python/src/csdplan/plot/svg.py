"""Small pieces of SVG text that figures for screens are made of."""

from __future__ import annotations

import html

#: Dash of each style of line; the reference is solid.
_DASHES = ("9 4", "2 3", "9 3 2 3", "14 4", "6 2 2 2 2 2", "4 4")


def safe(value: str) -> str:
    """Return text that cannot become markup."""
    return html.escape(value, quote=True)


def number(value: float) -> str:
    """Return a number as people read it."""
    if value == int(value) and abs(value) < 1e15:  # noqa: PLR2004 - exact below
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1e4 else f"{value:,.3g}"  # noqa: PLR2004


def text(x: float, y: float, said: str, *, anchor: str = "start", kind: str = "tick") -> str:
    """Return a text element; `kind` is its class."""
    if not said:
        return ""
    where = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {where}>{safe(said)}</text>'


def dash_of(look: str) -> str:
    """Return the attribute for the dash of a style, such as ``s0``."""
    if not look.startswith("s"):
        return ""
    return f'stroke-dasharray="{_DASHES[int(look[1:]) % len(_DASHES)]}"'


def swatch(look: str, color: str = "", dash: str = "") -> str:
    """Return a sample of a style for a legend; `dash` is that of another style."""
    head = '<svg class="swatch" width="34" height="12" aria-hidden="true">'
    if look.startswith(("box", "fill", "band")):
        fill = f' fill="{color}"' if color else ""
        return f'{head}<rect class="{look}" x="1" y="1" width="32" height="10"{fill}/></svg>'
    return f'{head}<path class="line {look}" {dash_of(dash or look)} d="M1 6H33"/></svg>'
