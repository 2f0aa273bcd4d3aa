"""Prices by which a host with SSDs is compared with drives that compute: those of a catalogue."""

from __future__ import annotations

from dataclasses import dataclass

from csdplan.hardware import Catalogue

_CHASSIS, _CPU, _SSD = "chassis-2u24", "epyc-7352", "samsung-pm9a3-7.68tb"
#: A drive that computes over one that does not: 110 and 100 USD in the paper.
_COMPUTES = 1.1


@dataclass(frozen=True)
class Listed:
    """Prices of a host and of drives.

    Attributes
    ----------
    host_usd, ssd_usd, csd_usd : float
        Price of a host, of an SSD, and of a drive that computes [USD].
    drive_bytes : float
        Capacity of the drives [bytes].
    of_host, of_ssd, of_csd : str
        Where each price comes from.
    """

    host_usd: float
    ssd_usd: float
    csd_usd: float
    drive_bytes: float
    of_host: str
    of_ssd: str
    of_csd: str

    def __str__(self) -> str:
        """Return the prices in a sentence, with their sources."""
        return (
            f"Prices, as those of a purchase: a host at {self.host_usd:,.0f} USD "
            f"({self.of_host}), SSDs at {self.ssd_usd:,.0f} USD ({self.of_ssd}), drives that "
            f"compute at {self.csd_usd:,.0f} USD ({self.of_csd})."
        )


def listed(catalogue: Catalogue) -> Listed:
    """Return the prices of a catalogue."""
    parts, prices = catalogue.parts, catalogue.prices
    ssd = prices[_SSD]
    return Listed(
        host_usd=sum(prices[name].usd for name in (_CHASSIS, _CPU)),
        ssd_usd=ssd.usd,
        csd_usd=float(round(ssd.usd * _COMPUTES)),
        drive_bytes=parts[_SSD].value("capacity_bytes") or 0.0,
        of_host=f"Catalogue: {parts[_CPU].title} in a chassis, {prices[_CPU].date}",
        of_ssd=f"Catalogue: {parts[_SSD].title}, {ssd.date}",
        of_csd=f"A tenth more than the SSD of {ssd.date}, as in the paper",
    )
