"""An end of a drive's tunnel at the drive's inside that answers ICMP echo requests."""

import shutil
import struct
import threading
from pathlib import Path

from other import OtherHost, Queue, Refused, entry

SEND, RECEIVE, COMPUTE = 0xC1, 0xC2, 5
# Room for the longest frame.
ROOM = 65_552
LENGTH_BYTES, VIRTIO_NET_BYTES, IP_BYTES = 4, 10, 20
ICMP, REQUEST, REPLY = 1, 8, 0
HOST_ID = "3d5e8a70-51b8-4a53-9c3e-6f1f3a1b7d42"
HOST_NQN = f"nqn.2014-08.org.nvmexpress:uuid:{HOST_ID}"


class InsideEnd:
    """A thread that answers until it is closed or its drive stops."""

    def __init__(self, socket: Path, subsystem: str) -> None:
        self._folder = socket.parent
        # Has the admin queue too: without it the drive ends the controller.
        self._host = OtherHost(socket, subsystem, HOST_ID, HOST_NQN, 512)
        threading.Thread(target=self._answer, daemon=True).start()

    def close(self) -> None:
        """End the thread, and remove the socket's folder."""
        self._host.leave()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answer(self) -> None:
        queue: Queue = self._host.io
        while True:
            try:
                _, frames = queue.command(entry(RECEIVE, COMPUTE, {10: ROOM // 4}), room=ROOM)
                replies = answers(frames)
                if replies:
                    queue.command(entry(SEND, COMPUTE, {10: len(replies) // 4}), data=replies)
            except (Refused, OSError):
                return


def answers(frames: bytes) -> bytes:
    """Make the frames that answer the echo requests among these."""
    replies = b""
    while frames:
        (length,) = struct.unpack_from("<I", frames)
        packet = frames[LENGTH_BYTES + VIRTIO_NET_BYTES : LENGTH_BYTES + length]
        frames = frames[-(-(LENGTH_BYTES + length) // 4) * 4 :]
        if packet[0] == 0x45 and packet[9] == ICMP and packet[IP_BYTES] == REQUEST:
            reply = struct.pack("<I10x", length) + echo(packet)
            replies += reply + bytes(-len(reply) % 4)
    return replies


def echo(packet: bytes) -> bytes:
    """Make the reply to an echo request: addresses exchanged, so that the header's sum holds."""
    head = packet[:12] + packet[16:20] + packet[12:16]
    rest = packet[IP_BYTES + 4 :]
    unsummed = struct.pack(">BBH", REPLY, 0, 0) + rest
    words = struct.unpack(f">{len(unsummed) // 2}H", unsummed[: len(unsummed) // 2 * 2])
    total = sum(words) + (unsummed[-1] << 8 if len(unsummed) % 2 else 0)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return head + struct.pack(">BBH", REPLY, 0, ~total & 0xFFFF) + rest
