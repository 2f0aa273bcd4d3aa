"""Options of commands, each declared once: in the signature of its command's function.

A parameter of a function in `csdplan.commands` is annotated with its type and an `Option`. The
command line takes the flag, the bounds and the help from it; `documented` writes the function's
section *Parameters* from it. Options that several commands share stand below, by name.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from textwrap import fill
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

from csdplan.errors import ModelError
from csdplan.profile import Profile
from csdplan.texts import whole_numbers

#: A profile, a shipped profile's name, or a TOML file.
ProfileLike = Profile | str | Path
#: One file name, or several.
Paths = str | Path | Sequence[str | Path]

#: Break-even points that a question may aim at.
TARGET_MAX = 1_000_000

F = TypeVar("F", bound=Callable[..., object])


@dataclass(frozen=True)
class Option:
    """Description of a parameter: all but its name, its type and its default.

    Attributes
    ----------
    help : str
        A sentence or two on its meaning, with the unit if the name does not end in one.
    doc : str
        Text for Python, where that of the command line does not fit.
    flag : str
        Flags of the command line, separated by blanks; by default the parameter's name.
    type : type or None
        Type on the command line, where Python takes more than that.
    parse : callable or None
        Turns the command line's text (or list of texts, if `type` is one) into the value. A
        ``ValueError`` of it is a fault of the text.
    default : str or None
        Default on the command line, as text, where that of Python is too long.
    min, max : float or None
        Bounds.
    metavar : str or None
        Form of the value, such as ``SECONDS``.
    argument : bool
        True for a value without a flag.
    required : bool
        True if only Python can do without.
    endless : bool
        True if infinity means no limit; else numbers are finite.
    python_only : bool
        True for a parameter that the command line does not have.
    old : str
        Old flag, kept for one release and not shown.
    """

    help: str
    _: KW_ONLY
    doc: str = ""
    flag: str = ""
    type: Any = None
    parse: Callable[[Any], object] | None = None
    default: str | None = None
    min: float | None = None
    max: float | None = None
    metavar: str | None = None
    argument: bool = False
    required: bool = False
    endless: bool = False
    python_only: bool = False
    old: str = ""


@dataclass(frozen=True)
class Declared:
    """A parameter of a command.

    Attributes
    ----------
    name : str
        Its name in Python.
    hint : type
        Its type in Python.
    default : object
        Its default in Python; `inspect.Parameter.empty` if there is none.
    option : Option
        The rest.
    """

    name: str
    hint: Any
    default: Any
    option: Option


def documented(function: F) -> F:
    """Write the section *Parameters* of a function from its options; its hints become plain types.

    The section goes before *Raises*.
    """
    hints = get_type_hints(function, include_extras=True)
    declared = []
    for parameter in inspect.signature(function).parameters.values():
        hint, option = get_args(hints[parameter.name])
        hints[parameter.name] = hint
        declared.append(Declared(parameter.name, hint, parameter.default, option))
    lines = ["", "", "Parameters", "----------"]
    for one in declared:
        meaning = fill(_meaning(one), 96, initial_indent="    ", subsequent_indent="    ")
        lines += [f"{one.name} : {_spelled(one.hint)}", meaning]
    summary, raises, rest = inspect.cleandoc(function.__doc__ or "").partition("\n\nRaises\n")
    function.__doc__ = summary + "\n".join(lines) + raises + rest
    function.__annotations__ = hints
    vars(function)["options"] = tuple(declared)
    return function


def options_of(function: Callable[..., object]) -> tuple[Declared, ...]:
    """Return the options of a `documented` function, in the order of its parameters."""
    found: tuple[Declared, ...] = vars(function)["options"]
    return found


def paths_of(given: Paths) -> list[Path]:
    """Return file names as a list of paths."""
    names = [given] if isinstance(given, str | Path) else list(given)
    return [Path(name) for name in names]


def check_time_limit(time_limit_s: float) -> None:
    """Check a limit of the solver's time; infinity is none.

    Raises
    ------
    ModelError
        If it is no such number.
    """
    if not time_limit_s > 0:
        raise ModelError("time_limit_s", time_limit_s, "more than 0 seconds; inf for no limit")


#: Units at the end of a parameter's name, as documentation writes them.
_UNITS = {
    "Bps": "bytes/s", "bytes": "bytes", "s": "s", "W": "W", "usd": "USD", "MB": "MB", "GB": "GB",
}  # fmt: skip


def _meaning(one: Declared) -> str:
    """Return a parameter's text as Python says it: names for flags, and the unit of its name."""
    text = one.option.doc or re.sub(r" Repeat[^.]*\.", "", one.option.help)
    text = re.sub(r"--([\w-]+)", lambda flag: f"`{flag[1].replace('-', '_')}`", text)
    unit = _UNITS.get(one.name.rpartition("_")[2])
    if unit is None or f"({unit})" in text:
        return text
    return text.removesuffix(".") + f" [{unit}]."


def _spelled(hint: Any) -> str:
    """Return a type as a signature shows it, without modules' names."""
    return re.sub(r"[\w.]+\.(\w+)", r"\1", inspect.formatannotation(hint))


ProfileOption = Annotated[
    ProfileLike, Option("A shipped profile's name, or a TOML file.", type=str)
]
KernelOption = Annotated[str, Option("The kernel, such as count or page-rank.")]
DeviceOption = Annotated[str | None, Option("The drive that computes, if a profile has several.")]
SsdOption = Annotated[str | None, Option("The drive read as an SSD, if a profile has several.")]
BytesOption = Annotated[int | None, Option("Working set; by default the largest measured.", min=1)]
SsdProfileOption = Annotated[
    ProfileLike | None, Option("Take the host and its SSDs from this profile instead.", type=str)
]
KLimitOption = Annotated[
    float | None,
    Option(
        "Ingest bandwidth of the host, in SSDs that it reads at full speed.",
        doc="Ingest bandwidth of the host, in SSDs that it reads at full speed; by default that of "
        "the profile, if there is one.",
        min=1,
    ),
]
HostCoresOption = Annotated[int, Option("Host cores at work.", min=1)]
CoresOption = Annotated[int, Option("Host cores at work.", min=1, old="--cores")]
ListOfCoresOption = Annotated[
    Sequence[int], Option("Host cores at work.", metavar="N,N,...", parse=whole_numbers)
]
HostTransferOption = Annotated[float, Option("Slow-down of the host's transfer.", max=1e6)]
HostComputeOption = Annotated[float, Option("Slow-down of the host's compute.", max=1e6)]
PricesOption = Annotated[str | Path | None, Option("Your prices, before all others.")]
CatalogueOption = Annotated[
    Paths,
    Option("Your parts and prices, over the shipped catalogue. Repeat it.", type=list[Path]),
]
DriveOption = Annotated[
    Paths,
    Option(
        "A profile of a drive of your own, from csd characterize or import. Repeat it.",
        type=list[Path],
    ),
]
PriceDateOption = Annotated[
    str | None,
    Option("Prices of this year, month or day, not the newest.", metavar="YYYY[-MM[-DD]]"),
]
TimeLimitOption = Annotated[
    float,
    Option(
        "Limit of each of the solver's runs.", flag="--time-limit", metavar="SECONDS", endless=True
    ),
]
PlotOption = Annotated[
    Paths, Option("Write a figure as .svg, .png or .html. Repeat it for several.", type=list[Path])
]
