"""An fsspec file system over the objects of an array: ``csd://NAME``.

Objects are immutable: a file is written once, and appears under its name when it is closed. A name
may have slashes; a folder is there while a name begins with it.
"""

import os
import tempfile
import warnings
from datetime import UTC, datetime
from glob import has_magic
from typing import Any

from fsspec.callbacks import DEFAULT_CALLBACK  # type: ignore
from fsspec.implementations.local import LocalFileSystem  # type: ignore
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem  # type: ignore
from fsspec.utils import isfilelike  # type: ignore

from csdstore._ahead import Ahead
from csdstore._csdstore import NativeArray, NativeObject
from csdstore._exit import watch
from csdstore._literal import copies, pattern


class ArrayFileSystem(AbstractFileSystem):  # type: ignore[misc]
    """The objects of an array as files.

    ``array`` is an array file, else that of ``$CSD_ARRAY``, else ``./csd-array.toml``; ``secrets``
    and ``host_nqn`` are as for `csdstore.connect`. Any number of threads may use it. In a fork
    every call of an existing instance raises `csdstore.Closed`.
    """

    protocol = "csd"
    root_marker = ""

    def __init__(
        self,
        array: str | os.PathLike[str] | None = None,
        secrets: str | os.PathLike[str] | None = None,
        host_nqn: str | None = None,
        **options: Any,
    ) -> None:
        """Connect to the drives of an array."""
        super().__init__(array=array, secrets=secrets, host_nqn=host_nqn, **options)
        self._native = watch(NativeArray(array, secrets, host_nqn))

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        # Libraries join folders with slashes, also with the root, which has no name.
        return super()._strip_protocol(path).lstrip("/")

    @property
    def fsid(self) -> str:
        """Name of the file system for caches."""
        return f"csd-{self._fs_token_}"

    def info(self, path: str, **_kwargs: Any) -> dict[str, Any]:
        """Return name, type and length, and what the catalogue has about an object."""
        path = self._strip_protocol(path)
        if path == "":
            return _folder("")
        try:
            return _described(self._native.lookup(path))
        except FileNotFoundError:
            pass
        if self._native.is_folder(f"{path}/"):
            return _folder(path)
        raise FileNotFoundError(path)

    def ls(self, path: str, detail: bool = True, **_kwargs: Any) -> list[Any]:
        """List a folder, or one object."""
        path = self._strip_protocol(path)
        objects, folders, damaged = self._native.children(f"{path}/" if path else "")
        _warn(damaged)
        found = {name[:-1]: _folder(name[:-1]) for name in folders if name != "/"}
        # An object is shown even where a folder has the same name.
        found.update((one.name, _described(one)) for one in objects)
        if not found and path:
            found[path] = self.info(path)
        return [found[name] if detail else name for name in sorted(found)]

    def exists(self, path: str, **_kwargs: Any) -> bool:
        """Return whether there is an object or a folder; errors of drives are raised."""
        try:
            self.info(path)
        except FileNotFoundError:
            return False
        return True

    def glob(self, path: str, maxdepth: int | None = None, **kwargs: Any) -> Any:
        """Return what a pattern matches.

        The name of an object or folder is no pattern, and none where it begins one.
        """
        name = self._strip_protocol(path)
        if has_magic(name):
            slash = "/" if path.endswith("/") else ""
            path = pattern(name, self.exists) + slash
        return super().glob(path, maxdepth=maxdepth, **kwargs)

    def expand_path(
        self, path: Any, recursive: bool = False, maxdepth: int | None = None, **_kwargs: Any
    ) -> list[str]:
        """Return names, and what patterns match. The name of an object or folder is no pattern."""
        if maxdepth is not None and maxdepth < 1:
            raise ValueError("maxdepth must be at least 1")
        found: set[str] = set()
        for one in [path] if isinstance(path, (str, os.PathLike)) else path:
            name = self._strip_protocol(one)
            if has_magic(name) and not self.exists(name):
                # The matches are the first level.
                below = None if maxdepth is None else maxdepth - 1
                names = self.glob(name, maxdepth=maxdepth)
            else:
                below, names = maxdepth, [name]
            if not recursive:
                found.update(names)
                continue
            found.update(filter(self.exists, names))
            if below != 0:
                for name in names:
                    found.update(self.find(name, maxdepth=below, withdirs=True))
        if not found:
            raise FileNotFoundError(path)
        return sorted(found)

    def get(
        self,
        rpath: Any,
        lpath: Any,
        recursive: bool = False,
        callback: Any = DEFAULT_CALLBACK,
        maxdepth: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Write objects to files."""
        pairs = copies(self, rpath, LocalFileSystem(), lpath, recursive, maxdepth)
        paths = pairs or (rpath, lpath)
        super().get(*paths, recursive, callback=callback, maxdepth=maxdepth, **kwargs)

    def put(
        self,
        lpath: Any,
        rpath: Any,
        recursive: bool = False,
        callback: Any = DEFAULT_CALLBACK,
        maxdepth: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Store files as objects."""
        pairs = copies(LocalFileSystem(), lpath, self, rpath, recursive, maxdepth)
        paths = pairs or (lpath, rpath)
        super().put(*paths, recursive, callback=callback, maxdepth=maxdepth, **kwargs)

    def copy(
        self,
        path1: Any,
        path2: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        on_error: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Store objects under other names as well."""
        pairs = copies(self, path1, self, path2, recursive, maxdepth)
        paths = pairs or (path1, path2)
        super().copy(*paths, recursive, maxdepth=maxdepth, on_error=on_error, **kwargs)

    def mv(
        self,
        path1: Any,
        path2: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        **_kwargs: Any,
    ) -> None:
        """Copy, then remove what was there before: a pattern may match the copies, too."""
        if path1 == path2:
            return
        names = self._objects(path1, recursive, maxdepth)
        self.copy(path1, path2, recursive, maxdepth=maxdepth, on_error="raise")
        for name in names:
            self.rm_file(name)

    def ukey(self, path: str) -> str:
        """Return the object's identifier, which no other object has."""
        return str(self._object(path).describe()["id"])

    def checksum(self, path: str) -> int:
        """Return a number that is another one for another object."""
        return int(self.ukey(path), 16)

    def created(self, path: str) -> datetime:
        """Return the time at which the content was put; 1970 if it is not known.

        A copy of an object has that of the object.
        """
        stored = int(self._object(path).describe()["stored_unix_ms"])
        return datetime.fromtimestamp(stored / 1000, UTC)

    def modified(self, path: str) -> datetime:
        """Return a time that is another one for another object, for caches that compare times.

        It comes from the identifier: two objects of one name may be stored in one second. The time
        of the put is that of `created`.
        """
        return datetime.fromtimestamp(int(self.ukey(path)[:8], 16) >> 2, UTC)

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **_kwargs: Any
    ) -> bytes:
        """Return an object's bytes, or some of them; negative positions count from the end."""
        found = self._object(path)
        start, end, _ = slice(start, end).indices(found.bytes)
        return self._native.read(found, start, max(start, end))

    def pipe_file(self, path: str, value: Any, mode: str = "create", **_kwargs: Any) -> None:
        """Store bytes as an object. In either mode an existing object is an error."""
        self._native.put(self._strip_protocol(path), value)

    def put_file(
        self,
        lpath: Any,
        rpath: str,
        callback: Any = DEFAULT_CALLBACK,
        mode: str = "overwrite",
        **kwargs: Any,
    ) -> None:
        """Store a file as an object."""
        if isfilelike(lpath) or os.path.isdir(lpath):
            super().put_file(lpath, rpath, callback=callback, **kwargs)
            return
        callback.set_size(os.path.getsize(lpath))
        self._native.put_file(self._strip_protocol(rpath), lpath)
        callback.absolute_update(os.path.getsize(lpath))

    def cp_file(self, path1: str, path2: str, **_kwargs: Any) -> None:
        """Store an object's bytes under another name."""
        if self.isdir(path1):
            return
        with self.open(path1, "rb") as source, self.open(path2, "wb") as target:
            while piece := source.read(source.blocksize):
                target.write(piece)

    def rm_file(self, path: str) -> None:
        """Remove an object."""
        self._native.remove(self._strip_protocol(path))

    def _rm(self, path: str) -> None:
        self.rm_file(path)

    def rm(self, path: Any, recursive: bool = False, maxdepth: int | None = None) -> None:
        """Remove objects; a folder is gone with the last object in it."""
        for name in self._objects(path, recursive, maxdepth):
            self.rm_file(name)

    def close(self) -> None:
        """Disconnect; later calls raise `csdstore.Closed`."""
        self._native.close()

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | str | None = None,
        autocommit: bool = True,
        cache_options: dict[str, Any] | None = None,
        **kwargs: Any,
    ) -> "ArrayFile":
        if mode not in ("rb", "wb", "xb"):
            raise ValueError(f"mode {mode!r}: objects are read, or written once")
        size = "default" if block_size is None else block_size
        return ArrayFile(self, path, mode, size, autocommit, cache_options=cache_options, **kwargs)

    def _object(self, path: str) -> NativeObject:
        path = self._strip_protocol(path)
        try:
            return self._native.lookup(path)
        except FileNotFoundError:
            if self.isdir(path):
                raise IsADirectoryError(path) from None
            raise FileNotFoundError(path) from None

    def _objects(self, path: Any, recursive: bool, maxdepth: int | None) -> list[str]:
        """Return the objects to remove, those within folders first."""
        found = self.expand_path(path, recursive=recursive, maxdepth=maxdepth)
        if not recursive:
            # Raises the error of a folder, or of a name that is missing.
            return [self._object(name).name for name in reversed(found)]
        # Of names, of which a part may be the same letters.
        prefix = os.path.commonprefix(found)  # noqa: RUF071
        objects, damaged = self._native.list(prefix)
        _warn(damaged)
        names = {one.name for one in objects}
        return [name for name in reversed(found) if name in names]


class ArrayFile(AbstractBufferedFile):  # type: ignore[misc]
    """An object that is read, or one that appears when this is closed.

    A reader reads one object from its opening on: once that is removed, reading is an error, also
    where a new one has its name. A writer keeps the bytes in a temporary file; an exception inside
    its ``with`` block discards them.
    """

    DEFAULT_BLOCK_SIZE = 8 << 20

    def __init__(
        self, fs: ArrayFileSystem, path: str, mode: str, *args: Any, **kwargs: Any
    ) -> None:
        """Find the object, or check that its name is free."""
        self._object: NativeObject | None = None
        self._spool: Any = None
        if mode == "rb":
            self._object = fs._object(path)
            kwargs["size"] = self._object.bytes
            kwargs.setdefault("cache_type", Ahead.name)
        elif fs.isfile(path):
            raise FileExistsError(f"object {path!r} exists and is immutable: remove it first")
        super().__init__(fs, path, mode, *args, **kwargs)

    def _fetch_range(self, start: int, end: int) -> bytes:
        read: bytes = self.fs._native.read(self._object, start, end)
        return read

    def _initiate_upload(self) -> None:
        self._spool = tempfile.NamedTemporaryFile(prefix="csdstore-")  # noqa: SIM115

    def _upload_chunk(self, final: bool = False) -> bool:
        self._spool.write(self.buffer.getbuffer())
        if final and self.autocommit:
            self.commit()
        return True

    def commit(self) -> None:
        """Store what was written."""
        with self._spool:
            self._spool.flush()
            self.fs._native.put_file(self.path, self._spool.name)

    def discard(self) -> None:
        """Forget what was written."""
        if self._spool is not None:
            self._spool.close()

    def __del__(self) -> None:
        """Forget what was written to a file that was not closed."""
        if not getattr(self, "closed", True) and self.mode != "rb":
            self.discard()
            self.closed = True

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        """Close the file, and store it unless an exception ended the block."""
        if kind is not None and self.mode != "rb" and not self.closed:
            self.discard()
            self.closed = True
        self.close()


def _described(found: NativeObject) -> dict[str, Any]:
    return {"name": found.name, "size": found.bytes, "type": "file", **found.describe()}


def _warn(damaged: int) -> None:
    """Warn of names that are damaged, which may be objects, too."""
    if damaged:
        names = "1 name is" if damaged == 1 else f"{damaged} names are"
        said = f"{names} damaged and left out: `csd ls` tells which, and what to do"
        warnings.warn(said, stacklevel=3)


def _folder(name: str) -> dict[str, Any]:
    return {"name": name, "size": 0, "type": "directory"}


__all__ = ["ArrayFile", "ArrayFileSystem"]
