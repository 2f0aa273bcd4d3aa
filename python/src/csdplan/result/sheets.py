"""Break-even points as sheets, and the words for a missed closed form.

Every sheet of a `BepResult` is a view: column headings, and the value that stands under each. The
command line, the page, the report and the Python API print these views and add no number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields

from csdplan.result.break_even import BepResult, HostResult, SystemResult
from csdplan.result.sheet import Sheet, Value, sheet_of
from csdplan.units import bytes_text


@dataclass(frozen=True)
class Miss:
    """Words for one reason why the closed form misses.

    Attributes
    ----------
    label : str
        The reason in a table.
    sentence : str
        The reason in a sentence that continues "The closed form says 5, and is wrong here: ...".
    """

    label: str
    sentence: str


#: Words for each `HostResult.difference` other than ``none``.
MISSES = {
    "tie": Miss(
        "tie", "at the closed form's number both arrays are equally fast; a drive more is needed"
    ),
    "k_limit": Miss(
        "k_limit",
        "the closed form lets SSDs be added beyond what the host can take in (k_limit)",
    ),
    "host_part": Miss("host part", "the closed form leaves out the work that stays with the host"),
    "store": Miss("store time", "the closed form leaves out the time to store results"),
    "overlap": Miss("overlap", "the closed form adds transfer and compute, here they overlap"),
}


def missed(host: HostResult) -> str:
    """Return the label of the reason why the closed form misses; empty if it does not miss."""
    return MISSES[host.difference].label if host.difference in MISSES else ""


def closed_form_text(host: HostResult) -> str:
    """Return the closed form's number of drives in words for a sentence."""
    return "more than 2^53" if host.closed_form_devices is None else str(host.closed_form_devices)


#: Names of the four times for people.
_TIME_NAMES = {
    "ssd_tx_s": "SSD transfer",
    "ssd_comp_s": "host compute",
    "csd_tx_s": "drive reading",
    "csd_comp_s": "drive compute",
}

#: Columns of each view by key of `_record`; a pair gives a column a heading of its own.
_FLAT = (
    "profile", "device", "ssd", "kernel", "bytes", "k_limit", "host_cores", "ssd_tx_s",
    "ssd_comp_s", "csd_tx_s", "csd_comp_s", "verdict", "devices", "closed_form_devices",
    ("closed_form_misses", "difference"), "ctr", "workload_class",
)  # fmt: skip
_ANSWERS = (
    "host_cores", ("break_even_drives", "devices"), ("closed_form_drives", "closed_form_devices"),
    ("closed_form_misses", "missed"), ("verdict", "verdict_words"),
)  # fmt: skip
_TIMES = (
    ("SSD side", "host"), ("SSD tx_s", "ssd_tx_s"), ("SSD comp_s", "ssd_comp_s"),
    ("CSD tx_s", "csd_tx_s"), ("CSD comp_s", "csd_comp_s"), ("compute share", "ctr"),
    ("break-even drives", "devices_or_never"), ("closed form", "closed_form_devices"),
    ("closed form misses", "missed"),
)  # fmt: skip
_TEXT = (
    ("SSD side", "host"), ("T_tx [s]", "ssd_tx_text"), ("T_comp [s]", "ssd_comp_text"),
    ("break-even drives", "devices_or_limits"), ("closed form", "closed_form_or_over"),
    ("closed form misses", "missed"),
)  # fmt: skip

_View = tuple[str | tuple[str, str], ...]


def flat_sheet(result: BepResult) -> Sheet:
    """Return all systems in one sheet: a row for each system and host."""
    return _view(f"{result.kernel}: break-even points", result, result.systems, _FLAT)


def host_sheet(result: BepResult) -> Sheet:
    """Return the fields of `HostResult`, a row for each system and host.

    The columns ``profile`` and ``device`` distinguish several systems.
    """
    own = tuple(field.name for field in fields(HostResult))
    columns = own if len(result.systems) == 1 else ("profile", "device", *own)
    systems = ", ".join(f"{each.device}, k_limit {each.k_limit:.4g}" for each in result.systems)
    return _view(f"{result.kernel} on {systems}", result, result.systems, columns)


def answer_sheet(result: BepResult, system: SystemResult) -> Sheet:
    """Return the answers for one system, without the times behind them."""
    return _view(f"{result.kernel} on {system.device}", result, (system,), _ANSWERS)


def times_sheet(result: BepResult, system: SystemResult) -> Sheet:
    """Return the times of one device and the answers, for one system."""
    note = (
        f"{system.workload_class}; slow-down of transfer {result.sd_tx:g}, of compute "
        f"{result.sd_comp:g}; times of one device"
    )
    title = "One device's times, and the break-even point"
    return _view(title, result, (system,), _TIMES, note)


def text_sheet(result: BepResult, system: SystemResult) -> Sheet:
    """Return one system as text for a terminal, with its sources in the note."""
    title = f"{result.kernel} on {system.device} (profile {system.profile})"
    return _view(title, result, (system,), _TEXT, _footnote(system))


def _view(
    title: str,
    result: BepResult,
    systems: tuple[SystemResult, ...],
    columns: _View,
    note: str = "",
) -> Sheet:
    pairs = [(name, name) if isinstance(name, str) else name for name in columns]
    records = [_record(result, system, host) for system in systems for host in system.hosts]
    rows = [[record[key] for _, key in pairs] for record in records]
    return sheet_of(title, [heading for heading, _ in pairs], rows, note)


def _record(result: BepResult, system: SystemResult, host: HostResult) -> Mapping[str, Value]:
    closed = host.closed_form_devices
    return {
        "kernel": result.kernel,
        "profile": system.profile,
        "device": system.device,
        "ssd": system.ssd,
        "bytes": system.bytes,
        "k_limit": system.k_limit,
        "csd_tx_s": system.csd_tx_s,
        "csd_comp_s": system.csd_comp_s,
        "workload_class": system.workload_class,
        **asdict(host),
        "host": f"Host({host.host_cores})",
        "missed": missed(host),
        "verdict_words": host.verdict.replace("_", " "),
        "devices_or_never": "never" if host.devices is None else str(host.devices),
        "devices_or_limits": _devices_or_limits(host),
        "closed_form_or_over": "over 2^53" if closed is None else str(closed),
        "ssd_tx_text": f"{host.ssd_tx_s:.4g}",
        "ssd_comp_text": f"{host.ssd_comp_s:.4g}",
    }


def spread_text(host: HostResult) -> str:
    """Return the bounds of a break-even point in 90 % of cases, such as `` (11-13)``."""
    if host.devices_low is None and host.devices_high is None:
        return ""
    high = "never" if host.devices_high is None else str(host.devices_high)
    return f" ({host.devices_low}-{high})"


def _devices_or_limits(host: HostResult) -> str:
    if host.devices is not None:
        return f"{host.devices}{spread_text(host)}"
    if host.verdict == "never":
        return f"never: {host.csd_limit_s:.3g} s at best, SSDs {host.ssd_limit_s:.3g} s"
    return "over 2^53"


def _sizes(system: SystemResult) -> str:
    if len(system.sizes) == 1:
        return bytes_text(system.bytes)
    others = ", ".join(bytes_text(size) for size in system.sizes if size != system.bytes)
    return f"{bytes_text(system.bytes)} (also measured: {others})"


def _energy(system: SystemResult) -> list[str]:
    if not system.energy:
        return []
    each = ", ".join(
        f"{side} {joules:.4g} J ({source})" for side, (joules, source) in system.energy.items()
    )
    return [f"Energy of a run above idle: {each}."]


def _range(system: SystemResult) -> list[str]:
    spread = next(filter(None, (spread_text(host).strip() for host in system.hosts)), "")
    if not spread:
        return []
    return [
        f"{spread}: lowest and highest number in 90 % of cases; `csdplan uncertainty` shows which "
        "time matters most."
    ]


def _parts(system: SystemResult) -> str:
    """Return where a drive's time goes, and what its parallel units gain."""
    stored = f" and {system.csd_store_s:.4g} s to store" if system.csd_store_s else ""
    fewest, most = system.gains[0][0], system.gains[-1]
    gain = f"; {most[0]} are {most[1]:.3g} times as fast as {fewest}" if most[0] > fewest else ""
    return (
        f"A drive takes {system.csd_tx_s:.4g} s to read{stored} and {system.csd_comp_s:.4g} s to "
        f"compute, with {system.drive_units} of its compute units{gain}."
    )


def _footnote(system: SystemResult) -> str:
    """Explain the terms and the sources of one system's table, a sentence a line."""
    sources: dict[str, list[str]] = {}
    for name, prov in system.prov.items():
        sources.setdefault(prov, []).append(_TIME_NAMES[name])
    where = "; ".join(f"{prov}: {', '.join(names)}" for prov, names in sources.items())
    overlap = f"SSDs {system.ssd_overlap}, drives {system.csd_overlap}"
    plain = system.ssd_overlap == system.csd_overlap == "serial"
    limit = "--k-limit" if system.k_limit_from == "option" else "the profile"
    lines = [
        f"{_sizes(system)} on {system.ssd} SSDs. Host(n): n cores compute. T_tx: from one SSD to "
        "the host; T_comp: on the host.",
        _parts(system),
        f"Compute is {system.host_ctr:.0%} of Host(1)'s time ({system.workload_class}), and "
        f"{system.drive_ctr:.0%} of the drive's.",
        f"k_limit: {system.k_limit:.4g} SSDs fill the host's link (from {limit}). Closed form: the "
        "published equation, which does not know k_limit.",
        *([] if plain else [f"Transfer and compute: {overlap}."]),
        f"Times {where}.",
        *_energy(system),
        *_range(system),
    ]
    return "\n".join(lines)
