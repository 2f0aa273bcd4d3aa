"""From a profile to the numbers that the equations take.

This module decides *which* points stand for T_SSD-tx, T_SSD-comp, T_CSD-tx and T_CSD-comp, and
how k_limit follows from bandwidths; the rules are those of ``docs/internals/profile.md``.
It computes no break-even point. Where a profile leaves a choice open it raises
`ProfileIncomplete` and lists the choices, rather than pick one in silence.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from csdplan.errors import ProfileIncomplete
from csdplan.model.device import csd_time_s
from csdplan.profile.schema import Point, Profile


@dataclass(frozen=True)
class HostTimes:
    """Times of the SSD system for Host(n).

    Attributes
    ----------
    tx_s, comp_s : float
        T_SSD-tx and the compute time of the point that was used [s].
    store_s : float
        Time to write the result back; 0 if the point does not say [s].
    divisor : int
        Equation 2's n: the host's compute time is `comp_s` / `divisor`. It is 1 if the profile
        has a point for n cores itself. Kept apart from `comp_s` so that no rounding precedes
        the solver's exact decision.
    """

    tx_s: float
    comp_s: float
    store_s: float
    divisor: int


@dataclass(frozen=True)
class Workload:
    """One kernel of one profile, ready for the solver.

    Attributes
    ----------
    profile, kernel : str
        Names, for messages and results.
    device, ssd : str
        The drive that computes, and the drive whose data the host loads.
    bytes : int
        Working set that all times refer to [bytes].
    sizes : tuple of int
        Every working set that both sides have points of, ascending [bytes].
    csd_tx_s, csd_comp_s, csd_store_s : float
        T_CSD-tx, T_CSD-comp and the time to store the result, of one drive [s]; the last is 0 if
        the point does not say.
    drive_units : int
        Units at work in the drive.
    ssd_overlap, csd_overlap : str
        Overlap of the measured points: ``serial`` or ``pipelined``.
    gains : tuple
        Units at work in the drive, and throughput over that with the fewest, for every drive
        point of this size; units ascending.
    media_Bps : float
        Bytes per second that the drive's media deliver to the drive and to hosts together.
    host_cores_max : int
        Cores that the host has; equation 2 holds up to here.
    k_limit : float or None
        Devices that the host can ingest from at full speed, not necessarily a whole number; None
        if the profile cannot tell.
    prov : dict
        Provenance of each of the four times.
    quartiles : dict
        Quartiles and number of runs of those of the four times that have them [s].
    energy : dict
        Energy of a run above idle, ``host`` on one core and ``drive``: joules and their source;
        without a side of which the profile says nothing.
    pipelined : dict
        Measured time of a pipelined run over the longer of transfer and compute, by side [1].
    warnings : tuple of str
        Statements that the reader of a plan must know about these numbers.
    """

    profile: str
    kernel: str
    device: str
    ssd: str
    bytes: int
    sizes: tuple[int, ...]
    csd_tx_s: float
    csd_comp_s: float
    csd_store_s: float
    drive_units: int
    ssd_overlap: str
    csd_overlap: str
    gains: tuple[tuple[int, float], ...]
    media_Bps: float
    host_cores_max: int
    k_limit: float | None
    prov: dict[str, str]
    quartiles: dict[str, tuple[float, float, int]]
    energy: dict[str, tuple[float, str]]
    pipelined: dict[str, float]
    warnings: tuple[str, ...]
    _host: dict[int, tuple[float, float, float]] = field(repr=False)

    def host(self, cores: int) -> HostTimes:
        """Return the SSD system's times for Host(`cores`), by a point of its own or equation 2."""
        if cores in self._host:
            return HostTimes(*self._host[cores], divisor=1)
        return HostTimes(*self._host[1], divisor=cores)


def workload_of(
    profile: Profile,
    kernel: str,
    *,
    name: str = "profile",
    device: str | None = None,
    ssd: str | None = None,
    bytes: int | None = None,
    ssd_profile: Profile | None = None,
) -> Workload:
    """Resolve one kernel of a profile.

    Parameters
    ----------
    profile : Profile
        The profile.
    kernel : str
        A kernel that the profile has points for.
    name : str
        Name of the profile in messages.
    device, ssd : str, optional
        The drive that computes and the drive that serves as an SSD, if there is a choice.
    bytes : int, optional
        The working set [bytes]; by default the largest that both sides have.
    ssd_profile : Profile, optional
        Takes the host and its SSDs from here, and only the drive from `profile`.

    Raises
    ------
    ProfileIncomplete
        If the kernel, a side of it or a choice is missing; the message lists what exists.
    """
    if kernel not in profile.kernels():
        listed = ", ".join(profile.kernels())
        raise ProfileIncomplete(f"{name} has no kernel {kernel!r}; it has: {listed}")
    where = f"{name}, kernel {kernel}"
    host_side = profile if ssd_profile is None else ssd_profile
    drives, hosts = profile.points(kernel, "drive"), host_side.points(kernel, "host")
    device = _choose(where, "drive", "--device", (p.device for p in drives), device, None)
    ssd = _choose(where, "host", "--ssd", (p.device for p in hosts), ssd, device)
    drives = [point for point in drives if point.device == device]
    hosts = [point for point in hosts if point.device == ssd]
    sizes = _sizes(where, drives, hosts)
    size = sizes[-1] if bytes is None else bytes
    if size not in sizes:
        listed = ", ".join(str(one) for one in sizes)
        raise ProfileIncomplete(f"{where}: no points of {size} bytes; there are: {listed}")
    drives = [point for point in drives if point.bytes == size]
    drive = _fastest(drives)
    by_cores = {point.units: point for point in hosts if point.bytes == size}
    used = [drive, *by_cores.values()]
    sides = {"host": by_cores[1], "drive": drive}
    return Workload(
        profile=name,
        kernel=kernel,
        device=device,
        ssd=ssd,
        bytes=size,
        sizes=sizes,
        csd_tx_s=drive.load_s.median,
        csd_comp_s=drive.comp_s.median,
        csd_store_s=_store(drive),
        drive_units=drive.units,
        ssd_overlap=by_cores[1].overlap,
        csd_overlap=drive.overlap,
        gains=_gains(drives),
        media_Bps=media_Bps(profile, device),
        host_cores_max=host_side.host.cores,
        k_limit=k_limit(host_side, ssd),
        prov=_provenance(by_cores[1], drive),
        quartiles=_quartiles(by_cores[1], drive),
        energy={
            side: (point.energy_J.median, point.energy_J.source)
            for side, point in sides.items()
            if point.energy_J is not None
        },
        pipelined={
            side: point.pipelined_s.median / max(point.load_s.median, point.comp_s.median)
            for side, point in sides.items()
            if point.pipelined_s is not None
        },
        warnings=_warnings(where, used),
        _host={n: (p.load_s.median, p.comp_s.median, _store(p)) for n, p in by_cores.items()},
    )


def k_limit(profile: Profile, ssd: str) -> float | None:
    """Return the host's ingest bandwidth, as a multiple of what one of `ssd` takes of it.

    The rule is ingest_bw_Bps / b, at least 1, where b is the device's link_bw_Bps or, if that is
    absent, its ext_read_Bps. It is a bandwidth, and not rounded; equation 6 as printed rounds it
    down. Returns None if either side is unknown.

    References
    ----------
    https://doi.org/10.1145/3623677, section 4.3: 32 GB/s over 4 GB/s for each SSD is 8.
    """
    ingest = profile.host.ingest_bw_Bps
    table = profile.device[ssd]
    each = table.link_bw_Bps or table.ext_read_Bps
    if ingest is None or each is None:
        return None
    return max(1, ingest // each if ingest % each == 0 else ingest / each)


def media_Bps(profile: Profile, device: str) -> float:
    """Return the bytes per second that a device's media deliver to all readers together.

    This is media_bw_Bps or, if the profile does not have it, the fastest reading that it knows of:
    int_read_Bps, ext_read_Bps, and the loads of its points. A reader alone is never slowed down by
    it.
    """
    table = profile.device[device]
    stated = (table.media_bw_Bps, table.int_read_Bps, table.ext_read_Bps)
    known = [float(value) for value in stated if value]
    loads = [p for p in profile.point if p.device == device and p.overload is None]
    known += [point.bytes / point.load_s.median for point in loads]
    return max(known)


def _choose(
    where: str,
    side: str,
    option: str,
    found: Iterable[str],
    wanted: str | None,
    preferred: str | None,
) -> str:
    """Pick the device of one side: the one wanted, the only one, or the preferred one."""
    names = sorted(set(found))
    listed = ", ".join(names)
    if not names:
        hint = ""
        if side == "drive":
            hint = "; give it as --ssd-profile, and a profile of a drive that computes as --profile"
        raise ProfileIncomplete(f"{where}: no point with where = {side!r}{hint}")
    if wanted is not None:
        if wanted not in names:
            raise ProfileIncomplete(f"{where}: no {side} point of {wanted!r}; there are: {listed}")
        return wanted
    if len(names) == 1:
        return names[0]
    if preferred in names:
        return preferred
    raise ProfileIncomplete(f"{where}: several devices have {side} points; give {option}: {listed}")


def _sizes(where: str, drives: list[Point], hosts: list[Point]) -> tuple[int, ...]:
    """Return the working sets: equation 2 needs the host's time on one core at that size."""
    both = {point.bytes for point in drives} & {p.bytes for p in hosts if p.units == 1}
    if not both:
        raise ProfileIncomplete(
            f"{where}: needs a host point with units = 1 and a drive point of the same bytes"
        )
    return tuple(sorted(both))


def _fastest(drives: list[Point]) -> Point:
    """Return the drive's best configuration, as the paper uses it (section 4.2.3)."""
    return min(drives, key=lambda point: (point.load_s.median + point.comp_s.median, point.units))


def _store(point: Point) -> float:
    return 0.0 if point.store_s is None else point.store_s.median


def _gains(drives: list[Point]) -> tuple[tuple[int, float], ...]:
    """Return each point's throughput over that of the fewest units, as the points overlap."""
    ordered = sorted(drives, key=lambda point: point.units)
    times = [
        float(csd_time_s(p.load_s.median, p.comp_s.median, overlap=p.overlap)) for p in ordered
    ]
    return tuple((p.units, times[0] / time) for p, time in zip(ordered, times, strict=True))


def _provenance(host: Point, drive: Point) -> dict[str, str]:
    return {
        "ssd_tx_s": host.prov_of(host.load_s),
        "ssd_comp_s": host.prov_of(host.comp_s),
        "csd_tx_s": drive.prov_of(drive.load_s),
        "csd_comp_s": drive.prov_of(drive.comp_s),
    }


def _quartiles(host: Point, drive: Point) -> dict[str, tuple[float, float, int]]:
    timings = {
        "ssd_tx_s": host.load_s,
        "ssd_comp_s": host.comp_s,
        "csd_tx_s": drive.load_s,
        "csd_comp_s": drive.comp_s,
    }
    return {
        name: (timing.p25, timing.p75, timing.n)
        for name, timing in timings.items()
        if timing.p25 is not None and timing.p75 is not None and timing.n is not None
    }


def _warnings(where: str, used: list[Point]) -> tuple[str, ...]:
    warnings = []
    if any(point.overlap == "pipelined" for point in used):
        warnings.append(
            f"{where}: some points are pipelined, but the equations add load and compute time, "
            "so those times are overstated unless the plan overlaps too (--overlap measured)"
        )
    if any(point.store_s is not None for point in used):
        warnings.append(
            f"{where}: store_s is recorded, but the equations leave it out unless the plan "
            "stores too (--store)"
        )
    return tuple(warnings)
