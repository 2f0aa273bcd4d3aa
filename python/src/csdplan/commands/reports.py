"""Answers to look at: report (one HTML file for a decision meeting) and ui (the local page)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from csdplan.commands import planned
from csdplan.commands.choose import ProfileLike, choose, profile_of
from csdplan.errors import PlotError
from csdplan.profile import Profile
from csdplan.request import load_request
from csdplan.request.scenario import load_scenario
from csdplan.solve.purchase import Request

if TYPE_CHECKING:
    from csdplan.page.export import Purchase

#: Limit of each of the solver's runs for the page [s].
_PAGE_LIMIT_S = 5.0


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
        The n of each Host(n).
    target : int
        Break-even point for which to say what would have to change.
    scenario : str or Path, optional
        TOML file of systems to cost; by default the published scenario.
    request : Request, str or Path, optional
        A request to find a purchase for.

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
        scenario=load_scenario(scenario),
        is_example=scenario is None,
        request=load_request(request) if isinstance(request, str | Path) else request,
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

    serve(port, _purchase)


def _purchase(profile: Profile, **values: Any) -> Purchase:
    """Plan a purchase for the page, by the values of a request."""
    from csdplan.page.export import Purchase  # noqa: PLC0415 - slow to import

    found = planned.plan(profile=profile, time_limit_s=_PAGE_LIMIT_S, **values)
    return Purchase(str(found.facts["answer"]), tuple(found.sheets.values()), found.warnings)
