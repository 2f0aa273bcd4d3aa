"""Options that pick what is planned: profiles, kernel, drives, working set.

Every command that plans one kernel takes the same ones, so that a profile with many points can be
asked anything.
"""

from __future__ import annotations

import csv as csv_format
from pathlib import Path
from typing import Annotated

import typer

from csdplan.errors import ProfileIncomplete
from csdplan.profile import Workload, load, workload_of

ProfileOption = Annotated[str, typer.Option(help="A shipped profile's name, or a TOML file.")]
KernelOption = Annotated[str, typer.Option(help="The kernel, such as count or page-rank.")]
SsdProfileOption = Annotated[
    str | None, typer.Option(help="Take the host and its SSDs from this profile instead.")
]
KLimitOption = Annotated[
    int | None, typer.Option(min=1, help="SSDs that use up the host's ingest bandwidth.")
]
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


def picked(
    profile: str,
    kernel: str,
    *,
    device: str | None,
    ssd: str | None,
    bytes: int | None,
    ssd_profile: str | None = None,
) -> Workload:
    """Return the workload that the options pick.

    Raises
    ------
    ProfileError
        If a profile cannot be read, or leaves open what no option settles.
    """
    host_side = None if ssd_profile is None else load(ssd_profile)
    return workload_of(
        load(profile),
        kernel,
        name=profile,
        device=device,
        ssd=ssd,
        bytes=bytes,
        ssd_profile=host_side,
    )


def csv_rows(path: Path, columns: tuple[str, ...]) -> list[dict[str, float]]:
    """Return a CSV file's rows as numbers.

    Raises
    ------
    ProfileIncomplete
        If its first line or a number is not as expected.
    OSError
        If it cannot be read.
    """
    with path.open(newline="", encoding="utf-8") as file:
        reader = csv_format.DictReader(file)
        if tuple(reader.fieldnames or ()) != columns:
            raise ProfileIncomplete(f"{path}: the first line must be {','.join(columns)}")
        try:
            return [{name: float(row[name]) for name in columns} for row in reader]
        except (TypeError, ValueError) as error:
            raise ProfileIncomplete(f"{path}: line {reader.line_num}: {error}") from error
