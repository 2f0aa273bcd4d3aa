"""Smaller SVG files: what is rounded, what is left alone, and which vertices stay."""

import re

from csdplan.plot.compact import compact

#: A bend that shows, between vertices that lie within a twentieth of a point of a straight line.
LINE = 'd="M 0 0 \nL 1 0.02 \nL 2.123456 0 \nL 3 -0.02 \nL 4 5 \nL 5 5.049 \nL 6 5 \n"'


def test_coordinates_are_rounded_and_nothing_else() -> None:
    before = (
        '<g style="stroke-width: 0.123456"><use x="1.004999" y="-0.001"/>'
        '<text transform="rotate(-0 59.208782 249.154511)">0.123456</text>'
        '<path d="M 1.5 2.25 \nz\n" transform="scale(0.015625)"/></g>'
    )
    assert compact(before) == (
        '<g style="stroke-width: 0.123456"><use x="1" y="0"/>'
        '<text transform="rotate(-0 59.21 249.15)">0.123456</text>'
        '<path d="M 1.5 2.25 \nz\n" transform="scale(0.015625)"/></g>'
    )


def test_vertices_on_a_straight_line_go_and_bends_stay() -> None:
    small = compact(f"<path {LINE}/>")
    assert small == '<path d="M 0 0 \nL 3 -0.02 \nL 4 5 \nL 6 5 \n"/>'
    assert compact(small) == small


def test_a_closed_outline_keeps_its_corners() -> None:
    square = '<path d="M 0 0 \nL 0 5 \nL 0 9 \nL 9 9 \nL 9 0 \nL 0 0 \nz\n"/>'
    assert re.findall(r"[ML] (\S+ \S+)", compact(square)) == ["0 0", "0 9", "9 9", "9 0", "0 0"]
