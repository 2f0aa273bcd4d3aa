"""A job described by hand, in TOML: the names of a model's numbers, all of them given."""

from __future__ import annotations

from pathlib import Path

from csdplan.errors import ModelError
from csdplan.files import parsed, read_text
from csdplan.jobs.model import NAMES, WATTS, WHOLE, Model, Number
from csdplan.units import quantity

#: Numbers that a file must have; the others are 0 where it has none, but for those below.
_REQUIRED = ("input_bytes", "block_bytes", "drive_cores", "map_byte_s")
_DEFAULTS = {"replication": 2.0, "slots": 2.0}


def written(path: Path) -> Model:
    """Return the job of a file.

    Raises
    ------
    ProfileNotFound
        If the file cannot be read.
    ModelError
        If it is no TOML, a required number is absent, or a value is none.
    """
    file = str(path)
    body = parsed(read_text(path), "TOML", file)
    if body.pop("schema", None) != 1:
        raise ModelError(f"{file}: schema", "absent or another", "1")
    if unknown := sorted(set(body) - set(NAMES) - set(WATTS)):
        known = ", ".join((*NAMES, *WATTS))
        raise ModelError(f"{file}: {unknown[0]}", body[unknown[0]], f"only {known}")
    for name in _REQUIRED:
        if name not in body:
            raise ModelError(f"{file}: {name}", "absent", "a number: this key is required")
    numbers = {
        name: Number(_value(file, name, value), "given", file) for name, value in body.items()
    }
    for name in NAMES:
        default = Number(_DEFAULTS.get(name, 0.0), "assumed", f"absent in {file}")
        numbers.setdefault(name, default)
    return Model({name: numbers[name] for name in (*NAMES, *WATTS) if name in numbers})


def _value(file: str, name: str, value: object) -> float:
    where = f"{file}: {name}"
    if name.endswith("_bytes"):
        return quantity(where, value, "bytes")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ModelError(where, value, "a number")
    if name in WHOLE and value != int(value):
        raise ModelError(where, value, "a whole number")
    return float(value)
