"""Names that look like patterns, such as ``data[1].csv``: a name that exists is no pattern.

fsspec looks at a name alone, and takes it for a pattern wherever it has ``*``, ``?`` or ``[``.
"""

import os
from collections.abc import Callable
from glob import escape
from typing import Any

from fsspec.implementations.local import LocalFileSystem  # type: ignore


def pattern(path: str, exists: Callable[[str], bool]) -> str:
    """Return the pattern whose longest beginning that is an object or a folder is a name."""
    parts = path.split("/")
    for end in range(len(parts), 0, -1):
        start = "/".join(parts[:end])
        if exists(start):
            return escape(start) + path[len(start) :]
    return path


def copies(
    source_fs: Any, source: Any, target_fs: Any, target: Any, recursive: bool, depth: int | None
) -> tuple[list[str], list[str]] | None:
    """Return the files of one file or folder and what a copy calls them.

    None if the source is a pattern, a list, or missing: fsspec's own rules are for these.
    """
    if not all(isinstance(path, (str, os.PathLike)) for path in (source, target)):
        return None
    source, target = os.fspath(source), os.fspath(target)
    if not source_fs.exists(source):
        return None
    name, goal = source_fs._strip_protocol(source), target_fs._strip_protocol(target)
    if (target.endswith("/") or target_fs.isdir(goal)) and not source.endswith("/"):
        goal = _joined(goal, name.rpartition("/")[2])
    found = set(source_fs.find(name, maxdepth=depth)) if recursive else set()
    if source_fs.isfile(name):
        found.add(name)
    sources = sorted(found)
    below = [one[len(name) :].lstrip("/") for one in sources]
    if isinstance(target_fs, LocalFileSystem):
        for one in below:
            if ".." in one.split("/"):
                raise ValueError(f"{_joined(name, one)!r} would be a file outside {goal!r}")
    return sources, [_joined(goal, one) for one in below]


def _joined(folder: str, name: str) -> str:
    return "/".join(filter(None, (folder, name)))
