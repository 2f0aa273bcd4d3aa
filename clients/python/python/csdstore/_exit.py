"""The end of the interpreter: every client is closed before, so that no thread waits in one.

A thread that waits while the interpreter ends would be ended in the middle of native code.
"""

import atexit
import os
import weakref
from contextlib import suppress
from typing import TypeVar

from csdstore._csdstore import Error, Native, NativeArray, forked, settle, shut

Handle = TypeVar("Handle", Native, NativeArray)

os.register_at_fork(after_in_child=forked)

_clients: "weakref.WeakSet[Native | NativeArray]" = weakref.WeakSet()


def watch(native: Handle) -> Handle:
    """Close this client when the interpreter ends."""
    _clients.add(native)
    return native


@atexit.register
def _close_all() -> None:
    shut()
    for native in list(_clients):
        # A fork has none of the threads, and nothing to close.
        with suppress(Error):
            native.close()
    settle()
