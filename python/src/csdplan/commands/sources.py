"""Commands about sources: profiles, import, and reproduce (published claims)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from csdplan.commands.tables import Tables
from csdplan.errors import ExtraMissing, ProfileIncomplete
from csdplan.profile import Profile, load, shipped_names
from csdplan.profile.convert import Bandwidth, KernelTimes, profile_of, read_fio
from csdplan.profile.write import as_toml
from csdplan.result.sheet import sheet_of

_NO_CLAIMS = (
    "published claims come with the extra reproduce: "
    "pip install './python[reproduce]' ./python/reproduce"
)


def profiles() -> Tables:
    """List the profiles that come with csdplan, in the sheet ``profiles``."""
    rows = []
    for name in shipped_names():
        profile = load(name)
        devices, kernels = ", ".join(sorted(profile.device)), ", ".join(profile.kernels())
        rows.append((name, profile.meta.machine, profile.meta.source, devices, kernels))
    columns = ("name", "machine", "source", "devices", "kernels")
    return Tables({"profiles": sheet_of("Shipped profiles", columns, rows)})


def import_profile(
    name: str,
    kernel: Sequence[KernelTimes],
    host_cores: int,
    *,
    out: str | Path | None = None,
    fio: str | Path | None = None,
    fio_inside: str | Path | None = None,
    read_Bps: float | None = None,
    write_Bps: float | None = None,
    inside_Bps: float | None = None,
    ingest_Bps: int | None = None,
    link_Bps: int | None = None,
    drive_cores: int | None = None,
    capacity_bytes: int | None = None,
    idle_W: float | None = None,
    active_W: float | None = None,
    price_usd: float | None = None,
    machine: str = "unnamed machine",
    date: str | None = None,
    source: str | None = None,
) -> Profile:
    """Make a profile from fio's JSON or a data sheet.

    Parameters
    ----------
    name : str
        The device's name, such as ``my-ssd``.
    kernel : sequence of KernelTimes
        Working sets and compute times, on one host core and in the drive.
    host_cores : int
        Cores of the host.
    out : str or Path, optional
        File for the profile as TOML.
    fio, fio_inside : str or Path, optional
        fio's JSON, run on the host and in the drive.
    read_Bps, write_Bps, inside_Bps : float, optional
        Bandwidths of a data sheet: read, write, and read inside the drive [bytes/s].
    ingest_Bps, link_Bps : int, optional
        Bandwidths of the host's ingest and of the drive's link [bytes/s].
    drive_cores : int, optional
        Cores of the drive.
    capacity_bytes : int, optional
        Capacity of the drive [bytes].
    idle_W, active_W : float, optional
        Power of the drive at rest and at work [W].
    price_usd : float, optional
        Price of the drive [USD].
    machine, date, source : str, optional
        Name of the machine, day of measurement (YYYY-MM-DD), and source of the numbers.

    Raises
    ------
    ProfileIncomplete
        If both or neither of fio's files and a data sheet's numbers are given.
    OSError
        If a file cannot be read or written.
    """
    found: dict[str, Bandwidth] = {}
    for path, side in ((fio, "ext"), (fio_inside, "int")):
        if path is not None:
            found |= {f"{side}_{key}": value for key, value in read_fio(Path(path)).items()}
    sheet = {"ext_read": read_Bps, "ext_write": write_Bps, "int_read": inside_Bps}
    stated = {key: Bandwidth(value) for key, value in sheet.items() if value is not None}
    if found and stated:
        raise ProfileIncomplete("give fio's files or a data sheet's numbers, not both")
    device = {
        "cores": drive_cores,
        "link_bw_Bps": link_Bps,
        "idle_W": idle_W,
        "active_W": active_W,
        "price_usd": price_usd,
        "capacity_bytes": capacity_bytes,
    }
    meta = {"machine": machine, "date": date, "source": source}
    host = {"cores": host_cores, "ingest_bw_Bps": ingest_Bps}
    profile = profile_of(
        name,
        found or stated,
        list(kernel),
        meta={key: value for key, value in meta.items() if value is not None},
        host={key: value for key, value in host.items() if value is not None},
        device={key: value for key, value in device.items() if value is not None},
        prov="measured" if found else "given",
    )
    if out is not None:
        Path(out).write_text(as_toml(profile), encoding="utf-8")
    return profile


def reproduce(only: Sequence[str] = (), *, document: str | Path | None = None) -> Tables:
    """Check every published claim that software can check, from profiles and equations.

    Returns the sheet ``claims``.

    Parameters
    ----------
    only : sequence of str
        Beginnings of the ids of the claims to check; all claims if empty.
    document : str or Path, optional
        File for the reference page; its figures are written next to it.

    Raises
    ------
    ExtraMissing
        If the extra ``reproduce`` is not installed.
    """
    try:
        import csdplan_reproduce as published  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        if error.name != "csdplan_reproduce":
            raise
        raise ExtraMissing(_NO_CLAIMS) from error
    report = published.reproduce(only)
    if document is not None:
        published.write(Path(document))
    return Tables({"claims": report.sheet()}, facts={"counts": report.counts()})
