"""Answers to look at: report (one HTML file for a decision meeting) and ui (the local page)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from csdplan.commands import planned
from csdplan.commands.choose import ProfileLike, choose, profile_of
from csdplan.errors import PlotError
from csdplan.request import load_request
from csdplan.request.scenario import load_scenario
from csdplan.result.planned import Planned
from csdplan.solve.purchase import Request

#: Limit of each of the solver's runs for a purchase [s].
_LIMIT_S = 5.0


def report(
    out: str | Path,
    profile: ProfileLike = "newport",
    kernel: str = "count",
    *,
    host_cores: Sequence[int] = (1, 4, 16),
    k_limit: float | None = None,
    sd_tx: float = 1.0,
    sd_comp: float = 1.0,
    target: int = 4,
    scenario: str | Path | None = None,
    request: Request | str | Path | None = None,
    ask: str | Path | None = None,
    device: str | None = None,
    ssd: str | None = None,
    bytes: int | None = None,
) -> Path:
    """Write one self-contained HTML file: the answer, figures, costs, and their sources.

    Returns the file that was written.

    Parameters
    ----------
    out : str or Path
        The file to write, as ``.html``.
    profile, kernel, k_limit, sd_tx, sd_comp, device, ssd, bytes
        As in `bep`.
    host_cores : sequence of int
        The n of each Host(n); costs and the map are about the last one.
    target : int
        Break-even point for which to say what would have to change.
    scenario : str or Path, optional
        TOML file of systems to cost; by default SSDs and drives for the report's own kernel, at
        published prices.
    request : Request, str or Path, optional
        A request of `optimize` to find a purchase for.
    ask : str or Path, optional
        A request of `plan` to plan a purchase for.

    Raises
    ------
    PlotError
        If the file's name does not end in ``.html``.
    """
    from csdplan.document import Question, write  # noqa: PLC0415 - draws figures

    target_file = Path(out)
    if target_file.suffix.lower() not in {".html", ".htm"}:
        raise PlotError(f"{out}: a report's name ends in .html")
    name, source = profile_of(profile)
    question = Question(
        name=name,
        profile=source,
        workload=choose(profile, kernel, device=device, ssd=ssd, bytes=bytes),
        host_cores=tuple(host_cores),
        k_limit=k_limit,
        sd_tx=sd_tx,
        sd_comp=sd_comp,
        target=target,
        scenario=None if scenario is None else load_scenario(scenario),
        request=load_request(request) if isinstance(request, str | Path) else request,
        planned=None if ask is None else _planned(ask=ask),
    )
    write(target_file, question)
    return target_file


def ui(port: int = 8050) -> None:
    """Serve the local page until interrupted.

    Parameters
    ----------
    port : int
        Port on this machine; 0 for any that is free.

    Raises
    ------
    OSError
        If the port cannot be had.
    """
    from csdplan.page.server import serve  # noqa: PLC0415 - slow to import

    serve(port, _planned)


def _planned(profile: ProfileLike | None = None, **values: Any) -> Planned:
    """Plan a purchase from the catalogue, by the values of a request or by its file."""
    found = planned.plan(profile=profile, time_limit_s=_LIMIT_S, **values)
    return Planned(str(found.facts["answer"]), tuple(found.sheets.values()), found.warnings)
