"""Scenarios of cost: systems, the kernel that they run, and how long, from TOML."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Any

from csdplan.errors import ModelError
from csdplan.files import parsed, read_text
from csdplan.profile import load, workload_of
from csdplan.published import read
from csdplan.solve.tco import Kernel, Service, System

Scenario = tuple[list[System], Kernel, Service]


def load_scenario(path: str | Path | None = None) -> Scenario:
    """Return a scenario's systems, kernel and service; without a path the published one's.

    Raises
    ------
    ModelError
        If the file is no such scenario; the message names what is at fault.
    OSError
        If it cannot be read.
    """
    body = read("tco.toml") if path is None else parsed(read_text(Path(path)), "TOML", str(path))
    keys = {"profile", "kernel", "host_cores", "service", "system"}
    _check_keys(str(path), body, keys, needed={"profile", "kernel", "system"})
    names = {field.name for field in fields(System)}
    needed = {field.name for field in fields(System) if field.default is MISSING}
    for row in body["system"]:
        _check_keys(f"{path}: system", row, names, needed=needed)
    service = body.get("service", {})
    _check_keys(f"{path}: service", service, {field.name for field in fields(Service)})
    workload = workload_of(load(body["profile"]), body["kernel"], name=body["profile"])
    host = workload.host(body.get("host_cores", 1))
    kernel = Kernel(
        bytes=workload.bytes,
        ssd_tx_s=host.tx_s,
        ssd_comp_s=host.comp_s / host.divisor,
        csd_tx_s=workload.csd_tx_s,
        csd_comp_s=workload.csd_comp_s,
        k_limit=workload.k_limit,
    )
    return [System(**row) for row in body["system"]], kernel, Service(**service)


def _check_keys(where: str, table: Any, keys: set[str], needed: Set[str] = frozenset()) -> None:
    if not isinstance(table, dict):
        raise ModelError(where, table, "a table")
    if unknown := sorted(set(table) - keys):
        raise ModelError(where, unknown, f"only {', '.join(sorted(keys))}")
    if missing := sorted(needed - set(table)):
        raise ModelError(where, f"without {', '.join(missing)}", "all of its required keys")
