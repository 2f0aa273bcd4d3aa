"""Commands that do more than call a function and print its tables."""

from __future__ import annotations

from typing import Any

import typer

from csdplan import commands
from csdplan.cli.common import console, reported, show, warn
from csdplan.cli.derive import tables
from csdplan.cli.tables import print_bep, print_profiles
from csdplan.profile import load, shipped_names
from csdplan.profile.write import as_toml
from csdplan.result import as_json


def bep(*, json: bool, csv: bool, **values: Any) -> None:
    """Print break-even points: tables of their own, and the whole result as JSON."""
    with reported():
        found = commands.bep(**values)
    if json:
        typer.echo(as_json("bep", found.result.as_dict(), found.warnings))
    elif csv:
        show("bep", found, json=False, csv=True)
    else:
        print_bep(console(), found.result)
        warn(found)


def optimize(**values: Any) -> None:
    """Find a purchase; say by the names of flags that a figure needs a front."""
    if "plot" in values and not values["front"]:
        raise typer.BadParameter("--plot draws the front: give --front STEPS as well")
    tables("optimize", commands.optimize)(**values)


def report(**values: Any) -> None:
    """Write a report, and say where."""
    with reported():
        commands.report(**values)
    typer.echo(f"wrote {values['out']}", err=True)


def ui(**values: Any) -> None:
    """Serve the page."""
    with reported():
        commands.ui(**values)


def import_profile(**values: Any) -> None:
    """Write a profile to a file, or to standard output."""
    out = values.pop("out")
    printed = str(out) == "-"
    with reported():
        profile = commands.import_profile(out=None if printed else out, **values)
    if printed:
        typer.echo(as_toml(profile), nl=False)
    else:
        typer.echo(f"{out}: {len(profile.point)} points")


def validate(**values: Any) -> None:
    """Measure, with progress, and print."""
    # Its signals and clock are for this command alone.
    from csdplan.cli.validate import validate as measured  # noqa: PLC0415

    measured(**values)


def profiles(*, json: bool) -> None:
    """List the profiles that come with csdplan."""
    with reported():
        found = [(name, load(name)) for name in shipped_names()]
    if json:
        listed = [
            {
                "name": name,
                "machine": profile.meta.machine,
                "source": profile.meta.source,
                "devices": sorted(profile.device),
                "kernels": list(profile.kernels()),
            }
            for name, profile in found
        ]
        typer.echo(as_json("profiles", {"profiles": listed}))
        return
    print_profiles(console(), found)


def profile_check(file: str, *, json: bool) -> None:
    """Check a profile against schema 1; every fault is reported, not only the first."""
    with reported():
        profile = load(file)
    if json:
        typer.echo(as_json("profile check", {"file": file, "profile": profile.as_dict()}))
        return
    kernels = ", ".join(profile.kernels())
    typer.echo(f"{file}: sound (schema 1): {len(profile.point)} points, kernels {kernels}")
