"""A cache for files that are read: the next part comes while a program works on this one."""

import threading
from collections.abc import Callable
from contextlib import suppress

from fsspec.caching import BaseCache, register_cache  # type: ignore

# Bytes that a read out of order fetches at least: a chunk of most objects.
FIRST_BYTES = 1 << 20


class Part(threading.Thread):
    """Bytes that a thread of their own fetches; ``None`` if that fails."""

    def __init__(self, fetch: Callable[[int, int], bytes], start: int, end: int) -> None:
        """Start to fetch."""
        super().__init__(daemon=True)
        self.begin = start
        self._arguments = (fetch, start, end)
        self._bytes: bytes | None = None
        self.start()

    def run(self) -> None:
        """Fetch."""
        fetch, start, end = self._arguments
        # The reader fetches again, and meets the error itself.
        with suppress(Exception):
            self._bytes = fetch(start, end)

    def take(self) -> bytes | None:
        """Wait for the bytes. In a fork, where no thread fetches, there are none."""
        self.join()
        return self._bytes


class Ahead(BaseCache):  # type: ignore[misc]
    """The part that was read last, and the next one while parts are read in order.

    Parts that follow one another double, up to the block size or the length of a read. A read
    elsewhere fetches what it needs, at least `FIRST_BYTES`.
    """

    name = "csd-ahead"

    def __init__(self, blocksize: int, fetcher: Callable[[int, int], bytes], size: int) -> None:
        """Begin at the file's start."""
        super().__init__(blocksize, fetcher, size)
        self._begin = 0
        self._part = b""
        self._next: Part | None = None

    def _fetch(self, start: int | None, stop: int | None) -> bytes:
        start, end = start or 0, self.size if stop is None else min(stop, self.size)
        if start >= end:
            return b""
        part_end = self._begin + len(self._part)
        if self._begin <= start and end <= part_end:
            self.hit_count += 1
            return self._part[start - self._begin : end - self._begin]
        self.miss_count += 1
        head, size = b"", FIRST_BYTES
        in_order = self._begin <= start <= part_end
        if in_order:
            head, start = self._part[start - self._begin :], part_end
            size = min(max(2 * len(self._part), size), self.blocksize)
        size = max(end - start, size)
        self._begin, self._part = start, self._take(start, end, size)
        if in_order:
            self._prefetch(start + len(self._part), size)
        found = self._part[: end - start]
        return head + found if head else found

    def _take(self, start: int, end: int, size: int) -> bytes:
        waiting, self._next = self._next, None
        found = None
        if waiting is not None and waiting.begin == start:
            found = waiting.take()
        if found is None:
            return self._get(start, start + size)
        more = end - start - len(found)
        return found + self._get(start + len(found), end) if more > 0 else found

    def _prefetch(self, start: int, size: int) -> None:
        if start < self.size:
            self._next = Part(self._get, start, start + size)

    def _get(self, start: int, end: int) -> bytes:
        end = min(end, self.size)
        self.total_requested_bytes += end - start
        found: bytes = self.fetcher(start, end)
        return found


register_cache(Ahead, clobber=True)
