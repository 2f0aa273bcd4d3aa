"""Plans for overloaded hosts as sheets: by memory, or by measured overload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from csdplan.errors import ProfileIncomplete
from csdplan.profile.schema import Overload, Point, Profile
from csdplan.profile.workload import Workload
from csdplan.result.sheet import Sheet, Value, sheet_of
from csdplan.result.sweeps import Setting, solved
from csdplan.solve.overload import LimitedPoint, SlowDown, slow_downs
from csdplan.units import bytes_text


def overload_plan(
    workload: Workload, factors: Sequence[SlowDown], *, cores: int = 1, k_limit: float | None = None
) -> Sheet:
    """Tabulate break-even points against the memory that a host has for a kernel."""
    settings = [
        Setting(host_cores=cores, k_limit=k_limit, sd_tx=factor.sd_tx, sd_comp=factor.sd_comp)
        for factor in factors
    ]
    solution = solved(workload, settings)
    rows = [
        (
            factor.memory_bytes / 1e9,
            factor.sd_tx,
            factor.sd_comp,
            int(solution.devices[row]) or None,
            int(solution.closed_form[row]) or None,
        )
        for row, factor in enumerate(factors)
    ]
    clipped = any(factor.clipped for factor in factors)
    note = f"working set {bytes_text(workload.bytes)}; the drives do not use the host's memory" + (
        "; some times were below those with enough memory, and count as 1" if clipped else ""
    )
    columns = ("memory_GB", "sd_tx", "sd_comp", "devices", "closed_form_devices")
    title = (
        f"{workload.kernel} on {workload.device}: break-even point against memory, Host({cores})"
    )
    return sheet_of(title, columns, rows, note)


@dataclass(frozen=True)
class Measured:
    """Slow-down factors that a profile holds.

    Attributes
    ----------
    overload : Overload
        Resource that the host lacked.
    cores : int
        Host cores at work in both measurements.
    sd_tx, sd_comp : float
        Slow-down factors of transfer and compute [1]; at least 1.
    clipped : bool
        True if a time was below that without overload, so that a factor was raised to 1.
    """

    overload: Overload
    cores: int
    sd_tx: float
    sd_comp: float
    clipped: bool


def measured(
    profile: Profile, workload: Workload, *, name: str, cores: int
) -> tuple[Measured, ...]:
    """Return the slow-down factors that a profile was measured to have; none if it was not.

    Parameters
    ----------
    profile : Profile
        The profile of the host.
    workload : Workload
        Kernel, drive and working set.
    name : str
        Name of the profile in messages.
    cores : int
        Host cores at work. Without a measurement of theirs, those of one core stand for them.

    Raises
    ------
    ProfileIncomplete
        If a point under overload has no counterpart without.
    """
    own = [
        point
        for point in profile.point
        if point.overload is not None
        and (point.kernel, point.device, point.bytes)
        == (workload.kernel, workload.ssd, workload.bytes)
    ]
    chosen = [point for point in own if point.units == cores] or [p for p in own if p.units == 1]
    plain = {
        point.units: point
        for point in profile.points(workload.kernel, "host")
        if (point.device, point.bytes) == (workload.ssd, workload.bytes)
    }
    found = []
    for point in chosen:
        if point.units not in plain:
            raise ProfileIncomplete(
                f"{name}, kernel {workload.kernel}: the point on {point.units} cores under "
                f"overload ({point.overload}) has no counterpart without: slow-down is their ratio"
            )
        found.append(_against(point, plain[point.units]))
    return tuple(sorted(found, key=_order))


def measured_plan(
    workload: Workload, found: Sequence[Measured], *, cores: int = 1, k_limit: float | None = None
) -> Sheet:
    """Tabulate break-even points under each overload that was measured."""
    settings = [
        Setting(host_cores=cores, k_limit=k_limit, sd_tx=each.sd_tx, sd_comp=each.sd_comp)
        for each in found
    ]
    solution = solved(workload, [Setting(host_cores=cores, k_limit=k_limit), *settings])
    names: list[tuple[Value, ...]] = [("none", 1.0, 1.0)]
    names += [(str(each.overload), each.sd_tx, each.sd_comp) for each in found]
    rows = [
        (*named, int(solution.devices[row]) or None, int(solution.closed_form[row]) or None)
        for row, named in enumerate(names)
    ]
    note = f"working set {bytes_text(workload.bytes)}; factors measured"
    if any(each.clipped for each in found):
        note += "; some times were below those without overload, and count as 1"
    if any(each.cores != cores for each in found):
        note += "; factors are those of one core"
    columns = ("overload", "sd_tx", "sd_comp", "devices", "closed_form_devices")
    title = (
        f"{workload.kernel} on {workload.device}: break-even point under overload, Host({cores})"
    )
    return sheet_of(title, columns, rows, note)


def _against(point: Point, plain: Point) -> Measured:
    assert point.overload is not None, "only points under overload are compared"
    # The ratios are the same whatever was short; the amount only orders several.
    limited = LimitedPoint(1.0, point.load_s.median, point.comp_s.median)
    (ratio,) = slow_downs([limited], load_s=plain.load_s.median, comp_s=plain.comp_s.median)
    return Measured(point.overload, point.units, ratio.sd_tx, ratio.sd_comp, ratio.clipped)


def _order(found: Measured) -> tuple[str, int]:
    """Order by what is short: memory by how little, the others by how many rivals."""
    of = found.overload
    return (of.kind, -(of.memory_bytes or 0) or (of.rivals or 0))
