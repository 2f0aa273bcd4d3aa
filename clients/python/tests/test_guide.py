"""The Python code of the guide, in order, in one namespace."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Array

fsspec = pytest.importorskip("fsspec")
LIBRARIES = ("pandas", "pyarrow", "duckdb", "dask.dataframe")


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("docs/guide/python.md", ["['notes/hello.txt']", "(499500,)", "b'hello' [b'greeting']"]),
        ("docs/guide/key-value.md", ["b'hello' [b'greeting']"]),
        ("docs/guide/recipes.md", ["b'hello'"]),
        ("clients/python/README.md", ["b'hello'\n[]", "b'value'", "b'el'"]),
    ],
)
def test_the_code_of_a_page_runs(
    page: str,
    said: list[str],
    stored: Array,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """All blocks, which print what they should."""
    text = Path(ROOT / page).read_text()
    for library in LIBRARIES:
        if f"import {library}" in text:
            pytest.importorskip(library)
    monkeypatch.setenv("CSD_ARRAY", str(stored.file))
    # That of another page is for another array.
    fsspec.get_filesystem_class("csd").clear_instance_cache()
    url = tomllib.loads(stored.file.read_text())["drives"][0]["url"]
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert blocks
    names: dict[str, Any] = {"url": f"{url}?nsid=2"}
    for block in blocks:
        code = re.sub(r'"nvme\+tcp://[^"]*"', "url", block)
        exec(compile(code, page, "exec"), names)
    printed = capsys.readouterr().out
    for words in said:
        assert words in printed
