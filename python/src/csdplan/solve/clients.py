"""Clients of hosts, which write to them, and get results."""

from __future__ import annotations

from dataclasses import dataclass

from csdplan.model.inputs import not_negative


@dataclass(frozen=True)
class Clients:
    """Traffic of hosts with clients: each host has a card, which drives on the network share.

    Attributes
    ----------
    core_s_per_byte : float
        Time of a host's core for each byte that clients write, or get as a result [s/byte].
    """

    core_s_per_byte: float = 0.0

    def __post_init__(self) -> None:
        not_negative("core_s_per_byte of clients", self.core_s_per_byte)
