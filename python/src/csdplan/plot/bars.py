"""Bars for screens: a row for each label, and a second column for what the first one buys."""

from __future__ import annotations

from collections.abc import Sequence

from csdplan.plot.panels import Bar, Bars
from csdplan.plot.svg import number, safe, swatch, text

_ROW, _BAR, _TOP, _GAP = 46, 18, 26, 24
#: Letters of a short label, height of its row, and the place of its bar.
_SHORT, _LINE, _BESIDE = 9, 24, 120
#: Share of a column that the longest bar takes; its number stands behind it.
_REACH = 0.72
#: Width of a letter of a label [px].
_LETTER_PX = 7.2


def bars(panel: Bars, width: int) -> tuple[str, list[tuple[str, str]]]:
    """Return the bars as SVG, and the legend as pairs of sample and name."""
    two = bool(panel.rates)
    first = round((width - _GAP) * (0.58 if two else 1.0))
    # Short labels, such as those of a distribution, stand before their bars.
    short = max(map(len, panel.labels), default=0) <= _SHORT and not two
    step, left, down = (_LINE, _BESIDE, 0) if short else (_ROW, 0, 19)
    first -= left
    height = _TOP + step * len(panel.labels) + 6
    totals = [_total(panel, row) for row in range(len(panel.labels))]
    parts = [text(left, 14, panel.up, kind="name")]
    if short:
        parts.append(text(0, 14, panel.across.partition(" [")[0], kind="name"))
    if two:
        parts.append(text(first + _GAP, 14, panel.rates_up, kind="name"))
    stacked = len(panel.parts) > 1
    for row, label in enumerate(panel.labels):
        y = _TOP + row * step
        name = label.replace("\n", ", ")
        parts.append(text(0, y + 13, _cut(name, width), kind="label"))
        parts.append(_bar(panel, row, totals, left, first, y + down))
        if two:
            rate = panel.rates[row]
            parts.append(_rate(panel.rates, rate, first + _GAP, width - first - _GAP, y + 19))
    said = [_said(panel, row, total) for row, total in enumerate(totals)]
    title = "; ".join([panel.title, *said])
    drawn = (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" '
        f'aria-label="{safe(title)}">{"".join(parts)}</svg>'
    )
    names = [(swatch(f"fill f{_style(panel, at)}"), part.label) for at, part in _labeled(panel)]
    return drawn, names if stacked else []


def _labeled(panel: Bars) -> list[tuple[int, Bar]]:
    return [(at, part) for at, part in enumerate(panel.parts) if part.label]


def _style(panel: Bars, at: int) -> int:
    style = panel.parts[at].style
    return (at if style is None else style) % 6


def _total(panel: Bars, row: int) -> float | None:
    values = [part.values[row] for part in panel.parts]
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _bar(
    panel: Bars, row: int, totals: Sequence[float | None], left: int, room: int, y: float
) -> str:
    most = max((total for total in totals if total is not None), default=0.0) or 1.0
    parts, x = [], float(left)
    for at, part in enumerate(panel.parts):
        value = part.values[row] or 0.0
        length = value / most * room * _REACH
        title = f"<title>{safe(part.label or panel.labels[row])}: {number(value)}</title>"
        shape = f'x="{x:.1f}" y="{y}" width="{length:.1f}" height="{_BAR}"'
        parts.append(f'<rect class="fill f{_style(panel, at)}" {shape}>{title}</rect>')
        x += length
    return "".join(parts) + text(x + 6, y + 14, _known(totals[row]), kind="value")


def _rate(rates: Sequence[float | None], rate: float | None, left: int, room: int, y: float) -> str:
    most = max((one for one in rates if one is not None), default=0.0) or 1.0
    length = (rate or 0.0) / most * room * _REACH
    shape = f'x="{left}" y="{y}" width="{length:.1f}" height="{_BAR}"'
    bar = f'<rect class="fill f2" {shape}/>'
    return bar + text(left + length + 6, y + 14, _known(rate), kind="value")


def _said(panel: Bars, row: int, total: float | None) -> str:
    name = panel.labels[row].replace("\n", ", ")
    rate = f", {_known(panel.rates[row])} {panel.rates_up}" if panel.rates else ""
    return f"{name}: {_known(total)} {panel.up}{rate}"


def _known(value: float | None) -> str:
    return "unknown" if value is None else number(value)


def _cut(label: str, width: int) -> str:
    most = int(width / _LETTER_PX)
    return label if len(label) <= most else label[: most - 1] + "…"
