"""The one price list of the page: of what a scenario compares with, and of what is bought.

It is chosen before the page is served, for its fields have the list's prices.
"""

from __future__ import annotations

from functools import lru_cache

from csdplan.hardware import Catalogue, load_catalogue
from csdplan.result import listed as prices

_chosen: list[Catalogue] = []


def use(catalogue: Catalogue) -> None:
    """Take the page's prices from here, rather than from the shipped catalogue."""
    _chosen[:] = [catalogue]
    _found.cache_clear()


@lru_cache(maxsize=1)
def _found() -> prices.Listed:
    return prices.listed(_chosen[0] if _chosen else load_catalogue())


def listed() -> dict[str, tuple[float, str]]:
    """Return the price of each field of the page [USD], and where it comes from."""
    found = _found()
    host = found.host_usd, f"{found.of_host}."
    return {
        "host_usd": host,
        "csd_host_usd": host,
        "ssd_usd": (found.ssd_usd, f"{found.of_ssd}."),
        "csd_usd": (found.csd_usd, f"{found.of_csd}."),
    }


def drive_bytes() -> float:
    """Return the capacity of the drives that the prices are of [bytes]."""
    return _found().drive_bytes


def price_usd(field: str) -> float:
    """Return the price of a field [USD]."""
    return listed()[field][0]
