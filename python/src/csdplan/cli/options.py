"""Options that several commands share."""

from __future__ import annotations

from math import isfinite
from pathlib import Path
from typing import Annotated

import typer

JsonOption = Annotated[
    bool, typer.Option("--json", help="Print one JSON object {schema, command, result, warnings}.")
]
CsvOption = Annotated[bool, typer.Option("--csv", help="Print rows of comma-separated values.")]
PlotOption = Annotated[
    list[Path] | None,
    typer.Option(help="Write a figure as .svg, .png or .html. Repeat it for several."),
]
ProfileOption = Annotated[str, typer.Option(help="A shipped profile's name, or a TOML file.")]
KernelOption = Annotated[str, typer.Option(help="The kernel, such as count or page-rank.")]
SsdProfileOption = Annotated[
    str | None, typer.Option(help="Take the host and its SSDs from this profile instead.")
]
KLimitOption = Annotated[
    float | None,
    typer.Option(min=1, help="Ingest bandwidth of the host, in SSDs that it reads at full speed."),
]
HostCoresOption = Annotated[int, typer.Option(min=1, help="Host cores at work.")]
#: Old name of --host-cores, kept for one release.
CoresOption = Annotated[int | None, typer.Option("--cores", min=1, hidden=True)]
DeviceOption = Annotated[
    str | None, typer.Option(help="The drive that computes, if a profile has several.")
]
SsdOption = Annotated[
    str | None, typer.Option(help="The drive read as an SSD, if a profile has several.")
]
BytesOption = Annotated[
    int | None,
    typer.Option("--bytes", min=1, help="Working set; by default the largest measured."),
]

#: A range has at most this many steps.
_STEPS_MAX = 10**6
#: A whole number in a list option has at most this many digits.
_DIGITS_MAX = 7


def whole_numbers(text: str, *, least: int = 1) -> list[int]:
    """Parse a list of whole numbers such as ``1,4,16``, each at least `least`, without repeats."""
    parts = [part.strip() for part in text.split(",")]
    # isdecimal takes other scripts' digits, and int() refuses texts of thousands of digits.
    plain = (part.isascii() and part.isdecimal() for part in parts)
    if not all(plain):
        raise typer.BadParameter(f"{text!r} is not a list of whole numbers such as 1,4,16")
    if max(map(len, parts)) > _DIGITS_MAX:
        raise typer.BadParameter(f"{text!r}: a number has at most {_DIGITS_MAX} digits")
    numbers = [int(part) for part in parts]
    if min(numbers) < least:
        raise typer.BadParameter(f"{text!r}: every number is at least {least}")
    return list(dict.fromkeys(numbers))


def numbers(text: str) -> list[float]:
    """Parse a list such as ``1,2.5,4`` or a range such as ``1:8:0.5`` (first, last, step)."""
    try:
        if ":" in text:
            return _range(text, *(float(part) for part in text.split(":")))
        return [float(part) for part in text.split(",")]
    except (TypeError, ValueError) as error:
        expected = "a list such as 1,2.5,4 or a range such as 1:8:0.5"
        raise typer.BadParameter(f"{text!r} is not {expected}") from error


def _range(text: str, first: float, last: float, step: float) -> list[float]:
    """Return the places of a range; each is computed by itself, so that no error adds up."""
    if not (isfinite(first) and isfinite(last) and isfinite(step)):
        raise ValueError(text)
    if step == 0 or (last - first) / step < 0:
        raise typer.BadParameter(
            f"{text!r}: steps of {step:g} do not lead from {first:g} to {last:g}"
        )
    steps = (last - first) / step
    if steps > _STEPS_MAX:
        raise typer.BadParameter(f"{text!r}: more than {_STEPS_MAX} values")
    # Twelve digits are more than anybody types, and fewer than rounding spoils.
    return [float(f"{first + index * step:.12g}") for index in range(int(steps + 1e-9) + 1)]
