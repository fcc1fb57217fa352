"""The package as a whole: imports form no cycle, and docstrings begin with what a function does or a class is."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

# Every file of the package is read once.
pytestmark = pytest.mark.xdist_group("package")
ROOT = Path(__file__).resolve().parent.parent
Modules = dict[str, tuple[Path, ast.Module]]


def read_modules(root: Path) -> Modules:
    """Every module below ``root``/variegate by its dotted name."""
    modules: Modules = {}
    for path in sorted((root / "variegate").rglob("*.py")):
        name = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
        modules[name] = path, ast.parse(path.read_text(encoding="utf-8"), str(path))
    return modules


def run_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """``node`` and every statement in it that may ever run: what type checkers alone read is left out."""
    waiting = [node]
    while waiting:
        yield (one := waiting.pop())
        if isinstance(one, ast.If) and "TYPE_CHECKING" in ast.dump(one.test):
            waiting += one.orelse
        else:
            waiting += (child for child in ast.iter_child_nodes(one) if not isinstance(child, ast.expr))


def imports_of(modules: Modules, name: str) -> set[str]:
    """The modules of the package that ``name`` imports, at its top or inside a function."""
    path, tree = modules[name]
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    found: set[str] = set()
    for node in run_nodes(tree):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package[: len(package) - node.level + 1] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            # `from package import x` may name a module, or something that the package holds.
            found.update(full if (full := f"{base}.{alias.name}") in modules else base for alias in node.names)
    return {other for other in found if other in modules and other != name}


def circle_in(modules: Modules) -> list[str]:
    """Modules each of which imports the next, and the last one the first; empty where there are none."""
    try:
        TopologicalSorter({name: imports_of(modules, name) for name in modules}).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


@pytest.fixture(scope="module")
def package() -> Modules:
    return read_modules(ROOT)


def test_imports_run_in_no_circle(package: Modules) -> None:
    assert circle_in(package) == []


def test_docstrings_begin_with_a_verb_or_a_noun(package: Modules) -> None:
    asking = ("What", "Which", "Where", "Who", "Whose", "Whom", "How", "Whether")
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    texts = [
        (name, ast.get_docstring(node))
        for name, (_, tree) in package.items()
        for node in ast.walk(tree)
        if isinstance(node, kinds)
    ]
    assert [(name, text) for name, text in texts if text and text.split(maxsplit=1)[0] in asking] == []
