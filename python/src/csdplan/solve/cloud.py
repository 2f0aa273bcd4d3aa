"""Instances of a cloud that do what a request asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from csdplan.solve.purchase import Limits


@dataclass(frozen=True)
class Instance:
    """A machine that can be rented, with drives of its own.

    Attributes
    ----------
    name : str
        Its name.
    hourly_usd : float
        Price of an hour [USD].
    capacity_bytes : float
        Capacity of its drives together [bytes].
    drives, cores : int
        How many it has.
    read_Bps, network_Bps : float
        Bytes per second of its drives together, and of its network.
    core_speed : float
        Speed of a core over that of the profile's host [1].
    """

    name: str
    hourly_usd: float
    capacity_bytes: float
    drives: int
    cores: int
    read_Bps: float
    network_Bps: float
    core_speed: float


def needed(
    instance: Instance,
    limits: Limits,
    core_s_per_byte: Mapping[str, float],
    rates: Mapping[str, float],
) -> dict[str, int]:
    """Return the instances that each requirement needs; the greatest number meets all.

    Parameters
    ----------
    instance : Instance
        The instance.
    limits : Limits
        Room, drives and writes that are asked for.
    core_s_per_byte, rates : mapping of str to float
        Time of one core, and bytes per second, of each workload.

    Notes
    -----
    An instance computes what its own drives bring, as a host of a plan does.
    """
    busy = sum(rate * core_s_per_byte[name] for name, rate in rates.items())
    every = {
        "capacity": limits.capacity_bytes / instance.capacity_bytes,
        "drives of a stripe": limits.drives_min / instance.drives,
        "cores": busy / (instance.cores * instance.core_speed),
        "reads": sum(rates.values()) / instance.read_Bps,
        "writes over the network": limits.write_Bps / instance.network_Bps,
    }
    return {name: max(1, ceil(number * (1 - 1e-9))) for name, number in every.items()}
