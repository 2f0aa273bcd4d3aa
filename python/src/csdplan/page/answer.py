"""From a scenario to results, by the same functions as the commands.

Nothing is drawn here, and no number is computed that a command would not give: a slider of the
drive divides its times as `csdplan.result.sweeps` does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

from csdplan.errors import ModelError
from csdplan.page.prices import drive_bytes
from csdplan.page.state import CHOICES, State, normalized, profile_named
from csdplan.profile import Workload, workload_of
from csdplan.result.bounds import widest
from csdplan.result.break_even import BepResult, SystemResult, bep
from csdplan.result.costs import Comparison, compared, purchase_sheet
from csdplan.result.sheet import Sheet, Value, sheet_of
from csdplan.result.sheets import answer_sheet
from csdplan.result.sweeps import Setting, SurfaceResult, surface
from csdplan.result.throughput import SystemCurves, curves
from csdplan.result.words import TIMES
from csdplan.solve.tco import Cost

#: Multipliers of the surface, finer than answers change.
MULTIPLIERS = tuple(0.25 * step for step in range(1, 33))


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
    others : tuple of BepResult
        Break-even points of the scenario's other kernels.
    widest : tuple or None
        The time whose spread alone moves the break-even point furthest, and how far.
    """

    result: BepResult
    curves: SystemCurves
    surface: SurfaceResult
    costs: tuple[Cost, Cost, Cost]
    others: tuple[BepResult, ...]
    widest: tuple[str, int, int] | None

    @property
    def system(self) -> SystemResult:
        """The one system that was asked about."""
        return self.result.systems[0]

    def sheets(self) -> list[Sheet]:
        """Return everything as tables."""
        return [
            self.points(),
            self.workloads(),
            self.purchases(),
            self.basis(),
            self.surface.sheet(),
        ]

    def points(self) -> Sheet:
        """Return the break-even points of the kernel that is drawn."""
        return answer_sheet(self.result, self.system)

    def workloads(self) -> Sheet:
        """Return the break-even point of each kernel."""
        rows: list[tuple[Value, ...]] = []
        for found in (self.result, *self.others):
            host = found.systems[0].hosts[-1]
            verdict = host.verdict.replace("_", " ")
            rows.append((found.kernel, host.devices, host.devices_low, host.devices_high, verdict))
        columns = ("kernel", "break_even_drives", "from", "to", "verdict")
        title = f"Break-even points against Host({self.system.hosts[-1].host_cores})"
        return sheet_of(title, columns, rows, "from and to: 90 % of cases")

    def purchases(self) -> Sheet:
        """Return the costs of the three systems."""
        return purchase_sheet(self.costs)

    def basis(self) -> Sheet:
        """Return the times that everything rests on, with their provenance."""
        system, one = self.system, self.result.systems[0].hosts[0]
        times = {
            "ssd_tx_s": one.ssd_tx_s,
            "ssd_comp_s": one.ssd_comp_s,
            "csd_tx_s": system.csd_tx_s,
            "csd_comp_s": system.csd_comp_s,
        }
        rows: list[tuple[Value, ...]] = [
            (words, times[name], "s", system.prov[name]) for name, words in TIMES.items()
        ]
        source = "as set" if system.k_limit_from == "option" else "inferred"
        rows.append(("host's link: SSDs that fill it", float(system.k_limit), "SSDs", source))
        rows.append(("working set", system.bytes / 1e9, "GB", ""))
        columns = ("number", "value", "unit", "provenance")
        return sheet_of("What it rests on", columns, rows, "times of one device, as set above")


def resolved(state: State, kernel: str = "") -> Workload:
    """Return the workload as the profile has it.

    Parameters
    ----------
    state : State
        The scenario.
    kernel : str
        A kernel other than the scenario's own.
    """
    profile = state.chosen_profile()
    if state.kernel not in profile.kernels():
        raise ModelError("kernel", state.kernel, f"one of {', '.join(profile.kernels())}")
    if kernel and kernel != state.kernel:
        # What is chosen among the points of one kernel says nothing about another's.
        state = replace(state, kernel=kernel, size="")
    state = normalized(state)
    return _workload(*(getattr(state, name) for name in CHOICES), state.text)


@lru_cache(maxsize=64)
def answer(state: State) -> Answer:
    """Return what the page shows for a scenario.

    Raises
    ------
    CsdplanError
        If the profile lacks what is needed.
    """
    workload = resolved(state)
    cores, limit = int(state.cores), state.k_limit or None
    quick = _quicker(workload, state)
    hosts = list(dict.fromkeys((1, cores)))
    factors = {"k_limit": limit, "sd_tx": state.sd_tx, "sd_comp": state.sd_comp}
    slower = {"sd_tx": state.sd_tx, "sd_comp": state.sd_comp, "host_part_s": 0.0}
    result = bep([quick], hosts, **factors)  # type: ignore[arg-type]
    setting = Setting(host_cores=cores, **factors)  # type: ignore[arg-type]
    comparison = Comparison(
        host_cores=cores,
        ssds=int(state.ssds),
        host_usd=state.host_usd,
        csd_host_usd=state.csd_host_usd,
        ssd_usd=state.ssd_usd,
        csd_usd=state.csd_usd,
        drive_bytes=drive_bytes(),
        **factors,  # type: ignore[arg-type]
    )
    kernels = [work.name for work in state.works if not work.core and work.name != state.kernel]
    others = [_quicker(resolved(state, kernel), state) for kernel in kernels]
    return Answer(
        result=result,
        curves=curves(result, [quick])[0],
        surface=surface(workload, MULTIPLIERS, MULTIPLIERS, iso=(int(state.iso),), base=setting),
        costs=compared(quick, comparison),
        others=tuple(bep([one], [cores], **factors) for one in others),  # type: ignore[arg-type]
        widest=widest(quick, cores, result.systems[0].k_limit, slower),
    )


@lru_cache(maxsize=256)
def _workload(
    profile: str, kernel: str, device: str, ssd_profile: str, ssd: str, size: str, text: str
) -> Workload:
    return workload_of(
        profile_named(profile, text),
        kernel,
        name=profile,
        device=device or None,
        ssd=ssd or None,
        bytes=int(size) if size else None,
        ssd_profile=profile_named(ssd_profile, text) if ssd_profile else None,
    )


def _quicker(workload: Workload, state: State) -> Workload:
    return replace(
        workload,
        csd_tx_s=workload.csd_tx_s / state.bandwidth,
        csd_comp_s=workload.csd_comp_s / state.compute,
    )
