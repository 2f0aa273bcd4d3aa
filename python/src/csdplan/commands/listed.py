"""The hardware that plans choose from: catalogue."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Annotated

from csdplan.commands.tables import Tables
from csdplan.errors import ModelError
from csdplan.hardware import KINDS, Catalogue, load_catalogue
from csdplan.options import (
    CatalogueOption,
    DriveOption,
    Option,
    PricesOption,
    documented,
    paths_of,
)
from csdplan.result.priced import prices as prices_sheet
from csdplan.result.sheet import Value, sheet_of


@documented
def catalogue(
    kind: Annotated[
        Sequence[str],
        Option("ssd, csd, network-drive, cpu, server, nic or switch. Repeat it.", type=list[str]),
    ] = (),
    *,
    catalogue: CatalogueOption = (),
    drive: DriveOption = (),
    prices: PricesOption = None,
) -> Tables:
    """List the hardware that `plan` chooses from, each number with its source.

    Returns the sheets ``catalogue``, a row for each number, and ``prices``, a row for each price
    with its age; the newest of a part counts.
    """
    if unknown := sorted(set(kind) - set(KINDS)):
        raise ModelError("kind", ", ".join(unknown), f"one of {', '.join(KINDS)}")
    found = load_catalogue(prices, paths_of(catalogue), drives=paths_of(drive))
    parts = found.of_kind(*(kind or KINDS))
    rows: list[tuple[Value, ...]] = []
    for part in parts:
        if not part.numbers():
            rows.append((part.name, None, None, None, part.note, None))
        for name, number in part.numbers().items():
            source = found.sources[number.source]
            rows.append((part.name, name, number.value, number.prov, str(source), source.date))
    columns = ("part", "number", "value", "prov", "source", "date")
    listed = {part.name: found.history.get(part.name, ()) for part in parts}
    return Tables(
        {
            "catalogue": sheet_of("Catalogue", columns, rows, _absent(found)),
            "prices": prices_sheet("Prices", listed, date.today()),
        }
    )


def _absent(found: Catalogue) -> str:
    unpriced = [
        part.name
        for part in found.of_kind("ssd", "csd", "network-drive", "cpu")
        if part.name not in found.prices
    ]
    return f"absent numbers are unknown; without a price: {', '.join(unpriced) or 'none'}"
