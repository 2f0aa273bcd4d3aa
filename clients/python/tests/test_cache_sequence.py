"""The sequence of public LLM caches on any key-value drive, with racing writers and readers.

Keys are hashes of 16 bytes. Every Store is one that must not replace a value. On "key exists" the
writer retrieves the value and compares: the same bytes are its own object, other bytes belong to
another object with this hash, and the writer tries the next slot. Values are as long as the drive
takes; longer objects are chunks, stored first, and a root, stored last.
"""

import hashlib
import json
import random
import threading

import csdstore
from conftest import Drive, together

WRITERS = 8
READERS = 2
SLOTS = 64
# So few places for roots that most names meet another's.
PLACES = 4


class Cache:
    """One host of the drive."""

    def __init__(self, url: str, chunk_bytes: int) -> None:
        """Connect; chunks have at most so many bytes."""
        self.kv = csdstore.connect(url)
        self.most = min(int(self.kv.info()["value_bytes_max"]), chunk_bytes)
        self.collisions = 0
        self.stored = 0

    def put(self, name: str, content: bytes) -> int:
        """Store an object unless it is there already; return its slot."""
        chunks = [content[at : at + self.most] for at in range(0, len(content), self.most)]
        sums = [hashlib.sha256(chunk).hexdigest() for chunk in chunks]
        for slot in range(SLOTS):
            keys = [chunk_key(name, number, slot) for number in range(len(chunks))]
            root = json.dumps({"name": name, "slot": slot, "sums": sums}).encode()
            made: list[bytes] = []
            pairs = [*zip(keys, chunks, strict=True), (root_key(name, slot), root)]
            if all(self._store(key, value, made) for key, value in pairs):
                self.stored += root_key(name, slot) in made
                return slot
            self.collisions += 1
            for key in made:
                self.kv.delete_value(key)
        raise LookupError(name)

    def get(self, name: str) -> bytes | None:
        """Return an object whose root is there."""
        for slot in range(SLOTS):
            value = self.kv.get_value(root_key(name, slot))
            if value is None:
                return None
            root = json.loads(value)
            assert root["slot"] == slot
            if root["name"] == name:
                return b"".join(self._chunk(name, at, slot, s) for at, s in enumerate(root["sums"]))
        return None

    def _store(self, key: bytes, value: bytes, made: list[bytes]) -> bool:
        try:
            self.kv.put_value(key, value, if_absent=True)
            made.append(key)
            return True
        except csdstore.KeyExists:
            return self.kv.get_value(key) == value

    def _chunk(self, name: str, number: int, slot: int, checksum: str) -> bytes:
        chunk = self.kv.get_value(chunk_key(name, number, slot))
        # The root is stored last: a chunk that it names is there.
        assert chunk is not None
        assert hashlib.sha256(chunk).hexdigest() == checksum
        return chunk


def hashed(*parts: object) -> bytes:
    """Return a key of 16 bytes."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=16).digest()


def root_key(name: str, slot: int) -> bytes:
    """Return one of few keys, so that names collide."""
    return hashed("root", hashed(name)[0] % PLACES, slot)


def chunk_key(name: str, number: int, slot: int) -> bytes:
    """Return the key of a chunk."""
    return hashed("chunk", name, number, slot)


def test_racing_writers_store_every_object_once(drive: Drive) -> None:
    """Each object has one root, readers see all of it or nothing, and the drive's figures hold."""
    objects = {f"object-{n}": random.Random(n).randbytes(1000 + 9000 * (n % 20)) for n in range(40)}
    caches = [Cache(drive.url, chunk_bytes=32 << 10) for _ in range(WRITERS + READERS)]
    before = caches[0].kv.info()
    slots: list[dict[str, int]] = [{} for _ in range(WRITERS)]
    writing = threading.Event()
    writing.set()

    def write(writer: int) -> None:
        names = sorted(objects, key=lambda name: hashed(name, writer))
        for name in names:
            slots[writer][name] = caches[writer].put(name, objects[name])

    def read(cache: Cache) -> None:
        while writing.is_set():
            name = random.choice(list(objects))
            assert cache.get(name) in (None, objects[name])

    def writers() -> None:
        try:
            together([lambda writer=writer: write(writer) for writer in range(WRITERS)])
        finally:
            writing.clear()

    together([writers, *(lambda cache=cache: read(cache) for cache in caches[WRITERS:])])

    assert all(found == slots[0] for found in slots)
    assert sum(cache.stored for cache in caches) == len(objects)
    assert any(cache.collisions for cache in caches)
    places = {root_key(name, slot) for name, slot in slots[0].items()}
    assert len(places) == len(objects)
    for cache in caches:
        assert all(cache.get(name) == content for name, content in objects.items())
    # Chunks of slots that another object had taken are gone: there are roots and their chunks.
    kv, most = caches[0].kv, caches[0].most
    assert len(kv) == sum(1 + -(-len(content) // most) for content in objects.values())
    stored = sum(map(len, objects.values()))
    full = kv.info()
    assert int(before["used_bytes"]) + stored <= int(full["used_bytes"]) <= int(full["bytes"])
    for key in list(kv):
        assert kv.delete_value(key)
    assert int(kv.info()["used_bytes"]) <= int(full["used_bytes"]) - stored
    for cache in caches:
        cache.kv.close()
