"""A purchase drawn: which drive and which card is in which host, and what crosses each.

Equal hosts are drawn once. Every drive is a square in a bay, filled if it computes; a line leads
from it to the cores of its host. Cards of hosts, boxes and switches hang on the network.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from csdplan.plot.svg import safe, text
from csdplan.result.sheet import Sheet, Value, rows_of

#: Height of a line, and width of a letter, also of a bold one, in the sizes of `screen.css` [px].
_LINE, _LETTER, _BOLD = 18, 7.6, 8.6
_PAD, _BAY, _GAP = 12, 13, 4
#: Squares of a row of drives at most; more than this in one host are counted, not drawn.
_DRAWN_MAX = 96
#: How far equal hosts look out from behind the first [px].
_BEHIND = 4
#: Place of a host's inner line, and of what hangs on it [px].
_BUS, _INSIDE = 2 * _PAD + 14, 2 * _PAD + 34

#: Widths from which on hosts stand in two columns [px].
_TWO = 720

Row = Mapping[str, Value]


@dataclass
class _Drawing:
    """Parts of a drawing, from the top down."""

    width: int
    y: float = 2.0
    parts: list[str] = field(default_factory=list)
    said: list[str] = field(default_factory=list)

    def write(self, x: float, said: str, kind: str = "tick") -> None:
        """Write text in as many lines as it needs."""
        room = self.width - x - 2 * _PAD
        for line in _lines(said, int(room / (_BOLD if kind == "value" else _LETTER))):
            self.y += _LINE
            self.parts.append(text(x, self.y - 5, line, kind=kind))
        self.said.append(said)

    def line(self, path: str) -> None:
        """Draw a wire."""
        self.parts.append(f'<path class="wire" d="{path}"/>')

    def behind(self, x: float, y: float, width: float, height: float) -> None:
        """Draw two boxes as far as they look out from behind one."""
        right, bottom = x + width, y + height
        for at in (1, 2):
            near, far = (at - 1) * _BEHIND, at * _BEHIND
            edge = f"M{right + near:.1f} {y + far:.1f}H{right + far:.1f}V{bottom + far:.1f}"
            edge += f"H{x + far:.1f}V{bottom + near:.1f}"
            self.parts.append(f'<path class="case" d="{edge}"/>')

    def box(self, kind: str, x: float, y: float, width: float, height: float) -> None:
        """Draw a box behind everything that is drawn already."""
        where = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        self.parts.insert(0, f'<rect class="{kind}" {where} rx="4"/>')


def figure(sheet: Sheet, titles: Mapping[str, str], width: int) -> str:
    """Return the sheet of what is in which host as a ``figure`` element, `width` pixels wide."""
    width = min(max(width, 280), 1100)
    rows = rows_of(sheet)
    groups = {
        where: [row for row in rows if row["host"] == where]
        for where in dict.fromkeys(str(row["host"]) for row in rows)
    }
    outside = groups.pop("network", [])
    drawn = _Drawing(width)
    if outside or len(groups) == 1 or width < _TWO or any(map(_has_cards, groups.values())):
        stubs = [
            stub for where, inside in groups.items() for stub in _host(drawn, where, inside, titles)
        ]
        if stubs or outside:
            _network(drawn, stubs, outside, titles)
    else:
        _beside(drawn, groups, titles)
    height = round(drawn.y + _PAD)
    said = safe(f"{sheet.title}: {'; '.join(drawn.said)}")
    works = any(row["what"] == "drive" and row["computes_Bps"] for row in rows)
    legend = "one square: a drive in a bay" + ("; filled: it computes" if works else "")
    return (
        f'<figure class="plot"><svg viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" role="img" aria-label="{said}">{"".join(drawn.parts)}</svg>'
        f'<p class="key">{legend}</p></figure>'
    )


def _has_cards(rows: Sequence[Row]) -> bool:
    return any(row["what"] == "network card" for row in rows)


def _beside(
    drawn: _Drawing, groups: Mapping[str, Sequence[Row]], titles: Mapping[str, str]
) -> None:
    """Draw hosts that share nothing in two columns, each where there is the most room."""
    ends = [0.0, 0.0]
    for where, inside in groups.items():
        column = ends.index(min(ends))
        one = _Drawing(drawn.width // 2)
        _host(one, where, inside, titles)
        move = f"translate({column * one.width} {ends[column]:.1f})"
        drawn.parts.append(f'<g transform="{move}">{"".join(one.parts)}</g>')
        drawn.said += one.said
        ends[column] += one.y
    drawn.y = max(ends)


def _host(
    drawn: _Drawing, where: str, rows: Sequence[Row], titles: Mapping[str, str]
) -> list[float]:
    """Draw a host; return where its cards leave it."""
    first, _, last = where.partition(" to ")
    many = int(last or first) - int(first) + 1
    left, top = float(_PAD), drawn.y
    drawn.y += 4
    name = f"Host {where}" if many == 1 else f"Hosts {where}, each"
    for row in rows:
        if row["what"] == "host":
            said = f"{name}: {titles.get(str(row['name']), row['name'])}"
            drawn.write(left + _PAD, said, "value")
            rate = row["computes_Bps"]
            drawn.write(left + _PAD, f"cores compute {_rate(rate)}" if rate else "cores rest")
    bus, hangs = drawn.y, drawn.y
    stubs = []
    for row in rows:
        if row["what"] == "drive":
            drawn.y += 8
            hangs = _drives(drawn, row, titles)
        elif row["what"] != "host":
            drawn.y += 8
            hangs = drawn.y + _LINE / 2
            stubs.append(hangs)
            title = titles.get(str(row["name"]), str(row["name"]))
            drawn.line(f"M{_BUS} {hangs}H{_INSIDE - 4}M{2} {hangs}H{_BUS}")
            drawn.write(_INSIDE, f"{row['count']} x {title}", "value")
            drawn.write(_INSIDE, _crossing(row))
    drawn.line(f"M{_BUS} {bus}V{hangs}")
    bottom = drawn.y + 8
    size = (drawn.width - 2 * _PAD, bottom - top)
    drawn.box("case", left, top, *size)
    if many > 1:
        drawn.behind(left, top, *size)
    drawn.y = bottom + (2 * _BEHIND if many > 1 else 0) + 10
    return stubs


def _drives(drawn: _Drawing, row: Row, titles: Mapping[str, str]) -> float:
    """Draw the drives of a kind in a host or on the network; return where they hang."""
    count = int(row["count"] or 0)
    hangs = drawn.y + _BAY / 2
    drawn.line(f"M{_BUS} {hangs}H{_INSIDE - 4}")
    a_row = int((drawn.width - _INSIDE - 2 * _PAD) // (_BAY + _GAP))
    look = "bay works" if row["computes_Bps"] else "bay"
    shown = min(count, _DRAWN_MAX)
    for at in range(shown):
        x = _INSIDE + at % a_row * (_BAY + _GAP)
        y = drawn.y + at // a_row * (_BAY + _GAP)
        drawn.parts.append(
            f'<rect class="{look}" x="{x}" y="{y}" width="{_BAY}" height="{_BAY}" rx="2"/>'
        )
    drawn.y += -(-shown // a_row) * (_BAY + _GAP)
    title = titles.get(str(row["name"]), str(row["name"]))
    drawn.write(_INSIDE, f"{count} x {title}, {row['port']}", "value")
    doing = [
        f"{words} {_rate(row[name])}"
        for name, words in (
            ("computes_Bps", "computes"),
            ("read_Bps", "is read at"),
            ("returned_Bps", "returns"),
            ("written_Bps", "is written at"),
        )
        if row[name]
    ]
    drawn.write(_INSIDE, f"each {', '.join(doing) or 'keeps data'}")
    return hangs


def _crossing(row: Row) -> str:
    """Say where a card is, and what crosses it."""
    crossing = [
        f"{_rate(row[name])} {words}"
        for name, words in (
            ("read_Bps", "with drives on the network"),
            ("returned_Bps", "to clients"),
            ("written_Bps", "written by clients"),
        )
        if row[name]
    ]
    return f"{row['port']}: {', '.join(crossing)}" if crossing else str(row["port"])


def _network(
    drawn: _Drawing, stubs: Sequence[float], rows: Sequence[Row], titles: Mapping[str, str]
) -> None:
    """Draw the network, what hangs on it, and the wires from the cards of hosts."""
    top = drawn.y
    drawn.y += 4
    drawn.write(2 * _PAD, "Network", "value")
    bus, hangs = drawn.y, drawn.y
    for row in rows:
        drawn.y += 8
        if row["what"] == "drive":
            hangs = _drives(drawn, row, titles)
            continue
        hangs = drawn.y + _LINE / 2
        drawn.line(f"M{_BUS} {hangs}H{_INSIDE - 4}")
        title = titles.get(str(row["name"]), str(row["name"]))
        drawn.write(_INSIDE, f"{row['count']} x {title}, {row['port']}", "value")
    if hangs > bus:
        drawn.line(f"M{_BUS} {bus}V{hangs}")
    drawn.y += 8
    drawn.box("case", _PAD, top, drawn.width - 2 * _PAD, drawn.y - top)
    if stubs:
        drawn.line(f"M2 {stubs[0]}V{top + _LINE / 2}H{_PAD}")


def _rate(value: Value) -> str:
    return f"{float(value or 0) / 1e9:,.3g} GB/s"


def _lines(said: str, most: int) -> list[str]:
    """Break text at blanks into lines of at most so many letters, where it can be."""
    lines = [""]
    for word in said.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > most:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines
