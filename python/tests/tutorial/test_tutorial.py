"""Every notebook of the tutorial runs, its statements about its tables hold, and it shows them.

With CSDPLAN_WRITE_NOTEBOOKS=1 this test writes the outputs in the notebooks.
"""

import ast
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TUTORIAL = Path(__file__).parents[3] / "docs" / "tutorial"
#: Figures that each notebook shows, at least.
FIGURES = 2
NOTEBOOKS = sorted(TUTORIAL.glob("*.ipynb"))
# Run as a script of its own, as a kernel would: cells in, what each shows out.
KERNEL = """
import ast, json, sys
space, shown = {"__name__": "__main__"}, []
for source in json.load(sys.stdin):
    body = ast.parse(source).body
    last = body.pop() if body and isinstance(body[-1], ast.Expr) else None
    exec(compile(ast.Module(body, []), "cell", "exec"), space)
    value = eval(compile(ast.Expression(last.value), "cell", "eval"), space) if last else None
    forms = {"text/html": "_repr_html_", "image/svg+xml": "_repr_svg_"}
    data = {kind: getattr(value, name, lambda: None)() for kind, name in forms.items()}
    shown.append(None if value is None else {"text/plain": repr(value), **data})
json.dump(shown, sys.stdout)
"""


def cells(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def shows(source: str) -> bool:
    """Return whether a cell ends with something to show."""
    return isinstance(ast.parse(source).body[-1], ast.Expr)


def test_the_notebooks_are_found() -> None:
    assert [path.name[0] for path in NOTEBOOKS] == ["1", "2", "3"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook(path: Path, tmp_path: Path) -> None:
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    first = notebook["cells"][0]
    assert (first["cell_type"], first["source"][0][:2]) == ("markdown", "# ")
    sources = ["".join(cell["source"]) for cell in cells(notebook)]
    assert any("assert " in source for source in sources)
    pictures = [output for cell in cells(notebook) for output in cell["outputs"]]
    if not os.environ.get("CSDPLAN_WRITE_NOTEBOOKS"):
        shown_count = sum("image/svg+xml" in one["data"] for one in pictures)
        assert shown_count >= FIGURES, "it shows figures"
    ran = subprocess.run(
        [sys.executable, "-W", "error::FutureWarning", "-c", KERNEL],
        input=json.dumps(sources),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert not list(tmp_path.iterdir())
    shown = json.loads(ran.stdout)
    if os.environ.get("CSDPLAN_WRITE_NOTEBOOKS"):
        write(path, notebook, shown)
        return
    for cell, source, value in zip(cells(notebook), sources, shown, strict=True):
        assert (value is not None) == shows(source) == bool(cell["outputs"])
        if value is not None:
            (kept,) = cell["outputs"]
            text = "".join(kept["data"]["text/plain"])
            # Versions of pandas differ in blanks, and those of NumPy in the last digits of draws.
            pairs = zip(text.split(), value["text/plain"].split(), strict=True)
            assert all(alike(one, other) for one, other in pairs), value["text/plain"]


def alike(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        return math.isclose(float(one), float(other), rel_tol=0.01, abs_tol=0.001)
    except ValueError:
        return False


def write(path: Path, notebook: dict[str, Any], shown: list[dict[str, str] | None]) -> None:
    """Put what each cell shows into the notebook."""
    for count, (cell, value) in enumerate(zip(cells(notebook), shown, strict=True), start=1):
        cell["execution_count"] = count
        cell["outputs"] = []
        if value is not None:
            data = {kind: text.splitlines(keepends=True) for kind, text in value.items() if text}
            result = {"output_type": "execute_result", "metadata": {}, "execution_count": count}
            cell["outputs"].append({**result, "data": data})
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
