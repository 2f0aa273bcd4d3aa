"""Break-even points of one kernel on one or several systems.

Ties a resolved `Workload` to the solver and writes down inputs and answers side by side, so that
a result can be checked by hand without the profile it came from. It chooses nothing by itself:
which points are used is `profile.workload`'s business, and the mathematics is `solve.bep`'s.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import floor, isinf
from typing import Any

from csdplan.errors import ModelError, ProfileIncomplete
from csdplan.model.ratios import CTR_SPLIT, compute_time_ratio
from csdplan.profile.workload import Workload
from csdplan.result.bounds import bounds_of, draws_of
from csdplan.solve.bep import Verdict, break_even

#: Overlaps of transfer and compute that a plan may assume.
OVERLAPS = ("serial", "pipelined", "measured")


@dataclass(frozen=True)
class HostResult:
    """One Host(n) against the drives.

    Attributes
    ----------
    host_cores : int
        n, host cores at work.
    ssd_tx_s, ssd_comp_s : float
        T_SSD-tx and T_SSD(n)-comp of one SSD, before slow-down factors [s].
    verdict : str
        ``breaks_even``, ``never`` or ``out_of_range`` (more than 2**53 drives).
    devices : int or None
        The break-even point; None unless `verdict` is ``breaks_even``.
    closed_form_devices : int or None
        Equation 8 (at least 1); None if out of range.
    difference : str
        Why the two differ: ``none``, ``tie``, ``k_limit``, ``host_part``, ``store`` or ``overlap``.
    ctr : float
        Compute time over transfer and compute time, on one SSD [1].
    ssd_store_s : float
        Time to store the result that was counted [s]; 0 without ``store``.
    ssd_limit_s, csd_limit_s : float
        Limits of the arrays' times as devices are added [s].
    devices_low, devices_high : int or None
        Bounds of the break-even point in 90 % of cases, from the spreads of the four times; None
        if no spread is known, or drives never break even at that bound.
    """

    host_cores: int
    ssd_tx_s: float
    ssd_comp_s: float
    verdict: str
    devices: int | None
    closed_form_devices: int | None
    difference: str
    ctr: float
    ssd_store_s: float
    ssd_limit_s: float
    csd_limit_s: float
    devices_low: int | None = None
    devices_high: int | None = None


@dataclass(frozen=True)
class SystemResult:
    """One profile's drives against one profile's host.

    Attributes
    ----------
    profile, device, ssd : str
        The profile, the drive that computes, and the drive that the host reads as an SSD.
    bytes : int
        Working set [bytes].
    sizes : tuple of int
        Every working set that the profile would allow, ascending [bytes].
    k_limit : float
        Devices that use up the host's ingest bandwidth.
    k_limit_from : str
        ``profile`` or ``option``.
    drive_units : int
        Units at work in each drive.
    csd_tx_s, csd_comp_s : float
        T_CSD-tx and T_CSD-comp of one drive [s].
    csd_store_s : float
        Time to store the result that was counted, of one drive [s]; 0 without ``store``.
    ssd_overlap, csd_overlap : str
        Overlap of each side in the plan: ``serial`` or ``pipelined``.
    host_ctr, drive_ctr : float
        Share of compute time on one host core, and in the drive [1].
    workload_class : str
        ``I/O-intensive`` if `host_ctr` is below 0.5, else ``compute-intensive``.
    gains : tuple
        Units at work in the drive, and throughput over that with the fewest.
    prov : dict
        Provenance of each of the four times.
    energy : dict
        Energy of a run above idle, ``host`` on one core and ``drive``: joules and their source.
    hosts : tuple of HostResult
        One for each Host(n), in the order asked for.
    """

    profile: str
    device: str
    ssd: str
    bytes: int
    sizes: tuple[int, ...]
    k_limit: float
    k_limit_from: str
    drive_units: int
    csd_tx_s: float
    csd_comp_s: float
    csd_store_s: float
    ssd_overlap: str
    csd_overlap: str
    host_ctr: float
    drive_ctr: float
    workload_class: str
    gains: tuple[tuple[int, float], ...]
    prov: dict[str, str]
    energy: dict[str, tuple[float, str]]
    hosts: tuple[HostResult, ...]


@dataclass(frozen=True)
class BepResult:
    """Break-even points of one kernel.

    Attributes
    ----------
    kernel : str
        The kernel.
    sd_tx, sd_comp : float
        Slow-down factors of an overloaded host [1].
    host_part_s : float
        The host's part in a run on drives [s].
    systems : tuple of SystemResult
        One for each profile, in the order asked for.
    warnings : tuple of str
        Statements that the reader must know.
    """

    kernel: str
    sd_tx: float
    sd_comp: float
    host_part_s: float
    systems: tuple[SystemResult, ...]
    warnings: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the result as JSON types, without the warnings (the envelope holds those)."""
        body = asdict(self)
        del body["warnings"]
        return body


def bep(
    workloads: Sequence[Workload],
    host_cores: Sequence[int],
    *,
    k_limit: float | None = None,
    sd_tx: float = 1.0,
    sd_comp: float = 1.0,
    host_part_s: float = 0.0,
    store: bool = False,
    overlap: str = "serial",
) -> BepResult:
    """Find the break-even points of one kernel's workloads.

    Parameters
    ----------
    workloads : sequence of Workload
        At least one, all of the same kernel.
    host_cores : sequence of int
        The n of each Host(n), at least one.
    k_limit : float, optional
        Overrides the profiles' own.
    sd_tx, sd_comp : float
        Slow-down factors of an overloaded host [1]; at least 1.
    host_part_s : float
        The host's part in a run on drives [s]; at least 0.
    store : bool
        True to count the time to write results back, where the profile has it.
    overlap : str
        ``serial`` (the paper), ``pipelined`` (both sides), or ``measured`` (each side as its
        points were measured).

    Raises
    ------
    ModelError
        If an argument is out of range.
    ProfileIncomplete
        If neither the caller nor a profile gives k_limit.
    """
    if not workloads:
        raise ModelError("workloads", "[]", "at least one workload")
    if not host_cores:
        raise ModelError("host_cores", "[]", "at least one number of cores")
    if overlap not in OVERLAPS:
        raise ModelError("overlap", overlap, ", ".join(OVERLAPS))
    factors = {"sd_tx": sd_tx, "sd_comp": sd_comp, "host_part_s": host_part_s}
    systems = tuple(
        _system(workload, host_cores, k_limit, factors, store=store, overlap=overlap)
        for workload in workloads
    )
    warnings: list[str] = []
    for workload in workloads:
        ours = _answered(store=store, overlap=overlap)
        warnings.extend(text for text in workload.warnings if not any(key in text for key in ours))
        if store and not (workload.csd_store_s and workload.host(1).store_s):
            warnings.append(f"{workload.profile}: no store_s on one side or both; 0 s was counted")
        warnings.extend(core_warnings(workload, host_cores))
        warnings.extend(_rounded(workload, host_cores, k_limit, factors, store, overlap))
        warnings.extend(_measured_warnings(workload, overlap))
    return BepResult(
        kernel=workloads[0].kernel,
        sd_tx=sd_tx,
        sd_comp=sd_comp,
        host_part_s=host_part_s,
        systems=systems,
        warnings=tuple(dict.fromkeys(warnings)),
    )


def _system(
    workload: Workload,
    host_cores: Sequence[int],
    k_limit: float | None,
    factors: dict[str, float],
    *,
    store: bool,
    overlap: str,
) -> SystemResult:
    effective = k_limit if k_limit is not None else workload.k_limit
    if effective is None:
        raise ProfileIncomplete(
            f"{workload.profile}: k_limit is unknown: it needs host.ingest_bw_Bps and "
            f"link_bw_Bps or ext_read_Bps of device.{workload.ssd}, or give --k-limit"
        )
    one = workload.host(1)
    host_ctr = float(compute_time_ratio(one.tx_s, one.comp_s))
    sides = {
        "ssd_overlap": workload.ssd_overlap if overlap == "measured" else overlap,
        "csd_overlap": workload.csd_overlap if overlap == "measured" else overlap,
    }
    return SystemResult(
        profile=workload.profile,
        device=workload.device,
        ssd=workload.ssd,
        bytes=workload.bytes,
        sizes=workload.sizes,
        k_limit=effective,
        k_limit_from="profile" if k_limit is None else "option",
        drive_units=workload.drive_units,
        csd_tx_s=workload.csd_tx_s,
        csd_comp_s=workload.csd_comp_s,
        csd_store_s=workload.csd_store_s if store else 0.0,
        **sides,
        host_ctr=host_ctr,
        drive_ctr=float(compute_time_ratio(workload.csd_tx_s, workload.csd_comp_s)),
        workload_class="I/O-intensive" if host_ctr < CTR_SPLIT else "compute-intensive",
        gains=workload.gains,
        prov=dict(workload.prov),
        energy=dict(workload.energy),
        hosts=_hosts(workload, host_cores, effective, factors, store=store, sides=sides),
    )


def _hosts(
    workload: Workload,
    host_cores: Sequence[int],
    k_limit: float,
    factors: dict[str, float],
    *,
    store: bool,
    sides: dict[str, str],
) -> tuple[HostResult, ...]:
    times = [workload.host(cores) for cores in host_cores]
    stores = [time.store_s if store else 0.0 for time in times]
    solution = break_even(
        [time.tx_s for time in times],
        [time.comp_s for time in times],
        workload.csd_tx_s,
        workload.csd_comp_s,
        k_limit=k_limit,
        host_cores=[time.divisor for time in times],
        sd_tx=factors["sd_tx"],
        sd_comp=factors["sd_comp"],
        host_part_s=factors["host_part_s"],
        ssd_store_s=stores,
        csd_store_s=workload.csd_store_s if store else 0.0,
        **sides,
    )
    draws = draws_of(workload)
    results = []
    for row, (cores, time) in enumerate(zip(host_cores, times, strict=True)):
        bounds = bounds_of(workload, time, draws, k_limit, factors, stores[row], store, sides)
        verdict = solution.verdict(row)
        found = verdict is Verdict.BREAKS_EVEN
        results.append(
            HostResult(
                host_cores=cores,
                ssd_tx_s=time.tx_s,
                ssd_comp_s=time.comp_s / time.divisor,
                verdict=verdict.value,
                devices=int(solution.devices[row]) if found else None,
                closed_form_devices=int(solution.closed_form[row]) or None,
                difference=solution.difference(row).value,
                ctr=float(compute_time_ratio(time.tx_s, time.comp_s / time.divisor)),
                ssd_store_s=stores[row],
                ssd_limit_s=float(solution.ssd_limit_s[row]),
                csd_limit_s=float(solution.csd_limit_s[row]),
                devices_low=bounds[0],
                devices_high=bounds[1],
            )
        )
    return tuple(results)


def _rounded(
    workload: Workload,
    host_cores: Sequence[int],
    k_limit: float | None,
    factors: dict[str, float],
    store: bool,
    overlap: str,
) -> list[str]:
    """Say what equation 6 gives as printed, where it rounds a bandwidth down to whole SSDs."""
    effective = k_limit if k_limit is not None else workload.k_limit
    if effective is None or isinf(effective) or effective == floor(effective):
        return []
    printed = _system(
        workload, host_cores, float(floor(effective)), factors, store=store, overlap=overlap
    )
    answers = ", ".join(
        f"{host.devices or host.verdict} for Host({host.host_cores})" for host in printed.hosts
    )
    return [
        f"{workload.profile}: the host takes in as much as {effective:.4g} SSDs give; equation 6 "
        f"as printed rounds that down to {floor(effective)}, and the closed form of the papers "
        f"would be {answers}"
    ]


def _answered(*, store: bool, overlap: str) -> tuple[str, ...]:
    """Return the marks of those of the profile's warnings that this plan takes care of."""
    marks = ("--store",) if store else ()
    return (*marks, "--overlap measured") if overlap == "measured" else marks


def _measured_warnings(workload: Workload, overlap: str) -> list[str]:
    """Say where measurements do not bear out, or do not allow, what a reader may conclude."""
    warnings = []
    if overlap != "serial" and workload.pipelined:
        took = ", ".join(f"{side} {ratio:.2f}" for side, ratio in workload.pipelined.items())
        warnings.append(
            f"{workload.profile}: pipelined runs are planned as the longer of transfer and "
            f"compute; measured, they took so many times that: {took}"
        )
    sources = {source for _, source in workload.energy.values()}
    if len(sources) > 1:
        warnings.append(
            f"{workload.profile}: energies of unlike sources ({', '.join(sorted(sources))}) are "
            "not comparable"
        )
    return warnings


def core_warnings(workload: Workload, host_cores: Sequence[int]) -> list[str]:
    """Warn of hosts that work with more cores than the profile's host has."""
    most = workload.host_cores_max
    return [
        f"{workload.profile}: Host({cores}) exceeds the host's {most} cores; "
        "equation 2 is extrapolated beyond its range"
        for cores in host_cores
        if cores > most
    ]
