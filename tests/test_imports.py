"""What importing Variegate loads, and which way its folders may import each other."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "variegate"

# Heavy or optional packages that only the features which need them may load.
FORBIDDEN = {
    "ray",
    "keras",
    "tensorflow",
    "jax",
    "triton",
    "torchvision",
    "skimage",
    "pandas",
    "pyarrow",
    "matplotlib",
    "fastapi",
    "flask",
    "django",
    "starlette",
    "uvicorn",
    "aiohttp",
    "tornado",
    "rich",
    "typer",
}
# torch decides for itself what it imports; we answer for what comes on top.
IMPORT_PROBE = """
import json, sys
import torch
before = {name.partition(".")[0] for name in sys.modules}
import variegate
after = {name.partition(".")[0] for name in sys.modules}
print(json.dumps(sorted(after - before)))
"""

# Each folder may import itself and what stands below it; the order is the way of the data read backwards.
# `transforms` and `policies` describe (a policy is a transform, so the two share a level), `program` turns
# descriptions into arrays, `executors` run arrays.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "constants": set(),
    "program": set(),
    "transforms": {"program", "policies"},
    "policies": {"program", "transforms"},
    "executors": {"program"},
    "data": {"program", "transforms", "policies", "executors", "augmenter"},
    "sinks": {"program", "data"},
    "engine": {"program", "transforms", "policies", "executors", "data", "sinks", "augmenter"},
}
# Names any module may import: errors and constants know nothing of the rest.
EVERYWHERE = {"errors", "constants"}
# One operation run at once is by nature both a description and its execution, so this module stands above both.
ABOVE_ITS_FOLDER = {"transforms/functional.py"}


def test_import_loads_no_optional_package() -> None:
    run = subprocess.run([sys.executable, "-c", IMPORT_PROBE], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    loaded = set(json.loads(run.stdout.splitlines()[-1]))
    assert "variegate" in loaded
    assert loaded & FORBIDDEN == set()


def _imported_folders(path: Path) -> set[str]:
    """X of every ``variegate.X`` that the file imports, at its top or inside a function."""
    module = ["variegate", *path.relative_to(PACKAGE).with_suffix("").parts]
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = module[: len(module) - node.level] if node.level else []
            full = ".".join([*base, *([node.module] if node.module else [])])
            names += [f"variegate.{alias.name}" for alias in node.names] if full == "variegate" else [full]
    return {name.split(".")[1] for name in names if name.startswith("variegate.")}


@pytest.mark.parametrize("folder", sorted(MAY_IMPORT))
def test_imports_point_one_way(folder: str) -> None:
    files = (
        [PACKAGE / f"{folder}.py"] if (PACKAGE / f"{folder}.py").exists() else list((PACKAGE / folder).rglob("*.py"))
    )
    wrong = [
        f"{path.relative_to(PACKAGE)} imports variegate.{name}"
        for path in files
        if path.relative_to(PACKAGE).as_posix() not in ABOVE_ITS_FOLDER
        for name in sorted(_imported_folders(path) - MAY_IMPORT[folder] - EVERYWHERE - {folder})
    ]
    assert wrong == []


def test_nothing_below_the_command_line_imports_it() -> None:
    wrong = [
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if path.relative_to(PACKAGE).parts[0] != "cli" and "cli" in _imported_folders(path)
    ]
    assert wrong == []
