"""Functions of the command line from those of `csdplan.commands`, by the options they declare."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from inspect import Parameter, Signature
from math import isfinite
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, get_args

import typer

from csdplan.cli.common import check_forms, reported, show
from csdplan.commands import Tables
from csdplan.errors import CsdplanError, ModelError
from csdplan.options import Declared, options_of

#: Forms of output.
JSON = typer.Option("--json", help="Print one JSON object {schema, command, result, warnings}.")
CSV = typer.Option("--csv", help="Print rows of comma-separated values.")
#: Exit code of a question that nothing satisfies: the run failed, the use was right.
_INFEASIBLE = 1
#: Exit code of an answer that lacks a part, or that a measurement did not confirm.
_PARTIAL = 4

#: Calls a function with the values of a command's options, and prints.
Act = Callable[..., None]


def derived(function: Callable[..., object], act: Act, *, forms: bool = True) -> Act:
    """Return `act` with the options of a function of `csdplan.commands`, for typer.

    Parameters
    ----------
    function : callable
        A function with options (`csdplan.options.documented`).
    act : callable
        Called with the values by name; what was not given on the command line is left out.
    forms : bool
        True to add ``--json`` and ``--csv``, which `act` takes as ``json`` and ``csv``.
    """
    declared = [one for one in options_of(function) if not one.option.python_only]
    parameters = [_parameter(one) for one in declared]
    old = {f"old_{one.name}": one for one in declared if one.option.old}
    for name, one in old.items():
        hidden = typer.Option(one.option.old, min=one.option.min, hidden=True)
        parameters.append(_keyword(name, one.hint | None, hidden, None))
    if forms:
        parameters += [_keyword("json", bool, JSON, False), _keyword("csv", bool, CSV, False)]

    def run(**given: Any) -> None:
        form = {name: given.pop(name) for name in ("json", "csv") if forms}
        if forms:
            check_forms(**form)
        for name, one in old.items():
            value = given.pop(name)
            given[one.name] = given[one.name] if value is None else value
        with reported():
            values = {one.name: _value(one, given[one.name]) for one in declared}
            values = {name: value for name, value in values.items() if value is not None}
        act(**values, **form)

    vars(run)["__signature__"] = Signature(parameters)
    run.__annotations__ = {one.name: one.annotation for one in parameters}
    return run


def tables(name: str, function: Callable[..., Tables]) -> Act:
    """Return a function that calls another and prints its answer and its tables."""

    def act(*, json: bool, csv: bool, **values: Any) -> None:
        with reported():
            found = function(**values)
        if "answer" in found.facts and not (json or csv):
            typer.echo(f"{found.facts['answer']}\n")
        show(name, found, json=json, csv=csv)
        if found.facts.get("verdict") == "infeasible":
            raise typer.Exit(_INFEASIBLE)
        if found.facts.get("verdict") in {"partial", "missed"}:
            raise typer.Exit(_PARTIAL)

    return act


def _parameter(one: Declared) -> Parameter:
    option, kind = one.option, _kind(one)
    declare = typer.Argument if option.argument else typer.Option
    info = declare(
        *([] if option.argument else flags(one)),
        help=option.help,
        min=option.min,
        max=option.max,
        metavar=option.metavar,
    )
    default = Parameter.empty if option.required else _default(one)
    return _keyword(one.name, kind if default is not None else kind | None, info, default)


def flags(one: Declared) -> list[str]:
    """Return the flags of an option on the command line."""
    return one.option.flag.split() or [f"--{one.name.lower().replace('_', '-')}"]


def _keyword(name: str, kind: Any, info: object, default: object) -> Parameter:
    annotation = Annotated[kind, info]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _kind(one: Declared) -> Any:
    """Return the type of an option on the command line."""
    if one.option.type is not None:
        return one.option.type
    if one.option.parse is not None:
        return str
    kinds = [kind for kind in get_args(one.hint) or [one.hint] if kind is not NoneType]
    named = [kind for kind in kinds if issubclass(kind, Enum | Path)]
    return (named or kinds)[0]


def _default(one: Declared) -> object:
    """Return an option's default on the command line; None for empty lists, which are left out."""
    if one.option.default is not None:
        return one.option.default
    if isinstance(one.default, tuple):
        return ",".join(f"{value:g}" for value in one.default) or None
    return one.default


def _value(one: Declared, given: Any) -> Any:
    """Return the value of an option for Python; None if there is none."""
    if given is None or given == []:
        return None
    if isinstance(given, float) and not isfinite(given) and not (given > 0 and one.option.endless):
        raise ModelError(one.name, given, "a finite number")
    if one.option.parse is None:
        return given
    try:
        return one.option.parse(given)
    except CsdplanError:
        raise
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=f"'{flags(one)[0]}'") from error
