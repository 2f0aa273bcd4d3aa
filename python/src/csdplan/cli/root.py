"""The commands and their help. Options come from the functions of `csdplan.commands`.

Every fault of the input becomes one message on standard error and exit code 2; every fault of
the environment (a figure that cannot be written) becomes exit code 1. With ``--json`` standard
output holds one JSON object and nothing else, or nothing at all if the command fails.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

import csdplan
from csdplan import commands
from csdplan.cli import acts
from csdplan.cli.common import console, reported
from csdplan.cli.derive import JSON, Act, derived, tables
from csdplan.cli.tables import print_profiles
from csdplan.cli.validate import validate
from csdplan.profile import load, shipped_names
from csdplan.result import as_json

app = typer.Typer(
    name="csdplan",
    help="How many computational storage drives beat ordinary SSDs.\n\n"
    "csdplan reads a profile (measured times of a host and its drives) and finds the "
    "break-even point: the smallest number of drives that finish sooner than as many SSDs.\n\n"
    "Try: csdplan bep --profile newport --kernel count --host-cores 1,4,16",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
profile_app = typer.Typer(help="Work with profile files.", no_args_is_help=True)
app.add_typer(profile_app, name="profile")


def main() -> None:
    """Run the command line."""
    app()


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"csdplan {csdplan.__version__}")
        raise typer.Exit()


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Hold the options that stand before any command; each acts in its own callback."""


def profiles_command(json: Annotated[bool, JSON] = False) -> None:
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


@profile_app.command("check")
def profile_check_command(
    file: Annotated[str, typer.Argument(help="A TOML file, or a shipped profile's name.")],
    json: Annotated[bool, JSON] = False,
) -> None:
    """Check a profile against schema 1; every fault is reported, not only the first."""
    with reported():
        profile = load(file)
    if json:
        typer.echo(as_json("profile check", {"file": file, "profile": profile.as_dict()}))
        return
    kernels = ", ".join(profile.kernels())
    typer.echo(f"{file}: sound (schema 1): {len(profile.point)} points, kernels {kernels}")


def _add(
    name: str,
    function: Callable[..., Any],
    text: str | None = None,
    *,
    act: Act | None = None,
    forms: bool = True,
) -> None:
    """Register a command; its help is the function's summary, unless there is a text."""
    summary = (function.__doc__ or "").partition("\n\n")[0].replace("`", "")
    run = derived(function, act or tables(name, function), forms=forms)
    app.command(name, help=text or summary)(run)


# In the order in which they are listed: planning, buying, showing, checking, profiles.
_add(
    "bep",
    commands.bep,
    "Find the break-even point of a kernel.\n\n"
    "The answer is the smallest number of drives whose array is strictly faster than an array "
    "of as many SSDs, and stays so as both grow.",
    act=acts.bep,
)
_add("sweep", commands.sweep)
_add("surface", commands.surface)
_add(
    "ec",
    commands.ec,
    "Find break-even points of erasure coding over blocks, block size and computational power.\n\n"
    "Measured sizes are answered from their measured times, other sizes from a model fitted to "
    "them.",
)
_add("tco", commands.tco)
_add(
    "overload",
    commands.overload,
    "Find the break-even point of an overloaded host, against memory or measured overload.\n\n"
    "A profile that was measured under overload has factors of its own: without --points,\n"
    "--memory-gb and --sd-... they are used.",
)
_add(
    "mix",
    commands.mix,
    "Replace SSDs by drives that compute, work split so that host and drives finish together.",
)
_add(
    "plan",
    commands.plan,
    "Plan a purchase from the catalogue: what to buy, what binds, how sure it is.\n\n"
    "Try: csdplan plan --store 500TB --protect rs:8+2 --budget 400k --workload count=120GB/s\n\n"
    "If nothing can be bought, the command says which requirement is in the way and exits with 1.",
)
_add("catalogue", commands.catalogue)
_add(
    "optimize",
    commands.optimize,
    "Find the cheapest CPU, kinds and numbers of drives that meet a request.\n\n"
    "If no purchase does, the command names the requirements in the way and exits with 1.",
    act=acts.optimize,
)
_add(
    "simulate",
    commands.simulate,
    "Simulate a job whose tasks host cores and drives pull one by one.\n\n"
    "Prints throughput, utilization and energy against the number of drives that compute, and the "
    "throughput of the closed forms.",
)
_add(
    "uncertainty",
    commands.uncertainty,
    "Draw a profile's times from their spreads, and find the distribution of the break-even "
    "point.\n\n"
    "Sobol indices show the times that it depends on.",
)
_add(
    "validate",
    commands.validate,
    "Run kernels on paced drives of this machine, and compare with the plan.\n\n"
    "Starts drives in memory that imitate a profile, characterizes this machine as their host, "
    "plans throughput and break-even points, and measures both with `csd run`. Drives end and "
    "scratch files are removed whatever happens. Progress goes to standard error.\n\n"
    "Example: csdplan validate --size 32MiB --repeat 7 --plot planned-and-measured.svg",
    act=validate,
)
_add(
    "report",
    commands.report,
    "Write one self-contained HTML file: the answer in a sentence, the bill, then pictures.\n\n"
    "Try: csdplan report -o report.html --kernel count --host-cores 4,16",
    act=acts.report,
    forms=False,
)
_add(
    "ui",
    commands.ui,
    "Show a local page: profile, sliders and prices change curves, costs and purchase at once.\n\n"
    "It listens on 127.0.0.1 only and needs no network.",
    act=acts.ui,
    forms=False,
)
_add("reproduce", commands.reproduce)
_add("import", commands.import_profile, act=acts.import_profile, forms=False)
app.command("profiles")(profiles_command)
