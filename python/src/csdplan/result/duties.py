"""Cores of a drive with two duties, as a sheet and a paragraph."""

from __future__ import annotations

from csdplan.model.duties import Duties
from csdplan.result.sheet import Sheet, Value, sheet_of


def duties(drive: Duties, per_s: float, best: int) -> Sheet:
    """Return a row for each number of cores that do background tasks alone."""
    rows: list[tuple[Value, ...]] = []
    for apart in range(drive.cores):
        most = drive.most_per_s(apart)
        able = per_s < most
        response = drive.response_s(per_s, apart) * 1e6 if able else None
        alone = None if response is None else response / (drive.request_s * 1e6)
        rows.append((apart, drive.cores - apart, most, able, response, alone, apart == best))
    columns = (
        "cores_for_tasks",
        "cores_for_requests",
        "most_per_s",
        "carries_it",
        "mean_us",
        "of_service",
        "best",
    )
    note = (
        "0 cores for tasks: each core does both, in the order of arrival; mean: wait and service "
        "of a request on its core, without network and media"
    )
    return sheet_of("Two duties on the cores of a drive", columns, rows, note)


def paragraph(drive: Duties, per_s: float, best: int) -> str:
    """Say how many cores to set apart, and what that gains."""
    mine = drive.response_s(per_s, best) * 1e6
    if not best:
        return f"Let every core do both: {mine:.4g} us a request on its core."
    text = f"Set {best} of {drive.cores} cores apart for background tasks: {mine:.4g} us a request"
    if per_s < drive.most_per_s(0):
        return f"{text}, and {drive.response_s(per_s, 0) * 1e6:.4g} us if every core does both."
    return f"{text}; if every core does both, they do not carry the requests."
