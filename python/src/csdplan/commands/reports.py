"""Answers to look at: report (one HTML file for a decision meeting) and ui (the local page)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from csdplan.commands.choose import ProfileLike, choose, profile_of
from csdplan.errors import ExtraMissing, PlotError
from csdplan.request import load_request
from csdplan.request.scenario import load_scenario
from csdplan.solve.purchase import Request

_NO_PAGE = "the page needs Dash, which comes with the extra ui: pip install './python[ui]'"


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
    ExtraMissing
        If the extra ``ui`` is not installed.
    OSError
        If the port cannot be had.
    """
    try:
        from csdplan.page.server import serve  # noqa: PLC0415 - an extra, and slow to import
    except ModuleNotFoundError as error:
        raise ExtraMissing(f"{_NO_PAGE} ({error})") from error
    serve(port)
