"""The package against a drive."""

import array
import asyncio
import os
import subprocess
import sys
from pathlib import Path

import csdstore
import pytest
from conftest import HOST_NQN, LIMIT, Drive, Gated, secrets_files, together


def test_it_is_a_mapping_of_values_of_any_length(drive: Drive) -> None:
    """Short values, long ones, and what a mapping offers on top."""
    with csdstore.connect(drive.url) as kv:
        most = kv.info()["value_bytes_max"]
        assert isinstance(most, int)
        long = os.urandom(3 * most + 1)
        kv["short"] = b"value"
        kv[b"long"] = long
        kv.flush()
        assert kv["short"] == b"value"
        assert kv[b"long"] == long
        assert sorted(kv) == [b"long", b"short"]
        assert len(kv) == 2
        assert "short" in kv
        assert "none" not in kv
        assert len(list(kv.keys_with(pieces=True))) == 2 + 4
        assert dict(kv.items())[b"short"] == b"value"
        with pytest.raises(KeyError):
            kv["none"]
        del kv["long"]
        with pytest.raises(KeyError):
            del kv["long"]
        assert list(kv.keys_with(pieces=True)) == [b"short"]
        assert kv.get("none") is None
        assert kv.get("none", 7) == 7
        assert kv.pop("short") == b"value"
        assert not kv.exists("short")


def test_anything_with_the_buffer_protocol_is_a_value(drive: Drive) -> None:
    """Keys and values from several types, and values into a buffer."""
    with csdstore.connect(drive.url) as kv:
        numbers = array.array("i", range(100))
        views = (memoryview(b"a view"), memoryview(numbers).cast("B"))
        for value in (b"bytes", bytearray(b"array"), *views):
            kv.put_value(memoryview(b"k"), value)
            assert kv.get_value(bytearray(b"k")) == bytes(value)
        buffer = bytearray(b"#" * 8)
        kv.put_value("k", b"0123456789")
        assert kv.get_into("k", memoryview(buffer)[:4]) == 10
        assert buffer == b"0123####"
        assert kv.get_into("none", buffer) is None
        with pytest.raises(BufferError):
            kv.get_into("k", b"read only")
        with pytest.raises(TypeError):
            kv.put_value("k", 7)  # type: ignore[arg-type]


def test_items_of_any_size_are_bytes(drive: Drive) -> None:
    """Values, keys and targets of several bytes an item and of several dimensions."""
    numbers = array.array("i", range(-6, 6))
    plane = memoryview(numbers).cast("B").cast("i", (3, 4))
    flags = memoryview(bytes([0, 1, 1])).cast("?")
    nothing = memoryview(array.array("d"))
    values = (numbers, memoryview(numbers), plane, flags, nothing, memoryview(numbers)[2:7])

    async def put_and_get(value: memoryview) -> bytes | None:
        async with csdstore.aio(drive.url) as kv:
            await kv.put_value(key, value)
            return await kv.get_value(key)

    with csdstore.connect(drive.url) as kv:
        key = array.array("h", [1, 2])
        for value in values:
            content = memoryview(value).tobytes()
            kv["object"] = value
            kv.put_value(key, value)
            assert kv["object"] == kv.get_value(key.tobytes()) == content
            assert kv.delete_value(key)
            assert asyncio.run(put_and_get(value)) == content
        kv.put_value("k", numbers)
        for into in (array.array("i", [7] * 14), memoryview(array.array("d", [0.5] * 7))):
            rest = memoryview(into).tobytes()[numbers.itemsize * len(numbers) :]
            assert kv.get_into("k", into) == numbers.itemsize * len(numbers)
            assert memoryview(into).tobytes() == numbers.tobytes() + rest
        into = array.array("q", [0])
        assert kv.get_into("k", into) == numbers.itemsize * len(numbers)
        assert into.tobytes() == numbers.tobytes()[:8]


def test_bytes_that_do_not_lie_in_order_are_refused(drive: Drive) -> None:
    """The error is in words, and nothing is stored or written."""
    numbers = array.array("i", range(12))
    steps = memoryview(numbers)[::2]
    assert not steps.c_contiguous

    async def put() -> None:
        async with csdstore.aio(drive.url) as kv:
            await kv.put_value("k", steps)

    with csdstore.connect(drive.url) as kv:
        for put_ in (kv.put, kv.put_value):
            for view in (steps, memoryview(b"abcdef")[::-1]):
                with pytest.raises(BufferError, match="not C-contiguous: pass a copy"):
                    put_("k", view)
        with pytest.raises(BufferError, match="not C-contiguous"):
            asyncio.run(put())
        with pytest.raises(BufferError, match="not C-contiguous"):
            kv.exists(memoryview(b"abcdef")[::2])
        assert list(kv) == []
        kv["k"] = bytes(48)
        with pytest.raises(BufferError, match="not C-contiguous"):
            kv.get_into("k", steps)
        assert list(numbers) == list(range(12))
        for key in ("k", "none"):
            with pytest.raises(BufferError, match="can be written"):
                kv.get_into(key, memoryview(numbers).toreadonly())
        kv["k"] = bytes(steps)
        assert kv["k"] == steps.tobytes()


def test_arrays_of_numpy_are_bytes(drive: Drive) -> None:
    """Contiguous ones, as values and as targets; others are refused."""
    numpy = pytest.importorskip("numpy")
    matrix = numpy.arange(12, dtype=numpy.float32).reshape(3, 4)
    with csdstore.connect(drive.url) as kv:
        kv["m"] = matrix
        assert (numpy.frombuffer(kv["m"], numpy.float32).reshape(3, 4) == matrix).all()
        into = numpy.zeros_like(matrix)
        assert kv.get_into("m", into) == matrix.nbytes
        assert (into == matrix).all()
        kv["none"] = numpy.zeros((0, 3), dtype=numpy.int64)
        assert kv["none"] == b""
        for refused in (matrix.T, matrix[:, 1:3]):
            with pytest.raises(BufferError, match="not C-contiguous"):
                kv["refused"] = refused
            with pytest.raises(BufferError, match="not C-contiguous"):
                kv.get_into("m", refused)
        assert (into == matrix).all()
        assert "refused" not in kv


def test_conditions_and_wrong_arguments_are_errors_in_words(drive: Drive) -> None:
    """Each error is of its kind."""
    with csdstore.connect(drive.url) as kv:
        kv.put("k", b"1", if_absent=True)
        for put in (kv.put, kv.put_value):
            with pytest.raises(csdstore.KeyExists):
                put("k", b"2", if_absent=True)
            with pytest.raises(csdstore.Error, match="does not exist"):
                put("none", b"2", if_exists=True)
        for key in ("", "seventeen letters"):
            with pytest.raises(ValueError, match="1 to 16 bytes"):
                kv.exists(key)
        most = kv.info()["value_bytes_max"]
        with pytest.raises(ValueError, match="bytes allowed"):
            kv.put_value("k", bytes(int(most) + 1))
    with pytest.raises(csdstore.Closed):
        kv.get("k")
    with pytest.raises(ValueError, match="not an address"):
        csdstore.connect("http://x")
    with pytest.raises(ValueError, match="no kv namespace"):
        csdstore.connect(drive.url + "?nsid=1")


def test_threads_share_a_client(drive: Drive) -> None:
    """Eight threads, a hundred values each."""
    with csdstore.connect(drive.url) as kv:

        def work(thread: int) -> None:
            for number in range(100):
                key = f"{thread}-{number}"
                kv.put_value(key, key.encode())
                assert kv.get_value(key) == key.encode()

        together(lambda thread=thread: work(thread) for thread in range(8))
        assert len(kv) == 800


def test_other_threads_run_while_a_call_waits(drive: Drive) -> None:
    """No command of any call reaches the drive before another thread has run."""
    calls = """
import sys, csdstore
url, gate = sys.argv[1:]
with csdstore.connect(url.format(gate), tries=0) as kv:
    long = bytes(kv.info()["value_bytes_max"] + 1)
    kv.put_value("k", b"value")
    assert kv.get_value("k") == b"value"
    assert kv.get_into("k", bytearray(8)) == 5
    assert kv.exists("k")
    kv["long"] = long
    assert kv["long"] == long
    assert sorted(kv) == [b"k", b"long"]
    kv.flush()
    assert kv.delete_value("k")
    del kv["long"]
"""
    gated = Gated(calls, [drive.listen], drive.url.replace(drive.listen, "{}"))
    assert gated.end() > 10


def test_objects_have_no_keys_of_pieces(drive: Drive) -> None:
    """The error is wrong use, in words; values have any key."""
    key = b"\xf5CSD" + bytes(8) + b"\x01\x23\x45\x67"
    with csdstore.connect(drive.url) as kv:
        with pytest.raises(ValueError, match="under another key"):
            kv[key] = b"v"
        kv.put_value(key, b"v")
        assert kv[key] == b"v"
        del kv[key]


def test_racing_writers_store_a_key_once(drive: Drive) -> None:
    """Of eight writers of a key, one stores it; the others find its value."""
    with csdstore.connect(drive.url) as kv:
        won: list[int] = []

        def write(thread: int) -> None:
            for number in range(50):
                try:
                    kv.put_value(f"slot-{number}", bytes([thread]), if_absent=True)
                    won.append(number)
                except csdstore.KeyExists:
                    assert kv.get_value(f"slot-{number}") is not None

        together(lambda thread=thread: write(thread) for thread in range(8))
        assert sorted(won) == list(range(50))


def test_an_event_loop_has_many_operations_under_way(drive: Drive) -> None:
    """More operations than may be under way, errors, and a task that is cancelled."""

    async def work() -> None:
        async with csdstore.aio(drive.url) as kv:
            keys = [f"key-{number}" for number in range(3000)]
            await asyncio.gather(*(kv.put_value(key, key.encode()) for key in keys))
            values = await asyncio.gather(*(kv.get_value(key) for key in keys))
            assert values == [key.encode() for key in keys]
            assert await kv.get_value("none") is None
            assert await kv.exists("key-0")
            assert await kv.delete_value("key-0")
            assert not await kv.exists("key-0")
            with pytest.raises(csdstore.KeyExists):
                await kv.put_value("key-1", b"", if_absent=True)
            cancelled = asyncio.create_task(kv.get_value("key-1"))
            await asyncio.sleep(0)
            cancelled.cancel()
            assert await kv.get_value("key-2") == b"key-2"
        with pytest.raises(RuntimeError, match="not connected"):
            await kv.get_value("k")

    asyncio.run(work())


def test_a_full_drive_is_an_error_until_a_key_is_deleted(drive: Drive) -> None:
    """The value that did not fit is not there; after a Delete it fits."""
    value = bytes(50_000)
    stored = 0
    with csdstore.connect(drive.url) as kv:

        def fill() -> None:
            nonlocal stored
            while stored < 10_000:
                kv.put_value(f"k{stored}", value)
                stored += 1

        with pytest.raises(csdstore.Error, match="capacity exceeded"):
            fill()
        assert stored > 100
        assert not kv.exists(f"k{stored}")
        assert kv.delete_value("k0")
        kv.put_value(f"k{stored}", value)
        assert kv.get_value(f"k{stored}") == value


def test_a_drive_that_is_gone_is_an_error(drive: Drive) -> None:
    """The call ends, and says that the connection is lost."""
    with csdstore.connect(drive.url, tries=0) as kv:
        kv["k"] = b"v"
        drive.stop()
        with pytest.raises(csdstore.ConnectionLost):
            kv["k"]


def test_operations_of_an_event_loop_end_when_their_drive_is_gone(drive: Drive) -> None:
    """Each one that is awaited, and those that are begun later; then the client can be closed."""

    async def work() -> None:
        async with csdstore.aio(drive.url, tries=0) as kv:
            await kv.put_value("k", b"v")
            drive.halt()
            calls = [kv.put_value("k", b"w"), kv.get_value("k"), kv.exists("k")]
            calls.append(kv.delete_value("k"))
            tasks = [asyncio.ensure_future(call) for call in calls]
            # Each one runs as far as it can without an answer.
            await asyncio.sleep(0)
            assert not any(task.done() for task in tasks)
            drive.kill()
            done, pending = await asyncio.wait(tasks, timeout=LIMIT)
            assert pending == set()
            for task in done:
                assert isinstance(task.exception(), csdstore.ConnectionLost)
            with pytest.raises(csdstore.ConnectionLost):
                await asyncio.wait_for(kv.get_value("k"), LIMIT)

    asyncio.run(work())


def test_a_drive_that_is_back_is_reached_again(tmp_path: Path) -> None:
    """A client goes on after a restart of its drive, without a new call of connect."""
    drive = Drive(media=str(tmp_path / "media"))
    try:
        with csdstore.connect(drive.url) as kv:
            kv["k"] = b"v"
            drive.stop()
            drive.start()
            assert kv["k"] == b"v"
            kv["k"] = b"w"
            assert kv["k"] == b"w"
    finally:
        drive.stop()


def test_a_host_proves_its_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The right secret is taken as an argument or from the environment; others are refused."""
    right, wrong = secrets_files(tmp_path)
    drive = Drive("--secrets", str(right))
    try:
        with csdstore.connect(drive.url, secrets=right) as kv:
            kv["k"] = b"v"
        for settings in ({"secrets": wrong}, {"host_nqn": HOST_NQN}):
            with pytest.raises(csdstore.Error, match=r"secret|authenticat"):
                csdstore.connect(drive.url, **settings)
        with pytest.raises(ValueError, match="none"):
            csdstore.connect(drive.url, secrets=tmp_path / "none")
        monkeypatch.setenv("CSD_SECRETS", str(right))

        async def read() -> bytes | None:
            async with csdstore.aio(drive.url) as kv:
                return await kv.get_value("k")

        assert asyncio.run(read()) == b"v"
    finally:
        drive.stop()


def test_a_fork_is_found(drive: Drive) -> None:
    """The child gets an error, and may connect itself; the parent goes on."""
    kv = csdstore.connect(drive.url)
    kv["k"] = b"v"
    child = os.fork()
    if child == 0:
        code = 1
        try:
            kv.get("k")
        except csdstore.Closed as error:
            with csdstore.connect(drive.url) as own:
                code = 42 if "forked" in str(error) and own["k"] == b"v" else 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 42
    assert kv["k"] == b"v"
    kv.close()


def test_the_interpreter_may_exit_with_operations_under_way(drive: Drive) -> None:
    """No hang, no crash, nothing on standard error."""
    script = f"""
import asyncio, csdstore, threading
kv = csdstore.connect({drive.url!r})
def fill():
    while True:
        try:
            kv.put_value("k", bytes(200000))
        except csdstore.Closed:
            pass
for _ in range(3):
    threading.Thread(target=fill, daemon=True).start()
async def work():
    other = csdstore.aio({drive.url!r})
    await other.__aenter__()
    for _ in range(50):
        asyncio.ensure_future(other.put_value("x", bytes(200000)))
    await asyncio.sleep(0.01)
asyncio.run(work())
"""
    for _ in range(3):
        python = [sys.executable, "-c", script]
        done = subprocess.run(python, capture_output=True, text=True, timeout=600, check=False)
        assert done.returncode == 0, done.stderr
        assert "panicked" not in done.stderr
        assert "FATAL" not in done.stderr
