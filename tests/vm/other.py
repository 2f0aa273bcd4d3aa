"""A second host for a drive, next to the kernel's: one queue, in plain bytes.

It connects by TCP, or by the Unix socket of the drive's inside. Only what the checks need: Connect,
Read, Write, Flush, and the tunnel's commands. It waits for every answer before it sends more.
"""

import hashlib
import os
import socket
import struct
from pathlib import Path

HEADER_BYTES = 72
IN_CAPSULE, TRANSPORT = 0x01, 0x5A
FABRICS, CONNECT, PROPERTY_SET = 0x7F, 0x01, 0x00
FLUSH, WRITE, READ = 0x00, 0x01, 0x02
CAPSULE, RESPONSE, DATA = 0x04, 0x05, 0x07
# 64-byte queue entries, 16-byte completions, all command sets, enabled.
ENABLE = 4 << 20 | 6 << 16 | 6 << 4 | 1
TRANSFER_BYTES = 128 << 10


class Refused(Exception):
    """The drive answered with an error."""


class Queue:
    """A connection and the queue on it."""

    def __init__(self, door: int | Path) -> None:
        if isinstance(door, Path):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(30)
            self.socket.connect(str(door))
        else:
            self.socket = socket.create_connection(("127.0.0.1", door), timeout=30)
        self.socket.sendall(struct.pack("<BBBBI120x", 0, 0, 128, 0, 128))
        if self._exactly(128)[0] != 1:
            raise Refused("no ICResp")

    def _exactly(self, count: int) -> bytes:
        read = b""
        while len(read) < count:
            more = self.socket.recv(count - len(read))
            if not more:
                raise Refused("the drive closed the connection")
            read += more
        return read

    def command(self, entry: bytes, data: bytes = b"", room: int = 0) -> tuple[int, bytes]:
        """Send a command without its descriptor; return dword 0 of the answer, and its data."""
        kind = IN_CAPSULE if data else TRANSPORT
        descriptor = struct.pack("<QI3xB", 0, len(data) or room, kind)
        entry = entry[:24] + descriptor + entry[40:]
        offset = HEADER_BYTES if data else 0
        head = struct.pack("<BBBBI", CAPSULE, 0, HEADER_BYTES, offset, HEADER_BYTES + len(data))
        self.socket.sendall(head + entry + data)
        received = b""
        while True:
            kind, flags, length, _, whole = struct.unpack("<BBBBI", self._exactly(8))
            rest = self._exactly(whole - 8)
            if kind == RESPONSE:
                status = struct.unpack_from("<H", rest, 14)[0] >> 1
                if status:
                    raise Refused(f"status {status:#x}")
                return struct.unpack_from("<I", rest)[0], received
            if kind != DATA:
                raise Refused(f"a PDU of type {kind}")
            received += rest[length - 8 :]
            if flags & 0x08:  # stands for the response
                return 0, received


def entry(opcode: int, nsid: int = 0, dwords: dict[int, int] | None = None) -> bytes:
    """Make a queue entry of these dwords."""
    words = [0] * 16
    words[0] = opcode | 0x40 << 8
    words[1] = nsid
    for number, value in (dwords or {}).items():
        words[number] = value
    return struct.pack("<16I", *words)


class OtherHost:
    """A host that is connected to a drive's block namespace."""

    def __init__(
        self, door: int | Path, subsystem: str, host_id: str, host: str, block: int
    ) -> None:
        self.block = block
        identity = bytes.fromhex(host_id.replace("-", "")), subsystem, host
        self.admin = Queue(door)
        controller = _connect(self.admin, 0, 0xFFFF, *identity)
        self.admin.command(entry(FABRICS, PROPERTY_SET, {11: 0x14, 12: ENABLE}))
        self.io = Queue(door)
        _connect(self.io, 1, controller, *identity)

    def write_random(self, offset: int, count: int) -> str:
        """Write and flush random bytes; return their SHA-256."""
        data = os.urandom(count)
        for at in range(0, count, 4096):
            lba, blocks = (offset + at) // self.block, 4096 // self.block
            command = entry(WRITE, 1, {10: lba, 12: blocks - 1})
            self.io.command(command, data=data[at : at + 4096])
        self.io.command(entry(FLUSH, 1))
        return hashlib.sha256(data).hexdigest()

    def sum(self, offset: int, count: int) -> str:
        """Return the SHA-256 of what is there."""
        found = hashlib.sha256()
        for at in range(0, count, TRANSFER_BYTES):
            lba, blocks = (offset + at) // self.block, TRANSFER_BYTES // self.block
            command = entry(READ, 1, {10: lba, 12: blocks - 1})
            found.update(self.io.command(command, room=TRANSFER_BYTES)[1])
        return found.hexdigest()

    def leave(self) -> None:
        """Close both connections."""
        self.io.socket.close()
        self.admin.socket.close()


def _connect(
    queue: Queue, qid: int, controller: int, host_id: bytes, subsystem: str, host: str
) -> int:
    data = host_id + struct.pack("<H", controller) + bytes(238)
    data += subsystem.encode().ljust(256, b"\0") + host.encode().ljust(256, b"\0") + bytes(256)
    # Fabrics commands have their type where others have the namespace.
    command = entry(FABRICS, CONNECT, {10: qid << 16, 11: 31})
    return queue.command(command, data=data)[0] & 0xFFFF
