"""A drive of one's own as a part: the numbers of a profile that was measured or imported."""

from __future__ import annotations

from collections.abc import Iterable

from csdplan.errors import ProfileIncomplete
from csdplan.hardware.part import Number, Part
from csdplan.hardware.prices import Price
from csdplan.hardware.source import Source
from csdplan.profile.read import load
from csdplan.profile.schema import Profile

#: Numbers of a part, and of a profile's device.
_KEYS = {
    "capacity_bytes": "capacity_bytes",
    "read_Bps": "ext_read_Bps",
    "write_Bps": "ext_write_Bps",
    "media_bw_Bps": "media_bw_Bps",
    "link_Bps": "link_bw_Bps",
    "cores": "cores",
    "idle_W": "idle_W",
    "active_W": "active_W",
}


def computing(profile: Profile, device: str | None, file: str) -> str:
    """Return the device whose times of kernels count: the one named, or the only one there is.

    Raises
    ------
    ProfileIncomplete
        If there is no such device, or no name and several.
    """
    known = sorted({point.device for point in profile.point if point.where == "drive"})
    if device is None and len(known) == 1:
        return known[0]
    if device in profile.device and device is not None:
        return device
    listed = ", ".join(sorted(profile.device)) or "none"
    wanted = "one device that computes" if device is None else f"a device {device!r}"
    raise ProfileIncomplete(f"{file}: expected {wanted}; it has: {listed}")


def inside_of(parts: Iterable[Part]) -> dict[str, tuple[Profile, str]]:
    """Return profile and device with the times inside each part that has some, by its name."""
    found = {}
    for part in parts:
        if part.profile is not None:
            profile = load(part.profile)
            found[part.name] = profile, computing(profile, part.device, part.profile)
    return found


def part_of(
    profile: Profile, file: str, device: str | None, day: str
) -> tuple[Part, tuple[str, Source], Price | None]:
    """Return a profile's drive as a part, the profile as its source, and its price if it has one.

    Parameters
    ----------
    profile : Profile
        The profile.
    file : str
        Its file.
    device : str or None
        The device; None if only one computes, or there is only one.
    day : str
        Date of numbers whose profile has none.

    Raises
    ------
    ProfileIncomplete
        If it is not clear which device is meant.
    """
    only = next(iter(profile.device)) if len(profile.device) == 1 else None
    name = computing(profile, device or only, file)
    table = profile.device[name]
    date = profile.meta.date or day
    source = Source(publisher=profile.meta.machine, document=file, date=date, seen=date)
    key, provs = f"profile-{name}", table.prov or {}
    numbers = {
        mine: Number(value=float(value), source=key, prov=provs.get(theirs, "given"))
        for mine, theirs in _KEYS.items()
        if (value := getattr(table, theirs)) is not None
    }
    inside = any(point.device == name and point.where == "drive" for point in profile.point)
    texts = {
        "name": name,
        "title": f"{name} ({profile.meta.machine})",
        "kind": "csd" if inside else "ssd",
        "profile": file if inside else None,
        "device": name,
    }
    part = Part.model_validate({**texts, **numbers})
    usd = table.price_usd
    price = None if usd is None else Price(usd, date, provs.get("price_usd", "given"), str(source))
    return part, (key, source), price
