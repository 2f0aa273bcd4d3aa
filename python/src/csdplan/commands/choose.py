"""From a profile and a kernel to a workload, and from CSV files to measured points.

Every command that plans one kernel takes the same options, so that a profile with many points can
be asked anything.
"""

from __future__ import annotations

import csv
from pathlib import Path

from csdplan.errors import ProfileIncomplete
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
    ProfileIncomplete
        If its first line or a number is not as expected.
    OSError
        If it cannot be read.
    """
    with Path(path).open(newline="", encoding="utf-8") as file:
        reader = csv.DictReader(file)
        if tuple(reader.fieldnames or ()) != columns:
            raise ProfileIncomplete(f"{path}: the first line must be {','.join(columns)}")
        try:
            return [{name: float(row[name]) for name in columns} for row in reader]
        except (TypeError, ValueError) as error:
            raise ProfileIncomplete(f"{path}: line {reader.line_num}: {error}") from error
