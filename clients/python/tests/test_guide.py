"""The Python code of the guide, in order, in one namespace."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, Array

fsspec = pytest.importorskip("fsspec")
LIBRARIES = ("pandas", "pyarrow", "duckdb", "dask.dataframe")


@pytest.mark.parametrize("page", ["docs/guide/python.md", "clients/python/README.md"])
def test_the_code_of_a_page_runs(
    page: str, stored: Array, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each block that needs no event loop around it."""
    for library in LIBRARIES:
        pytest.importorskip(library)
    monkeypatch.setenv("CSD_ARRAY", str(stored.file))
    # That of another page is for another array.
    fsspec.get_filesystem_class("csd").clear_instance_cache()
    url = tomllib.loads(stored.file.read_text())["drives"][0]["url"]
    blocks = re.findall(r"^```python\n(.*?)^```", Path(ROOT / page).read_text(), re.M | re.S)
    assert len(blocks) > 1
    names: dict[str, Any] = {"url": f"{url}?nsid=2"}
    for block in blocks:
        code = re.sub(r'"nvme\+tcp://[^"]*"', "url", block)
        if "async with" not in code:
            exec(compile(code, page, "exec"), names)
    assert "hello" in capsys.readouterr().out
