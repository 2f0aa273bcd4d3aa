"""Names that look like patterns, in every call that takes patterns.

Each test runs over a dictionary and over the drives of an array.
"""

import itertools
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

fsspec = pytest.importorskip("fsspec")
# Each begins with a name, and has a neighbour that the name matches when it is a pattern.
NEIGHBOURS = [("data[1].csv", "data1.csv"), ("a*b", "aXb"), ("what?", "what!"), ("*", "z")]


class Objects(dict[str, bytes]):
    """The calls of the file system to an array, over a dictionary."""

    def __init__(self, *_connection: Any) -> None:
        """Begin with no object."""
        self.ids = itertools.count()

    def lookup(self, name: str) -> Any:
        """Return one object."""
        if name not in self:
            raise FileNotFoundError(name)
        describe = {"id": f"{next(self.ids):032x}"}
        size = len(self[name])
        return SimpleNamespace(name=name, bytes=size, describe=lambda: describe)

    def list(self, prefix: str) -> Any:
        """Return the objects of a prefix, and the number of damaged names."""
        return [self.lookup(name) for name in self if name.startswith(prefix)], 0

    def children(self, path: str) -> Any:
        """Return the objects and folders in a folder, and the number of damaged names."""
        below = [name[len(path) :] for name in self if name.startswith(path)]
        folders = {f"{path}{rest.partition('/')[0]}/" for rest in below if "/" in rest}
        return [self.lookup(path + rest) for rest in below if "/" not in rest], sorted(folders), 0

    def is_folder(self, path: str) -> bool:
        """Return whether an object lies below a folder."""
        return any(name.startswith(path) for name in self)

    def read(self, found: Any, start: int, end: int) -> bytes:
        """Return some bytes of an object."""
        return self[found.name][start:end]

    def put(self, name: str, value: Any) -> None:
        """Store an object."""
        if name in self:
            raise FileExistsError(name)
        self[name] = bytes(value)

    def put_file(self, name: str, path: Any) -> None:
        """Store a file as an object."""
        self.put(name, Path(path).read_bytes())

    def remove(self, name: str) -> Any:
        """Remove an object."""
        del self[name]
        return []

    def close(self) -> None:
        """Do nothing."""


@pytest.fixture(params=["dictionary", "array"])
def fs(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator["fsspec.AbstractFileSystem"]:
    """Return a file system without objects."""
    if request.param == "array":
        yield fsspec.filesystem("csd", array=str(request.getfixturevalue("stored").file))
    else:
        monkeypatch.setattr("csdstore.fs.NativeArray", Objects)
        monkeypatch.setattr("csdstore.fs.watch", lambda native: native)
        yield fsspec.filesystem("csd", skip_instance_cache=True)


def names(fs: Any) -> list[str]:
    """Return the names of all objects."""
    found: list[str] = fs.find("")
    return found


def store(fs: Any, *stored: str) -> None:
    """Store objects that have their names as bytes."""
    for name in stored:
        fs.pipe_file(name, name.encode())


@pytest.mark.parametrize(("name", "other"), NEIGHBOURS)
@pytest.mark.parametrize("folder", ["", "d/"])
def test_a_name_that_exists_is_that_object(
    fs: Any, name: str, other: str, folder: str, tmp_path: Path
) -> None:
    """It is read, copied, moved and removed; its neighbour stays."""
    name, other = folder + name, folder + other
    store(fs, name, other)
    assert fs.glob(name) == [name]
    assert list(fs.glob(name, detail=True)) == [name]
    for words in ({}, {"recursive": True}, {"recursive": True, "maxdepth": 1}):
        assert fs.expand_path(name, **words) == [name]
        assert fs.cat([name], **words) == {name: name.encode()}
    assert fs.cat(name) == name.encode()
    assert fs.cat([name, other]) == {one: one.encode() for one in (name, other)}
    fs.get(name, str(tmp_path / "new"))
    assert (tmp_path / "new").read_bytes() == name.encode()
    (tmp_path / "folder").mkdir()
    fs.get(name, str(tmp_path / "folder"))
    last = name.rpartition("/")[2]
    assert (tmp_path / "folder" / last).read_bytes() == name.encode()
    fs.cp(name, "copied")
    fs.mv(name, "moved", recursive=True)
    assert fs.cat(["copied", "moved"]) == {"copied": name.encode(), "moved": name.encode()}
    assert names(fs) == sorted(["copied", "moved", other])
    store(fs, name)
    fs.rm(name)
    assert names(fs) == sorted(["copied", "moved", other])


def test_a_folder_that_exists_is_that_folder(fs: Any, tmp_path: Path) -> None:
    """With all calls that go into folders, and where a pattern begins with it."""
    store(fs, "dir[1]/a.csv", "dir[1]/in/b.csv", "dir1/a.csv", "dir1/c.csv", "in/to/x")
    assert fs.glob("dir[1]/*") == ["dir[1]/a.csv", "dir[1]/in"]
    assert fs.glob("dir[1]/") == ["dir[1]"]
    assert fs.cat("dir[1]/*.csv") == {"dir[1]/a.csv": b"dir[1]/a.csv"}
    first = fs.expand_path("dir[1]", recursive=True, maxdepth=1)
    assert first == ["dir[1]", "dir[1]/a.csv", "dir[1]/in"]
    inside = {"dir[1]/a.csv": b"dir[1]/a.csv", "dir[1]/in/b.csv": b"dir[1]/in/b.csv"}
    assert fs.cat("dir[1]", recursive=True, on_error="omit") == inside
    for target, there in (("out", "a.csv"), ("out", "dir[1]/a.csv"), ("out/", "dir[1]/in/b.csv")):
        fs.get("dir[1]", f"{tmp_path}/{target}", recursive=True)
        assert (tmp_path / "out" / there).read_bytes().startswith(b"dir[1]")
    fs.cp("dir[1]", "in/to", recursive=True)
    assert fs.find("in/to") == ["in/to/dir[1]/a.csv", "in/to/dir[1]/in/b.csv", "in/to/x"]
    fs.rm("in", recursive=True)
    with pytest.raises(IsADirectoryError):
        fs.rm("dir[1]")
    fs.mv("dir[1]", "moved", recursive=True)
    assert names(fs) == ["dir1/a.csv", "dir1/c.csv", "moved/a.csv", "moved/in/b.csv"]
    store(fs, "dir[1]/a.csv")
    fs.rm("dir[1]/*")
    assert names(fs) == ["dir1/a.csv", "dir1/c.csv", "moved/a.csv", "moved/in/b.csv"]
    store(fs, "dir[1]/a.csv")
    fs.rm("dir[1]", recursive=True)
    assert names(fs) == ["dir1/a.csv", "dir1/c.csv", "moved/a.csv", "moved/in/b.csv"]


def test_patterns_are_patterns_where_no_name_is_meant(fs: Any, tmp_path: Path) -> None:
    """A name that is missing is one, as is one name of several."""
    store(fs, "data1.csv", "data2.csv", "p/1/x", "p/2/x", "z")
    assert fs.glob("data[12].csv") == ["data1.csv", "data2.csv"]
    fs.get("data?.csv", f"{tmp_path}/")
    assert (tmp_path / "data2.csv").read_bytes() == b"data2.csv"
    assert fs.expand_path(["z", "*.csv", "none*"]) == ["data1.csv", "data2.csv", "z"]
    assert fs.expand_path("p/*", recursive=True) == ["p/1", "p/1/x", "p/2", "p/2/x"]
    assert fs.expand_path("p/*", recursive=True, maxdepth=1) == ["p/1", "p/2"]
    with pytest.raises(FileNotFoundError):
        fs.rm("none[1]*")
    with pytest.raises(ValueError, match="maxdepth"):
        fs.rm("p", recursive=True, maxdepth=0)
    fs.rm("data[1].csv")
    fs.rm("p/?", recursive=True)
    assert names(fs) == ["data2.csv", "z"]


def test_a_file_on_the_host_is_that_file(fs: Any, tmp_path: Path) -> None:
    """A put takes the name of a file or folder that is there for no pattern, either."""
    for name in ("data[1].csv", "data1.csv", "dir[1]/a", "dir1/b"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    fs.put(str(tmp_path / "data[1].csv"), "one")
    assert fs.cat("one") == b"data[1].csv"
    fs.put(str(tmp_path / "dir[1]"), "tree", recursive=True)
    fs.put(str(tmp_path / "data[1].csv"), "tree")
    fs.put(str(tmp_path / "data?.csv"), "all/")
    assert names(fs) == ["all/data1.csv", "one", "tree/a", "tree/data[1].csv"]


def test_a_move_removes_what_was_there_before_it(fs: Any) -> None:
    """Neither copies that the pattern matches, nor what a limit of depth has left."""
    store(fs, "a", "b")
    fs.mv("*", "kept/")
    assert names(fs) == ["kept/a", "kept/b"]
    fs.mv("kept", "kept/in", recursive=True)
    assert names(fs) == ["kept/in/a", "kept/in/b"]
    store(fs, "kept/first")
    fs.mv("kept", "other", recursive=True, maxdepth=1)
    assert names(fs) == ["kept/in/a", "kept/in/b", "other/first"]


def test_no_file_is_written_outside_the_folder_that_was_asked_for(fs: Any, tmp_path: Path) -> None:
    """Names may have two dots between slashes, and are refused before anything is written."""
    store(fs, "d/../../x", "d/a")
    with pytest.raises(ValueError, match="outside"):
        fs.get("d", str(tmp_path / "out"), recursive=True)
    assert not (tmp_path / "out").exists()
