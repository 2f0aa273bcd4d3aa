"""A purchase as a person asks for it: plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Annotated

from csdplan.commands.choose import profile_of
from csdplan.commands.kinds import AnyKinds, Finder, OneKind
from csdplan.commands.question import (
    PROFILE,
    GrowthOption,
    KwhOption,
    OnlyOption,
    PowerOption,
    ProtectOption,
    StoreOption,
    WithoutOption,
    YearsOption,
)
from csdplan.commands.tables import Tables
from csdplan.errors import ModelError
from csdplan.hardware import Catalogue, load_catalogue
from csdplan.hardware.measured import inside_of
from csdplan.options import (
    DriveOption,
    Option,
    Paths,
    PriceDateOption,
    PricesOption,
    ProfileLike,
    TimeLimitOption,
    check_time_limit,
    documented,
    paths_of,
)
from csdplan.profile import Profile, load
from csdplan.request.ask import UNIT_CPU, Ask, read_ask
from csdplan.request.doubt import doubt_of
from csdplan.request.file import read_file_of_question
from csdplan.request.offer import Asked, check_parts, has_cores, to_request
from csdplan.result import planned, priced, purchase
from csdplan.result.weighed import enters, lists, regret_text
from csdplan.solve import optimize as solver
from csdplan.solve.draws import Draws
from csdplan.solve.purchase import Request
from csdplan.solve.regret import Weighed, rivals, weigh
from csdplan.texts import overlap_name

_NO_ONE_KIND = "No one kind of drive in one kind of host does this: ask without --one-kind."


@documented
def plan(
    store: StoreOption = None,
    *,
    workload: Annotated[
        Sequence[str | Mapping[str, object]],
        Option(
            "A kernel and its input, such as count=120GB/s, or a file with name, throughput, "
            "core (bytes per second of one core) and returns. Repeat it.",
            doc="Kernels and inputs, such as ``count=120GB/s``; or ``@FILE.toml``, or a mapping, "
            "with ``name``, ``throughput``, ``core`` (bytes per second of one core), ``returns`` "
            "(share that crosses back) and ``spread``.",
            metavar="NAME=RATE|@FILE",
            type=list[str],
        ),
    ] = (),
    cold: Annotated[
        str | float | None,
        Option("Of the data, what is kept on hard drives, such as 400TB.", metavar="SIZE"),
    ] = None,
    cold_read: Annotated[
        str | float | None,
        Option("What is read of cold data, all day, such as 2GB/s.", metavar="RATE"),
    ] = None,
    usable: Annotated[
        bool,
        Option(
            "Coding, file system and spare space come on top, or do not.", flag="--usable/--raw"
        ),
    ] = True,
    protect: ProtectOption = None,
    budget: Annotated[
        str | float | None, Option("For the purchase, such as 400k.", metavar="USD")
    ] = None,
    power: PowerOption = None,
    write: Annotated[
        str | float | None, Option("Client data written at peak, such as 3GB/s.", metavar="RATE")
    ] = None,
    write_daily: Annotated[
        str | float | None,
        Option(
            "Client data written in a day, which wears drives out. Default: the peak, all day.",
            metavar="SIZE",
        ),
    ] = None,
    serve: Annotated[
        str | float | None, Option("Data that clients read, such as 10GB/s.", metavar="RATE")
    ] = None,
    network: Annotated[
        bool | None,
        Option(
            "Buy each host a card and a port of a switch for clients, or do not. "
            "Default: if clients write, read or get results.",
            flag="--network/--no-network",
        ),
    ] = None,
    filesystem: Annotated[
        str | float | None, Option("Share of the file system. Default: 2%.", metavar="SHARE")
    ] = None,
    spare: Annotated[
        str | float | None, Option("Share of flash kept free. Default: 0%.", metavar="SHARE")
    ] = None,
    compression: Annotated[
        str | float | None, Option("Ratio of the data, for drives that compress.", metavar="RATIO")
    ] = None,
    growth: GrowthOption = None,
    years: YearsOption = None,
    rack: Annotated[
        str | float | None, Option("Rack units at most, such as 20U.", metavar="HEIGHT")
    ] = None,
    kwh: KwhOption = None,
    hosts_max: Annotated[
        int | None,
        Option("Hosts at most, and boxes at most one per slot. Default: 64.", min=1, max=4096),
    ] = None,
    overlap: Annotated[
        str | None, Option("pipelined (default) or serial: how hosts work.", parse=overlap_name)
    ] = None,
    ask: Annotated[
        str | Path | None,
        Option(
            "A file with these values, TOML or JSON.",
            doc="A file with these values, TOML or JSON; options go before it.",
        ),
    ] = None,
    only: OnlyOption = (),
    without: WithoutOption = (),
    one_kind: Annotated[bool, Option("Buy drives of one kind, and hosts of one kind.")] = False,
    catalogue: Annotated[
        Paths | Catalogue,
        Option(
            "Your parts and prices, over the shipped catalogue. Repeat it.",
            doc="Your parts and prices, over the shipped catalogue; or a whole catalogue, which "
            "has its prices.",
            type=list[Path],
        ),
    ] = (),
    drive: DriveOption = (),
    profile: Annotated[
        ProfileLike | None,
        Option("Profile whose host points give the times of one core. Default: newport.", type=str),
    ] = None,
    cores: Annotated[
        Sequence[str],
        Option(
            "A profile that csd characterize measured on this CPU or box. Repeat it.",
            doc="Profiles that ``csd characterize`` measured on CPUs or boxes, as "
            "``PART=PROFILE``: their host points go before all other times.",
            metavar="PART=PROFILE",
            type=list[str],
        ),
    ] = (),
    unmeasured: Annotated[
        bool, Option("Offer also parts whose cores nobody has measured, at an assumed speed.")
    ] = False,
    prices: PricesOption = None,
    price_date: PriceDateOption = None,
    draws: Annotated[
        int,
        Option(
            "Draws of prices, speeds and assumed numbers; 0: take them as they are.",
            min=0,
            max=100_000,
        ),
    ] = 400,
    time_limit_s: TimeLimitOption = 20.0,
) -> Tables:
    """Plan a purchase from the catalogue: what to buy, what binds, how sure it is.

    Quantities are text with units, such as ``500TB`` or ``12 kW``, or numbers in base units.
    Returns the sheets ``bill``, ``work``, ``topology``, ``requirements``, ``alternatives``,
    ``certainty``, ``lists``, ``enters`` and ``prices``, or ``shortfalls`` if nothing can be bought;
    fact ``answer`` is one paragraph.
    """
    given = {
        "store": store,
        "cold": cold,
        "cold_read": cold_read,
        "workload": list(workload) or None,
        "protect": protect,
        "budget": budget,
        "power": power,
        "write": write,
        "write_daily": write_daily,
        "serve": serve,
        "network": network,
        "filesystem": filesystem,
        "spare": spare,
        "compression": compression,
        "growth": growth,
        "years": years,
        "rack": rack,
        "kwh": kwh,
        "hosts_max": hosts_max,
        "overlap": overlap,
        "usable": None if usable else False,
    }
    check_time_limit(time_limit_s)
    values = {} if ask is None else read_file_of_question(Path(ask))
    values |= {name: value for name, value in given.items() if value is not None}
    folder = None if ask is None else Path(ask).parent
    named = values.get("profile", PROFILE)
    source = _beside(named, folder) if profile is None else profile
    question = read_ask(values, folder)
    chosen = (
        catalogue
        if isinstance(catalogue, Catalogue)
        else load_catalogue(prices, paths_of(catalogue), drives=paths_of(drive), latest=price_date)
    )
    check_parts(chosen, only, without)
    find = OneKind(time_limit_s) if one_kind else AnyKinds(time_limit_s)
    choice = _Choice(tuple(only), tuple(without), measured_on(cores, chosen), unmeasured)
    question_asked = _Question(question, chosen, source, choice, find)
    asked = question_asked.asked()
    titles = {name: part.title for name, part in chosen.parts.items()}
    warnings = tuple(f"left out: {text}" for text in asked.left_out)
    if asked.reference is None and any(work.core_Bps is None for work in question.works):
        warnings += (
            f"profile {source}: its host is no CPU of the catalogue; its cores count as those of "
            f"{titles[UNIT_CPU]}",
        )
    best = find(asked.request)
    if best is None:
        lacking = solver.shortfalls(asked.request, time_limit_s=time_limit_s)
        text = planned.impossible(lacking) if lacking else _NO_ONE_KIND
        facts = {"verdict": "infeasible", "answer": text}
        return Tables({"shortfalls": purchase.shortfall_sheet(lacking)}, warnings, facts=facts)
    others = question_asked.others(asked.request, best)
    weighed = question_asked.weighed(asked, [best, *(one for _, one in others if one)], draws)
    in_chassis = [cpu.name for cpu in asked.request.cpus if not cpu.disks]
    hosts = [asked.chassis] if any(name in best.hosts for name in in_chassis) else []
    paid = {name: chosen.prices[name] for name in (*best.bought, *hosts)}
    answer = planned.unmeasured(best, asked.unmeasured, titles)
    answer += planned.paragraph(asked.request, best, weighed, titles)
    answer += f" {regret_text(weighed, draws, titles)}"
    answer += priced.prices_text(paid, date.today())
    warnings += priced.expired(paid, date.today())
    chassis = dict.fromkeys(in_chassis, chosen.prices[asked.chassis].usd)
    sheets = {
        "bill": purchase.bill(asked.request, best),
        "work": purchase.work(best),
        "topology": purchase.topology(asked.request, best),
        "requirements": purchase.requirements(best),
        "alternatives": planned.alternatives(best, others, titles),
        "certainty": planned.certainty(best, weighed, asked.assumed, chosen.prices),
        "lists": lists(weighed, draws),
        "enters": enters(best, {name: one.usd for name, one in chosen.prices.items()}, chassis),
        "prices": priced.prices(
            "Prices of this bill", {name: [one] for name, one in paid.items()}, date.today()
        ),
    }
    for name, needed in (
        ("work", question.works or question.serve_Bps or question.cold_read_Bps),
        ("lists", weighed),
        ("enters", best.enters_usd or best.ties),
    ):
        if not needed:
            del sheets[name]
    return Tables(sheets, warnings, facts={"verdict": best.verdict.value, "answer": answer})


def _beside(profile: object, folder: Path | None) -> str | Path:
    """Return the profile that a file of a question names: a shipped one, or a file next to it."""
    name = str(profile)
    is_file = "/" in name or name.endswith(".toml")
    return folder / name if is_file and folder is not None else name


@dataclass(frozen=True)
class _Choice:
    """Parts to choose from, and what was measured on them."""

    only: tuple[str, ...]
    without: tuple[str, ...]
    measured: Mapping[str, Profile]
    unmeasured: bool


def measured_on(texts: Sequence[str], parts: Catalogue) -> dict[str, Profile]:
    """Return the profiles of texts such as ``epyc-9354=mine.toml``, by part.

    Raises
    ------
    ModelError
        If a text is none, or names no part with cores.
    """
    found = {}
    for text in texts:
        name, equals, file = text.partition("=")
        if not equals or name not in parts.parts or not has_cores(parts.parts[name]):
            raise ModelError("cores", text, "PART=PROFILE, the part a CPU or box of the catalogue")
        found[name] = load(file)
    return found


class _Question:
    """A question, and what it is answered from."""

    def __init__(
        self,
        ask: Ask,
        parts: Catalogue,
        profile: ProfileLike,
        choice: _Choice,
        find: Finder,
    ) -> None:
        self._ask, self._parts, self._choice = ask, parts, choice
        self._find = find
        self._profile = profile_of(profile)[1]
        self._inside = inside_of(parts.parts.values())

    def asked(self) -> Asked:
        """Return the request."""
        choice = self._choice
        return to_request(
            self._ask,
            self._parts,
            self._profile,
            self._inside,
            only=choice.only,
            without=choice.without,
            measured=choice.measured,
            unmeasured=choice.unmeasured,
        )

    def weighed(self, asked: Asked, plans: list[solver.Plan], draws: int) -> tuple[Weighed, ...]:
        """Return these lists, and others that may win, over so many draws; none of no draws."""
        if not draws:
            return ()
        doubt = doubt_of(self._ask, asked, self._parts, self._inside, date.today())
        drawn = Draws(doubt, draws)
        found = rivals(asked.request, plans, drawn, lambda one: self._find(one, explain=False))
        return weigh(asked.request, found, drawn)

    def others(self, request: Request, best: solver.Plan) -> list[planned.Alternative]:
        """Return the cheapest purchases without the drive, and without the CPU, bought most."""
        found: list[planned.Alternative] = []
        for bought in (best.drives, best.hosts):
            if not bought:
                continue
            name = max(bought, key=lambda one: bought[one])
            cpus = tuple(cpu for cpu in request.cpus if cpu.name != name)
            drives = tuple(kind for kind in request.drives if kind.name != name)
            left = cpus and drives
            other = replace(request, cpus=cpus, drives=drives) if left else None
            found.append((name, None if other is None else self._find(other, explain=False)))
        return found
