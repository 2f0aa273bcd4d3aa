"""A scenario's fields as HTML: each number as a field with its unit, and a slider of round values.

Names in the form are those of `csdplan.page.state.to_values`; identifiers begin with the
scenario's letter.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from csdplan.page import parts
from csdplan.page.quantities import CORE, QUANTITIES, RATE, RETURNS, SPREAD, Quantity, plain
from csdplan.page.state import WORKS_MAX, State, Work, computing_names, normalized, picks
from csdplan.plot.svg import safe

#: Choices with their labels; the last four only where there is something to choose.
_CHOICES = {
    "profile": "Drive that computes (profile)",
    "kernel": "Kernel in the pictures",
    "ssd_profile": "SSDs to compare with",
    "device": "Which drive computes",
    "ssd": "Which drive is the SSD",
    "size": "Working set",
}
_ALWAYS = ("profile", "kernel")
_PROTECTIONS = ("none", "replica:2", "replica:3", "rs:4+2", "rs:8+2", "rs:8+3", "rs:16+4")
_WAYS = {
    "usable": (
        "The data to keep are",
        (("yes", "usable bytes: coding comes on top"), ("no", "bytes of flash")),
    ),
    "overlap": (
        "Hosts load and compute",
        (("pipelined", "at once"), ("serial", "one after the other")),
    ),
    "network": (
        "Each host has a card and a port of a switch",
        (("auto", "if clients write, read or get results"), ("yes", "yes"), ("no", "no")),
    ),
}
_PARTS = "Parts of your own"
#: Groups that are open at first; the rest opens at a touch.
_OPEN = ("Workloads", "What to store", "Host and its SSDs")


def form(which: str, state: State) -> str:
    """Return the form of scenario `which`, ``a`` or ``b``."""
    groups = dict.fromkeys(one.group for one in QUANTITIES)
    numbers = {
        group: "".join(_number(which, one, getattr(state, one.name), one.name)
                       for one in QUANTITIES if one.group == group)
        for group in groups
    }  # fmt: skip
    host, drive, prices, store, limits = groups
    numbers[store] += _ways(which, state)
    order = ("Workloads", store, limits, _PARTS, host, drive, prices)
    numbers["Workloads"] = f'<div id="{which}-works">{works(which, state)}</div>'
    numbers[_PARTS] = parts.form(which, state.parts, computing_names())
    listed = "".join(_group(group, numbers[group]) for group in order)
    return (
        f'<form id="form-{which}" autocomplete="off" aria-label="Scenario {which.upper()}">'
        f'<div id="{which}-choices">{choices(which, state)}</div>'
        '<label class="button">Upload a profile (TOML)'
        f'<input type="file" id="{which}-upload" data-which="{which}" accept=".toml"></label>'
        f"{listed}</form>"
    )


def choices(which: str, state: State) -> str:
    """Return the choices by name."""
    found, shown = picks(state), normalized(state)
    listed = []
    for name, label in _CHOICES.items():
        options = [(one, _option(name, one)) for one in found[name]]
        hidden = name not in _ALWAYS and len(options) == 1
        chosen = getattr(shown, name) or (options[0][0] if options else "")
        listed.append(_select(which, name, label, options, chosen, hidden=hidden))
    return "".join(listed)


def works(which: str, state: State) -> str:
    """Return the rows of workloads, and the buttons that add some."""
    kernels = state.chosen_profile().kernels()
    rows = "".join(_work(which, at, work, kernels) for at, work in enumerate(state.works))
    free = [one for one in kernels if one not in {work.name for work in state.works}]
    full = len(state.works) >= WORKS_MAX
    kernel, own = (" disabled" if off else "" for off in (full or not free, full))
    return (
        f'<input type="hidden" name="works" value="{len(state.works)}">{rows}<div class="actions">'
        f'<button type="button" data-do="add" data-which="{which}"{kernel}>Add a kernel</button>'
        f'<button type="button" data-do="add-own" data-which="{which}"{own}>Add my own</button>'
        "</div>"
    )


def _group(name: str, inside: str) -> str:
    is_open = " open" if name in _OPEN else ""
    return f"<details{is_open}><summary>{safe(name)}</summary>{inside}</details>"


def _option(name: str, value: str) -> str:
    if name == "size":
        return f"{int(value) / 1e9:.4g} GB"
    return value or "those of the profile"


def _select(
    which: str,
    name: str,
    label: str,
    options: Sequence[tuple[str, str]],
    chosen: str,
    *,
    hidden: bool = False,
) -> str:
    listed = "".join(
        f'<option value="{safe(value)}"{" selected" if value == chosen else ""}>{safe(said)}'
        "</option>"
        for value, said in options
    )
    key = f"{which}-{name}"
    return (
        f'<div class="field choice" id="{key}-box"{" hidden" if hidden else ""}>'
        f'<label for="{key}">{safe(label)}</label>'
        f'<select id="{key}" name="{name}">{listed}</select></div>'
    )


def _number(which: str, one: Quantity, value: float, name: str, label: str = "") -> str:
    key, said = f"{which}-{name}", label or one.label
    stops = safe(json.dumps([int(stop) if stop == int(stop) else stop for stop in one.stops]))
    about = f'<span class="about" id="{key}-about">{safe(one.about)}</span>' if one.about else ""
    described = f"{key}-unit {key}-about" if one.about else f"{key}-unit"
    text = one.text(value)
    spoken = f"{plain(value)} {one.unit}".strip() if text else one.zero
    return (
        f'<div class="field"><label for="{key}">{safe(said)}</label>'
        f'<span class="entry"><input id="{key}" name="{name}" inputmode="decimal" '
        f'value="{text}" placeholder="{safe(one.zero)}" aria-describedby="{described}">'
        f'<span class="unit" id="{key}-unit">{safe(one.unit)}</span></span>'
        f'<input type="range" id="{key}-slide" min="0" max="{len(one.stops) - 1}" '
        f'value="{one.stop(value)}" data-for="{key}" data-stops="{stops}" '
        f'data-zero="{safe(one.zero)}" data-unit="{safe(one.unit)}" '
        f'aria-label="{safe(said)}, slider" aria-valuetext="{safe(spoken)}">'
        f'{about}<span class="wrong" id="{key}-wrong" role="alert"></span></div>'
    )


def _ways(which: str, state: State) -> str:
    protections = [*_PROTECTIONS]
    if state.protect not in protections:
        protections.append(state.protect)
    options = [(one, one) for one in protections]
    found = [_select(which, "protect", "Protected by", options, state.protect)]
    for name, (label, ways) in _WAYS.items():
        found.append(_select(which, name, label, ways, getattr(state, name)))
    return "".join(found)


def _work(which: str, at: int, work: Work, kernels: Sequence[str]) -> str:
    name = f"work{at}"
    if work.core:
        key = f"{which}-{name}.name"
        head = (
            f'<div class="field"><label for="{key}">Name of my workload</label>'
            f'<input id="{key}" name="{name}.name" value="{safe(work.name)}" maxlength="40">'
            f'<span class="wrong" id="{key}-wrong" role="alert"></span></div>'
        )
        numbers = [RATE, CORE, RETURNS, SPREAD]
    else:
        options = [(one, one) for one in kernels]
        head = _select(which, f"{name}.name", "Kernel", options, work.name)
        numbers = [RATE]
    said = {one: f"{safe(work.name)} {one.label}" for one in numbers}
    inside = "".join(
        _number(which, one, getattr(work, one.name), f"{name}.{one.name}", said[one])
        for one in numbers
    )
    remove = (
        f'<button type="button" class="small" data-do="remove" data-at="{at}" '
        f'data-which="{which}" aria-label="Remove {safe(work.name)}">Remove</button>'
    )
    return f'<div class="work">{head}{inside}{remove}</div>'
