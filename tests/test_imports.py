"""What importing Variegate loads, and which way its folders may import each other."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.data.tars import labelled, write_tar

# Every file of the package is read once.
pytestmark = pytest.mark.xdist_group("package")
PACKAGE = Path(__file__).resolve().parent.parent / "variegate"

# Heavy or optional packages that only the features which need them may load.
FORBIDDEN = {
    "ray",
    "keras",
    "tensorflow",
    "tensorboardX",
    "jax",
    "triton",
    "torchvision",
    "skimage",
    "pandas",
    "pydicom",
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
# The rooms of the package in the order of the data: each may import those above it alone. An entry is a folder, or the
# part of one that stands higher or lower than the rest.
ROOMS = [
    # What everybody may use, as it knows nothing but files and text.
    *("arrays", "io", "native", "errors", "removed", "checks", "events", "threads", "options"),
    # Chance made data; what can be done to an image and emits that; `if` in plain Python.
    *("program", "math", "ops", "pipelines"),
    # Users' names of all these, from which policies, described as data, are read.
    *("transforms", "policies"),
    *("executors", "decode", "executors/runners", "targets", "augmenter"),
    # One operation run at once is a description and its execution in one.
    "transforms/functional",
    # Threads, processes and actors that run jobs on devices.
    "workers",
    *("data", "loader"),
    *(
        "jobs/output",
        "jobs",
        "jobs/augment",
        "jobs/pack_shards",
        "jobs/pack",
    ),
    *("interop/convert", "interop"),
    *("apps/plotting", "learn", "apps/check", "apps/preview", "apps/studio"),
    *("apps/doctor", "apps/demo"),
    *("cli", "__main__"),
]
# Those that are imported when they are first needed, from below, as their callers are their front door.
DOORS = {
    ("transforms/__init__.py", "policies"),
    ("transforms/__init__.py", "transforms/functional"),
}


def _room(module: str) -> str:
    """The entry of ROOMS that ``module`` (a path such as "decode/jpeg") belongs to: the longest that it starts with."""
    parts = module.split("/")
    prefixes = ["/".join(parts[:n]) for n in range(len(parts), 0, -1)]
    return next((prefix for prefix in prefixes if prefix in ROOMS), parts[0])


# torch decides for itself what it imports; Variegate answers for what comes on top. Then its modules are imported as on
# Windows, as far as they import themselves: the lock between processes is imported as there, too.
IMPORT_PROBE = """
import builtins, importlib, json, pkgutil, sys, types
import torch

before = {name.partition(".")[0] for name in sys.modules}
import variegate
assert {"Augmenter", "load_policy", "transforms"} <= set(dir(variegate))
variegate.Augmenter, variegate.load_policy, variegate.transforms
loaded = sorted({name.partition(".")[0] for name in sys.modules} - before)
for name in [name for name in sys.modules if name.startswith("variegate")]:
    del sys.modules[name]

missing = {"fcntl", "resource", "termios", "pwd", "grp", "posix", "readline", "curses", "syslog"}
find = builtins.__import__

def find_as_there(name, globals=None, locals=None, fromlist=(), level=0):
    if name.partition(".")[0] in missing and (globals or {}).get("__name__", "").startswith("variegate"):
        raise ModuleNotFoundError(f"No module named {name!r}, which {globals['__name__']} imports")
    return find(name, globals, locals, fromlist, level)

builtins.__import__ = find_as_there
import variegate
platform, sys.platform = sys.platform, "win32"
sys.modules["msvcrt"] = types.ModuleType("msvcrt")
import variegate.io.lock
sys.platform = platform
del sys.modules["msvcrt"]
imported = []
for module in pkgutil.walk_packages(variegate.__path__, "variegate."):
    # The native library is no module; the others are Triton's functions, and what other libraries bring along.
    if not module.name.endswith("__main__") and not module.name.startswith(SKIPPED):
        importlib.import_module(module.name)
        imported.append(module.name)
print(json.dumps([loaded, imported, [name for name in ("ray", "keras", "tensorflow") if name in sys.modules]]))
"""
SKIPPED = (
    *("variegate._native", "variegate.executors.cuda.kernels"),
    *("variegate.interop.keras", "variegate.interop.ray"),
)


@pytest.mark.process
def test_modules_import_nothing_that_is_optional_or_that_windows_lacks() -> None:
    probe = IMPORT_PROBE.replace("SKIPPED", repr(SKIPPED))
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    loaded, imported, heavy = json.loads(run.stdout.splitlines()[-1])
    assert "variegate" in loaded
    assert set(loaded) & FORBIDDEN == set()
    assert {"variegate.io.durable", "variegate.learn.tune", "variegate.jobs.engine"} <= set(imported)
    assert heavy == [], "imported when it is asked for"


# Each step, and the packages that it must not have loaded; one after another, as none of them loads any.
LIGHT_PROBE = """
import os, sys

def loaded(*names):
    return [name for name in names if name in sys.modules]

import variegate as vg
from variegate.cli import main
print("import", loaded("torch", "numpy"))
from variegate import transforms as T
T.RandomHorizontalFlip()
try:
    class RandAugment(T.CustomOp): ...
except TypeError as error:
    print(error)
print("describe", loaded("torch"))
import variegate.learn
print("learn", loaded("torch", "matplotlib", "ray"))
os.chdir(sys.argv[1])
for command in COMMANDS:
    print(command, main(command), loaded("torch", "pyarrow"))
assert len(vg.open_source("photos.tar")) == 4
assert len(vg.open_source("photos.tar", stream=True).shard(0)) == 4
print("open", loaded("fsspec", "torch"))
"""


@pytest.mark.process
def test_heavy_packages_are_imported_when_they_are_needed(tmp_path: Path) -> None:
    """Not to describe transforms, to open local files, or to say that a source is not there."""
    commands = [
        *(["augment", "nowhere", "out"], ["augment", "no-*.tar", "out"], ["pack", "nowhere", "out"]),
        *(
            ["check", "nowhere"],
            ["clean", "nowhere", "--from", "f.parquet", "--drop", "dark", "--out", "out"],
            ["preview", "nowhere"],
            ["index", "nowhere"],
        ),
        *(["search", "nowhere", "--out", "out"], ["train", "nowhere", "--out", "out"], ["doctor", "nowhere"]),
    ]
    write_tar(tmp_path / "photos.tar", labelled(4))
    probe = LIGHT_PROBE.replace("COMMANDS", repr(commands))
    ran = subprocess.run([sys.executable, "-c", probe, tmp_path], capture_output=True, text=True, check=True)
    first, taken, *lines = ran.stdout.splitlines()
    assert taken.startswith("class RandAugment: this name is a built-in transform")
    steps = ["describe", "learn", *(f"{command} 2" for command in commands), "open"]
    assert [first, *lines] == ["import []", *(f"{step} []" for step in steps)], ran.stderr
    assert ran.stderr.count(": no such file or folder\n") == len(commands) - 1
    assert "no-*.tar: matches nothing" in ran.stderr


def test_a_name_that_is_not_there_is_named() -> None:
    import variegate

    with pytest.raises(
        AttributeError, match="module 'variegate' has no attribute 'Augmentor'; did you mean 'Augmenter'"
    ):
        variegate.Augmentor  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'RandomResizeCrop'; did you mean 'RandomResizedCrop'"):
        variegate.transforms.RandomResizeCrop  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match="functional' has no attribute 'autocontrst'; did you mean 'autocontrast'"):
        variegate.transforms.functional.autocontrst  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(AttributeError, match=r"has no attribute '__path_to__'$"):
        variegate.transforms.__path_to__  # type: ignore[attr-defined]  # noqa: B018


@cache
def _imported_rooms(path: Path) -> set[str]:
    """The rooms of every ``variegate.X`` that the file imports, at its top or inside a function."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            # `from package import x` may name a module, `from module import x` may not; the longer path serves both.
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return {_room(name.removeprefix("variegate.").replace(".", "/")) for name in names if name.startswith("variegate.")}


@cache
def _files() -> list[tuple[Path, str]]:
    """Each file, and its room."""
    paths = sorted(path for path in PACKAGE.rglob("*.py") if path != PACKAGE / "__init__.py")
    return [(path, _room(path.relative_to(PACKAGE).with_suffix("").as_posix())) for path in paths]


@pytest.mark.parametrize("room", ROOMS)
def test_imports_point_one_way(room: str) -> None:
    allowed = ROOMS[: ROOMS.index(room) + 1]
    inside = [path for path, of in _files() if of == room]
    assert inside, f"{room}: a room without files"
    wrong = [
        f"{path.relative_to(PACKAGE).as_posix()} imports variegate.{imported}"
        for path in inside
        for imported in sorted(_imported_rooms(path))
        if imported not in allowed and (path.relative_to(PACKAGE).as_posix(), imported) not in DOORS
    ]
    assert wrong == []


def test_every_file_is_in_a_room() -> None:
    homeless = {room for _, room in _files()} - set(ROOMS)
    assert homeless == {"apps"}, "apps/__init__.py alone"
