"""From a file, a shipped name or TOML text to a `Profile`.

A profile with faults yields one `ProfileInvalid` that lists all of them: file, key, value and
what was expected. Nothing is repaired, defaulted or ignored. No input makes this module raise
anything but a `ProfileError`.
"""

from __future__ import annotations

import tomllib
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from csdplan.errors import Problem, ProfileInvalid, ProfileNotFound
from csdplan.files import marked, read_file
from csdplan.profile.schema import Profile

_SUFFIX = ".toml"
_VALUE_TEXT_MAX = 60

# What schema 1 asks for, in its own words, by the kind of fault that pydantic found.
_EXPECTED = {
    "dict_type": "a table",
    "finite_number": "a finite number",
    "float_type": "a number",
    "greater_than": "a number greater than {gt}",
    "greater_than_equal": "a {number} of at least {ge}",
    "int_type": "a whole number",
    "less_than_equal": "a {number} of at most {le}",
    "list_type": "an array of tables",
    "literal_error": "{expected}",
    "model_type": "a table",
    "string_pattern_mismatch": "text that matches {pattern}",
    "string_too_long": "text of at most {max_length} characters",
    "string_too_short": "text that is not empty",
    "string_type": "text",
    "too_short": "at least one entry",
}


def load(source: str | Path) -> Profile:
    """Load a profile.

    Parameters
    ----------
    source : str or Path
        A `Path`, or text with a slash or ending in ``.toml``, is a file. Any other text is the
        name of a shipped profile. The form alone decides, so that a stray file in the working
        directory never shadows a shipped profile.

    Returns
    -------
    Profile
        The profile, checked.

    Raises
    ------
    ProfileNotFound
        If there is no such file or shipped profile; the message lists the shipped ones.
    ProfileInvalid
        If the file breaks schema 1.
    """
    is_file = isinstance(source, Path) or "/" in source or source.endswith(_SUFFIX)
    if is_file:
        return parse(read_file(Path(source)), file=str(source))
    names = shipped_names()
    if source not in names:
        raise ProfileNotFound(
            f"no shipped profile {str(source)!r}; there are: {', '.join(names)}. "
            f"A file of your own needs a slash or {_SUFFIX} in its name."
        )
    data = (_shipped() / f"{source}{_SUFFIX}").read_bytes()
    return parse(data, file=f"{source}{_SUFFIX}")


def shipped_names() -> tuple[str, ...]:
    """Return the names of the profiles that come with the package, sorted."""
    files = (entry.name for entry in _shipped().iterdir())
    return tuple(sorted(name.removesuffix(_SUFFIX) for name in files if name.endswith(_SUFFIX)))


def parse(data: bytes | str, *, file: str = "profile") -> Profile:
    """Parse a profile's TOML text; `file` is what messages call it.

    Raises
    ------
    ProfileInvalid
        If the text is not TOML or breaks schema 1.
    """
    raw = parse_toml(data, file)
    problems: list[Problem] = []
    profile = None
    try:
        profile = Profile.model_validate(raw)
    except ValidationError as error:
        problems = [problem(detail, Profile) for detail in error.errors(include_url=False)]
    problems += _reference_problems(raw) + _duplicate_problems(raw)
    if problems or profile is None:
        raise ProfileInvalid(file, problems)
    return profile


def parse_toml(data: bytes | str, file: str) -> dict[str, Any]:
    """Parse TOML text and judge its ``schema``; nothing else is checked.

    Raises
    ------
    ProfileInvalid
        If the text is not TOML, or of another version than 1.
    """
    encoding = marked(data) if isinstance(data, bytes) else None
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
        if encoding is not None:
            raise ValueError(f"a byte order mark of {encoding}")
        raw = tomllib.loads(text)
    except UnicodeDecodeError as error:
        value = encoding or "bytes"
        raise ProfileInvalid(file, [Problem("(toml)", value, "UTF-8 text")]) from error
    except RecursionError as error:
        expected = "TOML of a few levels"
        raise ProfileInvalid(file, [Problem("(toml)", "nested too deeply", expected)]) from error
    except ValueError as error:
        expected = "TOML with every key given once"
        raise ProfileInvalid(file, [Problem("(toml)", _shown(str(error)), expected)]) from error
    problems = _version_problems(raw)
    if problems:
        raise ProfileInvalid(file, problems)
    return raw


def _shipped() -> Traversable:
    return resources.files("csdplan.profile") / "shipped"


def _version_problems(raw: dict[str, Any]) -> list[Problem]:
    """Judge the version alone first: under another version no other key has a known meaning."""
    version = raw.get("schema")
    if type(version) is int and version == 1:
        return []
    value = "absent" if "schema" not in raw else _shown(version)
    return [Problem("schema", value, "1, the only version that this csdplan knows")]


def _reference_problems(raw: dict[str, Any]) -> list[Problem]:
    """Find points that name a device without a table of its own."""
    devices = raw.get("device")
    if not isinstance(devices, dict):
        return []
    expected = f"one of the devices of this profile: {', '.join(sorted(devices)) or 'none'}"
    return [
        Problem(f"point[{index}].device", _shown(point["device"]), expected)
        for index, point in _points(raw)
        if isinstance(point.get("device"), str) and point["device"] not in devices
    ]


def _duplicate_problems(raw: dict[str, Any]) -> list[Problem]:
    """Find points that measure the same thing twice, so that no reader has to choose."""
    identity = {"kernel": str, "where": str, "device": str, "units": int, "bytes": int}
    first: dict[tuple[object, ...], int] = {}
    problems = []
    for index, point in _points(raw):
        # A value of another type is reported as such; true, which equals 1, is no whole number.
        if any(type(point.get(key)) is not kind for key, kind in identity.items()):
            continue
        overload = point.get("overload", {})
        if not isinstance(overload, dict):
            continue
        if any(type(value) not in (str, int) for value in overload.values()):
            continue
        values = (*(point[key] for key in identity), frozenset(overload.items()))
        if values in first:
            expected = f"another {', '.join(identity)} or overload than point[{first[values]}]"
            problems.append(Problem(f"point[{index}]", _shown(point["kernel"]), expected))
        first.setdefault(values, index)
    return problems


def _points(raw: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    points = raw.get("point")
    if not isinstance(points, list):
        return []
    return [(index, point) for index, point in enumerate(points) if isinstance(point, dict)]


def problem(detail: ErrorDetails, schema: type[BaseModel]) -> Problem:
    """Say what pydantic found wrong with a file of `schema`, in the file's own terms."""
    kind, location = detail["type"], detail["loc"]
    key = _key(location)
    if kind == "missing":
        return Problem(key, "absent", "a value: this key is required")
    if kind == "extra_forbidden":
        known = ", ".join(_known_keys(location[:-1], schema))
        return Problem(key, _shown(detail["input"]), f"no such key; there are: {known}")
    if kind in _EXPECTED:
        context = {name: _plain(value) for name, value in detail.get("ctx", {}).items()}
        # The bounds of whole numbers are whole numbers.
        bounds = {type(value) for value in detail.get("ctx", {}).values()}
        number = "whole number" if int in bounds else "number"
        expected = _EXPECTED[kind].format_map({**context, "number": number})
    else:
        expected = detail["msg"].removeprefix("Value error, ")
    return Problem(key, _shown(detail["input"]), expected)


def _plain(value: object) -> str:
    """Return a bound as a person writes it: 0, not 0.0."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def _key(location: tuple[int | str, ...]) -> str:
    """Return a path in the file's own terms, such as ``point[3].load_s.median``."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part != "[key]":  # how pydantic marks a fault in a table's name
            path += f".{part}" if path else part
    return path


def _known_keys(location: tuple[int | str, ...], schema: type[BaseModel]) -> list[str]:
    """Return the keys of the table at `location`, read off the schema itself."""
    table: Any = schema
    for part in location:
        if not isinstance(part, int) and _is_table(table):
            names = {field.alias or name: field for name, field in table.model_fields.items()}
            table = _inner(names[part].annotation)
        elif get_origin(table) in (dict, list):
            table = _inner(get_args(table)[-1])
    return [field.alias or name for name, field in table.model_fields.items()]


def _inner(annotation: Any) -> Any:
    """Return the type behind `X | None`."""
    if get_origin(annotation) in (Union, UnionType):
        return next(option for option in get_args(annotation) if option is not type(None))
    return annotation


def _is_table(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _shown(value: object) -> str:
    if isinstance(value, BaseModel):
        value = value.model_dump(by_alias=True, exclude_none=True)
    if isinstance(value, bool):
        return str(value).lower()
    try:
        text = repr(value) if isinstance(value, str | int | float | dict | list) else str(value)
    except ValueError:  # Python writes out no whole number of more than some thousand digits
        return "a number too long to show"
    return text if len(text) <= _VALUE_TEXT_MAX else text[: _VALUE_TEXT_MAX - 3] + "..."
