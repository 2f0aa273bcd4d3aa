"""Options that several commands share."""

from __future__ import annotations

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

#: A whole number in a list option has at most this many digits.
_DIGITS_MAX = 7


def whole_numbers(text: str, *, least: int = 1) -> list[int]:
    """Parse a list of whole numbers such as ``1,4,16``, each at least `least`, without repeats."""
    parts = [part.strip() for part in text.split(",")]
    # isdecimal takes other scripts' digits, and int() refuses texts of thousands of digits.
    plain = (part.isascii() and part.isdecimal() for part in parts)
    if not all(plain) or max(map(len, parts)) > _DIGITS_MAX:
        raise typer.BadParameter(f"{text!r} is not a list of whole numbers such as 1,4,16")
    numbers = [int(part) for part in parts]
    if min(numbers) < least:
        raise typer.BadParameter(f"{text!r}: every number is at least {least}")
    return list(dict.fromkeys(numbers))


def numbers(text: str) -> list[float]:
    """Parse a list such as ``1,2.5,4`` or a range such as ``1:8:0.5`` (first, last, step)."""
    try:
        if ":" in text:
            first, last, step = (float(part) for part in text.split(":"))
            count = (last - first) / step
            if not 0 <= count <= 10**6:
                raise ValueError(text)
            return [first + index * step for index in range(int(count + 1e-9) + 1)]
        return [float(part) for part in text.split(",")]
    except (ValueError, ZeroDivisionError, OverflowError) as error:
        expected = "a list such as 1,2.5,4 or a range such as 1:8:0.5"
        raise typer.BadParameter(f"{text!r} is not {expected}") from error
