"""The client for an event loop.

Operations are submitted to the client's own thread; its descriptor tells the loop when some have
ended.
"""

import asyncio
import itertools
from collections.abc import Callable
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from csdstore._client import Key, raw
from csdstore._csdstore import Native
from csdstore._exit import watch

if TYPE_CHECKING:
    from typing_extensions import Buffer
else:
    Buffer = Any

# Operations under way; later ones wait in the loop, so that submitting never blocks it.
CAPACITY = 1024


class AsyncClient:
    """A connection to a key-value namespace, for one event loop."""

    def __init__(
        self, url: str, *, secrets: Any = None, host_nqn: str | None = None, tries: Any = None
    ) -> None:
        """Prepare; entering the context connects."""
        self._arguments = (url, secrets, host_nqn, tries, 2 * CAPACITY)
        self._tokens = itertools.count()
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._room = asyncio.Semaphore(CAPACITY)
        self._native: Native | None = None

    async def put_value(
        self, key: Key, value: Buffer, *, if_absent: bool = False, if_exists: bool = False
    ) -> None:
        """Store one value."""
        native = self._open()
        await self._run(native.submit_put, raw(key), value, if_absent, if_exists)

    async def get_value(self, key: Key) -> bytes | None:
        """Return one value; ``None`` if the key does not exist."""
        value: bytes | None = await self._run(self._open().submit_get, raw(key))
        return value

    async def exists(self, key: Key) -> bool:
        """Return whether a key exists."""
        return bool(await self._run(self._open().submit_exists, raw(key)))

    async def delete_value(self, key: Key) -> bool:
        """Delete a key; false if the drive reports that it did not exist."""
        return bool(await self._run(self._open().submit_delete, raw(key)))

    async def close(self) -> None:
        """Disconnect; operations under way end with an error."""
        native, self._native = self._native, None
        if native is not None:
            await asyncio.to_thread(native.close)
            self._drain(native)
            asyncio.get_running_loop().remove_reader(native.fileno())

    async def __aenter__(self) -> Self:
        """Connect."""
        native = watch(await asyncio.to_thread(Native, *self._arguments))
        self._native = native
        asyncio.get_running_loop().add_reader(native.fileno(), self._drain, native)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the client."""
        await self.close()

    def _open(self) -> Native:
        if self._native is None:
            raise RuntimeError("the client is not connected: use `async with csdstore.aio(url)`")
        return self._native

    async def _run(self, submit: Callable[..., None], *arguments: Any) -> Any:
        async with self._room:
            token = next(self._tokens)
            future = asyncio.get_running_loop().create_future()
            self._waiting[token] = future
            try:
                submit(token, *arguments)
                return await future
            finally:
                self._waiting.pop(token, None)

    def _drain(self, native: Native) -> None:
        for token, value, error in native.drain():
            future = self._waiting.get(token)
            # A task that was cancelled waits no more.
            if future is None or future.done():
                continue
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)


def aio(
    url: str,
    *,
    secrets: str | PathLike[str] | None = None,
    host_nqn: str | None = None,
    tries: int | None = None,
) -> AsyncClient:
    """Return a client for ``async with``; arguments as for `csdstore.connect`."""
    return AsyncClient(url, secrets=secrets, host_nqn=host_nqn, tries=tries)
