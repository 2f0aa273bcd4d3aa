"""Prices that a new scenario compares with: those of the catalogue, as "What to buy" has them."""

from __future__ import annotations

from functools import lru_cache

from csdplan.hardware import load_catalogue

_CHASSIS, _CPU, _SSD = "chassis-2u24", "epyc-7352", "samsung-pm9a3-7.68tb"
#: A drive that computes over one that does not: 110 and 100 USD in the paper.
_COMPUTES = 1.1


@lru_cache(maxsize=1)
def listed() -> dict[str, tuple[float, str]]:
    """Return the price of each field of the page [USD], and where it comes from."""
    found = load_catalogue()
    host = sum(found.prices[name].usd for name in (_CHASSIS, _CPU))
    ssd = found.prices[_SSD]
    of_host = f"Catalogue: {found.parts[_CPU].title} in a chassis, {found.prices[_CPU].date}."
    of_ssd = f"Catalogue: {found.parts[_SSD].title}, {ssd.date}."
    computing = f"A tenth more than the SSD of {ssd.date}, as in the paper."
    return {
        "host_usd": (host, of_host),
        "csd_host_usd": (host, of_host),
        "ssd_usd": (ssd.usd, of_ssd),
        "csd_usd": (round(ssd.usd * _COMPUTES), computing),
    }


@lru_cache(maxsize=1)
def drive_bytes() -> float:
    """Return the capacity of the drives that the prices are of [bytes]."""
    return load_catalogue().parts[_SSD].value("capacity_bytes") or 0.0


def price_usd(field: str) -> float:
    """Return the price of a field [USD]."""
    return listed()[field][0]
