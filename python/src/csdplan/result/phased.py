"""A job on a host and its drives, as sheets: times, numbers behind them, and how near they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from csdplan.jobs.check import WITHIN, Checked, Compared
from csdplan.jobs.fit import Residual
from csdplan.jobs.foretold import Foretold
from csdplan.jobs.model import Model
from csdplan.result.sheet import Sheet, Value, sheet_of
from csdplan.units import bytes_text

COLUMNS = (
    "enabled_drives",
    "time_s",
    "low_s",
    "high_s",
    "throughput_Bps",
    "closed_form_Bps",
    "map_s",
    "shuffle_s",
    "reduce_s",
    "waves",
    "local_maps",
    "stolen_maps",
    "host_maps",
    "tunnel_bytes",
    "routing_s",
    "host_J",
    "os_J",
    "drives_J",
    "tunnels_J",
    "net_energy_J",
)
_CLASSES = ("host", "os", "drives", "tunnels")


def jobs(model: Model, found: Mapping[int, Foretold], *, cores: int, drives: int) -> Sheet:
    """Return a row for each number of drives that compute."""
    size = model["input_bytes"]
    rows: list[tuple[Value, ...]] = []
    for enabled, one in found.items():
        run = one.run
        energy = one.energy_J
        rows.append(
            (
                enabled,
                run.time_s,
                one.low_s,
                one.high_s,
                size / run.time_s,
                size / one.closed_form_s,
                run.map_s,
                run.shuffle_s,
                run.reduce_s,
                run.waves,
                run.local_maps,
                run.stolen_maps,
                run.host_maps,
                run.tunnel_bytes,
                one.routing_s,
                *(None if energy is None else energy[name] for name in _CLASSES),
                one.net_energy_J,
            )
        )
    phases = "maps, shuffle, reduces" if model["reduces"] else "maps alone"
    title = (
        f"{bytes_text(size)} on a host with {cores} cores that take tasks and {drives} drives, "
        f"some of them computing: {phases}"
    )
    note = (
        "modelled, not measured. low_s, high_s: 90 % of runs, by the spread of those measured. "
        "closed_form_Bps: work divided evenly, without shuffle. Reduces begin after the last map. "
        "tunnel_bytes: a byte from drive to drive counts at both. Energy is beyond rest"
    )
    return sheet_of(title, COLUMNS, rows, note)


def numbers(model: Model) -> Sheet:
    """Return the numbers behind the answer."""
    columns = ("number", "value", "low", "high", "prov", "source")
    rows = [
        (name, one.value, one.low, one.high, one.prov, one.source)
        for name, one in model.numbers.items()
    ]
    note = (
        "CPU times are of one core of the metered machine; that a host core takes as long as a "
        "drive's core for the same task is assumed, and so are links without "
        "limit that no profile gives. low, high: 90 %"
    )
    return sheet_of("Numbers behind it", columns, rows, note)


def residuals(found: Sequence[Residual]) -> Sheet:
    """Return how far the model is from the runs that it was fitted to."""
    rows: list[tuple[Value, ...]] = [
        (
            one.run,
            one.quantity,
            one.measured,
            one.fitted,
            one.fitted / one.measured - 1 if one.measured else None,
        )
        for one in found
    ]
    columns = ("run", "quantity", "measured", "fitted", "error")
    return sheet_of("Residuals of the fit", columns, rows)


def check(one: Checked) -> Sheet:
    """Return a run that was foretold."""
    columns = (
        "run", "drives", "input_bytes", "foretold_s", "low_s", "high_s", "measured_s", "error",
        "passed",
    )  # fmt: skip
    row = (
        one.name, one.drives, one.input_bytes, one.foretold_s, one.low_s, one.high_s,
        one.measured_s, one.error, one.passed,
    )  # fmt: skip
    return sheet_of("A run that was foretold", columns, [row], f"passed: within {WITHIN:.0%}")


def table_3(found: Sequence[Compared]) -> Sheet:
    """Return the paper's configurations."""
    rows: list[tuple[Value, ...]] = [
        (
            one.configuration.number,
            one.configuration.host,
            one.configuration.cores,
            one.configuration.drives,
            one.configuration.enabled,
            one.found.run.time_s,
            one.found.low_s,
            one.found.high_s,
            one.speed_up,
            one.printed_speed_up,
            one.energy_gain,
            one.printed_energy_gain,
        )
        for one in found
    ]
    columns = (
        "experiment", "host", "cores", "drives", "enabled_drives", "time_s", "low_s", "high_s",
        "speed_up", "printed_speed_up", "energy_gain", "printed_energy_gain",
    )  # fmt: skip
    note = (
        "Torabzadehkashi et al., Journal of Big Data 6 (2019), Table 3: modelled from the metered "
        "job, with its input and tasks. speed_up, energy_gain: over the same host without drives "
        "that compute; printed: at most, of all benchmarks. Cores are those of the processors that "
        "Table 2 names, all hosts' cores equally fast: assumed"
    )
    return sheet_of("The paper's configurations", columns, rows, note)


def paragraph(model: Model, found: Mapping[int, Foretold], tested: Checked | None) -> str:
    """Say the fewest and the most drives' times, and what the check says."""
    first, last = min(found), max(found)
    said = [_time(first, found[first])]
    if last != first:
        said.append(_time(last, found[last]))
    text = f"Modelled, {bytes_text(model['input_bytes'])}: {'; '.join(said)}."
    if tested is None:
        return f"{text} No measured run has checked it: --check."
    verdict = "near enough" if tested.passed else f"more than {WITHIN:.0%} away"
    text += (
        f" {tested.name} was foretold {tested.error:+.1%} ({tested.foretold_s:.4g} s for "
        f"{tested.measured_s:.4g} s): {verdict}."
    )
    if not tested.passed:
        text += " The paper's configurations are not given."
    return text


def _time(enabled: int, one: Foretold) -> str:
    around = "" if one.low_s is None else f" ({one.low_s:.4g} to {one.high_s:.4g})"
    return f"{enabled} drives that compute take {one.run.time_s:.4g} s{around}"
