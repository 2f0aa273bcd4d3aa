"""Profiles in, tables out: what ``import csdplan as cp`` offers at a prompt.

Every function takes a profile (or its name, or a file) and plain numbers, and returns a pandas
table, or an xarray data set where there are more than two dimensions. The table's ``attrs`` hold
its title, its note and the warnings. Nothing is computed here: these are the commands' results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from csdplan.errors import ModelError, ProfileIncomplete
from csdplan.model.inputs import FloatArray, positive
from csdplan.profile import Profile, Workload, workload_of
from csdplan.profile import load as load_profile
from csdplan.request import load_request
from csdplan.result import bep as bep_result
from csdplan.result.confidence import uncertain
from csdplan.result.confidence import uncertainty as uncertainty_result
from csdplan.result.mixed import mix as mix_result
from csdplan.result.purchase import bill, front, requirements, shortfall_sheet, work
from csdplan.result.sheet import Sheet
from csdplan.result.simulated import node_of, simulation
from csdplan.sim import Job, System
from csdplan.solve import break_even
from csdplan.solve.optimize import optimize as cheapest
from csdplan.solve.optimize import pareto, shortfalls
from csdplan.solve.purchase import Request
from csdplan.solve.uncertainty import Uniform

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

ProfileLike = Profile | str | Path

__all__ = ["bep", "frame", "grid", "load", "mix", "optimize", "simulate", "uncertainty"]


def load(source: str | Path) -> Profile:
    """Load a profile: a shipped one's name, or a file. See `csdplan.profile.read`."""
    return load_profile(source)


def frame(sheet: Sheet, warnings: Sequence[str] = ()) -> pd.DataFrame:
    """Return a sheet as a pandas table; unknown values are missing, not zero."""
    import pandas as pd  # noqa: PLC0415 - imported late: it costs half a second

    table = pd.DataFrame(sheet.rows, columns=list(sheet.columns))
    table.attrs = {"title": sheet.title, "note": sheet.note, "warnings": tuple(warnings)}
    return table


def bep(
    profile: ProfileLike,
    kernel: str,
    host_cores: Sequence[int] = (1,),
    *,
    device: str | None = None,
    ssd: str | None = None,
    bytes: int | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Break-even points of one kernel, a row for each Host(n).

    Parameters
    ----------
    profile : Profile, str or Path
        A profile, a shipped one's name, or a file.
    kernel : str
        The kernel.
    host_cores : sequence of int
        The n of each Host(n).
    device, ssd, bytes : optional
        Drives and working set where a profile has several, as in `csdplan.profile.workload`.
    **options
        ``k_limit``, ``sd_tx``, ``sd_comp``, ``host_part_s`` and the other options of
        `csdplan.result.break_even`.

    Returns
    -------
    pandas.DataFrame
        Columns as the fields of `csdplan.result.HostResult`.
    """
    import pandas as pd  # noqa: PLC0415

    resolved = _workload(profile, kernel, device, ssd, bytes)
    result = bep_result([resolved], list(host_cores), **options)
    (system,) = result.systems
    rows = [
        {field.name: getattr(host, field.name) for field in fields(host)} for host in system.hosts
    ]
    table = pd.DataFrame(rows)
    # Missing where there is no break-even point, and whole numbers still.
    for column in ("devices", "closed_form_devices"):
        table[column] = table[column].astype("Int64")
    title = f"{kernel} on {system.device}, k_limit {system.k_limit}"
    table.attrs = {"title": title, "note": "", "warnings": result.warnings}
    return table


def grid(
    profile: ProfileLike,
    kernel: str,
    *,
    host_cores: Sequence[int] = (1,),
    k_limit: Sequence[int] | None = None,
    bandwidth: Sequence[float] | FloatArray = (1.0,),
    compute: Sequence[float] | FloatArray = (1.0,),
    sd_tx: Sequence[float] | FloatArray = (1.0,),
    sd_comp: Sequence[float] | FloatArray = (1.0,),
    device: str | None = None,
    ssd: str | None = None,
    bytes: int | None = None,
) -> xr.Dataset:
    """Break-even points over every combination of what is given.

    Parameters
    ----------
    profile, kernel, device, ssd, bytes
        As in `bep`.
    host_cores, k_limit : sequence of int
        Host cores at work; SSDs that use up the host's bandwidth, by default the profile's.
    bandwidth, compute : sequence of float
        Multipliers of the drive's internal bandwidth and computational power [1].
    sd_tx, sd_comp : sequence of float
        Slow-down factors of an overloaded host [1]; at least 1.

    Returns
    -------
    xarray.Dataset
        ``devices`` (0 where there is no break-even point) and ``closed_form``, with a dimension
        for each quantity.
    """
    import xarray as xr  # noqa: PLC0415 - imported late: it costs half a second

    held = _workload(profile, kernel, device, ssd, bytes)
    limits = list(k_limit) if k_limit is not None else [held.k_limit]
    if None in limits:
        raise ProfileIncomplete(f"{held.profile}: k_limit is unknown; give k_limit")
    axes: dict[str, Sequence[float | None] | FloatArray] = {
        "host_cores": host_cores,
        "k_limit": limits,
        "bandwidth": bandwidth,
        "compute": compute,
        "sd_tx": sd_tx,
        "sd_comp": sd_comp,
    }
    for name, values in axes.items():
        if not len(values):
            raise ModelError(name, "none", "at least one value")
    shaped = {
        name: np.asarray(values, dtype=np.float64).reshape(
            [-1 if other == name else 1 for other in axes]
        )
        for name, values in axes.items()
    }
    hosts = [held.host(cores) for cores in host_cores]
    by_host = {
        name: np.array([getattr(host, name) for host in hosts]).reshape(-1, 1, 1, 1, 1, 1)
        for name in ("tx_s", "comp_s", "divisor")
    }
    found = break_even(
        by_host["tx_s"],
        by_host["comp_s"],
        held.csd_tx_s / positive("bandwidth", shaped["bandwidth"]),
        held.csd_comp_s / positive("compute", shaped["compute"]),
        k_limit=shaped["k_limit"],
        host_cores=by_host["divisor"],
        sd_tx=shaped["sd_tx"],
        sd_comp=shaped["sd_comp"],
    )
    dims = tuple(axes)
    return xr.Dataset(
        {"devices": (dims, found.devices), "closed_form": (dims, found.closed_form)},
        coords={name: list(values) for name, values in axes.items()},
        attrs={"kernel": kernel, "device": held.device, "ssd": held.ssd},
    )


def optimize(
    request: Request | str | Path, *, points: int = 0, time_limit_s: float = 60.0
) -> dict[str, pd.DataFrame]:
    """Find the cheapest purchase that does what a request asks.

    Parameters
    ----------
    request : Request, str or Path
        A request, a shipped one's name (such as ``epyc``), or a file.
    points : int
        If greater than 0, also the front of cost against throughput, in so many steps.
    time_limit_s : float
        Limit of each of the solver's runs [s].

    Returns
    -------
    dict of str to pandas.DataFrame
        ``bill``, ``work``, ``requirements`` and, if asked for, ``front``; or ``lacking`` alone if
        nothing that can be bought does it.
    """
    asked = request if isinstance(request, Request) else load_request(request)
    plan = cheapest(asked, time_limit_s=time_limit_s)
    if plan is None:
        return {"lacking": frame(shortfall_sheet(shortfalls(asked, time_limit_s=time_limit_s)))}
    tables = {
        "bill": frame(bill(asked, plan)),
        "work": frame(work(plan)),
        "requirements": frame(requirements(plan)),
    }
    if points:
        tables["front"] = frame(front(pareto(asked, points, time_limit_s=time_limit_s)))
    return tables


def simulate(
    profile: ProfileLike,
    kernel: str,
    *,
    cores: int = 4,
    drives: int = 16,
    enabled: Sequence[int] | None = None,
    hosts: int = 1,
    tasks: int = 1600,
    k_limit: int | None = None,
    network_Bps: float | None = None,
    fluid: bool = False,
    device: str | None = None,
    ssd: str | None = None,
    bytes: int | None = None,
    **options: Any,
) -> pd.DataFrame:
    """Simulate a job of many tasks, a row for each number of drives that compute.

    Parameters
    ----------
    profile, kernel, device, ssd, bytes
        As in `bep`.
    cores, drives, hosts : int
        Cores and drives of each host, and how many hosts.
    enabled : sequence of int, optional
        Drives that compute, on each host; by default none to all.
    tasks : int
        Tasks of the job, which has one working set for each host.
    k_limit : int, optional
        SSDs that saturate the switch.
    network_Bps : float, optional
        What the network carries in all [bytes/s].
    fluid : bool
        The limit of many small tasks, for fleets.
    **options
        ``skew``, ``stragglers``, ``steal`` and the other fields of `csdplan.sim.Job`.

    Returns
    -------
    pandas.DataFrame
        Columns as `csdplan.result.simulated.COLUMNS`.
    """
    held = load_profile(profile) if not isinstance(profile, Profile) else profile
    resolved = _workload(profile, kernel, device, ssd, bytes)
    node = node_of(
        resolved, cores=cores, drives=drives, enabled=drives, k_limit=k_limit, profile=held
    )
    job = replace(Job(tasks=tasks, task_bytes=hosts * resolved.bytes / max(1, tasks)), **options)
    counts = enabled if enabled is not None else range(0 if cores else drives, drives + 1)
    system = System(node, hosts, network_Bps)
    return frame(simulation(resolved, system, job, list(counts), fluid=fluid), resolved.warnings)


def uncertainty(
    profile: ProfileLike,
    kernel: str,
    *,
    host_cores: int = 1,
    k_limit: int | None = None,
    spreads: dict[str, float] | None = None,
    ranges: dict[str, tuple[float, float]] | None = None,
    samples: int = 100_000,
    base: int = 1024,
    seed: int = 1,
    device: str | None = None,
    ssd: str | None = None,
    bytes: int | None = None,
) -> dict[str, pd.DataFrame]:
    """Distribution of a break-even point, and which input it hangs on.

    Parameters
    ----------
    profile, kernel, host_cores, k_limit, device, ssd, bytes
        As in `bep`, for one Host(n).
    spreads : dict, optional
        Relative spread of times without quartiles, by provenance.
    ranges : dict, optional
        Bounds of quantities that vary evenly, such as ``{"k_limit": (6, 10)}``.
    samples, base, seed : int
        As in `csdplan.solve.uncertainty`.

    Returns
    -------
    dict of str to pandas.DataFrame
        ``quantiles``, ``indices`` and ``shares``.
    """
    held = load_profile(profile) if not isinstance(profile, Profile) else profile
    question = uncertain(
        held,
        _workload(profile, kernel, device, ssd, bytes),
        host_cores=host_cores,
        k_limit=k_limit,
        spreads=spreads,
        ranges=[Uniform(name, low, high) for name, (low, high) in (ranges or {}).items()],
    )
    result = uncertainty_result(question, samples=samples, base=base, seed=seed)
    names = ("quantiles", "indices", "shares")
    return {
        name: frame(sheet, result.warnings)
        for name, sheet in zip(names, result.sheets(), strict=True)
    }


def mix(
    profile: ProfileLike,
    shares: dict[str, float],
    *,
    drives: int = 16,
    csds: Sequence[int] | None = None,
    cores: int = 4,
    k_limit: int | None = None,
    placement: str = "even",
    overlap: str = "serial",
) -> dict[str, pd.DataFrame]:
    """Replace SSDs by drives that compute, under several workloads at once.

    Parameters
    ----------
    profile : Profile, str or Path
        As in `bep`.
    shares : dict
        Share of each kernel in the input, to each other.
    drives, cores : int
        Devices in all; host cores at work.
    csds : sequence of int, optional
        Numbers of devices that compute; by default none to all.
    k_limit, placement, overlap
        As in `csdplan.result.mixed.mix`.

    Returns
    -------
    dict of str to pandas.DataFrame
        ``throughput``, a row for each number, and ``shares``, one for each number and workload.
    """
    loads = [_workload(profile, kernel) for kernel in shares]
    whole, parts = mix_result(
        loads,
        shares,
        drives=drives,
        csds=range(drives + 1) if csds is None else csds,
        cores=cores,
        k_limit=k_limit,
        placement=placement,
        overlap=overlap,
    )
    return {"throughput": frame(whole), "shares": frame(parts)}


def _workload(
    profile: ProfileLike,
    kernel: str,
    device: str | None = None,
    ssd: str | None = None,
    bytes: int | None = None,
) -> Workload:
    held = profile if isinstance(profile, Profile) else load_profile(profile)
    name = "profile" if isinstance(profile, Profile) else str(profile)
    return workload_of(held, kernel, name=name, device=device, ssd=ssd, bytes=bytes)
