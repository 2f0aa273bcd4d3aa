"""Signals while a call waits for a drive."""

import os
import signal
import threading

import csdstore
import pytest
from conftest import Drive, Gated

# Calls, and what must be there before the drive falls silent.
INTERRUPTED = {
    "connect": ("pass", "csdstore.connect(url.format(gate), tries=0)"),
    "get": ("kv = connect()", "kv.get_value('k')"),
    "put": ("kv = connect()", "kv.put('k', bytes(8))"),
    "iterate": ("kv = connect()", "list(kv)"),
    "with": ("client = connect()", "with client as kv: kv.flush()"),
}


@pytest.mark.parametrize("call", INTERRUPTED)
def test_an_interrupt_ends_a_call_to_a_silent_drive(drive: Drive, call: str) -> None:
    """The call ends with KeyboardInterrupt before its time is up, which would be another error."""
    before, waiting = INTERRUPTED[call]
    code = f"""
import os, signal, sys, csdstore
url, gate = sys.argv[1:]
def connect():
    return csdstore.connect(url.format(gate), tries=0)
def interrupt():
    asked.wait()
    os.kill(os.getpid(), signal.SIGINT)
{before}
threading.Thread(target=interrupt).start()
shut.set()
try:
    {waiting}
except KeyboardInterrupt as error:
    assert error.__context__ is None, repr(error.__context__)
else:
    raise AssertionError("it was not interrupted")
"""
    Gated(code, [drive.listen], drive.url.replace(drive.listen, "{}")).end()


def test_a_handler_that_raises_nothing_ends_no_call(drive: Drive) -> None:
    """The handler runs while the call waits, and the call goes on until the drive answers."""
    with csdstore.connect(drive.url) as kv:
        kv["k"] = b"v"
        handled = threading.Event()
        before = signal.signal(signal.SIGUSR1, lambda *_: handled.set())
        drive.halt()

        def interrupt() -> None:
            os.kill(os.getpid(), signal.SIGUSR1)
            handled.wait()
            drive.process.send_signal(signal.SIGCONT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        try:
            assert kv["k"] == b"v"
        finally:
            thread.join()
            signal.signal(signal.SIGUSR1, before)
