"""A job of phases, from metered runs or from a file by hand: simulate --job."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from csdplan.commands.choose import profile_of
from csdplan.commands.mixed import steps
from csdplan.commands.tables import Tables, draw, plot_files
from csdplan.errors import ModelError, ProfileIncomplete
from csdplan.jobs.check import Checked, checked, given, table_3
from csdplan.jobs.fit import Given, Residual, fitted
from csdplan.jobs.foretold import foretold
from csdplan.jobs.model import Model, Number
from csdplan.jobs.runs import Run, read_run
from csdplan.jobs.written import written
from csdplan.options import Paths, ProfileLike
from csdplan.plot import figures
from csdplan.profile import Profile
from csdplan.profile.schema import Device
from csdplan.result import phased as sheets
from csdplan.sim import Cluster
from csdplan.units import quantity


@dataclass(frozen=True)
class Question:
    """Question about a job; names are those of the options."""

    job: Sequence[str]
    check: str | None
    input: str | float | None
    block: str | float | None
    reduces: int | None
    replication: int | None
    slots: int | None
    drive_cores: float | None
    drives: int
    host_cores: int
    enabled: Sequence[int] | None
    profile: ProfileLike | None
    device: str | None
    k_limit: float | None
    memory_Bps: float | None
    seed: int
    plot: Paths


def simulate_job(asked: Question) -> Tables:
    """Return the sheets of a job; fact ``answer`` is one paragraph.

    Raises
    ------
    CsdplanError
        If a file does not hold what the model needs.
    """
    files = plot_files(asked.plot)
    profile = None if asked.profile is None else profile_of(asked.profile)
    model, residuals, tested = _model(asked, profile)
    size = None if asked.input is None else quantity("input", asked.input, "bytes")
    model = given(model, input_bytes=size)
    cluster = _cluster(asked, model, profile)
    counts = steps(0 if asked.host_cores else asked.drives, asked.drives)
    counts = counts if asked.enabled is None else list(asked.enabled)
    found = {
        n: foretold(model, replace(cluster, enabled=n), seed=asked.seed) for n in sorted(counts)
    }
    sheet = sheets.jobs(model, found, cores=asked.host_cores, drives=asked.drives)
    tables = {"simulate": sheet, "numbers": sheets.numbers(model)}
    if residuals:
        tables["residuals"] = sheets.residuals(residuals)
    if tested is not None:
        tables["check"] = sheets.check(tested)
        if tested.passed:
            tables["configurations"] = sheets.table_3(table_3(model, tested, seed=asked.seed))
    draw([figures.simulated(sheet)], files)
    warnings, verdict = model.warnings, "found"
    if tested is not None and not tested.passed:
        verdict = "missed"
    if found[min(found)].energy_J is None:
        verdict = "partial" if verdict == "found" else verdict
        warnings += (
            "energy is unknown: meter with csd meter --idle or --profile, or give a --profile with "
            "core_W, idle_W and active_W",
        )
    facts = {"verdict": verdict, "answer": sheets.paragraph(model, found, tested)}
    return Tables(tables, warnings, facts=facts)


def _model(
    asked: Question, profile: tuple[str, Profile] | None
) -> tuple[Model, list[Residual], Checked | None]:
    block = None if asked.block is None else quantity("block", asked.block, "bytes")
    by_hand = [name for name in asked.job if name.endswith(".toml")]
    watts = _watts(asked, profile)
    if by_hand:
        if len(asked.job) > 1:
            raise ModelError("job", by_hand[0], "a file by hand alone, or records alone")
        if asked.check is not None:
            raise ModelError("check", asked.check, "records as --job: a file by hand has no fit")
        model = written(Path(by_hand[0]))
        model = replace(model, numbers=dict(model.numbers) | dict(watts))
        over = {name: getattr(asked, name) for name in ("reduces", "replication", "slots")}
        return given(model, block_bytes=block, drive_cores=asked.drive_cores, **over), [], None
    runs: list[Run] = [read_run(text) for text in asked.job]
    said = Given(block, asked.reduces, asked.replication, asked.slots, asked.drive_cores, watts)
    model, residuals = fitted(runs, said)
    tested = None if asked.check is None else checked(model, runs, read_run(asked.check))
    return model, residuals, tested


def _device(asked: Question, profile: tuple[str, Profile]) -> tuple[str, Device]:
    name, found = profile
    names = list(found.device)
    chosen = asked.device or (names[0] if len(names) == 1 else None)
    if chosen is None or chosen not in names:
        raise ProfileIncomplete(f"{name}: give --device, one of {', '.join(names)}")
    return chosen, found.device[chosen]


def _watts(asked: Question, profile: tuple[str, Profile] | None) -> tuple[tuple[str, Number], ...]:
    """Return the watts of a profile; none if it has not all of them."""
    if profile is None:
        return ()
    (name, found), (chosen, device) = profile, _device(asked, profile)
    core_W, idle_W, active_W = found.host.core_W, device.idle_W, device.active_W
    if core_W is None or idle_W is None or active_W is None:
        return ()
    prov = (found.host.prov or {}).get("core_W", "given")
    source = f"{name}: {chosen}'s active_W less idle_W"
    return (
        ("host_core_W", Number(core_W, prov, f"{name}: core_W")),
        ("drive_core_W", Number(max(0.0, active_W - idle_W), prov, source)),
    )


def _cluster(asked: Question, model: Model, profile: tuple[str, Profile] | None) -> Cluster:
    """Return the host and its drives; links are those of the profile, or without limit."""
    links: dict[str, float | None] = {"memory_Bps": asked.memory_Bps}
    if profile is not None:
        _, device = _device(asked, profile)
        port = device.ext_read_Bps or device.link_bw_Bps
        uplink: float | None = profile[1].host.ingest_bw_Bps
        if asked.k_limit is not None and port is not None:
            uplink = asked.k_limit * port
        links |= {
            "read_Bps": device.int_read_Bps,
            "media_Bps": device.media_bw_Bps or device.int_read_Bps or device.ext_read_Bps,
            "port_Bps": port,
            "uplink_Bps": uplink,
        }
    elif asked.k_limit is not None:
        raise ModelError("k_limit", asked.k_limit, "a --profile that says what one drive reads")
    enabled = asked.drives
    cores = (asked.host_cores, asked.drives, enabled, model["drive_cores"])
    return Cluster(*cores, **links)  # type: ignore[arg-type]
