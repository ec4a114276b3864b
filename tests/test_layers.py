"""A package imports only from those above it: read from the imports themselves."""

import ast
from pathlib import Path

import pytest

import ragwb

PACKAGE = Path(ragwb.__file__).parent
ORDER = [
    ["errors", "settings", "html", "files", "lazy", "own_code", "retry", "secrets"],
    ["records"],
    ["knowledge"],
    ["chat"],
    ["golden"],
    ["sources"],
    ["measure"],
    ["runs"],
    ["judge"],
    ["triage"],
    ["decide"],
    ["service"],
    ["sweep"],
    ["view"],
    ["report", "cli"],
    ["adapt"],
]
LEVEL = {name: level for level, names in enumerate(ORDER) for name in names}
SERVICE_MAY_USE = {
    *("errors", "settings", "html", "files", "lazy", "own_code", "retry", "secrets"),
    *("records", "knowledge", "chat"),
}
MAY_USE_SERVICE = {"sweep", "cli", "service"}

MODULES = sorted(
    path for path in PACKAGE.rglob("*.py") if path.parent != PACKAGE or path.stem in LEVEL
)


def room(path: Path) -> str:
    return path.relative_to(PACKAGE).with_suffix("").parts[0]


def imported_rooms(path: Path) -> set[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide where a name comes from"
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return {name.split(".")[1] for name in names if name.startswith("ragwb.")} & set(LEVEL)


def test_every_room_has_its_place_in_the_order():
    rooms = {room(path) for path in PACKAGE.rglob("*.py")} - {"__init__", "__main__"}
    assert rooms <= set(LEVEL)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_go_one_way(path):
    own = room(path)
    for other in imported_rooms(path) - {own}:
        assert LEVEL[other] <= LEVEL[own], f"{own} must not import {other}"
        if own == "service":
            assert other in SERVICE_MAY_USE, f"the service must not import {other}"
        if other == "service":
            assert own in MAY_USE_SERVICE, f"{own} reaches the service over HTTP only"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_and_functions_stay_small(path):
    source = path.read_text(encoding="utf-8")
    assert len(source.splitlines()) < 400
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = body[-1].end_lineno - body[0].lineno + 1 if body else 0
            assert length < 40, f"{node.name} has {length} lines"
