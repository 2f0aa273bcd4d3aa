"""Commands and options: parse, call, print.

Every fault of the input becomes one message on standard error and exit code 2; every fault of
the environment (a figure that cannot be written) becomes exit code 1. With ``--json`` standard
output holds one JSON object and nothing else, or nothing at all if the command fails.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import csdplan
from csdplan.cli import plan, sources
from csdplan.cli.ask import catalogue_command, plan_command
from csdplan.cli.common import check_forms, console, reported, show, warn
from csdplan.cli.mix import mix_command
from csdplan.cli.optimize import optimize_command
from csdplan.cli.options import (
    BytesOption,
    CsvOption,
    DeviceOption,
    JsonOption,
    KernelOption,
    KLimitOption,
    SsdOption,
    SsdProfileOption,
    whole_numbers,
)
from csdplan.cli.overload import overload_command
from csdplan.cli.report import report_command
from csdplan.cli.simulate import simulate_command
from csdplan.cli.tables import print_bep, print_profiles
from csdplan.cli.ui import ui_command
from csdplan.cli.uncertainty import uncertainty_command
from csdplan.cli.validate import validate_command
from csdplan.commands import bep
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


@app.command(
    "bep",
    help="Find the break-even point of a kernel.\n\n"
    "The answer is the smallest number of drives whose array is strictly faster than an array "
    "of as many SSDs, and stays so as both grow.",
)
def bep_command(
    profile: Annotated[
        list[str],
        typer.Option(help="A shipped profile's name, or a TOML file. Repeat it to compare."),
    ],
    kernel: KernelOption,
    host_cores: Annotated[
        str, typer.Option(metavar="N,N,...", help="Host cores at work on the SSD side.")
    ] = "1",
    k_limit: KLimitOption = None,
    sd_tx: Annotated[
        float, typer.Option(help="Slow-down of transfer on an overloaded host, at least 1.")
    ] = 1.0,
    sd_comp: Annotated[
        float, typer.Option(help="Slow-down of compute on an overloaded host, at least 1.")
    ] = 1.0,
    host_part: Annotated[
        float,
        typer.Option(metavar="SECONDS", help="Time that the host adds to a run on drives."),
    ] = 0.0,
    device: DeviceOption = None,
    ssd: SsdOption = None,
    bytes: BytesOption = None,
    ssd_profile: SsdProfileOption = None,
    store: Annotated[
        bool, typer.Option("--store", help="Count the time to write results back.")
    ] = False,
    overlap: Annotated[
        str, typer.Option(help="serial (the paper), pipelined, or measured: as the points were.")
    ] = "serial",
    plot: Annotated[
        list[Path] | None,
        typer.Option(
            help="Write the throughput curves as .svg, .png or .html. Repeat it for several."
        ),
    ] = None,
    json: JsonOption = False,
    csv: CsvOption = False,
) -> None:
    """Run ``csdplan bep``."""
    cores = whole_numbers(host_cores)
    with reported():
        found = bep(
            profile,
            kernel,
            cores,
            k_limit=k_limit,
            sd_tx=sd_tx,
            sd_comp=sd_comp,
            host_part_s=host_part,
            device=device,
            ssd=ssd,
            bytes=bytes,
            ssd_profile=ssd_profile,
            store=store,
            overlap=overlap,
            plot=plot or (),
        )
    result = found.result
    check_forms(json=json, csv=csv)
    if json:
        typer.echo(as_json("bep", result.as_dict(), found.warnings))
    elif csv:
        show("bep", found, json=False, csv=True)
    else:
        print_bep(console(), result)
        warn(found)


def profiles_command(json: JsonOption = False) -> None:
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
    json: JsonOption = False,
) -> None:
    """Check a profile against schema 1; every fault is reported, not only the first."""
    with reported():
        profile = load(file)
    if json:
        typer.echo(as_json("profile check", {"file": file, "profile": profile.as_dict()}))
        return
    kernels = ", ".join(profile.kernels())
    typer.echo(f"{file}: sound (schema 1): {len(profile.point)} points, kernels {kernels}")


# In the order in which they are listed: planning, buying, showing, checking, profiles.
plan.add_to(app)
app.command("overload")(overload_command)
app.command("mix")(mix_command)
app.command("plan")(plan_command)
app.command("catalogue")(catalogue_command)
app.command("optimize")(optimize_command)
app.command("simulate")(simulate_command)
app.command("uncertainty")(uncertainty_command)
app.command("validate")(validate_command)
app.command("report")(report_command)
app.command("ui")(ui_command)
sources.add_to(app)
app.command("profiles")(profiles_command)
