"""Key-value namespaces of NVMe/TCP drives, as a mapping, from threads and asyncio.

``connect`` returns a `Client` for threads, ``aio`` an `AsyncClient` for an event loop. Errors are
`Error`, with `KeyExists`, `ConnectionLost` and `Closed` as its kinds; wrong arguments are
``ValueError``.
"""

from csdstore._aio import AsyncClient, aio
from csdstore._client import Client, connect
from csdstore._csdstore import Closed, ConnectionLost, Error, KeyExists

__all__ = [
    "AsyncClient",
    "Client",
    "Closed",
    "ConnectionLost",
    "Error",
    "KeyExists",
    "aio",
    "connect",
]
