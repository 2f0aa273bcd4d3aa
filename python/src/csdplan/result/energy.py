"""Energy of a job on one or several purchases, as a sheet and a paragraph."""

from __future__ import annotations

from collections.abc import Mapping

from csdplan.result.sheet import Sheet, Value, sheet_of
from csdplan.solve.energy import Energy
from csdplan.solve.plans import Plan

_TB, _J_PER_KWH = 1e12, 3.6e6


def jobs(
    found: Mapping[str, tuple[Plan, list[Energy]]], pue: float, kwh_usd: float | None
) -> Sheet:
    """Return a row for each workload of each purchase."""
    rows: list[tuple[Value, ...]] = []
    for name, (plan, energies) in found.items():
        for one in energies:
            site = pue * one.all_J
            rows.append(
                (
                    name,
                    one.workload,
                    plan.price_usd,
                    one.time_s,
                    one.cores_J,
                    one.drives_J,
                    one.rest_J,
                    one.all_J,
                    one.all_J / one.bytes * _TB,
                    one.work_J / one.bytes * _TB,
                    site,
                    None if kwh_usd is None else site / _J_PER_KWH * kwh_usd,
                )
            )
    columns = (
        "purchase",
        "workload",
        "price_usd",
        "time_s",
        "cores_J",
        "drives_J",
        "rest_J",
        "job_J",
        "J_per_TB",
        "net_J_per_TB",
        "site_J",
        "site_usd",
    )
    note = (
        f"net: what the work adds to the power at rest; site: with PUE {pue:g}. Power is the CPU's "
        "TDP and what the catalogue states or assumes, not measured; a drive whose power at rest "
        "is unknown rests at its power at work"
    )
    return sheet_of("Energy of a job", columns, rows, note)


def parts(found: Mapping[str, tuple[Plan, list[Energy]]]) -> Sheet:
    """Return what each purchase holds."""
    rows = [
        (name, part, count)
        for name, (plan, _) in found.items()
        for part, count in plan.bought.items()
    ]
    return sheet_of("What each purchase holds", ("purchase", "name", "count"), rows)


def paragraph(found: Mapping[str, tuple[Plan, list[Energy]]]) -> str:
    """Say what a job takes on the cheapest purchase, and on the others."""
    said = []
    for name, (_, energies) in found.items():
        total = sum(one.all_J for one in energies)
        size = sum(one.bytes for one in energies)
        said.append(f"{name}: {total / 1e3:,.4g} kJ a job, {total / size * _TB / 1e3:,.4g} kJ a TB")
    return f"{'; '.join(said)}."
