"""The file system over an array's objects: its own calls."""

import array
import os
import pickle
import random
import tomllib
from datetime import UTC
from pathlib import Path

import csdstore
import pytest
from conftest import HOST_NQN, Array, Gated, secrets_files, together

fsspec = pytest.importorskip("fsspec")
CHUNK = 1 << 20


@pytest.fixture
def fs(stored: Array) -> "fsspec.AbstractFileSystem":
    """Return the file system, found by its protocol."""
    return fsspec.filesystem("csd", array=str(stored.file))


def test_ranges_of_an_object_that_csd_has_put(fs, stored: Array, tmp_path: Path) -> None:
    """Ends of chunks, random ranges, and all of it."""
    bytes_ = random.Random(1).randbytes(5 * CHUNK + 77)
    (tmp_path / "x").write_bytes(bytes_)
    for words in ((), ("--on", "block"), ("--chunk", "4k")):
        name = "-".join(("x", *words))
        stored.csd("put", str(tmp_path / "x"), name, *words)
        assert fs.info(name)["size"] == len(bytes_)
        assert fs.cat_file(name) == bytes_
        edges = (0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 5 * CHUNK, len(bytes_) - 1, len(bytes_))
        for start in edges:
            for end in edges:
                assert fs.cat_file(name, start, end) == bytes_[start:end]
        assert fs.cat_file(name, -10) == bytes_[-10:]
        assert fs.cat_file(name, 7, 10 * len(bytes_)) == bytes_[7:]
        with fs.open(f"csd://{name}") as file:
            for _ in range(50):
                at, size = random.randrange(len(bytes_)), random.randrange(100_000)
                file.seek(at)
                assert file.read(size) == bytes_[at : at + size]


def test_a_damaged_name_is_left_out_with_a_warning(fs, stored: Array) -> None:
    """It stops no other name, and does not go unseen."""
    fs.pipe({"x": b"1", "y": b"2"})
    for drive in tomllib.loads(stored.file.read_text())["drives"]:
        with csdstore.connect(f"{drive['url']}?nsid=3") as kv:
            kv.put_value(min(key for key in kv.keys_with(pieces=True) if key[0] == 1), bytes(40))
    with pytest.warns(UserWarning, match="1 name is damaged and left out"):
        assert len(fs.ls("")) == 1


def test_other_bytes_than_those_stored_are_an_error(fs, stored: Array) -> None:
    """The drive finds nothing wrong: the other bytes have a checksum of their own."""
    content = os.urandom(100)
    fs.pipe_file("x", content)
    changed = 0
    for drive in tomllib.loads(stored.file.read_text())["drives"]:
        with csdstore.connect(f"{drive['url']}?nsid=3") as kv:
            for key in kv.keys_with(pieces=True):
                if kv.get_value(key) == content:
                    kv.put_value(key, content[::-1])
                    changed += 1
    assert changed == 1
    with pytest.raises(csdstore.Error, match="is not the one that was stored"):
        fs.cat_file("x")


def test_a_file_that_is_read_in_order(fs) -> None:
    """By reads of several lengths, of growing ones, and after a step back."""
    content = random.Random(2).randbytes(21 * CHUNK + 99)
    fs.pipe_file("x", content)
    for size in (70_000, 3 * CHUNK + 1, 16 * CHUNK, len(content)):
        with fs.open("x") as file:
            assert b"".join(iter(lambda n=size: file.read(n), b"")) == content
    with fs.open("x") as file:
        at = 0
        for size in (10, CHUNK, 2 * CHUNK - 7, 9 * CHUNK, 5):
            assert file.read(size) == content[at : at + size]
            at += size
        file.seek(100)
        assert file.read(2 * CHUNK) == content[100 : 100 + 2 * CHUNK]
        assert file.read() == content[100 + 2 * CHUNK :]


def test_a_fork_cannot_read_on(fs) -> None:
    """Also where the next part was under way; the parent can."""
    content = random.Random(3).randbytes(9 * CHUNK)
    fs.pipe_file("x", content)
    with fs.open("x") as file:
        assert file.read(CHUNK) == content[:CHUNK]
        child = os.fork()
        if child == 0:
            code = 1
            try:
                file.read()
            except csdstore.Closed:
                code = 42
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 42
        assert file.read() == content[CHUNK:]


def test_a_range_of_an_object_in_parts(fs, stored: Array, tmp_path: Path) -> None:
    """Sorted numbers are cut at values, so that chunks are of any length."""
    numbers = b"".join(n.to_bytes(8, "little") for n in range(300_000))
    (tmp_path / "n").write_bytes(numbers)
    stored.csd("put", str(tmp_path / "n"), "n", "--type", "i64", "--layout", "range", "--chunk=64k")
    assert fs.info("n")["shape"] == [300_000]
    for _ in range(50):
        at, size = random.randrange(len(numbers)), random.randrange(200_000)
        assert fs.cat_file("n", at, at + size) == numbers[at : at + size]


def test_csd_reads_what_was_written(fs, stored: Array, tmp_path: Path) -> None:
    """By bytes, by file, by handle; only what was closed is there."""
    long = os.urandom(3 * CHUNK + 5)
    fs.pipe_file("a/bytes", b"hello")
    fs.pipe_file("a/items", array.array("i", [1, 2]))
    (tmp_path / "f").write_bytes(long)
    fs.put_file(str(tmp_path / "f"), "a/file")
    with fs.open("a/handle", "wb", block_size=1 << 16) as file:
        for at in range(0, len(long), 100_000):
            file.write(long[at : at + 100_000])
        assert not fs.exists("a/handle")
    with fsspec.open("csd://a/text", "w", array=str(stored.file)) as file:
        file.write("héllo")
    fs.touch("a/empty")
    for name, content in (
        ("a/bytes", b"hello"),
        ("a/items", array.array("i", [1, 2]).tobytes()),
        ("a/file", long),
        ("a/handle", long),
        ("a/text", "héllo".encode()),
        ("a/empty", b""),
    ):
        assert stored.csd("get", name, "-") == content
        assert fs.cat_file(name) == content
    fs.get_file("a/file", str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == long
    fs.cp_file("a/file", "b")
    assert fs.cat_file("b") == long


def test_a_write_that_fails_publishes_nothing(fs) -> None:
    """An exception in the block, and a file that is never closed."""

    def fail() -> None:
        with fs.open("x", "wb") as file:
            file.write(b"half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    file = fs.open("y", "wb")
    file.write(b"half")
    del file
    assert fs.ls("") == []


def test_objects_are_immutable(fs) -> None:
    """A name is written once, by whichever call; after its removal, again."""
    fs.pipe_file("x", b"1")
    with pytest.raises(FileExistsError, match="immutable"):
        fs.pipe_file("x", b"2")
    with pytest.raises(FileExistsError, match="immutable"):
        fs.open("x", "wb")
    late = fs.open("y", "wb")
    fs.pipe_file("y", b"1")
    with pytest.raises(FileExistsError):
        late.close()
    with pytest.raises(ValueError, match="mode 'ab'"):
        fs.open("x", "ab")
    first, before = fs.ukey("x"), fs.modified("x")
    assert fs.created("x").tzinfo is UTC
    assert fs.created("x").year >= 2026
    with fs.open("x") as file:
        fs.rm("x")
        fs.pipe_file("x", b"2")
        with pytest.raises(csdstore.Error, match="was removed"):
            file.read()
    assert fs.cat_file("x") == b"2"
    assert fs.ukey("x") != first
    assert fs.modified("x") != before


def test_folders_are_the_beginnings_of_names(fs) -> None:
    """Lists, patterns, walks and removal."""
    for name in ("a/1", "a/2", "a/b/3", "c", "a.b"):
        fs.pipe_file(name, name.encode())
    assert fs.ls("", detail=False) == ["a", "a.b", "c"]
    assert fs.ls("csd://a", detail=False) == ["a/1", "a/2", "a/b"]
    assert fs.ls("c")[0]["size"] == 1
    assert fs.find("") == ["a.b", "a/1", "a/2", "a/b/3", "c"]
    assert fs.glob("a/*") == ["a/1", "a/2", "a/b"]
    assert fs.cat("a/*", on_error="omit") == {"a/1": b"a/1", "a/2": b"a/2"}
    assert fs.isdir("a")
    assert fs.isdir("a/b")
    assert fs.isfile("a/b/3")
    assert not fs.exists("a/none")
    for missing in (fs.info, fs.ls, fs.cat_file, fs.rm, fs.open):
        with pytest.raises(FileNotFoundError):
            missing("a/none")
    with pytest.raises(IsADirectoryError):
        fs.cat_file("a")
    with pytest.raises(IsADirectoryError):
        fs.rm("a")
    fs.rm("a", recursive=True)
    assert fs.find("") == ["a.b", "c"]


def test_wrong_use_is_an_error_in_words(fs, stored: Array, tmp_path: Path) -> None:
    """Array files, names, arguments, a closed file system."""
    with pytest.raises(ValueError, match="there is no array file"):
        fsspec.filesystem("csd", array=str(tmp_path / "none.toml"))
    with pytest.raises(ValueError, match="an NQN begins with"):
        fsspec.filesystem("csd", array=str(stored.file), host_nqn="me")
    with pytest.raises(BufferError, match="not C-contiguous"):
        fs.pipe_file("x", memoryview(b"abcdef")[::2])
    with pytest.raises(ValueError, match="1 to 1024 bytes"):
        fs.pipe_file("x" * 1025, b"")
    other = fsspec.filesystem("csd", array=str(stored.file), skip_instance_cache=True)
    other.close()
    with pytest.raises(csdstore.Closed):
        other.cat_file("x")


def test_a_host_proves_its_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The secrets file of `secrets` is taken; another one, none and a missing one are refused."""
    right, wrong = secrets_files(tmp_path)
    monkeypatch.setenv("CSD_SECRETS", str(right))
    array = Array(tmp_path, "memory")
    monkeypatch.delenv("CSD_SECRETS")
    try:
        fs = fsspec.filesystem("csd", array=str(array.file), secrets=str(right))
        fs.pipe_file("x", b"1")
        assert fs.cat_file("x") == b"1"
        for settings in ({"secrets": str(wrong)}, {"host_nqn": HOST_NQN}):
            with pytest.raises(csdstore.Error, match=r"secret|authenticat"):
                fsspec.filesystem("csd", array=str(array.file), **settings)
        with pytest.raises(ValueError, match="none"):
            fsspec.filesystem("csd", array=str(array.file), secrets=str(tmp_path / "none"))
    finally:
        array.csd("array", "down")


def test_the_environment_names_the_array(stored: Array, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with `csd`."""
    monkeypatch.setenv("CSD_ARRAY", str(stored.file))
    fs = fsspec.filesystem("csd", skip_instance_cache=True)
    fs.pipe_file("x", b"1")
    assert fs.cat_file("x") == b"1"
    # The instance that another test made without options is for another array.
    type(fs).clear_instance_cache()
    assert pickle.loads(pickle.dumps(fs)).cat_file("x") == b"1"


def test_threads_share_a_file_system(fs) -> None:
    """Eight threads put and get at once."""

    def work(number: int) -> None:
        for round_ in range(5):
            content = random.Random(number).randbytes(CHUNK // 2)
            fs.pipe_file(f"{number}/{round_}", content)
            assert fs.cat_file(f"{number}/{round_}", 10, 1000) == content[10:1000]

    together(lambda number=number: work(number) for number in range(8))
    assert len(fs.find("")) == 40


def gated(code: str, stored: Array, folder: Path) -> Gated:
    """Run code on an array behind gates: the text of its file, and where to write that."""
    text = stored.file.read_text().replace("{", "{{").replace("}", "}}")
    drives = []
    for drive in tomllib.loads(stored.file.read_text())["drives"]:
        drives.append(drive["url"].removeprefix("nvme+tcp://").partition("/")[0])
        text = text.replace(f"//{drives[-1]}/", "//{}/")
    return Gated(code, drives, text, str(folder / "gated.toml"))


def test_other_threads_run_while_a_call_waits(stored: Array, tmp_path: Path) -> None:
    """No command of any call reaches a drive before another thread has run."""
    calls = """
import sys, fsspec
text, file, *gates = sys.argv[1:]
with open(file, "w") as array:
    array.write(text.format(*gates))
fs = fsspec.filesystem("csd", array=file)
content = bytes(3 << 20)
fs.pipe_file("x", content)
assert fs.cat_file("x") == content
assert fs.cat_file("x", 5, 9) == content[5:9]
assert fs.info("x")["size"] == len(content)
fs.put_file(file, "y")
assert len(fs.find("")) == 2
fs.rm_file("x")
"""
    assert gated(calls, stored, tmp_path).end() > 10


def test_an_interrupt_ends_a_call_to_silent_drives(stored: Array, tmp_path: Path) -> None:
    """The call ends with KeyboardInterrupt before its time is up, which would be another error."""
    code = """
import signal, sys, fsspec
text, file, *gates = sys.argv[1:]
with open(file, "w") as array:
    array.write(text.format(*gates))
fs = fsspec.filesystem("csd", array=file)
fs.pipe_file("x", bytes(10))
def interrupt():
    asked.wait()
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
shut.set()
try:
    fs.cat_file("x")
except KeyboardInterrupt as error:
    assert error.__context__ is None, repr(error.__context__)
else:
    raise AssertionError("it was not interrupted")
"""
    gated(code, stored, tmp_path).end()


def test_the_interpreter_may_exit_while_the_next_part_is_under_way(
    fs, stored: Array, tmp_path: Path
) -> None:
    """The package ends the part, for which no drive answers; nothing is complained of."""
    fs.pipe_file("x", bytes(9 * CHUNK))
    calls = """
import atexit, sys
ended, ends = threading.Event(), []
@atexit.register
def last():
    # The package has ended its calls, because it was loaded after this.
    if not ended.wait(60) or ends != [csdstore.Closed]:
        os.write(2, f"the next part ended with {ends}".encode())
        os._exit(1)
import csdstore, fsspec
from csdstore._ahead import Part
text, file, *gates = sys.argv[1:]
with open(file, "w") as array:
    array.write(text.format(*gates))
run = Part.run
def shut_and_run(part):
    fetch, start, end = part._arguments
    def noted(start, end):
        try:
            return fetch(start, end)
        except BaseException as error:
            ends.append(type(error))
            raise
    part._arguments = noted, start, end
    shut.set()
    run(part)
    ended.set()
Part.run = shut_and_run
read = fsspec.filesystem("csd", array=file).open("x")
assert read.read(1 << 20) == bytes(1 << 20)
assert asked.wait(60)
assert not ended.is_set()
"""
    assert gated(calls, stored, tmp_path).end() > 0


def test_a_protected_object_is_read_without_a_drive(fs, stored: Array, tmp_path: Path) -> None:
    """Lost chunks are computed, in ranges and in the whole object; others are errors."""
    content = os.urandom(3 * CHUNK + 5)
    (tmp_path / "f").write_bytes(content)
    for name, protect in (("kept", ("--protect", "rs:2+1")), ("lost", ())):
        stored.csd("put", str(tmp_path / "f"), name, "--chunk=64k", *protect)
    stored.kill(1)
    assert fs.cat_file("kept") == content
    assert fs.cat_file("kept", CHUNK - 7, 2 * CHUNK) == content[CHUNK - 7 : 2 * CHUNK]
    with pytest.raises(csdstore.Error):
        fs.cat_file("lost")
