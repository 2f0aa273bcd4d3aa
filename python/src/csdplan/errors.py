"""Everything that csdplan raises on purpose.

::

    CsdplanError
    ├── ModelError            a quantity lies outside the range of an equation (also a ValueError)
    ├── ProfileError
    │   ├── ProfileNotFound   no such file, or no shipped profile of that name
    │   ├── ProfileInvalid    the file breaks the schema; holds every problem found, not the first
    │   └── ProfileIncomplete the file is sound, but lacks what this plan needs
    └── PlotError             a figure cannot be written in the format asked for

All of them are faults of the input, so the command line maps each to exit code 2 (wrong use).
Faults of the environment stay what Python calls them: ``OSError``, and `ExtraMissing` (an
``ImportError``) where an optional part is not installed. Faults of csdplan itself are assertions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class CsdplanError(Exception):
    """Root of the tree: catch this to catch every fault of the input."""


class ModelError(CsdplanError, ValueError):
    """A quantity lies outside the range in which an equation holds.

    Attributes
    ----------
    argument : str
        Name of the argument at fault, as the function spells it.
    value : str
        The offending value, as text.
    expected : str
        The range that the equation needs.
    """

    def __init__(self, argument: str, value: object, expected: str) -> None:
        self.argument = argument
        self.value = str(value)
        self.expected = expected
        super().__init__(f"{argument} = {self.value}: expected {expected}")


class ProfileError(CsdplanError):
    """A profile is missing, breaks the schema, or does not hold what is asked of it."""


class ProfileNotFound(ProfileError):
    """Neither a file nor the name of a shipped profile."""


@dataclass(frozen=True)
class Problem:
    """One fault in a profile.

    Attributes
    ----------
    key : str
        Path of the key, such as ``point[3].load_s.median``; ``(toml)`` if the file is not TOML.
    value : str
        The value in the file, as text; ``absent`` if there is none.
    expected : str
        The values that schema 1 permits.
    """

    key: str
    value: str
    expected: str

    def __str__(self) -> str:
        return f"{self.key} = {self.value}: expected {self.expected}"


class ProfileInvalid(ProfileError):
    """A profile breaks schema 1; all its problems are reported together.

    Attributes
    ----------
    file : str
        The file, as the caller named it.
    problems : tuple of Problem
        Every problem found, in the order of the file; never empty.
    """

    def __init__(self, file: str, problems: Sequence[Problem]) -> None:
        self.file = file
        self.problems = tuple(problems)
        lines = [f"{file}: {problem}" for problem in self.problems]
        super().__init__("\n".join(lines))


class ProfileIncomplete(ProfileError):
    """A sound profile lacks a kernel, a point or a number that the plan needs."""


class PlotError(CsdplanError):
    """A figure cannot be written in the format that its file name asks for."""


class ExtraMissing(ImportError):
    """An optional part of csdplan is not installed; the message says how to install it."""
