"""The connector for LMCache, used as LMCache's adapter uses it; `make llm` runs LMCache itself."""

import ctypes
import os
import select
import threading
from collections.abc import Iterator
from typing import Any

import csdstore
import pytest
from conftest import LIMIT, Drive
from csdstore.lmcache import PREFIX, Completion, Connector, key_of


def view(content: bytes) -> memoryview:
    """Return a view as LMCache makes them: over memory of its own, with a format of ctypes."""
    array = ctypes.c_ubyte * len(content)
    return memoryview(array.from_buffer_copy(content))


def ended(connector: Connector, number: int) -> Completion:
    """Wait for one batch."""
    poller = select.poll()
    poller.register(connector.event_fd(), select.POLLIN)
    while poller.poll(60_000):
        found = connector.drain_completions()
        if found:
            assert [one[0] for one in found] == [number]
            return found[0]
    raise TimeoutError


@pytest.fixture
def connector(drive: Drive) -> Iterator[Connector]:
    """Connect to the drive."""
    connector = Connector(drive.url)
    yield connector
    connector.close()


def test_chunks_are_stored_found_loaded_and_deleted(connector: Connector, drive: Drive) -> None:
    """Short ones, and one that is longer than the drive's longest value."""
    with csdstore.connect(drive.url) as kv:
        most = int(kv.info()["value_bytes_max"])
    content = [b"", b"1", os.urandom(64), os.urandom(100_000), os.urandom(most + 1)]
    names = [f"org/model@00000001@0@{number:064x}@salt" for number in range(len(content))]

    def run(submit: Any, *columns: Any) -> list[bool]:
        number, ok, error, results = ended(connector, submit(*columns))
        assert (ok, error) == (True, ""), number
        return list(results)

    assert run(connector.submit_batch_exists, names) == [False] * 5
    assert all(run(connector.submit_batch_set, names, [view(one) for one in content]))
    assert run(connector.submit_batch_exists, [*names, "other"]) == [True] * 5 + [False]
    buffers = [view(bytes(len(one))) for one in content]
    assert all(run(connector.submit_batch_get, names, buffers))
    assert [bytes(buffer) for buffer in buffers] == content
    # A missing chunk, and one of another length, change no buffer.
    buffers = [view(b"##"), view(b"##")]
    assert run(connector.submit_batch_get, ["other", names[3]], buffers) == [False, False]
    assert [bytes(buffer) for buffer in buffers] == [b"##", b"##"]
    assert run(connector.submit_batch_exists, []) == []
    with csdstore.connect(drive.url) as kv:
        assert sorted(kv.keys_with(PREFIX)) == sorted(map(key_of, names))
        assert run(connector.submit_batch_delete, [*names, "other"]) == [True] * 5 + [False]
        assert list(kv.keys_with(pieces=True)) == []


def test_what_is_stored_is_what_is_loaded(connector: Connector) -> None:
    """The same content again, and other content, are both a success."""
    for content in (b"first", b"first", b"other", b"longer content"):
        assert ended(connector, connector.submit_batch_set(["x"], [view(content)]))[1]
        buffer = view(bytes(len(content)))
        assert ended(connector, connector.submit_batch_get(["x"], [buffer]))[3] == [True]
        assert bytes(buffer) == content


def test_racing_connectors_store_the_same_chunks(drive: Drive) -> None:
    """Every store succeeds, and no piece of a long chunk is left behind."""
    with csdstore.connect(drive.url) as kv:
        long = os.urandom(int(kv.info()["value_bytes_max"]) + 7)
        connectors = [Connector(drive.url, threads=2) for _ in range(4)]
        names = [f"chunk-{number}" for number in range(8)] + ["long"]
        values = [view(name.encode() * 1000) for name in names[:-1]] + [view(long)]
        numbers = [one.submit_batch_set(names, values) for one in connectors]
        for one, number in zip(connectors, numbers, strict=True):
            assert ended(one, number)[1:3] == (True, "")
            one.close()
        assert kv[key_of("long")] == long
        assert len(kv) == 9
        assert len(list(kv.keys_with(pieces=True))) == 9 + 2


def test_errors_are_results(drive: Drive) -> None:
    """A drive that is gone, a closed connector, wrong arguments."""
    with pytest.raises(ValueError, match="at least 1"):
        Connector(drive.url, threads=0)
    connector = Connector(drive.url, tries=0)
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        connector.submit_batch_set(["x", "y"], [view(b"1")])
    drive.stop()
    _, ok, error, results = ended(connector, connector.submit_batch_exists(["x", "y"]))
    assert (ok, results) == (False, [False, False])
    assert error.startswith(("x: ", "y: "))
    connector.close()
    connector.close()
    assert connector.drain_completions() == []
    with pytest.raises(csdstore.Closed):
        connector.submit_batch_exists(["x"])


def test_closing_ends_batches_that_are_under_way(drive: Drive) -> None:
    """Those at the drive and those that wait for a thread, by an error and without a result."""
    connector = Connector(drive.url, threads=2)
    drive.halt()
    names = ["x", "y", "z"]
    numbers = [
        connector.submit_batch_set(names, [view(b"1")] * 3),
        connector.submit_batch_get(names, [view(b"1") for _ in names]),
        connector.submit_batch_exists(names),
        connector.submit_batch_delete(names),
    ]
    assert connector.drain_completions() == []
    closing = threading.Thread(target=connector.close, daemon=True)
    closing.start()
    closing.join(LIMIT)
    assert not closing.is_alive()
    completions = connector.drain_completions()
    assert sorted(number for number, *_ in completions) == numbers
    for _, ok, error, results in completions:
        assert (ok, results) == (False, [False] * 3)
        assert error.startswith(("x: ", "y: ", "z: "))
    drive.kill()
