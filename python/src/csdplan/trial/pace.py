"""The profile that drives imitate, and the link that they share.

A drive that is started with a pace answers when a device of a profile would have answered. Nothing
slows down the host, so the host's intake, which all drives share, is imitated by the drives too:
of m drives each reads to the host no faster than the m-th part of the intake.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from csdplan.errors import ProfileIncomplete
from csdplan.profile import Profile, load
from csdplan.profile.write import as_toml

#: The profile that drives imitate unless another is given.
SHIPPED = Path(__file__).with_name("pace.toml")


@dataclass(frozen=True)
class Pace:
    """A profile's device to imitate.

    Attributes
    ----------
    profile : Profile
        The profile: points of the drive, and the host's intake.
    name : str
        File or name of the profile, for messages.
    device : str
        Device of the profile.
    intake_Bps, read_Bps : int
        Bandwidth that the host takes in from all drives, and that one drive reads to it
        [bytes/s].
    """

    profile: Profile
    name: str
    device: str
    intake_Bps: int
    read_Bps: int

    def kernels(self) -> tuple[str, ...]:
        """Return the kernels whose time in the drive is known."""
        return tuple(
            kernel
            for kernel in self.profile.kernels()
            if any(point.device == self.device for point in self.profile.points(kernel, "drive"))
        )

    def drive_s(self, kernel: str, size_bytes: int) -> float:
        """Return the time of a kernel over `size_bytes` in one drive [s]."""
        times = [
            (point.load_s.median + point.comp_s.median) / point.bytes * size_bytes
            for point in self.profile.points(kernel, "drive")
            if point.device == self.device
        ]
        return min(times)

    def shared(self, devices: int) -> str:
        """Return the profile, as TOML, of one of `devices` drives that share the intake."""
        read_Bps = min(self.read_Bps, self.intake_Bps // devices)
        table = self.profile.as_dict()
        table["device"][self.device]["ext_read_Bps"] = read_Bps
        return as_toml(Profile.model_validate(table))

    def sized(self, size_bytes: int) -> Profile:
        """Return the profile with the drive's points for a working set of `size_bytes`.

        A paced drive takes as long for a byte, however many there are.
        """
        table = self.profile.as_dict()
        points = []
        for point in table["point"]:
            if point["where"] == "drive" and point["device"] == self.device:
                factor = size_bytes / point["bytes"]
                times = {
                    key: {"median": point[key]["median"] * factor} for key in ("load_s", "comp_s")
                }
                kept = {
                    key: point[key] for key in ("kernel", "where", "device", "units", "overlap")
                }
                points.append({**kept, **times, "bytes": size_bytes, "prov": "given"})
        return Profile.model_validate({**table, "point": points})


def load_pace(source: str | Path | None = None, device: str | None = None) -> Pace:
    """Return the device of a profile to imitate; by default that of `SHIPPED`.

    Raises
    ------
    ProfileError
        If the profile cannot be read, has no such device, or lacks a bandwidth that pacing needs.
    """
    name = "the shipped pace" if source is None else str(source)
    profile = load(SHIPPED if source is None else source)
    computing = sorted({point.device for point in profile.point if point.where == "drive"})
    listed = ", ".join(computing) or "none"
    if device is None and len(computing) != 1:
        raise ProfileIncomplete(f"{name}: give --device, a drive that computes; it has: {listed}")
    device = device or computing[0]
    if device not in computing:
        raise ProfileIncomplete(f"{name} has no points of a drive {device!r}; it has: {listed}")
    read_Bps, intake_Bps = profile.device[device].ext_read_Bps, profile.host.ingest_bw_Bps
    if read_Bps is None or intake_Bps is None:
        raise ProfileIncomplete(
            f"{name}: pacing needs device.{device}.ext_read_Bps and host.ingest_bw_Bps"
        )
    return Pace(profile, name, device, intake_Bps, read_Bps)
