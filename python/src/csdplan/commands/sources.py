"""Commands about sources: profiles, import, and reproduce (published claims)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from csdplan.commands.tables import Tables
from csdplan.errors import ExtraMissing, ModelError, ProfileIncomplete
from csdplan.options import Option, documented
from csdplan.profile import Profile, load, shipped_names
from csdplan.profile.convert import Bandwidth, KernelTimes, check_name, profile_of
from csdplan.profile.fio import read_fio
from csdplan.profile.schema import WHOLE_MAX
from csdplan.profile.write import as_toml
from csdplan.result.sheet import sheet_of
from csdplan.texts import kernel_times
from csdplan.units import as_written, quantity

_NO_CLAIMS = (
    "published claims come with the extra reproduce: "
    "pip install './python[reproduce]' ./python/reproduce"
)

#: Nothing is as small or as large, whatever it measures.
_LEAST, _MOST = 1e-6, 1e24
_CORES_MAX = 1_000_000


def profiles() -> Tables:
    """List the profiles that come with csdplan, in the sheet ``profiles``."""
    rows = []
    for name in shipped_names():
        profile = load(name)
        devices, kernels = ", ".join(sorted(profile.device)), ", ".join(profile.kernels())
        rows.append((name, profile.meta.machine, profile.meta.source, devices, kernels))
    columns = ("name", "machine", "source", "devices", "kernels")
    return Tables({"profiles": sheet_of("Shipped profiles", columns, rows)})


def _stated(text: str, form: str) -> Option:
    """Return the option of a number with a unit."""
    return Option(text, metavar=form, type=str)


@documented
def import_profile(
    name: Annotated[str, Option("The device's name, such as my-ssd.", argument=True)],
    kernel: Annotated[
        Sequence[KernelTimes],
        Option(
            "A kernel's working set, such as 4.8GB, and compute times on one host core and in "
            "the drive.",
            metavar="NAME:BYTES:HOST_S[:DRIVE_S]",
            type=list[str],
            parse=kernel_times,
        ),
    ],
    host_cores: Annotated[int, Option("Cores of the host.", min=1)],
    *,
    out: Annotated[
        str | Path | None,
        Option(
            "The profile to write; - is standard output.",
            doc="The profile to write, as TOML.",
            flag="--out -o",
            required=True,
        ),
    ] = None,
    fio: Annotated[
        str | Path | None, Option("fio's JSON, run on the host: bandwidth outside.")
    ] = None,
    fio_inside: Annotated[
        str | Path | None, Option("fio's JSON, run in the drive: bandwidth inside.")
    ] = None,
    read_Bps: Annotated[
        str | float | None, _stated("Data sheet: read, such as 7GB/s.", "RATE")
    ] = None,
    write_Bps: Annotated[str | float | None, _stated("Data sheet: write.", "RATE")] = None,
    inside_Bps: Annotated[str | float | None, _stated("Data sheet: read inside.", "RATE")] = None,
    ingest_Bps: Annotated[str | float | None, _stated("The host's ingest.", "RATE")] = None,
    link_Bps: Annotated[str | float | None, _stated("The drive's link.", "RATE")] = None,
    drive_cores: Annotated[int | None, Option("Cores of the drive.", min=1, max=_CORES_MAX)] = None,
    capacity_bytes: Annotated[
        str | float | None, _stated("Capacity, such as 7.68TB.", "SIZE")
    ] = None,
    idle_W: Annotated[str | float | None, _stated("The drive at rest.", "POWER")] = None,
    active_W: Annotated[str | float | None, _stated("The drive at work.", "POWER")] = None,
    price_usd: Annotated[str | float | None, _stated("The drive's price.", "USD")] = None,
    machine: Annotated[str, Option("Name of the machine that was measured.")] = "unnamed machine",
    date: Annotated[str | None, Option("YYYY-MM-DD of measurement or price.")] = None,
    source: Annotated[str | None, Option("Source of the numbers.")] = None,
) -> Profile:
    """Make a profile from fio's JSON or a data sheet.

    Raises
    ------
    ProfileIncomplete
        If both or neither of fio's files and a data sheet's numbers are given.
    OSError
        If a file cannot be read or written.
    """
    check_name(name)
    found: dict[str, Bandwidth] = {}
    for path, side in ((fio, "ext"), (fio_inside, "int")):
        if path is not None:
            found |= {f"{side}_{key}": value for key, value in read_fio(Path(path)).items()}
    sheet = (
        ("read_Bps", "ext_read", read_Bps),
        ("write_Bps", "ext_write", write_Bps),
        ("inside_Bps", "int_read", inside_Bps),
    )
    stated = {
        key: Bandwidth(_amount(option, value, "Bps"))
        for option, key, value in sheet
        if value is not None
    }
    if found and stated:
        raise ProfileIncomplete("give fio's files or a data sheet's numbers, not both")
    device = {
        "cores": drive_cores,
        "link_bw_Bps": _whole("link_Bps", link_Bps, "Bps"),
        "idle_W": None if idle_W is None else _amount("idle_W", idle_W, "W"),
        "active_W": None if active_W is None else _amount("active_W", active_W, "W"),
        "price_usd": None if price_usd is None else _amount("price_usd", price_usd, "USD"),
        "capacity_bytes": _whole("capacity_bytes", capacity_bytes, "bytes"),
    }
    meta = {"machine": machine, "date": date, "source": source}
    host = {"cores": host_cores, "ingest_bw_Bps": _whole("ingest_Bps", ingest_Bps, "Bps")}
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


def _amount(name: str, value: str | float, measures: str) -> float:
    amount = quantity(name, value, measures)
    if not _LEAST <= amount <= _MOST:
        most = f"at most {as_written(_MOST, value, measures)}"
        raise ModelError(name, value, "more than 0" if amount < 1 else most)
    return amount


def _whole(name: str, value: str | float | None, measures: str) -> int | None:
    """Return a number of bytes, or of bytes per second, as profiles hold them."""
    if value is None:
        return None
    amount = _amount(name, value, measures)
    if not 1 <= amount <= WHOLE_MAX:
        raise ModelError(name, value, f"a number from 1 to {WHOLE_MAX}")
    return round(amount)


@documented
def reproduce(
    only: Annotated[
        Sequence[str], Option("Only claims whose id begins so. Repeatable.", type=list[str])
    ] = (),
    *,
    document: Annotated[
        str | Path | None, Option("Write the reference page here, and its figures next to it.")
    ] = None,
    cluster: Annotated[
        str | Path | None, Option("Records of bench/cluster/model.py, for --document.")
    ] = None,
) -> Tables:
    """Check every published claim that software can check, from profiles and equations.

    Returns the sheet ``claims``.

    Raises
    ------
    ExtraMissing
        If the extra ``reproduce`` is not installed.
    ModelError
        If there are records and no page.
    """
    if cluster is not None and document is None:
        raise ModelError("cluster", cluster, "--document as well: the page has what they say")
    try:
        import csdplan_reproduce as published  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        if error.name != "csdplan_reproduce":
            raise
        raise ExtraMissing(_NO_CLAIMS) from error
    report = published.reproduce(only)
    if document is not None:
        published.write(Path(document), None if cluster is None else Path(cluster))
    return Tables({"claims": report.sheet()}, facts={"counts": report.counts()})
