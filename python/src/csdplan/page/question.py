"""The request that a scenario asks of ``csdplan plan``, and the request file that holds both.

The file is the one that ``csdplan plan --ask`` reads; the fields that are about break-even
points stand in its table ``page``, which that command leaves alone.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from csdplan.errors import ModelError
from csdplan.files import parsed
from csdplan.page.parts import FILE as PARTS_FILE
from csdplan.page.quantities import BY_NAME, plain
from csdplan.page.state import (
    CHOICES,
    UPLOADED,
    WORKS_MAX,
    State,
    Work,
    check_choices,
    checked,
    normalized,
    to_values,
)
from csdplan.request.ask import UNIT_CPU, Ask, read_ask
from csdplan.request.file import only_known

#: Quantities of the question: key of the request, the unit as it writes it, field of `Ask`, and
#: one of the page's units in that field's.
_KEYS = {
    "store": ("TB", "store_bytes", 1e12),
    "cold": ("TB", "cold_bytes", 1e12),
    "cold_read": ("GB/s", "cold_read_Bps", 1e9),
    "serve": ("GB/s", "serve_Bps", 1e9),
    "write": ("GB/s", "write_Bps", 1e9),
    "write_daily": ("TB", "daily_bytes", 1e12),
    "growth": ("%", "growth", 0.01),
    "compression": ("", "compression", 1.0),
    "filesystem": ("%", "filesystem", 0.01),
    "spare": ("%", "spare", 0.01),
    "budget": ("USD", "budget_usd", 1.0),
    "power": ("kW", "power_W", 1e3),
    "rack": ("U", "rack_units", 1.0),
    "years": ("years", "years", 1.0),
    "kwh": ("USD", "kwh_usd", 1.0),
}
#: Value of ``network`` by the word that the page has for it.
_NETWORK = {"auto": None, "yes": True, "no": False}
_DAY_S = 86_400.0
_UPLOADED_FILE = "./uploaded.toml"
_FILE = "the request file"


def question(state: State) -> dict[str, Any]:
    """Return the values that ``csdplan plan`` is asked with, by the names of its options."""
    values: dict[str, Any] = {
        key: f"{plain(getattr(state, key))}{unit}"
        for key, (unit, _, _) in _KEYS.items()
        if not (BY_NAME[key].zero and getattr(state, key) == 0)
    }
    if state.network != State().network:
        values["network"] = _NETWORK[state.network]
    return values | {
        "workload": [_work(work) for work in state.works],
        "protect": state.protect,
        "usable": state.usable == "yes",
        "overlap": state.overlap,
        "hosts_max": int(state.hosts_max),
    }


def to_file(state: State) -> str:
    """Return a scenario as the TOML file that ``csdplan plan --ask`` and the page read."""
    lines = [
        "# A scenario of csdplan ui, and a request: csdplan plan --ask FILE",
        f"profile = {_toml(_UPLOADED_FILE if state.profile == UPLOADED else state.profile)}",
        *(f"{key} = {_toml(value)}" for key, value in question(state).items()),
        "",
        "# For the page alone: the break-even points that it shows beside the purchase.",
        "[page]",
        *(f"{name} = {_toml(value)}" for name, value in _shown(state).items()),
    ]
    if UPLOADED in {state.profile, state.ssd_profile}:
        lines.insert(1, f"# Save the uploaded profile next to this file, as {_UPLOADED_FILE}.")
    if state.parts:
        lines.insert(1, f"# Your parts are a file of their own: --catalogue {PARTS_FILE}")
    return "\n".join(lines) + "\n"


def from_file(text: str, uploaded: str = "") -> State:
    """Return the scenario of a request file, TOML or JSON, also one that was written by hand.

    Parameters
    ----------
    text : str
        The file.
    uploaded : str
        TOML of the profile that was uploaded before, or empty.

    Raises
    ------
    CsdplanError
        If it is no request, or asks for what the page does not have.
    """
    body = parsed(text, "JSON" if text.lstrip().startswith("{") else "TOML", _FILE)
    page = body.get("page", {})
    if not isinstance(page, Mapping):
        raise ModelError("page", page, "a table")
    values = only_known(body, _FILE)
    profile = str(values.pop("profile", State().profile))
    if profile == _UPLOADED_FILE:
        profile = UPLOADED
    if (profile == UPLOADED and not uploaded) or "/" in profile or profile.endswith(".toml"):
        raise ModelError("profile", profile, "a shipped profile, or upload that profile first")
    _refuse_files(values)
    ask = read_ask(values)
    if len(ask.works) > WORKS_MAX:
        raise ModelError("workload", f"{len(ask.works)} workloads", f"at most {WORKS_MAX}")
    if unknown := sorted(set(page) - set(_shown(State()))):
        raise ModelError("page", ", ".join(unknown), f"only {', '.join(_shown(State()))}")
    fields = {name: str(value) for name, value in page.items()}
    state = checked(
        {**to_values(_of_ask(ask)), **fields, "profile": profile, "text": uploaded or None}
    )
    if "kernel" not in page:
        kernels = state.chosen_profile().kernels()
        named = [work.name for work in state.works if work.name in kernels]
        state = checked({**to_values(state), "kernel": next(iter(named), kernels[0])})
    check_choices(state)
    return normalized(state)


def _shown(state: State) -> dict[str, str]:
    """Return the fields that no question has, as texts; without those that say nothing."""
    asked = {*_KEYS, "hosts_max"}
    values = to_values(state)
    names = [name for name in (*CHOICES, *BY_NAME) if name not in asked and name != "profile"]
    return {name: values[name] for name in names}


def _work(work: Work) -> str | dict[str, str]:
    if not work.core:
        return f"{work.name}={plain(work.rate)}GB/s"
    return {
        "name": work.name,
        "throughput": f"{plain(work.rate)}GB/s",
        "core": f"{plain(work.core)}GB/s",
        "returns": f"{plain(work.returns)}%",
        "spread": f"{plain(work.spread)}%",
    }


def _of_ask(ask: Ask) -> State:
    """Return the scenario of a question, all else as usual."""
    numbers = {
        key: _rounded((getattr(ask, field) or 0.0) / factor)
        for key, (_, field, factor) in _KEYS.items()
    }
    if ask.daily_bytes == 0 and ask.write_Bps:
        raise ModelError("write_daily", "0", "more than 0, or absent: to the page 0 is all day")
    for work in ask.works:
        if work.core_Bps is not None and work.cpu != UNIT_CPU:
            raise ModelError("cpu", work.cpu, f"{UNIT_CPU}: the page has no other one")
    if ask.daily_bytes and ask.write_Bps == ask.daily_bytes / _DAY_S:
        numbers["write"] = 0.0
    works = tuple(
        Work(work.name, _rounded(work.required_Bps / 1e9))
        if work.core_Bps is None
        else Work(
            work.name,
            _rounded(work.required_Bps / 1e9),
            _rounded(work.core_Bps / 1e9),
            _rounded(work.returns * 100),
            _rounded(work.spread * 100),
        )
        for work in ask.works
    )
    return State(
        **numbers,  # type: ignore[arg-type]
        works=works,
        protect=ask.protect,
        usable="yes" if ask.usable else "no",
        overlap=ask.overlap.value,
        network=next(word for word, value in _NETWORK.items() if value is ask.network),
        hosts_max=ask.hosts_max,
    )


def _rounded(value: float) -> float:
    """Return a number without the last digits, which a change of units leaves behind."""
    return float(f"{value:.12g}")


def _refuse_files(values: Mapping[str, Any]) -> None:
    given = values.get("workload", ())
    for one in given if isinstance(given, list) else [given]:
        if isinstance(one, str) and one.startswith("@"):
            expected = "its name, throughput and core in this file: the page reads no other one"
            raise ModelError("workload", one, expected)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        inside = ", ".join(f"{key} = {_toml(one)}" for key, one in value.items())
        return f"{{ {inside} }}"
    if isinstance(value, list):
        return f"[{', '.join(_toml(one) for one in value)}]"
    return json.dumps(value, ensure_ascii=False)
