"""The client for threads: blocking calls, and a mapping of values of any length."""

from collections.abc import Iterator, MutableMapping
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from csdstore._csdstore import Native
from csdstore._exit import watch

if TYPE_CHECKING:
    from typing_extensions import Buffer

    Key = str | Buffer
else:
    Buffer = Key = Any


def raw(key: Key) -> Buffer:
    """Return a key's bytes."""
    return key.encode() if isinstance(key, str) else key


class Client(MutableMapping[Key, bytes]):
    """A connection to a key-value namespace, which any number of threads may use.

    As a mapping it holds values of any length; iterating yields keys as bytes.
    """

    def __init__(
        self,
        url: str,
        *,
        secrets: str | PathLike[str] | None = None,
        host_nqn: str | None = None,
        tries: int | None = None,
    ) -> None:
        """Connect to ``nvme+tcp://HOST:PORT/NQN[?nsid=N]``."""
        self._native = watch(Native(url, secrets, host_nqn, tries))

    def put_value(
        self, key: Key, value: Buffer, *, if_absent: bool = False, if_exists: bool = False
    ) -> None:
        """Store one value, no longer than the drive's longest one, by one command."""
        self._native.put(raw(key), value, if_absent, if_exists)

    def get_value(self, key: Key) -> bytes | None:
        """Return one value as the drive has it; ``None`` if the key does not exist."""
        return self._native.get(raw(key))

    def get_into(self, key: Key, buffer: Buffer) -> int | None:
        """Write the first bytes of a value into a buffer.

        Returns the length of the whole value, which may be more than the buffer's; ``None`` if the
        key does not exist.
        """
        return self._native.get_into(raw(key), buffer)

    def exists(self, key: Key) -> bool:
        """Return whether a key exists."""
        return self._native.exists(raw(key))

    def delete_value(self, key: Key) -> bool:
        """Delete a key by one command; false if the drive reports that it did not exist."""
        return self._native.delete(raw(key))

    def put(
        self, key: Key, value: Buffer, *, if_absent: bool = False, if_exists: bool = False
    ) -> int:
        """Store a value of any length; return the number of its pieces, 0 for one value."""
        return self._native.put_object(raw(key), value, if_absent, if_exists)

    def get(self, key: Key, default: Any = None) -> Any:
        """Return a value of any length, or ``default`` if the key does not exist."""
        value = self._native.get_object(raw(key))
        return default if value is None else value

    def delete(self, key: Key) -> bool:
        """Delete a value of any length; false if it did not exist."""
        return self._native.delete_object(raw(key))

    def keys_with(self, prefix: Key = b"", *, pieces: bool = False) -> Iterator[bytes]:
        """Iterate over keys in the drive's order, with ``pieces`` also over those of pieces."""
        return self._native.keys(raw(prefix), pieces)

    def flush(self) -> None:
        """Wait until every change is durable that was answered before, to any host."""
        self._native.flush()

    def info(self) -> dict[str, int | str]:
        """Return size, use and limits of the namespace."""
        return self._native.info()

    def close(self) -> None:
        """Disconnect; calls under way end with an error."""
        self._native.close()

    def __getitem__(self, key: Key) -> bytes:
        """Return a value of any length."""
        value = self._native.get_object(raw(key))
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: Key, value: Buffer) -> None:
        """Store a value of any length."""
        self.put(key, value)

    def __delitem__(self, key: Key) -> None:
        """Delete a value of any length."""
        if not self.delete(key):
            raise KeyError(key)

    def __contains__(self, key: object) -> bool:
        """Return whether a key exists."""
        return self.exists(key)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[bytes]:
        """Iterate over keys."""
        return self.keys_with()

    def __len__(self) -> int:
        """Count the keys, by listing all."""
        return sum(1 for _ in self)

    def __enter__(self) -> Self:
        """Return the client."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close the client."""
        self.close()


def connect(
    url: str,
    *,
    secrets: str | PathLike[str] | None = None,
    host_nqn: str | None = None,
    tries: int | None = None,
) -> Client:
    """Connect to ``nvme+tcp://HOST:PORT/NQN[?nsid=N]``.

    Without ``nsid``, to the drive's first key-value namespace. ``secrets`` is a secrets file, else
    that of ``$CSD_SECRETS``; ``host_nqn`` this host's name, else that of ``$CSD_HOST_NQN``, of the
    secrets file, or of this machine; ``tries`` the reconnections that a command survives.
    """
    return Client(url, secrets=secrets, host_nqn=host_nqn, tries=tries)
