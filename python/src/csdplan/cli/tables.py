"""Results as tables for a terminal. Formats numbers, and decides nothing."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table
from rich.text import Text

from csdplan.profile.schema import Profile
from csdplan.result.bep import BepResult, HostResult, SystemResult
from csdplan.result.sheet import Sheet, sheet
from csdplan.units import bytes_text

_MISSED = {
    "none": "",
    "tie": "tie",
    "k_limit": "k_limit",
    "host_part": "host part",
    "store": "store time",
    "overlap": "overlap",
}


def print_bep(console: Console, result: BepResult) -> None:
    """Print one table for each system of `result`."""
    for system in result.systems:
        console.print(_system_table(result, system))
        console.print(Text(_footnote(system), style="dim"))
        console.print()


def bep_sheet(result: BepResult) -> Sheet:
    """Return `result` as one flat sheet: a row for each system and host."""
    columns = (
        "profile",
        "device",
        "ssd",
        "kernel",
        "bytes",
        "k_limit",
        "host_cores",
        "ssd_tx_s",
        "ssd_comp_s",
        "csd_tx_s",
        "csd_comp_s",
        "verdict",
        "devices",
        "closed_form_devices",
        "closed_form_misses",
        "ctr",
        "workload_class",
    )
    rows = [
        (
            system.profile,
            system.device,
            system.ssd,
            result.kernel,
            system.bytes,
            system.k_limit,
            host.host_cores,
            host.ssd_tx_s,
            host.ssd_comp_s,
            system.csd_tx_s,
            system.csd_comp_s,
            host.verdict,
            host.devices,
            host.closed_form_devices,
            host.difference,
            host.ctr,
            system.workload_class,
        )
        for system in result.systems
        for host in system.hosts
    ]
    return sheet(f"{result.kernel}: break-even points", columns, rows)


def print_profiles(console: Console, profiles: Iterable[tuple[str, Profile]]) -> None:
    """Print one line for each profile: name, machine, drives, kernels."""
    table = Table(title="Shipped profiles", title_justify="left")
    for heading in ("profile", "machine", "drives that compute", "kernels"):
        table.add_column(heading, overflow="fold")
    for name, profile in profiles:
        drives = sorted({point.device for point in profile.point if point.where == "drive"})
        table.add_row(name, profile.meta.machine, ", ".join(drives), ", ".join(profile.kernels()))
    console.print(table)


def _system_table(result: BepResult, system: SystemResult) -> Table:
    title = f"{result.kernel} on {system.device} (profile {system.profile})"
    table = Table(title=Text(title, style="bold"), title_justify="left")
    table.add_column("SSD side")
    table.add_column("T_tx [s]", justify="right")
    table.add_column("T_comp [s]", justify="right")
    table.add_column("break-even drives", justify="right")
    table.add_column("closed form", justify="right")
    table.add_column("closed form misses")
    for host in system.hosts:
        closed = host.closed_form_devices
        table.add_row(
            f"Host({host.host_cores})",
            f"{host.ssd_tx_s:.4g}",
            f"{host.ssd_comp_s:.4g}",
            Text(_break_even(host), style="bold"),
            "over 2^53" if closed is None else str(closed),
            _MISSED[host.difference],
        )
    return table


def _break_even(host: HostResult) -> str:
    if host.devices is not None:
        return str(host.devices)
    if host.verdict == "never":
        return f"never: {host.csd_limit_s:.3g} s at best, SSDs {host.ssd_limit_s:.3g} s"
    return "over 2^53"


def _sizes(system: SystemResult) -> str:
    if len(system.sizes) == 1:
        return bytes_text(system.bytes)
    others = ", ".join(bytes_text(size) for size in system.sizes if size != system.bytes)
    return f"{bytes_text(system.bytes)} (also measured: {others})"


def _energy(system: SystemResult) -> str:
    if not system.energy:
        return ""
    said = ", ".join(
        f"{side} {joules:.4g} J ({source})" for side, (joules, source) in system.energy.items()
    )
    return f"; energy of a run above idle: {said}"


def _footnote(system: SystemResult) -> str:
    sources = ", ".join(f"{name} {prov}" for name, prov in system.prov.items())
    stored = f" + {system.csd_store_s:.4g} s store" if system.csd_store_s else ""
    gain = system.gains[-1][1]
    gains = f", {gain:.3g} times {system.gains[0][0]}" if len(system.gains) > 1 else ""
    overlap = f"; SSDs {system.ssd_overlap}, drives {system.csd_overlap}"
    plain = system.ssd_overlap == system.csd_overlap == "serial"
    return (
        f"{_sizes(system)}; {system.workload_class}: {system.host_ctr:.0%} of Host(1)'s "
        f"time is compute, {system.drive_ctr:.0%} of the drive's; drive: {system.csd_tx_s:.4g} s "
        f"+ {system.csd_comp_s:.4g} s{stored} on {system.drive_units} units{gains}; "
        f"SSD: {system.ssd}; k_limit {system.k_limit} "
        f"(by {system.k_limit_from}){'' if plain else overlap}; {sources}{_energy(system)}"
    )
