"""A connector for LMCache: chunks of KV caches as objects of a key-value namespace.

The ``native_plugin`` L2 adapter of LMCache loads `Connector` by its name, submits batches, and
waits on its descriptor for their ends. Other programs may use it in the same way.
"""

import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from csdstore._client import connect
from csdstore._csdstore import Closed, KeyExists

# First byte of every key, so that chunks can be listed and told from other keys.
PREFIX = b"L"

# Number of the batch, true if no key failed, the first error in words, a result for each key.
Completion = tuple[int, bool, str, list[bool]]


def key_of(name: str) -> bytes:
    """Return the key of a chunk: names are longer than keys, so that 120 bits of a hash name it."""
    return PREFIX + hashlib.blake2b(name.encode(), digest_size=15).digest()


@dataclass
class _Batch:
    number: int
    left: int
    results: list[bool]
    error: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)


class Connector:
    """Stores, finds, loads and deletes chunks by name, on threads of its own.

    ``threads`` is the number of chunks under way at once; the other arguments are those of
    `csdstore.connect`. Any number of threads may use it. Buffers must live until their batch ends.
    """

    def __init__(self, url: str, *, threads: int = 8, **options: Any) -> None:
        """Connect to ``nvme+tcp://HOST:PORT/NQN[?nsid=N]``."""
        if threads < 1:
            raise ValueError(f"threads is {threads}; a connector needs at least 1")
        self._kv = connect(url, **options)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="csdstore-lmcache")
        self._event = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._numbers = count(1)
        self._lock = threading.Lock()
        self._ended: list[Completion] = []
        self._closed = False

    def event_fd(self) -> int:
        """Return the descriptor that is readable while batches have ended."""
        return self._event

    def submit_batch_set(self, keys: Sequence[str], values: Sequence[memoryview]) -> int:
        """Store chunks; return the number of the batch."""
        return self._submit(self._store, keys, values)

    def submit_batch_get(self, keys: Sequence[str], buffers: Sequence[memoryview]) -> int:
        """Load chunks into buffers; false for one that is missing or of another size."""
        return self._submit(self._load, keys, buffers)

    def submit_batch_exists(self, keys: Sequence[str]) -> int:
        """Look chunks up."""
        return self._submit(lambda name: self._kv.exists(key_of(name)), keys)

    def submit_batch_delete(self, keys: Sequence[str]) -> int:
        """Delete chunks; a result is false if the chunk did not exist."""
        return self._submit(lambda name: self._kv.delete(key_of(name)), keys)

    def drain_completions(self) -> list[Completion]:
        """Return the batches that have ended since the last call."""
        with self._lock:
            if not self._closed:
                with suppress(BlockingIOError):
                    os.eventfd_read(self._event)
            ended, self._ended = self._ended, []
        return ended

    def close(self) -> None:
        """Disconnect; batches under way end with an error."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
        self._kv.close()
        self._pool.shutdown()
        os.close(self._event)

    def _store(self, name: str, value: memoryview) -> bool:
        key, value = key_of(name), value.cast("B")
        try:
            self._kv.put(key, value, if_absent=True)
        except KeyExists:
            # A name stands for one content, so that another host has usually stored the same.
            # Other bytes are replaced: a store that succeeds means that a load returns its bytes.
            if self._kv.get(key) != value:
                self._kv.put(key, value)
        return True

    def _load(self, name: str, buffer: memoryview) -> bool:
        value = self._kv.get(key_of(name))
        if value is None or len(value) != buffer.nbytes:
            return False
        buffer.cast("B")[:] = value
        return True

    def _submit(self, work: Callable[..., bool], *columns: Sequence[Any]) -> int:
        rows = list(zip(*columns, strict=True))
        batch = _Batch(next(self._numbers), len(rows), [False] * len(rows))
        with self._lock:
            if self._closed:
                raise Closed("the connector is closed")
            for at, row in enumerate(rows):
                self._pool.submit(self._run, batch, at, work, row)
        if not rows:
            self._end(batch)
        return batch.number

    def _run(self, batch: _Batch, at: int, work: Callable[..., bool], row: Sequence[Any]) -> None:
        error = ""
        try:
            batch.results[at] = work(*row)
        except Exception as failure:
            error = f"{row[0]}: {failure}"
        with batch.lock:
            batch.error = batch.error or error
            batch.left -= 1
            last = batch.left == 0
        if last:
            self._end(batch)

    def _end(self, batch: _Batch) -> None:
        with self._lock:
            self._ended.append((batch.number, not batch.error, batch.error, batch.results))
        os.eventfd_write(self._event, 1)


__all__ = ["PREFIX", "Connector", "key_of"]
