"""Files that hold a question, or a workload of one: TOML or JSON.

A question's file has the names of the options.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from csdplan.errors import ModelError
from csdplan.files import parsed, read_text


def values_of(path: Path) -> dict[str, Any]:
    """Return the values of a file, JSON or TOML."""
    form = "JSON" if path.suffix == ".json" else "TOML"
    return parsed(read_text(path), form, str(path))


#: Keys of a question's file. ``page`` holds fields of the local page that are no question.
KEYS = frozenset({
    "store", "cold", "cold_read", "usable", "protect", "workload", "write", "write_daily", "serve",
    "network", "filesystem", "spare", "growth", "compression", "budget", "power", "rack", "kwh",
    "years", "hosts_max", "overlap", "profile", "page",
})  # fmt: skip


def read_file_of_question(path: Path) -> dict[str, Any]:
    """Return the values of a question's file, TOML or JSON, by the names of the options.

    Raises
    ------
    ModelError
        If it is no such file, or has a key that no option has.
    """
    return only_known(values_of(path), str(path))


def only_known(body: dict[str, Any], where: str) -> dict[str, Any]:
    """Return a question's values, without those of the page.

    Raises
    ------
    ModelError
        If there is a key that no option has.
    """
    if unknown := sorted(set(body) - KEYS):
        raise ModelError(where, ", ".join(unknown), f"only {', '.join(sorted(KEYS))}")
    return {key: value for key, value in body.items() if key != "page"}
