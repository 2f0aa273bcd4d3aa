"""DH-HMAC-CHAP, computed here from its formulas alone: no code of the Rust side is involved.

`python python/tests/contracts/test_auth_golden.py` rewrites the golden files.
"""

import base64
import hashlib
import hmac
import tomllib
import zlib
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[3] / "docs" / "internals" / "golden" / "auth"
HASHES = {1: "sha256", 2: "sha384", 3: "sha512"}
# RFC 7919, appendix A: bits of the prime, and X of its formula.
GROUPS = {1: (2048, 560316), 2: (3072, 2625351), 3: (4096, 5736041), 4: (6144, 15705020)}
GROUPS[5] = (8192, 10965728)
HOST = "nqn.2014-08.org.nvmexpress:uuid:5f3a1c9e-0d52-4b6e-9d0b-6c7c6d0f2a11"
DRIVE = "nqn.2026-11.io.csdstore:golden"
# Name, hash, group, hash of the host's secret, of the controller's.
CASES = [
    ("null-sha256", 1, 0, 1, 1),
    ("null-sha384-plain", 2, 0, 0, 2),
    ("ffdhe2048-sha512", 3, 1, 3, 1),
    ("ffdhe3072-sha256", 1, 2, 1, 3),
    ("ffdhe4096-sha384", 2, 3, 2, 0),
    ("ffdhe6144-sha512", 3, 4, 3, 3),
    ("ffdhe8192-sha256", 1, 5, 0, 1),
]
FILES = sorted(GOLDEN.glob("*.toml"))


def prime(group: int) -> int:
    """2^b - 2^(b-64) + (floor(2^(b-130) e) + X) 2^64 - 1."""
    bits, addend = GROUPS[group]
    guard = 64
    term = total = 1 << (bits - 130 + guard)
    number = 1
    while term:
        term //= number
        total += term
        number += 1
    return (1 << bits) - (1 << (bits - 64)) + (((total >> guard) + addend) << 64) - 1


def random(label: str, count: int) -> bytes:
    """Bytes that look random and are the same every time."""
    return hashlib.shake_256(label.encode()).digest(count)


def digest(hash_id: int, data: bytes) -> bytes:
    return hashlib.new(HASHES[hash_id], data).digest()


def mac(hash_id: int, key: bytes, data: bytes) -> bytes:
    return hmac.new(key, data, HASHES[hash_id]).digest()


def text(hash_id: int, key: bytes) -> str:
    crc = zlib.crc32(key).to_bytes(4, "little")
    return f"DHHC-1:{hash_id:02}:{base64.b64encode(key + crc).decode()}:"


def transformed(hash_id: int, key: bytes, nqn: str) -> bytes:
    return mac(hash_id, key, nqn.encode() + b"NVMe-over-Fabrics") if hash_id else key


Values = dict[str, str | int]


def case(name: str, hash_id: int, group: int, host_hash: int, drive_hash: int) -> Values:
    size = hashlib.new(HASHES[hash_id]).digest_size
    values: Values = {"hash": hash_id, "group": group}
    values |= {"host_nqn": HOST, "subsystem_nqn": DRIVE}
    values |= {"transaction": 0x1234, "host_sequence": 0x0A0B0C0D}
    values |= {"controller_sequence": 0xF1E2D3C4}
    shared = b""
    exponents = {side: random(f"{name} {side} exponent", 64) for side in ("host", "controller")}
    if group:
        p = prime(group)
        width = GROUPS[group][0] // 8
        public = {
            side: pow(2, int.from_bytes(exponent, "big"), p) for side, exponent in exponents.items()
        }
        power = pow(public["host"], int.from_bytes(exponents["controller"], "big"), p)
        shared = power.to_bytes(width, "big")
        for side, number in public.items():
            value = number.to_bytes(width, "big")
            values[f"{side}_public_sha256"] = hashlib.sha256(value).hexdigest()
        values["shared_sha256"] = hashlib.sha256(shared).hexdigest()
    for side, secret_hash, label, nqn, peer in (
        ("host", host_hash, b"HostHost", HOST, DRIVE),
        ("controller", drive_hash, b"Controller", DRIVE, HOST),
    ):
        length = hashlib.new(HASHES[secret_hash]).digest_size if secret_hash else 32
        key = random(f"{name} {side} key", length)
        # What a side proves answers the other side's challenge and sequence number.
        asker = "controller" if side == "host" else "host"
        challenge = random(f"{name} {asker} challenge", size)
        augmented = mac(hash_id, digest(hash_id, shared), challenge) if group else challenge
        data = augmented + int(values[f"{asker}_sequence"]).to_bytes(4, "little")
        data += int(values["transaction"]).to_bytes(2, "little") + b"\0" + label
        data += nqn.encode() + b"\0" + peer.encode()
        own = transformed(secret_hash, key, nqn)
        values |= {
            f"{side}_secret": text(secret_hash, key),
            f"{side}_transformed": own.hex(),
            f"{side}_exponent": exponents[side].hex(),
            f"{asker}_challenge": challenge.hex(),
            f"{side}_response": mac(hash_id, own, data).hex(),
        }
    return values


def written(values: Values) -> str:
    lines = [f'{k} = "{v}"' if isinstance(v, str) else f"{k} = {v}" for k, v in values.items()]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_exchange(path: Path) -> None:
    known = {name: arguments for name, *arguments in CASES}
    assert tomllib.loads(path.read_text()) == case(path.stem, *known[path.stem])


def test_golden_files_are_there() -> None:
    assert [path.stem for path in FILES] == sorted(name for name, *_ in CASES)
    assert zlib.crc32(b"123456789") == 0xCBF43926


if __name__ == "__main__":
    for name, *arguments in CASES:
        (GOLDEN / f"{name}.toml").write_text(written(case(name, *arguments)))
