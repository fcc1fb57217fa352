"""Parts that an operation, an instruction or a command still needs, all at once: ``python -m tests.missing Hue``.

Without a name, it looks at all of them. ``make generated`` updates files that programs write.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Any

import typer

from docs import speed_chart
from docs.gallery import WITHOUT, families, named, transform_classes
from docs.reference_pages import DEFINED_IN, entries
from native import constants
from tests.functional_stub import STUB, functional_stub
from tests.ops.examples import BY_BOXES, EXAMPLES, MIXERS
from tests.oracle.executor import FAMILIES as ORACLE
from tests.oracle.executor import meaning_of
from tests.programs import has_arguments
from tests.public_api import LISTING, public_api
from variegate.apps.preview.rows import sweepable
from variegate.cli.commands import app
from variegate.ops.base import Transform
from variegate.ops.magnitude import MagnitudeOp
from variegate.program.ops import SPECS, Kind, Op

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
CUDA = "variegate/executors/cuda/kernels"
# By kind, the functions of the CPU and of GPUs with a branch for each instruction that executors run.
BRANCHES = {
    Kind.VALUE: ("native/kernels/values.cpp, change_colors", "values.py, apply_value"),
    Kind.STATISTIC: ("native/kernels/statistics.cpp, build_table", "statistics.py, write_tables"),
    Kind.NEIGHBORHOOD: ("native/kernels/filters.cpp, read_filtered_row", "neighborhood.py, read_filtered"),
    Kind.POSITION: ("native/kernels/noise.cpp, apply_position", "values.py, apply_position"),
}
LOWERED = {
    Kind.GEOMETRY: "native/lowering/maps.cpp, to_map, and native/targets/stages.cpp: a branch",
    Kind.VALUE: "native/lowering/luts.cpp: a branch",
    Kind.NEIGHBORHOOD: "native/lowering/kernel_weights.cpp, build_kernels: a branch",
}
# Files that programs write -> what they should hold.
GENERATED: dict[Path, Callable[[], str]] = {
    LISTING: lambda: "\n".join(public_api()) + "\n",
    STUB: functional_stub,
    constants.HEADER: constants.header,
    speed_chart.CHART: speed_chart.chart,
}


def missing_of_class(name: str) -> Iterator[str]:
    """Parts that a transform still needs, a line each: where, and what."""
    cls = Transform.registry[name]
    home = cls.__module__.rpartition(".")[2]
    is_operation = not cls.__module__.startswith("variegate.policies.")
    if name not in transform_classes():
        yield f"variegate/transforms/__init__.py: import {name} from {cls.__module__}, and list it in __all__"
    if is_operation and cls._typical_range is None and name not in {**EXAMPLES, **MIXERS, **BY_BOXES}:
        yield f"tests/ops/examples.py: an entry of EXAMPLES, or _typical_range of {name}, from which one follows"
    if issubclass(cls, MagnitudeOp) and name not in sweepable():
        yield f"{file_of(cls)}: _typical_range of {name}, the range for `preview --sweep`"
    if cls._typical_range is None and name not in in_the_gallery():
        yield f"docs/gallery.py: a row of FAMILIES, a reason in WITHOUT, or _typical_range of {name}"
    if name not in described_names() and home not in described_files():
        yield f"docs/reference: {home} in a line `:defined-in:` of the page that it belongs to"
    for function in cls._functions:
        if function not in described_names():
            yield f"docs/reference/functional.md: {function}, the function of {name}"
    op = getattr(cls, "_op", None)
    if op is not None:
        yield from missing_of_instruction(op)


def missing_of_instruction(op: Op) -> Iterator[str]:
    """The same of an instruction that transforms emit."""
    if op not in SPECS:
        yield f"variegate/program/ops.py: a row of SPECS for Op.{op.name}; then ask again, as its kind decides the rest"
        return
    spec = SPECS[op]
    if spec.level is None and not getattr(meaning_of(op), "__doc__", None):
        file = ORACLE[spec.kind].__name__.replace(".", "/")
        yield f"{file}.py: {op.name.lower()}(img_HWC, instruction), its meaning in NumPy, with a docstring for the page"
    if not has_arguments(op):
        yield f"tests/programs.py: an entry of _ARGUMENTS for Op.{op.name}; or an example of a class with this _op"
    if spec.level is not None:
        if not mentions("native/lowering/luts.cpp", f"Op::{op.name}"):
            yield f"native/lowering/luts.cpp: a case Op::{op.name} in fill_channel and is_table"
    elif spec.lowered_to is not None:
        if not mentions("native/lowering", f"Op::{op.name}"):
            yield f"{LOWERED[spec.kind]} for Op::{op.name}, as lowering replaces it"
    elif spec.kind in BRANCHES:
        kernel, gpu_kernel = BRANCHES[spec.kind]
        case = f"{spec.kind.name.title()}Op::{op.name}"
        if not mentions("native/kernels", case):
            yield f"{kernel}: a case {case}"
        if op is not Op.LUT and not mentions(CUDA, f"Op.{op.name}"):
            yield f"{CUDA}/{gpu_kernel}: a branch for ops.Op.{op.name}"


def missing_of_command(name: str) -> Iterator[str]:
    """The same of a command."""
    pages = "".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))
    if f"variegate {name}" not in pages:
        yield f"docs: `variegate {name}` on a page that shows it"


def missing_of_generated() -> Iterator[str]:
    """Files that are out of date."""
    for path, made in GENERATED.items():
        if not path.exists() or path.read_text(encoding="utf-8") != made():
            yield f"{path.relative_to(ROOT)}: is out of date; run `make generated`"


def file_of(cls: type) -> str:
    return cls.__module__.replace(".", "/") + ".py"


@cache
def described_names() -> set[str]:
    """Names on the reference pages."""
    pages = sorted((DOCS / "reference").glob("*.md"))
    return {name for page in pages for _, name, _ in entries(page.read_text(encoding="utf-8"))}


@cache
def described_files() -> set[str]:
    """Files of which a reference page describes every public name."""
    pages = (page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    lines = (line for page in pages for line in page.splitlines() if line.startswith(DEFINED_IN))
    return {name for line in lines for name in line.removeprefix(DEFINED_IN).split()}


@cache
def in_the_gallery() -> set[str]:
    """Names with pictures, and those with a reason to have none."""
    shown = {named(calls[0]) for _, family in families().values() for calls in family}
    return shown.union(*WITHOUT.values())


@cache
def mentions(place: str, word: str) -> bool:
    """True if a file, or one of a folder, has this word."""
    path = ROOT / place
    sources = [path] if path.is_file() else (each for each in path.rglob("*") if each.suffix in (".cpp", ".h", ".py"))
    return any(re.search(rf"\b{re.escape(word)}\b", source.read_text(encoding="utf-8")) for source in sources)


def subjects() -> dict[str, Callable[[], Iterator[str]]]:
    """Everything that may lack something, by its name."""
    found: dict[str, Callable[[], Iterator[str]]] = {}
    for name, cls in Transform.registry.items():
        if cls.__module__.startswith("variegate."):
            found[name] = partial(missing_of_class, name)
    for op in Op:
        if Op.NOP < op < Op.MAP_FIXED:
            found[op.name] = partial(missing_of_instruction, op)
    commands: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for name in commands:
        found[name] = partial(missing_of_command, name)
    return found


def main(names: list[str]) -> int:
    known = subjects()
    if unknown := [name for name in names if name not in known]:
        print(f"{unknown[0]}: neither a transform, nor an instruction, nor a command; is its module imported?")
        return 2
    lines = [line for name in names or known for line in known[name]()]
    lines = list(dict.fromkeys([*lines, *missing_of_generated()]))
    print("\n".join(lines) or "nothing is missing")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
