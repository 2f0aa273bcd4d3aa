"""The file system over drives that are started again meanwhile."""

import os
import random
from pathlib import Path

import csdstore
import pytest
from conftest import Array, together

fsspec = pytest.importorskip("fsspec")
CHUNK = 1 << 20


def test_reading_survives_a_restart_of_the_array(tmp_path: Path) -> None:
    """The drives come back at other ports, which the array file names."""
    array = Array(tmp_path, "file")
    try:
        fs = fsspec.filesystem("csd", array=str(array.file))
        fs.pipe_file("x", b"before")
        array.csd("array", "down")
        with pytest.raises(csdstore.Error, match="no drive is up"):
            fs.cat_file("x")
        array.csd("array", "up")
        assert fs.cat_file("x") == b"before"
    finally:
        array.csd("array", "down")


def test_writing_and_reading_go_on_once_a_drive_was_started_again(tmp_path: Path) -> None:
    """It is killed while a file is stored, and once more between opening and reading."""
    array = Array(tmp_path, "file")
    try:
        fs = fsspec.filesystem("csd", array=str(array.file))
        content = random.Random(5).randbytes(9 * CHUNK + 7)
        os.mkfifo(tmp_path / "slow")

        def write() -> None:
            with open(tmp_path / "slow", "wb", buffering=0) as file:
                file.write(content[: 6 * CHUNK])
                array.restart(1)
                file.write(content[6 * CHUNK :])

        together([write, lambda: fs.put_file(str(tmp_path / "slow"), "x")])
        with fs.open("x") as file:
            assert file.read(CHUNK) == content[:CHUNK]
            array.restart(2)
            assert file.read() == content[CHUNK:]
        assert fs.cat_file("x") == content
    finally:
        array.csd("array", "down")
