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

#: Types of a record's fields, as Python spells them, and in words.
_TYPES: dict[str, tuple[tuple[type, ...], str]] = {
    "str": ((str,), "text"),
    "int": ((int,), "a whole number"),
    "float": ((int, float), "a number"),
}
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
        _check_types(f"{path}: system", row, System)
    service = body.get("service", {})
    _check_keys(f"{path}: service", service, {field.name for field in fields(Service)})
    _check_types(f"{path}: service", service, Service)
    for key in ("profile", "kernel"):
        _check_type(f"{path}: {key}", body[key], "str")
    cores = body.get("host_cores", 1)
    _check_type(f"{path}: host_cores", cores, "int")
    if cores < 1:
        raise ModelError(f"{path}: host_cores", cores, "at least 1")
    workload = workload_of(load(body["profile"]), body["kernel"], name=body["profile"])
    host = workload.host(cores)
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


def _check_types(where: str, table: dict[str, Any], of: type[System | Service]) -> None:
    """Check that a table's values have the types of a record's fields."""
    for field in fields(of):
        if field.name in table:
            kind = str(field.type).removesuffix(" | None")
            _check_type(f"{where}: {field.name}", table[field.name], kind)


def _check_type(where: str, value: object, kind: str) -> None:
    types, words = _TYPES[kind]
    if isinstance(value, bool) or not isinstance(value, types):
        raise ModelError(where, value, words)
