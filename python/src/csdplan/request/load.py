"""Purchase requests as TOML files: the products on offer and the requirements.

A request names CPUs with their prices, drives whose speeds stand in profiles, and workloads with
the throughput that each needs. This module turns it into the plain numbers of ``solve.purchase``;
it decides nothing. Faults are reported all at once, as a profile's are.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from math import inf
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from csdplan.errors import ProfileIncomplete, ProfileInvalid, ProfileNotFound
from csdplan.files import read_file
from csdplan.model.cost import BUSY, PUE
from csdplan.model.overlap import Overlap
from csdplan.profile.read import load, parse_toml, problem
from csdplan.profile.schema import Amount, Name, Profile, Table, Text, Whole
from csdplan.profile.workload import media_Bps
from csdplan.solve import purchase

_SUFFIX = ".toml"


class Meta(Table):
    """Sources of prices and requirements."""

    note: Text | None = None
    date: Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")] | None = None


class Require(Table):
    """Limits of the whole purchase; absent limits do not limit."""

    capacity_bytes: Amount | Whole | None = None
    budget_usd: Amount | None = None
    power_W: Amount | None = None
    hosts_max: Whole = 1
    energy_usd_per_kWh: Amount | None = None
    years: Amount | None = None
    budget_covers: Literal["purchase", "total"] = "purchase"
    pue: Annotated[float, Field(ge=1, allow_inf_nan=False)] = PUE
    busy: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = BUSY
    overlap: Literal["serial", "pipelined"] = "serial"


class Host(Table):
    """The profile whose host points give compute times; CPUs are fast or slow against it."""

    profile: Text
    slots: Whole


class Cpu(Table):
    """One CPU that may be bought, as a whole host without drives."""

    name: Text
    cores: Whole
    core_speed: Amount
    price_usd: Amount
    ingest_bw_Bps: Whole | None = None
    memory_bw_Bps: Whole | None = None
    slots: Whole | None = None
    idle_W: Amount | None = None
    core_W: Amount | None = None


class Drive(Table):
    """One kind of drive; what is absent is taken from its profile."""

    name: Text
    profile: Text
    device: Name
    computes: bool = True
    price_usd: Amount | None = None
    capacity_bytes: Whole | None = None
    ext_read_Bps: Whole | None = None
    media_bw_Bps: Whole | None = None
    active_W: Amount | None = None
    idle_W: Amount | None = None


class Workload(Table):
    """One workload."""

    kernel: Name
    throughput_Bps: Amount
    data_bytes: Amount | Whole | None = None


class RequestFile(Table):
    """A whole request."""

    version: Literal[1] = Field(alias="schema")
    meta: Meta | None = None
    require: Require = Field(default_factory=Require)
    host: Host
    cpu: Annotated[list[Cpu], Field(min_length=1)]
    drive: Annotated[list[Drive], Field(min_length=1)]
    workload: Annotated[list[Workload], Field(min_length=1)]


def load_request(source: str | Path) -> purchase.Request:
    """Load a request and the profiles that it names.

    Parameters
    ----------
    source : str or Path
        A file, or the name of a shipped request; distinguished as profiles are.

    Raises
    ------
    ProfileNotFound
        If there is no such request, or a profile that it names is missing.
    ProfileInvalid
        If a file breaks its schema.
    ProfileIncomplete
        If a price, capacity or time is known neither to the request nor to the profile.
    """
    path, name = Path(source), str(source)
    if isinstance(source, Path) or "/" in source or source.endswith(_SUFFIX):
        return parse_request(read_file(path), file=name, folder=path.parent)
    names = request_names()
    if source not in names:
        raise ProfileNotFound(
            f"no shipped request {source!r}; there are: {', '.join(names)}. "
            f"A file of your own needs a slash or {_SUFFIX} in its name."
        )
    data = (resources.files("csdplan.request") / "shipped" / f"{source}{_SUFFIX}").read_bytes()
    return parse_request(data, file=f"{source}{_SUFFIX}")


def request_names() -> tuple[str, ...]:
    """Return the names of the requests that come with the package, sorted."""
    files = (resources.files("csdplan.request") / "shipped").iterdir()
    found = (entry.name for entry in files)
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in found if name.endswith(_SUFFIX)))


def parse_request(
    data: bytes | str, *, file: str = "request", folder: Path | None = None
) -> purchase.Request:
    """Parse a request's TOML text; profiles in files are searched in its `folder`."""
    raw = parse_toml(data, file)
    try:
        body = RequestFile.model_validate(raw)
    except ValidationError as error:
        problems = [problem(detail, RequestFile) for detail in error.errors(include_url=False)]
        raise ProfileInvalid(file, problems) from error
    named = {body.host.profile, *(drive.profile for drive in body.drive)}
    profiles = {name: _profile(name, folder) for name in sorted(named)}
    require = body.require
    return purchase.Request(
        cpus=tuple(_cpu(cpu, body, profiles[body.host.profile]) for cpu in body.cpu),
        drives=tuple(_drive(drive, profiles[drive.profile]) for drive in body.drive),
        demands=tuple(_demand(workload, body, profiles, file) for workload in body.workload),
        limits=purchase.Limits(
            capacity_bytes=float(require.capacity_bytes or 0.0),
            budget_usd=require.budget_usd,
            power_W=require.power_W,
            hosts_max=require.hosts_max,
            energy_usd_per_kWh=require.energy_usd_per_kWh or 0.0,
            years=require.years or 0.0,
            budget_covers=require.budget_covers,
            pue=require.pue,
            busy=require.busy,
        ),
        overlap=Overlap(require.overlap),
    )


def _profile(name: str, folder: Path | None) -> Profile:
    in_file = "/" in name or name.endswith(_SUFFIX)
    return load(folder / name if in_file and folder is not None else name)


def _cpu(cpu: Cpu, body: RequestFile, profile: Profile) -> purchase.Cpu:
    ingest = cpu.ingest_bw_Bps or profile.host.ingest_bw_Bps
    return purchase.Cpu(
        name=cpu.name,
        cores=cpu.cores,
        price_usd=cpu.price_usd,
        ingest_Bps=_known(ingest, f"cpu {cpu.name}", "ingest_bw_Bps"),
        slots=cpu.slots or body.host.slots,
        idle_W=cpu.idle_W,
        core_W=cpu.core_W,
        memory_Bps=float(cpu.memory_bw_Bps or inf),
    )


def _drive(drive: Drive, profile: Profile) -> purchase.DriveKind:
    if drive.device not in profile.device:
        listed = ", ".join(sorted(profile.device))
        raise ProfileIncomplete(f"{drive.profile} has no device {drive.device!r}; it has: {listed}")
    table, where = profile.device[drive.device], f"drive {drive.name}"
    read_Bps = _known(drive.ext_read_Bps or table.ext_read_Bps, where, "ext_read_Bps")
    known = max(read_Bps, media_Bps(profile, drive.device))
    return purchase.DriveKind(
        name=drive.name,
        price_usd=_known(drive.price_usd or table.price_usd, where, "price_usd"),
        capacity_bytes=_known(
            drive.capacity_bytes or table.capacity_bytes, where, "capacity_bytes"
        ),
        read_Bps=read_Bps,
        active_W=drive.active_W or table.active_W,
        media_Bps=float(drive.media_bw_Bps or known),
        idle_W=drive.idle_W or table.idle_W,
    )


def _demand(
    workload: Workload, body: RequestFile, profiles: Mapping[str, Profile], file: str
) -> purchase.Demand:
    kernel = workload.kernel
    core_s = core_s_per_byte(profiles[body.host.profile], kernel)
    inside = {
        drive.name: drive_s_per_byte(profiles[drive.profile], kernel, drive.device)
        for drive in body.drive
        if drive.computes
    }
    drives = {name: time for name, time in inside.items() if time is not None}
    if core_s is None and not drives:
        raise ProfileIncomplete(f"{file}: no profile that it names has a point of kernel {kernel}")
    return purchase.Demand(
        name=kernel,
        required_Bps=workload.throughput_Bps,
        core_s_per_byte=(
            {cpu.name: core_s / cpu.core_speed for cpu in body.cpu} if core_s is not None else {}
        ),
        drive_s_per_byte=drives,
        stored_bytes=float(workload.data_bytes or 0.0),
    )


def core_s_per_byte(profile: Profile, kernel: str) -> float | None:
    """Return the compute time of one host core, from the point of the largest working set."""
    points = [p for p in profile.points(kernel, "host") if p.units == 1]
    if not points:
        return None
    point = max(points, key=lambda p: p.bytes)
    return point.comp_s.median / point.bytes


def drive_s_per_byte(profile: Profile, kernel: str, device: str) -> float | None:
    """Return load and compute time in the drive at its best, for the largest working set."""
    points = [p for p in profile.points(kernel, "drive") if p.device == device]
    if not points:
        return None
    size = max(p.bytes for p in points)
    times = []
    for point in points:
        if point.bytes == size:
            load_s, comp_s = point.load_s.median, point.comp_s.median
            serial = point.overlap == "serial"
            times.append(load_s + comp_s if serial else max(load_s, comp_s))
    return min(times) / size


def _known(value: float | None, where: str, key: str) -> float:
    if value is None:
        raise ProfileIncomplete(f"{where}: {key} is unknown: give it in the request")
    return float(value)
