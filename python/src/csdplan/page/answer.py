"""From a state of the page to results, by the same functions as the commands.

Nothing is drawn here, and no number is computed that a command would not give: a slider of the
drive divides its times as `csdplan.result.sweeps` does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from csdplan.errors import ModelError
from csdplan.page.state import TEXTS, State, normalized
from csdplan.profile import Workload, workload_of
from csdplan.request import load_request
from csdplan.result.break_even import BepResult, bep
from csdplan.result.costs import purchase_sheet
from csdplan.result.purchase import bill, shortfall_sheet
from csdplan.result.sheet import Sheet
from csdplan.result.sheets import answer_sheet
from csdplan.result.sweeps import Setting, SurfaceResult, surface
from csdplan.result.throughput import SystemCurves, curves
from csdplan.solve.optimize import optimize, shortfalls
from csdplan.solve.purchase import Demand, DriveKind, Limits, Request
from csdplan.solve.tco import Cost, Kernel, Service, System, cost_of, equal_throughput

#: Multipliers of the surface: the sliders' range, finer where answers change faster.
MULTIPLIERS = tuple(0.25 * step for step in range(1, 33))
#: Capacity of a drive whose profile states none [bytes]: what the published prices are for.
_DRIVE_BYTES = 2e12
_PRICED = "epyc"
_TIME_LIMIT_S = 5.0


@dataclass(frozen=True)
class Answer:
    """Everything that the page shows except the purchase.

    Attributes
    ----------
    result : BepResult
        Break-even points against Host(1) and Host(n).
    curves : SystemCurves
        Throughput against devices.
    surface : SurfaceResult
        Break-even points over bandwidth and compute of the profile's drive.
    costs : tuple of Cost
        The SSDs; as many drives; the drives that are as fast as the SSDs.
    """

    result: BepResult
    curves: SystemCurves
    surface: SurfaceResult
    costs: tuple[Cost, ...]

    def sheets(self) -> list[Sheet]:
        """Return everything as tables."""
        return [self.points(), self.purchases(), self.surface.sheet()]

    def points(self) -> Sheet:
        """Return the break-even points."""
        return answer_sheet(self.result, self.result.systems[0])

    def purchases(self) -> Sheet:
        """Return the costs of the three systems."""
        return purchase_sheet(self.costs)


def resolved(state: State) -> Workload:
    """Return the workload as the profile has it."""
    profile = state.chosen_profile()
    if state.kernel not in profile.kernels():
        raise ModelError("kernel", state.kernel, f"one of {', '.join(profile.kernels())}")
    state = normalized(state)
    return _workload(*(getattr(state, name) for name in TEXTS))


def answer(state: State) -> Answer:
    """Return what the page shows for a state.

    Raises
    ------
    CsdplanError
        If the profile lacks what is needed.
    """
    workload = resolved(state)
    cores, limit = int(state.cores), _limit(state)
    quick = _quicker(workload, state)
    hosts = list(dict.fromkeys((1, cores)))
    result = bep([quick], hosts, k_limit=limit, sd_tx=state.sd_tx, sd_comp=state.sd_comp)
    setting = Setting(host_cores=cores, k_limit=limit, sd_tx=state.sd_tx, sd_comp=state.sd_comp)
    return Answer(
        result=result,
        curves=curves(result)[0],
        surface=surface(workload, MULTIPLIERS, MULTIPLIERS, iso=(int(state.iso),), base=setting),
        costs=_costs(quick, state),
    )


def purchase(state: State) -> Sheet:
    """Return the optimizer's bill of materials, or what is in the way of one."""
    asked = request(state)
    plan = optimize(asked, time_limit_s=_TIME_LIMIT_S, explain=False)
    if plan is None:
        return shortfall_sheet(shortfalls(asked, time_limit_s=_TIME_LIMIT_S))
    return bill(asked, plan)


def request(state: State) -> Request:
    """Return what the state asks to buy.

    The CPUs are those of the shipped request: the dearest costs what the state says, the others
    in the published proportion. The link takes in k_limit SSDs at full speed.
    """
    workload = _quicker(resolved(state), state)
    limit = _limit(state) or workload.k_limit
    if limit is None:
        raise ModelError("k_limit", "unknown", "a number: the profile states no bandwidth")
    published, host = _published(), workload.host(1)
    first = max(published.cpus, key=lambda cpu: cpu.price_usd)
    speeds = published.demands[0].core_s_per_byte
    read_Bps = workload.bytes / (host.tx_s * state.sd_tx)
    scale = state.host_usd / first.price_usd
    cpus = tuple(
        replace(cpu, price_usd=cpu.price_usd * scale, ingest_Bps=limit * read_Bps)
        for cpu in published.cpus
    )
    core_s = host.comp_s / host.divisor * state.sd_comp / workload.bytes
    drive_s = (workload.csd_tx_s + workload.csd_comp_s) / workload.bytes
    computing = f"{workload.device} (computes)"
    demand = Demand(
        name=workload.kernel,
        required_Bps=state.need_GBps * 1e9,
        core_s_per_byte={cpu.name: core_s * speeds[cpu.name] / speeds[first.name] for cpu in cpus},
        drive_s_per_byte={computing: drive_s},
    )
    drives = (
        DriveKind(f"{workload.ssd} as SSD", state.ssd_usd, _DRIVE_BYTES, read_Bps),
        DriveKind(computing, state.csd_usd, _DRIVE_BYTES, read_Bps),
    )
    return Request(cpus, drives, (demand,), Limits(capacity_bytes=state.need_TB * 1e12))


@lru_cache(maxsize=1)
def _published() -> Request:
    return load_request(_PRICED)


@lru_cache(maxsize=64)
def _workload(profile: str, kernel: str, device: str, ssd: str, size: str, text: str) -> Workload:
    found = State(profile=profile, text=text).chosen_profile()
    return workload_of(
        found,
        kernel,
        name=profile,
        device=device or None,
        ssd=ssd or None,
        bytes=int(size) if size else None,
    )


def _quicker(workload: Workload, state: State) -> Workload:
    return replace(
        workload,
        csd_tx_s=workload.csd_tx_s / state.bandwidth,
        csd_comp_s=workload.csd_comp_s / state.compute,
    )


def _limit(state: State) -> int | None:
    return int(state.k_limit) or None


def _costs(workload: Workload, state: State) -> tuple[Cost, ...]:
    host, ssds = workload.host(int(state.cores)), int(state.ssds)
    kernel = Kernel(
        bytes=workload.bytes,
        ssd_tx_s=host.tx_s * state.sd_tx,
        ssd_comp_s=host.comp_s / host.divisor * state.sd_comp,
        csd_tx_s=workload.csd_tx_s,
        csd_comp_s=workload.csd_comp_s,
        k_limit=_limit(state) or workload.k_limit,
    )
    plain = System(
        f"{ssds} SSDs, Host({int(state.cores)})",
        cpu="",
        computes="host",
        host_usd=state.host_usd,
        drive_usd=state.ssd_usd,
        drives=ssds,
        drive_bytes=_DRIVE_BYTES,
    )
    same = replace(
        plain,
        name="as many drives",
        computes="drives",
        host_usd=state.csd_host_usd,
        drive_usd=state.csd_usd,
    )
    service = Service()
    equal = equal_throughput([plain, replace(same, name="as fast as the SSDs")], kernel, service)
    return (equal[0], cost_of(same, kernel, service), equal[1])
