"""Rules of the package's structure: imports point one way, a name means one thing."""

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import typer.main
from typer.core import TyperCommand

import csdplan as cp
from csdplan import commands
from csdplan.cli import app
from csdplan.cli.root import loaded
from csdplan.options import options_of

#: Folders in the order of the pipeline: each imports only from those before it.
ORDER = (
    ("errors", "late"),
    ("files", "units"),
    ("model",),
    ("profile",),
    ("solve",),
    ("hardware", "published", "sim", "trial"),
    ("jobs", "request"),
    ("result",),
    ("plot",),
    ("document",),
    ("page",),
    ("texts",),
    ("options",),
    ("commands",),
    ("api", "cli"),
    ("__main__",),
)
FLOOR = {part: floor for floor, parts in enumerate(ORDER) for part in parts}
SOURCES = sorted(Path(cp.__file__).parent.rglob("*.py"))
#: Options of the command line alone: forms of output.
FORMS = {"json", "csv", "help"}
#: Units at the end of a quantity's name in Python; its flag has none.
UNITS = ("", "_s", "_Bps", "_MB", "_GB", "_W", "_usd")
#: Commands whose name is a keyword of Python.
NAMES = {"import": "import_profile"}


def imported(path: Path) -> set[str]:
    """Return the parts of csdplan that a file imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        modules = []
        if isinstance(node, ast.ImportFrom) and node.module:
            modules = [node.module]
            if node.module == "csdplan":
                modules = [f"csdplan.{name.name}" for name in node.names]
        elif isinstance(node, ast.Import):
            modules = [name.name for name in node.names]
        found |= {module.split(".")[1] for module in modules if module.startswith("csdplan.")}
    return found


def test_imports_point_one_way() -> None:
    root = Path(cp.__file__).parent
    wrong = []
    for path in SOURCES:
        part = path.relative_to(root).parts[0].removesuffix(".py")
        if part == "__init__":
            continue
        for other in imported(path) - {part}:
            if other in FLOOR and FLOOR[other] >= FLOOR[part]:
                wrong.append(f"{path.relative_to(root)} imports {other}")
    assert wrong == []


def test_no_circle_of_modules() -> None:
    root = Path(cp.__file__).parent
    edges: dict[str, set[str]] = {}
    for path in SOURCES:
        if path.name != "__init__.py":
            name = ".".join(("csdplan", *path.relative_to(root).with_suffix("").parts))
            tree = ast.parse(path.read_text(encoding="utf-8"))
            froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
            edges[name] = {
                module
                for node in froms
                for module in (node.module, *(f"{node.module}.{one.name}" for one in node.names))
                if module
            }
    edges = {name: targets & set(edges) for name, targets in edges.items()}
    while leaves := {name for name, targets in edges.items() if not targets}:
        edges = {name: targets - leaves for name, targets in edges.items() if name not in leaves}
    assert edges == {}


def packages() -> list[ModuleType]:
    found = [
        importlib.import_module(info.name)
        for info in pkgutil.walk_packages(cp.__path__, "csdplan.")
        if info.ispkg
    ]
    return [cp, *found]


@pytest.mark.parametrize("package", packages(), ids=lambda package: package.__name__)
def test_no_function_hides_a_module(package: ModuleType) -> None:
    modules = {info.name for info in pkgutil.iter_modules(package.__path__)}
    assert not modules & set(getattr(package, "__all__", ()))


def typed() -> dict[str, TyperCommand]:
    group = typer.main.get_command(app)
    names = group.commands  # type: ignore[attr-defined]
    return {name: loaded(name) for name in names if name not in {"profile", "profiles"}}


@pytest.mark.parametrize("name", typed())
def test_python_has_every_command_and_its_options(name: str) -> None:
    function = getattr(cp, NAMES.get(name, name))
    assert function.__doc__
    parameters = inspect.signature(function).parameters
    assert all(parameter.kind != parameter.VAR_KEYWORD for parameter in parameters.values())
    lacking = []
    for option in typed()[name].params:
        flag = max(option.opts, key=len).lstrip("-").replace("-", "_")
        if flag in FORMS or getattr(option, "hidden", False):
            continue
        # Case is a unit's own: --memory-gb is memory_GB.
        spelled = {f"{flag}{unit}".lower() for unit in UNITS}
        if not spelled & {parameter.lower() for parameter in parameters}:
            lacking.append(flag)
    assert lacking == []
    documented = re.findall(r"^(\w+) : ", inspect.getdoc(function) or "", re.MULTILINE)
    assert documented == list(parameters)


@pytest.mark.parametrize("function", [commands.sweep, commands.surface])
def test_a_default_is_the_same_on_the_command_line_as_in_python(
    function: Callable[..., object],
) -> None:
    texts = [one for one in options_of(function) if one.option.default is not None]
    assert texts
    for one in texts:
        assert one.option.parse is not None
        assert one.option.parse(one.option.default) == list(one.default)


def test_the_page_of_symbols_names_what_there_is() -> None:
    page = Path(__file__).parents[2] / "docs" / "reference" / "symbols.md"
    known = {path.stem for path in SOURCES}
    for path in SOURCES:
        known |= set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    rows = [line for line in page.read_text(encoding="utf-8").splitlines() if "|" in line]
    names = {name for row in rows for name in re.findall(r"`([\w.]+)`", row.split("|")[-2])}
    assert len(names) > 20
    assert {name for name in names if name.rpartition(".")[2] not in known} == set()
