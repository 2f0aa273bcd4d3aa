"""A purchase as a person asks for it, and the catalogue that it chooses from: plan, catalogue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from csdplan.commands.choose import profile_of
from csdplan.commands.tables import Tables
from csdplan.errors import ModelError
from csdplan.hardware import KINDS, Catalogue, load_catalogue
from csdplan.options import Option, PricesOption, ProfileLike, TimeLimitOption, documented
from csdplan.profile import load
from csdplan.request.ask import Ask, read_ask, read_file_of_question
from csdplan.request.offer import PROFILES, Asked, to_request
from csdplan.result import planned, purchase
from csdplan.result.sheet import Value, sheet_of
from csdplan.solve import optimize as solver
from csdplan.texts import overlap_name

#: A purchase this many standard deviations faster or slower bounds 90 % of cases.
_NINETY = 1.645
_PROFILE = "newport"


@documented
def catalogue(
    kind: Annotated[
        Sequence[str],
        Option("ssd, csd, network-drive, cpu, server, nic or switch. Repeat it.", type=list[str]),
    ] = (),
    *,
    prices: PricesOption = None,
) -> Tables:
    """List the hardware that `plan` chooses from, each number with its source.

    Returns the sheets ``catalogue``, a row for each number, and ``prices``.
    """
    if unknown := sorted(set(kind) - set(KINDS)):
        raise ModelError("kind", ", ".join(unknown), f"one of {', '.join(KINDS)}")
    found = load_catalogue(prices)
    parts = found.of_kind(*(kind or KINDS))
    rows: list[tuple[Value, ...]] = []
    for part in parts:
        if not part.numbers():
            rows.append((part.name, None, None, None, part.note, None))
        for name, number in part.numbers().items():
            source = found.sources[number.source]
            rows.append((part.name, name, number.value, number.prov, str(source), source.date))
    listed = [(part.name, *found.prices[part.name]) for part in parts if part.name in found.prices]
    columns = ("part", "number", "value", "prov", "source", "date")
    return Tables(
        {
            "catalogue": sheet_of("Catalogue", columns, rows, _absent(found)),
            "prices": sheet_of("Prices", ("part", "price_usd", "date", "prov"), listed),
        }
    )


@documented
def plan(
    store: Annotated[
        str | float | None, Option("Data to keep, such as 500TB.", metavar="SIZE")
    ] = None,
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
    usable: Annotated[
        bool,
        Option(
            "Coding, file system and spare space come on top, or do not.", flag="--usable/--raw"
        ),
    ] = True,
    protect: Annotated[str | None, Option("none, replica:3 or rs:8+2.", metavar="CODE")] = None,
    budget: Annotated[
        str | float | None, Option("For the purchase, such as 400k.", metavar="USD")
    ] = None,
    power: Annotated[
        str | float | None, Option("With all at work, such as 12kW.", metavar="POWER")
    ] = None,
    write: Annotated[
        str | float | None,
        Option("Client data written, within the drives' endurance.", metavar="RATE"),
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
    growth: Annotated[
        str | float | None, Option("Growth a year, such as 20%.", metavar="SHARE")
    ] = None,
    years: Annotated[
        str | float | None, Option("Years in service. Default: 5.", metavar="YEARS")
    ] = None,
    rack: Annotated[
        str | float | None, Option("Rack units at most, such as 20U.", metavar="HEIGHT")
    ] = None,
    kwh: Annotated[
        str | float | None, Option("Price of a kWh; then energy is a cost.", metavar="USD")
    ] = None,
    hosts_max: Annotated[int | None, Option("Hosts at most. Default: 64.", min=1, max=4096)] = None,
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
    only: Annotated[
        Sequence[str], Option("Consider this part of its kind alone. Repeat it.", type=list[str])
    ] = (),
    without: Annotated[Sequence[str], Option("Leave out this part.", type=list[str])] = (),
    profile: Annotated[
        ProfileLike | None,
        Option("Profile whose host points give the times of one core. Default: newport.", type=str),
    ] = None,
    prices: PricesOption = None,
    time_limit_s: TimeLimitOption = 20.0,
) -> Tables:
    """Plan a purchase from the catalogue: what to buy, what binds, how sure it is.

    Quantities are text with units, such as ``500TB`` or ``12 kW``, or numbers in base units.
    Returns the sheets ``bill``, ``work``, ``topology``, ``requirements``, ``alternatives`` and
    ``certainty``, or ``shortfalls`` if nothing can be bought; fact ``answer`` says it in one
    paragraph.
    """
    given = {
        "store": store,
        "workload": list(workload) or None,
        "protect": protect,
        "budget": budget,
        "power": power,
        "write": write,
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
    values = {} if ask is None else read_file_of_question(Path(ask))
    values |= {name: value for name, value in given.items() if value is not None}
    folder = None if ask is None else Path(ask).parent
    named = values.get("profile", _PROFILE)
    source = _beside(named, folder) if profile is None else profile
    question = read_ask(values, folder)
    chosen = load_catalogue(prices)
    question_asked = _Question(question, chosen, source, tuple(only), tuple(without))
    asked = question_asked.asked()
    titles = {name: part.title for name, part in chosen.parts.items()}
    warnings = tuple(f"left out: {text}" for text in asked.left_out)
    best = solver.optimize(asked.request, time_limit_s=time_limit_s)
    if best is None:
        lacking = solver.shortfalls(asked.request, time_limit_s=time_limit_s)
        facts = {"verdict": "infeasible", "answer": planned.impossible(lacking)}
        return Tables({"shortfalls": purchase.shortfall_sheet(lacking)}, warnings, facts=facts)
    spread = question_asked.spread(time_limit_s) if question.works else (None, None)
    answer = planned.paragraph(asked.request, best, spread, titles)
    sheets = {
        "bill": purchase.bill(asked.request, best),
        "work": purchase.work(best),
        "topology": purchase.topology(asked.request, best),
        "requirements": purchase.requirements(best),
        "alternatives": planned.alternatives(
            best, question_asked.others(best, time_limit_s), titles
        ),
        "certainty": planned.certainty(best, spread, asked.assumed, chosen.prices),
    }
    if not question.works:
        del sheets["work"]
    return Tables(sheets, warnings, facts={"verdict": best.verdict.value, "answer": answer})


def _beside(profile: object, folder: Path | None) -> str | Path:
    """Return the profile that a file of a question names: a shipped one, or a file next to it."""
    name = str(profile)
    is_file = "/" in name or name.endswith(".toml")
    return folder / name if is_file and folder is not None else name


class _Question:
    """A question that can be asked again with a change."""

    def __init__(
        self,
        ask: Ask,
        parts: Catalogue,
        profile: ProfileLike,
        only: tuple[str, ...],
        without: tuple[str, ...],
    ) -> None:
        self._ask, self._parts, self._only, self._without = ask, parts, only, without
        self._profile = profile_of(profile)[1]
        self._inside = {part: (load(name), device) for part, (name, device) in PROFILES.items()}

    def asked(self, *, without: str | None = None, slower: float = 0.0) -> Asked:
        """Return the request, without a further part or with slower workloads."""
        more = self._without if without is None else (*self._without, without)
        only = tuple(name for name in self._only if name != without)
        return to_request(
            self._ask,
            self._parts,
            self._profile,
            self._inside,
            only=only,
            without=more,
            slower=slower,
        )

    def spread(self, time_limit_s: float) -> tuple[solver.Plan | None, solver.Plan | None]:
        """Return the purchases at both ends of 90 % of cases."""
        low, high = (
            solver.optimize(
                self.asked(slower=sign * _NINETY).request, time_limit_s=time_limit_s, explain=False
            )
            for sign in (-1, 1)
        )
        return low, high

    def others(self, best: solver.Plan, time_limit_s: float) -> list[planned.Alternative]:
        """Return the cheapest purchases without the drive, and without the CPU, bought most."""
        found: list[planned.Alternative] = []
        for bought in (best.drives, best.hosts):
            if not bought:
                continue
            name = max(bought, key=lambda one: bought[one])
            try:
                request = self.asked(without=name).request
            except ModelError:
                found.append((name, None))
                continue
            plan = solver.optimize(request, time_limit_s=time_limit_s, explain=False)
            found.append((name, plan))
        return found


def _absent(found: Catalogue) -> str:
    unpriced = [
        part.name
        for part in found.of_kind("ssd", "csd", "network-drive", "cpu")
        if part.name not in found.prices
    ]
    return f"absent numbers are unknown; without a price: {', '.join(unpriced) or 'none'}"
