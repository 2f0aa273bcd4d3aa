"""Files that a person names, read within a limit and decoded; TOML and JSON of any depth.

A file may be endless, nested beyond what a parser bears, or of another encoding. Each such fault
raises `CsdplanError` with the file's name.
"""

from __future__ import annotations

import codecs
import json
import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from csdplan.errors import ModelError, ProfileNotFound

#: No file that a person writes, and no result of a tool that is read, is as long [bytes].
_LONGEST = 16 << 20
#: A parser's message longer than this says no more.
_SHOWN = 120
#: Marks at the beginning of a file, and its encoding. UTF-32 goes first: it begins as UTF-16 does.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
    (codecs.BOM_UTF8, "utf-8-sig"),
)


def read_file(path: Path) -> bytes:
    """Return a file's bytes.

    Raises
    ------
    ProfileNotFound
        If it cannot be read, or is too long to be meant.
    """
    try:
        with path.open("rb") as file:
            data = file.read(_LONGEST + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ProfileNotFound(f"{path}: cannot be read: {reason}") from error
    if len(data) > _LONGEST:
        raise ProfileNotFound(f"{path}: longer than {_LONGEST >> 20} MiB: not read")
    return data


def marked(data: bytes) -> str | None:
    """Return the encoding that the bytes' first few name; None if they name none."""
    return next((encoding for mark, encoding in _MARKS if data.startswith(mark)), None)


def read_text(path: Path) -> str:
    """Return a file's text: UTF-8, or what its byte order mark says.

    Raises
    ------
    ProfileNotFound
        If it cannot be read, or is too long to be meant.
    ModelError
        If it is no text of that encoding.
    """
    data = read_file(path)
    encoding = marked(data) or "utf-8"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise ModelError(str(path), f"bytes that are no {encoding}", "UTF-8 text") from error


def parsed(text: str, form: str, where: str) -> dict[str, Any]:
    """Return the table of a TOML text, or the object of a JSON text.

    Raises
    ------
    ModelError
        If it is no such text, has a key twice, or has another value on top.
    """
    expected = f"a {form} file with every key given once"
    try:
        body = tomllib.loads(text) if form == "TOML" else json.loads(text, **STRICT)
    except RecursionError as error:
        raise ModelError(where, "nested too deeply", expected) from error
    except ValueError as error:
        raise ModelError(where, str(error)[:_SHOWN], expected) from error
    if not isinstance(body, dict):
        raise ModelError(where, type(body).__name__, "a JSON object")
    return body


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"key {twice!r} stands twice")
    return found


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


#: How JSON is read: a key stands once, and NaN and infinity are no numbers.
STRICT: dict[str, Any] = {"object_pairs_hook": _once, "parse_constant": _no_number}
