"""From a profile and a kernel to a workload, and from CSV files to measured points.

Every command that plans one kernel takes the same options, so that a profile with many points can
be asked anything.
"""

from __future__ import annotations

import csv
from math import isfinite
from pathlib import Path

from csdplan.errors import ProfileIncomplete
from csdplan.files import read_text
from csdplan.options import ProfileLike
from csdplan.profile import Profile, Workload, load, workload_of


def profile_of(source: ProfileLike) -> tuple[str, Profile]:
    """Return what messages call a profile, and the profile.

    Raises
    ------
    ProfileError
        If it cannot be read.
    """
    if isinstance(source, Profile):
        return "profile", source
    return str(source), load(source)


def choose(
    profile: ProfileLike,
    kernel: str,
    *,
    device: str | None = None,
    ssd: str | None = None,
    bytes: int | None = None,
    ssd_profile: ProfileLike | None = None,
) -> Workload:
    """Return the workload that the options choose.

    Parameters
    ----------
    profile, ssd_profile : Profile, str or Path
        A profile, a shipped one's name, or a file; the second gives the host and its SSDs.
    kernel : str
        A kernel that the profile has points for.
    device, ssd : str, optional
        The drive that computes and the drive that serves as an SSD, if there is a choice.
    bytes : int, optional
        The working set [bytes]; by default the largest that both sides have.

    Raises
    ------
    ProfileError
        If a profile cannot be read, or leaves open what no option decides.
    """
    name, found = profile_of(profile)
    return workload_of(
        found,
        kernel,
        name=name,
        device=device,
        ssd=ssd,
        bytes=bytes,
        ssd_profile=None if ssd_profile is None else profile_of(ssd_profile)[1],
    )


def read_rows(path: str | Path, columns: tuple[str, ...]) -> list[dict[str, float]]:
    """Return a CSV file's rows as numbers.

    Raises
    ------
    CsdplanError
        If it cannot be read, or its first line or a number is not as expected.
    """
    reader = csv.DictReader(read_text(Path(path)).splitlines())
    rows = []
    try:
        if tuple(reader.fieldnames or ()) != columns:
            raise ProfileIncomplete(f"{path}: the first line must be {','.join(columns)}")
        for row in reader:
            rows.append({name: float(row[name]) for name in columns})
            if None in row or not all(map(isfinite, rows[-1].values())):
                raise ValueError(f"expected {len(columns)} finite numbers")
    except (TypeError, ValueError, csv.Error) as error:
        raise ProfileIncomplete(f"{path}: line {reader.line_num}: {error}") from error
    return rows
