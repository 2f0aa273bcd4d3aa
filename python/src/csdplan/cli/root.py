"""The commands and their help. Options come from the functions of `csdplan.commands`.

Every fault of the input becomes one message on standard error and exit code 2; every fault of
the environment (a figure that cannot be written) becomes exit code 1. With ``--json`` standard
output holds one JSON object and nothing else, or nothing at all if the command fails.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import csdplan

#: Whether a command prints JSON, for those that are not derived.
_Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object {schema, command, result, warnings}.")
]


#: Exceptions of click, of which typer may have a copy of its own.
_CLICK: Any = sys.modules[typer.BadParameter.__module__]


@contextmanager
def _in_one_line() -> Iterator[None]:
    """Say in one line what is wrong with a command; without arguments its help is printed."""
    try:
        yield
    except getattr(_CLICK, "NoArgsIsHelpError", ()):
        raise
    except _CLICK.UsageError as error:
        path = "csdplan" if error.ctx is None else error.ctx.command_path
        typer.echo(f"csdplan: {error.format_message()} (see {path} --help)", err=True)
        raise typer.Exit(error.exit_code) from error


class _Commands(TyperGroup):
    """Commands of which each is imported when it is called; a list of them needs none."""

    def make_context(self, *args: Any, **extra: Any) -> Any:
        """Parse what stands before the command."""
        with _in_one_line():
            return super().make_context(*args, **extra)

    def invoke(self, ctx: Any) -> Any:
        """Parse and run the command."""
        with _in_one_line():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the name, the command and its arguments."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command if name not in _TEXTS else loaded(name), rest


app = typer.Typer(
    name="csdplan",
    cls=_Commands,
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


@profile_app.command("check")
def _profile_check(
    file: Annotated[str, typer.Argument(help="A TOML file, or a shipped profile's name.")],
    json: _Json = False,
) -> None:
    """Check a profile against schema 1; every fault is reported, not only the first."""
    acts = import_module("csdplan.cli.acts")
    acts.profile_check(file, json=json)


def loaded(name: str) -> TyperCommand:
    """Import a command of `csdplan.commands`, and return it with its options."""
    acts = import_module("csdplan.cli.acts")
    derive = import_module("csdplan.cli.derive")
    function = getattr(import_module("csdplan.commands"), _NAMES.get(name, name))
    act = getattr(acts, _NAMES.get(name, name), None) or derive.tables(name, function)
    alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    run = derive.derived(function, act, forms=name not in _WITHOUT_FORMS)
    alone.command(name, help=_TEXTS[name])(run)
    command = typer.main.get_command(alone)
    assert isinstance(command, TyperCommand)
    return command


#: Commands whose name is a keyword of Python, and those that print no tables.
_NAMES = {"import": "import_profile"}
_WITHOUT_FORMS = ("report", "ui", "import")
#: Every command's help, in the order in which they are listed: planning, buying, showing, checking,
#: profiles.
_TEXTS = {
    "bep": "Find the break-even point of a kernel.\n\n"
    "The answer is the smallest number of drives whose array is strictly faster than an array "
    "of as many SSDs, and stays so as both grow.",
    "sweep": "Vary one quantity, and find the break-even point for each of its values.",
    "surface": "Vary a drive's bandwidth and compute together, with lines of equal break-even "
    "point.",
    "ec": "Find break-even points of erasure coding over blocks, block size and computational "
    "power.\n\n"
    "Measured sizes are answered from their measured times, other sizes from a model fitted to "
    "them.",
    "tco": "Compare cost of ownership: as configured, at equal throughput, and as prices change.",
    "overload": "Find the break-even point of an overloaded host, against memory or measured "
    "overload.\n\n"
    "A profile that was measured under overload has factors of its own: without --points,\n"
    "--memory-gb and --sd-... they are used.",
    "mix": "Replace SSDs by drives that compute, work split so that host and drives finish "
    "together.",
    "plan": "Plan a purchase from the catalogue: what to buy, what binds, how sure it is.\n\n"
    "Try: csdplan plan --store 500TB --protect rs:8+2 --budget 400k --workload count=120GB/s\n\n"
    "If nothing can be bought, the command says which requirement is in the way and exits with 1.",
    "upgrade": "Plan an upgrade: which hosts and drives to keep and to sell, and what to buy.\n\n"
    "Sizes, rates and money take units (500TB, 60GB/s, 400k), shares %. If nothing can be bought, "
    "the command says which requirement is in the way and exits with 1.\n\n"
    "Try: csdplan upgrade --have epyc-7763=12 --have samsung-pm9a3-7.68tb=96 --store 1PB "
    "--protect rs:8+2 --workload count=120GB/s",
    "day": "Plan a purchase for the windows of a day: peaks that are not all at once.\n\n"
    "Times are hours of the day (8:30-10, 22-6), sizes and rates take units. Drives may be written "
    "faster in a window than their endurance permits all day.\n\n"
    "Try: csdplan day --window 8-10,write=30GB/s --window 22-6,count=40GB/s --store 2PB "
    "--protect rs:8+2",
    "steps": "Plan growth bought in steps, and compare with buying all of it now.\n\n"
    "Times are years, shares %, sizes and rates take units.\n\n"
    "Try: csdplan steps --store 500TB --growth 30% --protect rs:8+2 --decay 15%",
    "catalogue": "List the hardware that plan chooses from, each number with its source.",
    "durability": "Find how durable an array is under rs:N+K, and the code that it needs.\n\n"
    "Times to data loss, rebuilds and reads meanwhile, spares, and the cost of outages, from the "
    "bandwidths of the array and from failures of drives, hosts and racks. Sizes and rates take "
    "units (15.36TB, 100Gb/s), times s, min, h or d, shares %. If no code reaches the goals, the "
    "command exits with 1.\n\n"
    "Try: csdplan durability 24 --hosts 12 --part kioxia-cd6-r-15.36tb --nines 11\n\n"
    "Try: csdplan durability 24 --hosts 12 --part kioxia-cd6-r-15.36tb --protect rs:8+2",
    "network": "Find how many drives a network card carries, the latency under load, and switches."
    "\n\n"
    "NVMe/TCP over Ethernet: bits that headers take, cores that handle it as measured, reads that "
    "queue at cores, link and drives. Sizes take units (4KiB, 1MiB), times are microseconds, "
    "--load is reads a second of one host.\n\n"
    "Try: csdplan network --nic connectx-6-dx --part samsung-pm9a3-7.68tb --block 4KiB --block 1MiB"
    "\n\n"
    "Try: csdplan network --hosts 48 --oversubscription 3 --load 500000",
    "energy": "Find the energy of a job, and of a TB, on what a plan buys.\n\n"
    "Energies are joules, sizes and rates take units. The power is that of the catalogue (TDP, "
    "data sheets, assumptions), not measured.\n\n"
    "Try: csdplan energy --job 10TB --workload count=20GB/s --compare samsung-smartssd-3.84tb",
    "cloud": "Compare what a plan buys with cloud instances that do the same.\n\n"
    "Prices are USD an hour and a GB of traffic out, with date and source; sizes and rates take "
    "units.\n\n"
    "Try: csdplan cloud --store 500TB --protect rs:8+2 --workload count=20GB/s --egress 50TB",
    "duties": "Find how requests of hosts and background tasks share the cores of a drive.\n\n"
    "Times are microseconds, the rate is requests a second; each gives rise to one task.\n\n"
    "Try: csdplan duties --cores 6 --request-us 20 --task-us 100 --rate 40000",
    "optimize": "Find the cheapest CPU, kinds and numbers of drives that meet a request.\n\n"
    "If no purchase does, the command names the requirements in the way and exits with 1.",
    "simulate": "Simulate a job whose tasks host cores and drives pull one by one.\n\n"
    "Prints throughput, utilization and energy against the number of drives that compute, and the "
    "throughput of the closed forms.",
    "uncertainty": "Draw a profile's times from their spreads, and find the distribution of the "
    "break-even point.\n\n"
    "Sobol indices show the times that it depends on.",
    "validate": "Run kernels on paced drives of this machine, and compare with the plan.\n\n"
    "Starts drives in memory that imitate a profile, characterizes this machine as their host, "
    "plans throughput and break-even points, and measures both with `csd run`. Drives end and "
    "scratch files are removed whatever happens. Progress goes to standard error.\n\n"
    "Example: csdplan validate --size 32MiB --repeat 7 --plot planned-and-measured.svg",
    "report": "Write one self-contained HTML file: the answer in a sentence, the bill, then "
    "pictures.\n\n"
    "Try: csdplan report -o report.html --kernel count --host-cores 4,16",
    "ui": "Show a local page: profile, sliders and prices change curves, costs and purchase at "
    "once.\n\n"
    "It listens on 127.0.0.1 only and needs no network.",
    "reproduce": "Check every published claim that software can check, from profiles and "
    "equations.",
    "import": "Make a profile from fio's JSON or a data sheet.",
}


def names() -> tuple[str, ...]:
    """Return the names of the commands of `csdplan.commands`, as they are listed."""
    return tuple(_TEXTS)


def _late() -> None:
    """Stand for a command until it is called."""


for _name, _text in _TEXTS.items():
    app.command(_name, help=_text)(_late)


@app.command("profiles")
def _profiles(json: _Json = False) -> None:
    """List the profiles that come with csdplan."""
    import_module("csdplan.cli.acts").profiles(json=json)
