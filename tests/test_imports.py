"""What importing Variegate loads, and which way its folders may import each other."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

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
assert {"Augmenter", "load_policy", "transforms"} <= set(dir(variegate))
variegate.Augmenter, variegate.load_policy, variegate.transforms
after = {name.partition(".")[0] for name in sys.modules}
print(json.dumps(sorted(after - before)))
"""

# What a folder (or module) may import besides itself, `errors`, `checks` and `threads`: what stands below it in the way
# of the data, by the longest entry that a module's path starts with. `transforms` and above them `policies` describe,
# `program` turns descriptions into arrays, `executors` run arrays; `augmenter` joins them, and what handles files
# stands on top.
MAY_IMPORT: dict[str, set[str]] = {
    # What everybody may use, as it knows nothing but files and text.
    "outside": set(),
    "errors": set(),
    "threads": set(),
    "pickling": set(),
    "per_image": set(),
    "mixed_labels": {"program"},
    "plotting": {"sinks"},
    # What functions and commands can be told; so light that --help waits for nothing.
    "options": set(),
    "compiling": set(),
    "program": {"compiling"},
    "checks": set(),
    "transforms": {"program"},
    # Users find policies here as well; they are imported when the first one is asked for.
    "transforms/__init__": {"transforms", "policies"},
    "policies": {"program", "transforms"},
    # Other libraries' pipelines in these transforms and policies.
    "convert": {"transforms", "policies", "targets"},
    "executors": {"program", "compiling"},
    # One operation run at once is a description and its execution in one, so it stands above both.
    "transforms/functional": {"program", "transforms", "decode", "backends"},
    "decode": {"program"},
    "backends": {"program", "executors", "decode"},
    "bound_transform": {"program", "transforms", "policies", "backends", "pickling", "per_image"},
    # Its programs, and its calls with dicts, on which the rest of the Augmenter stands.
    "augmenter_plans": {
        *("program", "transforms", "backends", "bound_transform", "per_image", "mixed_labels", "targets"),
    },
    "augmenter_samples": {
        *("program", "transforms", "backends", "augmenter_plans", "per_image", "mixed_labels", "targets"),
    },
    "augmenter": {
        *("program", "transforms", "policies", "executors", "decode", "backends"),
        *("augmenter_samples", "per_image", "mixed_labels", "targets"),
    },
    # What belongs to images, through the maps of their programs.
    "targets": {"program", "executors"},
    "warm": {"program", "transforms", "policies", "executors", "augmenter", "data", "decode", "formats"},
    "warm_commands": {
        *("transforms", "curation", "apps/curate/duplicates", "apps/curate/measures", "formats", "engine", "sinks"),
    },
    "formats": {"program", "decode"},
    "data": {"program", "formats", "decode"},
    "loader": {
        *("program", "transforms", "policies", "executors", "backends", "augmenter"),
        *("data", "decode", "formats", "pickling", "mixed_labels", "targets"),
    },
    "integrations": {
        *("program", "transforms", "backends", "augmenter", "warm", "targets"),
        *("data", "decode", "formats", "loader", "sinks"),
    },
    # Keras' fit in the place of a training's step.
    "apps/train/keras_study": {
        *("integrations", "training/feed", "training/ranks", "apps/train/study"),
        *("transforms", "data", "formats", "options"),
    },
    "sinks": {"program", "formats", "decode"},
    "engine": {
        *("program", "transforms", "policies", "executors", "backends", "augmenter", "warm"),
        *("data", "formats", "decode", "sinks", "plotting", "options", "mixed_labels", "per_image"),
        "targets",
    },
    # It measures what it packed with a loader.
    "jobs/pack": {
        *("engine", "program", "transforms", "data", "formats", "decode", "loader", "sinks", "options"),
    },
    "training": {
        *("program", "transforms", "augmenter", "data", "formats", "decode", "loader", "options"),
        "mixed_labels",
    },
    # A training with files of its own, and over many processes, which stands above what a search shares with it.
    "training/__init__": {"training", "training/trainer", "options"},
    "training/ranks": {"backends"},
    "training/replicas": {"training", "training/ranks"},
    "training/sharded": {"training", "training/ranks", "training/replicas"},
    "training/checkpoints": {"training", "training/ranks"},
    "training/learner": {
        *("training", "training/ranks", "training/replicas", "training/sharded", "training/checkpoints"),
        *("program", "options"),
    },
    "training/around": {"transforms", "options"},
    "training/adapting": {"training", "policies", "transforms", "data", "formats", "options"},
    "training/feed": {
        *("training", "training/ranks", "training/around", "training/adapting", "transforms", "policies", "engine"),
        *("options", "formats", "decode", "loader", "mixed_labels"),
    },
    "training/scoring": {"training", "training/ranks", "training/feed", "formats", "loader"},
    "training/events": {"training", "training/folder"},
    "training/folder": {"training", "training/checkpoints", "training/feed", "formats", "options"},
    "training/telling": {"training", "training/ranks"},
    "training/trainer": {
        *("training", "training/ranks", "training/checkpoints", "training/feed", "training/folder"),
        *(
            "training/learner",
            "training/scoring",
            "training/telling",
            "training/events",
            "loader",
            "options",
            "sinks",
        ),
    },
    "apps/train/study": {
        *("training", "training/ranks", "training/feed", "training/learner", "training/scoring"),
        *("transforms", "data", "decode", "formats", "plotting", "options"),
    },
    # What a search decides, which trains nothing; what trains its members comes on top.
    "search": {"program", "policies", "transforms", "plotting", "sinks", "options"},
    "search/originals": {"training", "formats", "sinks"},
    "search/run": {"policies", "search", "search/originals", "training", "formats", "sinks", "options"},
    "search/driver": {"policies", "search", "search/run"},
    "search/members": {"search", "search/run", "training", "engine", "executors"},
    "search/local": {
        *("policies", "search", "search/run", "search/driver", "search/members", "training"),
        "backends",
    },
    "apps/search/tune": {
        *("policies", "search", "search/run", "search/driver", "search/members"),
        *("training", "backends", "engine", "formats", "sinks"),
    },
    "search/adaptive": {"policies", "transforms", "augmenter", "training"},
    "search/evaluate": {
        *("policies", "transforms", "search", "search/members", "search/adaptive", "training", "backends", "options"),
    },
    "search/prepare": {
        *("policies", "search", "search/evaluate", "search/run", "training", "options", "formats"),
    },
    # What is wrong with a data set; labels are doubted by a model, which trains.
    "curation": {
        *("program", "compiling", "data", "formats", "decode", "sinks", "options", "plotting"),
        *(
            "transforms",
            "engine",
            "apps/curate/measures",
            "apps/curate/duplicates",
            "apps/curate/judging",
            "apps/curate/labels",
        ),
        *("apps/curate/report", "curation/finding", "curation/table"),
    },
    "curation/finding": set(),
    "curation/table": set(),
    "apps/curate/cleaning": {"curation/finding", "formats", "engine", "sinks", "options"},
    "apps/curate/measures": {"program", "decode"},
    "apps/curate/duplicates": {"curation/finding", "curation/table", "apps/curate/measures", "program"},
    "apps/curate/judging": {"curation/finding", "curation/table", "options"},
    "apps/curate/labels": {
        *("curation/finding", "curation/table", "training", "transforms", "augmenter", "options"),
        *("data", "formats", "decode", "loader"),
    },
    "apps/curate/report": {"curation/finding", "curation/table", "decode", "formats"},
    "preview": {
        "program",
        "targets",
        "transforms",
        "policies",
        "augmenter",
        "mixed_labels",
        "data",
        "formats",
        "decode",
        "sinks",
        "engine",
        "plotting",
    },
    "diagnose": {
        *("program", "transforms", "policies", "executors", "backends", "augmenter"),
        *("data", "decode", "formats", "loader", "engine", "plotting", "options"),
    },
}


def _layer(module: str) -> str:
    """The entry that ``module`` (a path such as "data/decode/jpeg") belongs to: the longest that it starts with."""
    parts = module.split("/")
    prefixes = ["/".join(parts[:n]) for n in range(len(parts), 0, -1)]
    return next((prefix for prefix in prefixes if prefix in MAY_IMPORT), parts[0])


@pytest.mark.process
def test_import_loads_no_optional_package() -> None:
    run = subprocess.run([sys.executable, "-c", IMPORT_PROBE], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    loaded = set(json.loads(run.stdout.splitlines()[-1]))
    assert "variegate" in loaded
    assert loaded & FORBIDDEN == set()


@pytest.mark.process
def test_a_bare_import_waits_for_nothing_heavy() -> None:
    probe = "import sys, variegate, variegate.cli; print([m for m in ('torch', 'numba', 'numpy') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


@pytest.mark.process
def test_a_source_that_is_not_there_is_told_before_anything_heavy_is_imported(tmp_path: Path) -> None:
    commands = [
        *(["augment", "nowhere", "out"], ["augment", "no-*.tar", "out", "--tile", "64"], ["pack", "nowhere", "out"]),
        *(["check", "nowhere"], ["clean", "nowhere", "out"], ["preview", "nowhere"], ["index", "nowhere"]),
        *(["search", "nowhere", "--out", "out"], ["train", "nowhere", "--out", "out"], ["doctor", "nowhere"]),
    ]
    probe = f"""
import os, sys
from variegate.cli import main
os.chdir({str(tmp_path)!r})
for command in {commands}:
    print(command, main(command), [name for name in ("torch", "numba", "pyarrow") if name in sys.modules])
"""
    ran = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert ran.stdout.splitlines() == [f"{command} 2 []" for command in commands], ran.stderr
    assert ran.stderr.count(": no such file or folder\n") == len(commands) - 1
    assert "no-*.tar: matches nothing" in ran.stderr


def test_a_name_that_is_not_there_is_named() -> None:
    import variegate

    with pytest.raises(AttributeError, match="module 'variegate' has no attribute 'Augmentor'"):
        variegate.Augmentor  # type: ignore[attr-defined]  # noqa: B018


@cache
def _imported_layers(path: Path) -> set[str]:
    """The layers of every ``variegate.X`` that the file imports, at its top or inside a function."""
    module = ["variegate", *path.relative_to(PACKAGE).with_suffix("").parts]
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"), str(path))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = module[: len(module) - node.level] if node.level else []
            full = ".".join([*base, *([node.module] if node.module else [])])
            # `from package import x` may name a module, `from module import x` may not; the longer path serves both.
            names += [f"{full}.{alias.name}" for alias in node.names]
    return {
        _layer(name.removeprefix("variegate.").replace(".", "/")) for name in names if name.startswith("variegate.")
    }


@cache
def _files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("layer", sorted(MAY_IMPORT))
def test_imports_point_one_way(layer: str) -> None:
    allowed = MAY_IMPORT[layer] | {layer, "errors", "checks", "threads", "outside"}
    wrong = [
        f"{path.relative_to(PACKAGE).as_posix()} imports variegate.{imported}"
        for path in _files()
        if _layer(path.relative_to(PACKAGE).with_suffix("").as_posix()) == layer
        for imported in sorted(_imported_layers(path))
        if imported not in allowed
    ]
    assert wrong == []


def test_nothing_below_the_command_line_imports_it() -> None:
    allowed = {"__main__", "cli"}
    wrong = [
        path.relative_to(PACKAGE).as_posix()
        for path in _files()
        if path.relative_to(PACKAGE).with_suffix("").parts[0] not in allowed and "cli" in _imported_layers(path)
    ]
    assert wrong == []
