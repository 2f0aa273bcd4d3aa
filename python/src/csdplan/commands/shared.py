"""Cores of a drive shared by two duties: duties."""

from __future__ import annotations

from typing import Annotated

from csdplan.commands.tables import Tables
from csdplan.errors import ModelError
from csdplan.model.duties import Duties
from csdplan.options import Option, documented
from csdplan.result import duties as sheets

#: Cores of a drive, at most.
_CORES_MAX = 256


@documented
def duties(
    *,
    cores: Annotated[int, Option("Cores of the drive.", min=2, max=_CORES_MAX)] = 6,
    request_us: Annotated[
        float, Option("Time of a core for a request of a host, assumed.", min=0.001, max=1e9)
    ] = 20.0,
    task_us: Annotated[
        float,
        Option(
            "Time of a core for the background task of a request. Default: 16.7, SHA-1 of 16 KiB "
            "in pieces of 128 bytes, measured.",
            min=0.001,
            max=1e9,
        ),
    ] = 16.7,
    rate: Annotated[float, Option("Requests a second.", min=0.001, max=1e12)] = 100_000.0,
) -> Tables:
    """Find how requests of hosts and background tasks share the cores of a drive.

    Returns the sheet ``duties``, a row for each number of cores that do background tasks alone;
    fact ``answer`` is one paragraph.
    """
    drive = Duties(cores, request_us / 1e6, task_us / 1e6)
    best = drive.best_apart(rate)
    if best is None:
        most = max(drive.most_per_s(n) for n in range(cores))
        raise ModelError("rate", f"{rate:g}", f"less than {most:.6g} requests a second")
    facts = {"verdict": "found", "answer": sheets.paragraph(drive, rate, best), "apart": best}
    return Tables({"duties": sheets.duties(drive, rate, best)}, facts=facts)
