"""Binary contracts, packed here from their tables alone: no code of the Rust side is involved."""

import ipaddress
import struct
import tomllib
from pathlib import Path
from typing import Any

import pytest

GOLDEN = Path(__file__).parents[3] / "docs" / "internals" / "golden"
EXECUTE = sorted((GOLDEN / "execute").glob("*.toml"))
CATALOGUE = sorted((GOLDEN / "catalogue").glob("*.toml"))
TUNNEL = sorted((GOLDEN / "tunnel").glob("*.toml"))
COMMANDS = sorted((GOLDEN / "tunnel/commands").glob("*.toml"))
LOGS = sorted((GOLDEN / "tunnel/log").glob("*.toml"))
MEDIA = GOLDEN / "media"
ELEMENTS = {"i32": 1, "i64": 2, "f32": 3, "f64": 4, "c64": 5, "bytes": 6}
LAYOUTS = {"spread": 1, "range": 2, "rows": 3, "graph": 4, "whole": 5, "table": 6}
STATES = {"staged": 1, "sealed": 2, "deleted": 3}


def crc32c(data: bytes) -> int:
    """CRC-32C (Castagnoli), bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def golden_bytes(path: Path) -> bytes:
    return bytes.fromhex("".join(path.with_suffix(".hex").read_text().split()))


def source(fields: dict[str, Any]) -> bytes:
    numbers: tuple[int, int, int]
    if fields["kind"] == "kv-chunks":
        kind, locator = 1, bytes.fromhex(fields["prefix"])
        # An output has the size of a chunk where a source has their number.
        count = fields["count"] if "count" in fields else fields["chunk_bytes"]
        numbers = (fields["first"], count, fields["stride"])
    elif fields["kind"] == "memory":
        kind, locator = 3, struct.pack("<Q4x", fields["start"])
        numbers = (0, fields["bytes"], 0)
    elif fields["kind"] == "kv-tail":
        kind, locator = 4, bytes.fromhex(fields["prefix"])
        numbers = (fields["number"], fields["skip"], 0)
    elif fields["kind"] == "keys":
        key = bytes.fromhex(fields.get("from", ""))
        kind, locator = 6, key.ljust(16, b"\0")[:12]
        numbers = (int.from_bytes(key[12:], "little"), len(key), 0)
    elif fields["kind"] == "inline":
        kind, locator = 5, bytes(12)
        numbers = (0, fields["bytes"], 0)
    else:
        kind, locator = 2, struct.pack("<Q4x", fields["slba"])
        numbers = (fields["skip"], fields["bytes"], 0)
    stream = fields.get("stream", 0)
    return struct.pack("<BB2xI12sIII", kind, stream, fields.get("nsid", 0), locator, *numbers)


def payload(fields: dict[str, Any]) -> bytes:
    parameters = bytes.fromhex(fields["parameters"])
    sources = fields["source"]
    output = fields.get("output")
    kind = 0 if output is None else {"memory": 1, "kv-chunks": 2}[output["kind"]]
    flags = bool(fields.get("serial", False)) | bool("digests" in fields) << 1
    head = struct.pack(
        "<4sHHQIB3xIH2x",
        b"CSDX",
        1,
        len(sources),
        fields["program"],
        flags,
        kind,
        len(parameters),
        fields.get("cores", 0),
    )
    record = bytes(32) if output is None else source(output)
    inline = bytes.fromhex(fields.get("inline", ""))
    told = b""
    if "digests" in fields:
        digests = fields["digests"]
        head_of_sums = (digests["unit_bytes"], digests["streams"])
        told = struct.pack(f"<IB3x{len(digests['sums'])}I", *head_of_sums, *digests["sums"])
    return head + record + b"".join(source(one) for one in sources) + inline + told + parameters


@pytest.mark.parametrize("path", EXECUTE, ids=lambda path: path.stem)
def test_execute_payload(path: Path) -> None:
    assert payload(tomllib.loads(path.read_text())) == golden_bytes(path)


def entry(fields: dict[str, Any]) -> bytes:
    name = fields["name"].encode()
    members = fields["members"]
    layout = LAYOUTS[fields.get("layout", "spread")]
    parts = fields.get("parts", [])
    has_parts = fields.get("layout", "spread") not in ("spread", "whole")
    lengths = [part[2] for part in parts] if has_parts else [fields["bytes"]]
    chunks = sum(-(-length // fields["chunk_bytes"]) for length in lengths)
    data: bytes = struct.pack(
        "<4sHBBQ16s12sIQIBBHHHHBBHBB4x32s",
        b"CSDC",
        version(fields),
        STATES[fields["state"]],
        ELEMENTS[fields["element"]],
        fields["epoch"],
        bytes.fromhex(fields["writer"]),
        bytes.fromhex(fields["id"]),
        fields["chunk_bytes"],
        fields["bytes"],
        chunks,
        1 if "extents" in fields else 0,
        layout,
        fields["offset"],
        len(members),
        len(fields["shape"]),
        len(name),
        *code(fields),
        fields.get("survives", 0),
        bytes.fromhex(fields["digest"]),
    )
    data += struct.pack(f"<{len(members)}H", *members)
    data += struct.pack(f"<{len(fields['shape'])}Q", *fields["shape"]) + name
    for runs in fields.get("extents", []):
        data += struct.pack("<I", len(runs))
        data += b"".join(struct.pack("<II", *run) for run in runs)
    if has_parts:
        data += struct.pack("<I", len(parts))
        data += b"".join(struct.pack("<HIQQ", *part) for part in parts)
    data += b"".join(struct.pack("<I", each) for each in fields.get("sums", []))
    data += parity(fields) + bytes.fromhex(fields.get("copy", ""))
    if "stored_unix_ms" in fields:
        data += struct.pack("<Q", fields["stored_unix_ms"])
    return data + struct.pack("<I", crc32c(data))


def version(fields: dict[str, Any]) -> int:
    """Return the version of an entry."""
    if "stored_unix_ms" in fields:
        return 3
    return 2 if {"sums", "protection", "survives", "copy"} & fields.keys() else 1


def pieces(protection: dict[str, Any]) -> tuple[int, int]:
    """Return the numbers of data and parity pieces of a code such as ``rs:4+2``."""
    count, more = protection["code"].removeprefix("rs:").split("+")
    return int(count), int(more)


def code(fields: dict[str, Any]) -> tuple[int, int, int, int]:
    """Return bytes 70 to 74 of an entry: its code, the size of the group, flags."""
    copy = ("copy" in fields) << 3
    if "protection" not in fields:
        has_flags = bool({"survives", "copy", "stored_unix_ms"} & fields.keys())
        return 0, 0, 0, copy | (has_flags and "sums" not in fields) << 2
    protection = fields["protection"]
    flags = ("sums" in protection) | ("missing" in protection) << 1 | ("sums" not in fields) << 2
    return *pieces(protection), len(protection["group"]), copy | flags


def parity(fields: dict[str, Any]) -> bytes:
    """Return the last part of an entry that is protected."""
    if "protection" not in fields:
        return b""
    protection = fields["protection"]
    group, sums = protection["group"], protection.get("sums", [])
    data = struct.pack(f"<Q{len(group)}H{len(sums)}I", protection["epoch"], *group, *sums)
    if "missing" not in protection:
        return data
    count, more = pieces(protection)
    bits: int = sum(1 << stripe * (count + more) + piece for stripe, piece in protection["missing"])
    stripes = len(sums) // more
    return data + bits.to_bytes(-(-(count + more) * stripes // 8), "little")


@pytest.mark.parametrize("path", CATALOGUE, ids=lambda path: path.stem)
def test_catalogue_entry(path: Path) -> None:
    assert entry(tomllib.loads(path.read_text())) == golden_bytes(path)


def frames(fields: dict[str, Any]) -> bytes:
    data = b""
    for frame in fields["frame"]:
        packet = bytes.fromhex(frame["packet"])
        header = struct.pack(
            "<BBHHHH",
            frame["flags"],
            frame["gso_type"],
            frame["hdr_len"],
            frame["gso_size"],
            frame["csum_start"],
            frame["csum_offset"],
        )
        data += struct.pack("<I", len(header + packet)) + header + packet
        data += bytes(-len(data) % 4)
    return data


@pytest.mark.parametrize("path", TUNNEL, ids=lambda path: path.stem)
def test_tunnel_frames(path: Path) -> None:
    assert frames(tomllib.loads(path.read_text())) == golden_bytes(path)


@pytest.mark.parametrize("path", COMMANDS, ids=lambda path: path.stem)
def test_tunnel_commands(path: Path) -> None:
    fields = tomllib.loads(path.read_text())
    # Data is described by a scatter gather list (PSDT 01b).
    entry = struct.pack("<BBHI32x", fields["opcode"], 0x40, 0, fields["nsid"])
    assert entry + struct.pack("<I20x", fields["bytes"] // 4) == golden_bytes(path)


def end(fields: dict[str, Any]) -> bytes:
    address = ipaddress.ip_address(fields["address"])
    numbers = [fields["side"], fields["present"], address.version, fields["prefix"]]
    numbers += [fields["cntlid"], fields["waiting"]]
    counts = [fields[key] for key in ("queued", "sent_packets", "sent_bytes")]
    counts += [fields[key] for key in ("received_packets", "received_bytes")]
    counts += [fields[key] for key in ("dropped_packets", "takeovers", "refused")]
    data = struct.pack("<4B2H16s8Q", *numbers, address.packed, *counts)
    return data + struct.pack("<40x256s", fields["host"].encode())


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.stem)
def test_tunnel_log(path: Path) -> None:
    fields = tomllib.loads(path.read_text())
    ends = [end(fields) for fields in fields["end"]]
    header = struct.pack("<HHII52x", 1, 384, len(ends), fields["mtu"])
    assert header + b"".join(ends) == golden_bytes(path)


def test_golden_files_are_there() -> None:
    assert len(TUNNEL) >= 3
    assert len(COMMANDS) >= 4
    assert len(LOGS) >= 1
    assert len(EXECUTE) >= 4
    assert len(CATALOGUE) >= 6
    assert crc32c(b"123456789") == 0xE3069283


def test_mark() -> None:
    """Both copies of the mark of a drive with a volatile cache are those of its fields."""
    lines = (MEDIA / "version-2-marked.txt").read_text().splitlines()
    sectors = {int(at, 16): bytes.fromhex(digits) for at, digits in map(str.split, lines)}
    fields = (MEDIA / "version-2-mark.txt").read_text().splitlines()
    epoch, *positions = ([int(field) for field in line.split()] for line in fields)
    of_shard = {shard: rest for shard, *rest in positions}
    body = sectors[0][16:32] + struct.pack("<Q", *epoch)
    for shard in range(16):
        body += struct.pack("<QIII", *of_shard.get(shard, (0, 0, 0, 0)))
    mark = b"CMRK" + struct.pack("<I", crc32c(b"CMRK" + bytes(4) + body)) + body
    assert len(mark) == 352
    for at in (320 << 10, 832 << 10):
        assert sectors[at].ljust(512, b"\0") == mark.ljust(512, b"\0")
