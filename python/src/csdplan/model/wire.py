"""Share of a link that is left for the data of NVMe/TCP, and time of a core for a request.

References
----------
- NVM Express TCP Transport Specification 1.0, section 3.6: a read costs a command of 72 bytes one
  way, and a data header of 24 and a response of 24 bytes the other way (csd sends the data of a
  read as one PDU).
- IEEE 802.3: preamble, header, check sum and gap take 38 bytes of each frame; RFC 791, RFC 9293 and
  RFC 7323: IPv4 and TCP with time stamps take 52 bytes of its payload.
"""

from __future__ import annotations

from dataclasses import dataclass

_FRAME_BYTES, _HEADERS_BYTES = 38, 52
_DATA_BYTES, _RESPONSE_BYTES = 24, 24


def share_of_link(block: float, mtu: int) -> float:
    """Return the share of a link's bits that are data of reads [1].

    Parameters
    ----------
    block : float
        Bytes of a read.
    mtu : int
        Bytes of a frame's payload.
    """
    kept = block / (block + _DATA_BYTES + _RESPONSE_BYTES)
    return kept * (mtu - _HEADERS_BYTES) / (mtu + _FRAME_BYTES)


@dataclass(frozen=True)
class CoreTime:
    """Time of one core for a request: so much for each, and so much for each byte of it.

    Attributes
    ----------
    each_s, byte_s : float
        Seconds for each request, and for each byte.
    """

    each_s: float
    byte_s: float

    @classmethod
    def through(cls, first: tuple[float, float], second: tuple[float, float]) -> CoreTime:
        """Return the line through two measured points, of bytes and seconds."""
        byte_s = (second[1] - first[1]) / (second[0] - first[0])
        return cls(first[1] - byte_s * first[0], byte_s)

    def seconds(self, block: float) -> float:
        """Return the time of a request of so many bytes [s]."""
        return self.each_s + self.byte_s * block
