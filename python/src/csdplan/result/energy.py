"""Energy of a job on purchases, and as it was measured, as sheets and a paragraph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from csdplan.profile.meter import Metered
from csdplan.result.sheet import Sheet, Value, sheet_of
from csdplan.solve.energy import Energy
from csdplan.solve.plans import Plan
from csdplan.units import bytes_text

_TB, _J_PER_KWH = 1e12, 3.6e6


def jobs(
    found: Mapping[str, tuple[Plan, list[Energy]]],
    measured: Sequence[tuple[Metered, float]],
    pue: float,
    kwh_usd: float | None,
) -> Sheet:
    """Return a row for each workload of each purchase, and for its work as each record has it."""
    rows: list[tuple[Value, ...]] = []
    for name, (plan, energies) in found.items():
        for one in energies:
            computed = ("computed of watts", one.cores_J, one.drives_J)
            works: list[tuple[tuple[Value, ...], float]] = [(computed, one.work_J)]
            for metered, size in measured:
                known = (f"{metered.name}: {metered.label}", None, None)
                works.append((known, _J_of(metered, size, one.bytes)))
            for whence, work_J in works:
                all_J = work_J + one.rest_J
                head = (name, one.workload, plan.price_usd, one.time_s)
                per_TB = (all_J / one.bytes * _TB, work_J / one.bytes * _TB)
                site = _site(all_J, pue, kwh_usd)
                rows.append((*head, *whence, one.rest_J, all_J, *per_TB, *site))
    columns = (
        "purchase",
        "workload",
        "price_usd",
        "time_s",
        "work",
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
    if measured:
        note += (
            ". Where the work is that of a record, only the rest is computed: the work drew this "
            "on the machine of the record"
        )
    return sheet_of("Energy of a job", columns, rows, note)


def measured(
    records: Sequence[tuple[Metered, float]], job_bytes: float, pue: float, kwh_usd: float | None
) -> Sheet:
    """Return a row for each record with the input of its job, scaled to a job of `job_bytes`."""
    rows = []
    for one, size in records:
        work_J = _J_of(one, size, job_bytes)
        times = (one.wall_s, one.host_s, one.drives_s)
        known = (one.joules, one.prov, one.label)
        per_TB = _J_of(one, size, _TB)
        rows.append(
            (
                one.name,
                one.words,
                size,
                *times,
                *known,
                work_J,
                per_TB,
                *_site(work_J, pue, kwh_usd),
            )
        )
    columns = (
        "record",
        "command",
        "input_bytes",
        "wall_s",
        "host_cpu_s",
        "drives_cpu_s",
        "net_J",
        "prov",
        "known_by",
        "net_job_J",
        "net_J_per_TB",
        "site_J",
        "site_usd",
    )
    note = (
        "net: beyond the machine at rest, as csd meter recorded it; inferred: CPU time was "
        f"measured, and the watts are a profile's. The job is of {bytes_text(job_bytes)}; "
        f"site: with PUE {pue:g}"
    )
    return sheet_of("Measured jobs", columns, rows, note)


def _J_of(metered: Metered, size: float, job_bytes: float) -> float:
    """Return the energy of a job as that of a record, whose job had the input `size`."""
    return metered.joules / size * job_bytes


def _site(joules: float, pue: float, kwh_usd: float | None) -> tuple[Value, Value]:
    site = pue * joules
    return site, None if kwh_usd is None else site / _J_PER_KWH * kwh_usd


def parts(found: Mapping[str, tuple[Plan, list[Energy]]]) -> Sheet:
    """Return what each purchase holds."""
    rows = [
        (name, part, count)
        for name, (plan, _) in found.items()
        for part, count in plan.bought.items()
    ]
    return sheet_of("What each purchase holds", ("purchase", "name", "count"), rows)


def paragraph(
    found: Mapping[str, tuple[Plan, list[Energy]]], records: Sequence[tuple[Metered, float]]
) -> str:
    """Say what a job takes on the cheapest purchase, and on the others."""
    said = []
    for name, (_, energies) in found.items():
        total = sum(one.all_J for one in energies)
        size = sum(one.bytes for one in energies)
        said.append(f"{name}: {total / 1e3:,.4g} kJ a job, {total / size * _TB / 1e3:,.4g} kJ a TB")
        rest = sum(one.rest_J for one in energies)
        for metered, input_bytes in records:
            total = rest + _J_of(metered, input_bytes, size)
            said.append(
                f"{name} with the work of {metered.name}: {total / 1e3:,.4g} kJ a job, "
                f"{total / size * _TB / 1e3:,.4g} kJ a TB"
            )
    return f"{'; '.join(said)}."


def measured_paragraph(records: Sequence[tuple[Metered, float]]) -> str:
    """Say what the work of each record took."""
    said = [
        f"{one.name}: {one.joules:,.4g} J beyond rest, {_J_of(one, size, _TB) / 1e3:,.4g} kJ a TB "
        f"({one.label}; {one.prov})"
        for one, size in records
    ]
    return f"{'; '.join(said)}."
