"""The page's own figures, and its answer in words."""

from __future__ import annotations

from dataclasses import replace

from csdplan.page.answer import Answer
from csdplan.page.state import State
from csdplan.plot import Map, Mark, figures
from csdplan.result.break_even import BepResult
from csdplan.result.sheets import spread_text
from csdplan.result.sweeps import SurfaceResult
from csdplan.result.words import break_even_sentences, cost_sentence


def surface(found: SurfaceResult, state: State) -> Map:
    """Return the map of break-even points with the wanted line and the scenario's own place."""
    inside = found.bandwidth[0] <= state.bandwidth <= found.bandwidth[-1]
    inside = inside and found.compute[0] <= state.compute <= found.compute[-1]
    own = [Mark(state.bandwidth, state.compute, label="the drive as set")] if inside else []
    drawn = figures.surface(found, own)
    top = found.compute[-1]
    iso = []
    for line in drawn.iso:
        within = any(place is not None and place <= top for place in line.y)
        reach = "or less above this line" if within else "or less: out of reach here"
        iso.append(replace(line, label=f"{line.label} {reach}"))
    return replace(drawn, iso=tuple(iso))


def sentences(found: Answer) -> list[str]:
    """Say the break-even point and the cost, for the host that was asked about."""
    (system,) = found.result.systems
    first, *more = break_even_sentences(found.result.kernel, system, system.hosts[-1])
    return [first, cost_sentence(found.costs), *more]


def short(result: BepResult, *, among: bool = False) -> str:
    """Say the answer in a line of a phone, or in half of one `among` others."""
    host = result.systems[0].hosts[-1]
    found = "never" if host.devices is None else f"{host.devices} drives{spread_text(host)}"
    if host.verdict == "out_of_range":
        found = "over 2^53 drives"
    return found if among else f"{result.kernel}: break-even {found}"
