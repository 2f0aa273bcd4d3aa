"""Durability of an array, as sheets and as a paragraph."""

from __future__ import annotations

from collections.abc import Sequence

from csdplan.model.cost import HOURS_PER_YEAR
from csdplan.model.failure import loss_probability
from csdplan.result.sheet import Sheet, Value, sheet_of
from csdplan.solve.durability import Durability, Goals
from csdplan.units import bytes_text

#: From here on a mean time says only that the model's blind spots come first.
_MOST_YEARS = 1e30
_COLUMNS = (
    "code",
    "flash_per_byte",
    "mttdl_years",
    "nines",
    "lost_by",
    "rebuild_hours",
    "rebuild_Bps",
    "binds",
    "pieces_on_a_host",
    "unavailable_hours_a_year",
    "reads_Bps",
    "reads_degraded_Bps",
    "reads_rebuilding_Bps",
    "misses",
)
_BRIEF = (
    "code",
    "flash_per_byte",
    "nines",
    "lost_by",
    "rebuild_hours",
    "unavailable_hours_a_year",
    "reads_Bps",
    "reads_rebuilding_Bps",
    "misses",
)
_NOTE = (
    "nines: of the probability to lose nothing in a year; lost by: the cause of most losses; "
    "pieces on a host: of one stripe, at most; reads: by clients with all drives, with one lost, "
    "and while it is rebuilt. Failures are independent and memoryless but for whole hosts and "
    "racks; software, people and batches of bad drives are left out: beyond about 11 nines these "
    "come first"
)


def codes(found: Sequence[Durability], causes: Sequence[str], goals: Goals) -> Sheet:
    """Return a row for each code, with the cause of most losses and the goals missed."""
    rows: list[tuple[Value, ...]] = [
        (
            one.code,
            one.overhead,
            min(one.mttdl, _MOST_YEARS),
            one.nines,
            cause,
            one.hours,
            one.rebuild.rate_Bps(1),
            one.rebuild.binds,
            one.host_pieces,
            one.unavailable * HOURS_PER_YEAR,
            one.healthy_Bps,
            one.degraded_Bps,
            one.rebuilding_Bps,
            ", ".join(goals.missed(one)),
        )
        for one, cause in zip(found, causes, strict=True)
    ]
    return sheet_of("How durable", _COLUMNS, rows, _NOTE)


def brief(whole: Sheet) -> Sheet:
    """Return the columns of `codes` that a terminal has room for."""
    places = [whole.columns.index(name) for name in _BRIEF]
    rows = [tuple(row[place] for place in places) for row in whole.rows]
    return sheet_of(whole.title, _BRIEF, rows, whole.note)


def losses(
    found: Sequence[Durability], years: float, outage_usd: float | None, loss_usd: float | None
) -> Sheet:
    """Return what failures cost: hours without some data, and the chance to lose some, as money."""
    rows: list[tuple[Value, ...]] = []
    for one in found:
        hours = one.unavailable * HOURS_PER_YEAR * years
        chance = loss_probability(one.mttdl, years)
        out = None if outage_usd is None else hours * outage_usd
        gone = None if loss_usd is None else chance * loss_usd
        both = None if out is None and gone is None else (out or 0.0) + (gone or 0.0)
        rows.append((one.code, years, hours, chance, out, gone, both))
    columns = (
        "code",
        "years",
        "unavailable_hours",
        "loss_probability",
        "outages_usd",
        "losses_usd",
        "expected_usd",
    )
    return sheet_of("What failures cost", columns, rows, "expected values over the years")


def spares(drives: int, a_year: float, replace_hours: float, number: int) -> Sheet:
    """Return how many spare drives last until a delivery."""
    columns = ("drives", "failures_a_year", "delivery_hours", "spares")
    note = "so many that at most one failure in 100 finds none left"
    return sheet_of("Spare drives", columns, [(drives, a_year, replace_hours, number)], note)


def paragraph(
    best: Durability | None,
    asked: Sequence[Durability],
    causes: Sequence[str],
    goals: Goals,
    raw_bytes: float,
) -> str:
    """Say which code to take and what it does, or that none does; or what those asked for do."""
    if best is None and not asked:
        return (
            "No code rs:N+K of this array reaches the goals: more hosts, a faster link, a shorter "
            "wait, or lower goals change it; --protect shows what a code misses."
        )
    if best is None:
        pairs = zip(asked, causes, strict=True)
        return " ".join(_sentence(one, cause, goals, raw_bytes) for one, cause in pairs)
    return f"Take {_sentence(best, causes[list(asked).index(best)], goals, raw_bytes)}"


def _sentence(one: Durability, cause: str, goals: Goals, raw_bytes: float) -> str:
    left = one.rebuilding_Bps / one.healthy_Bps
    text = (
        f"{one.code}: {one.overhead:.3g} bytes of flash for each byte, room for "
        f"{bytes_text(raw_bytes / one.overhead)}, {min(one.nines, 99.0):.1f} nines a year. Most "
        f"losses of data come from {cause}. A lost "
        f"drive is rebuilt in {one.hours:.3g} hours, limited by the {one.rebuild.binds}; "
        f"{left:.0%} of reads are left meanwhile. Some data cannot be read for "
        f"{one.unavailable * HOURS_PER_YEAR:.2g} hours a year."
    )
    missed = goals.missed(one)
    return f"{text} It misses: {', '.join(missed)}." if missed else text
