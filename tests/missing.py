"""Parts that something new still needs, each with its file, all at once: ``python -m tests.missing Hue``.

NAME is a transform or policy (Hue), an instruction (HUE), a format of sources (tar), the name of a policy (imagenet),
an option (lr) or a command (train). Without one, it looks at all. ``make generated`` updates files that programs write.
"""

from __future__ import annotations

import pkgutil
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import Any

import typer

from docs import speed_chart
from docs.gallery import WITHOUT, families, named, transform_classes
from docs.reference_pages import DEFINED_IN, entries
from native import constants
from tests.functional_stub import STUB, functional_stub
from tests.ops.examples import BY_BOXES, EXAMPLES, MIXERS, POLICIES
from tests.oracle.executor import FAMILIES as ORACLE
from tests.oracle.executor import meaning_of
from tests.programs import has_arguments
from tests.public_api import LISTING, public_api
from variegate import ops, policies
from variegate.apps.preview.rows import sweepable
from variegate.cli.commands import app
from variegate.data.kinds import FORMATS
from variegate.io.addresses import _EXTENSION as URL_SUFFIXES
from variegate.ops.base import Transform
from variegate.ops.magnitude import MagnitudeOp
from variegate.options import Options
from variegate.policies.load import POLICY_NAMES, load_policy
from variegate.program.ops import SPECS, Kind, Op

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
CUDA = "variegate/executors/cuda/kernels"
# By kind, the functions of the CPU and of GPUs with a branch for each instruction that executors run.
BRANCHES = {
    Kind.VALUE: ("native/kernels/values.cpp, change_colors", "values.py, apply_value"),
    Kind.STATISTIC: ("native/kernels/statistics.cpp, build_table", "statistics.py, write_tables"),
    Kind.NEIGHBORHOOD: ("native/kernels/filters.cpp, read_filtered_row", "neighborhood.py, read_filtered"),
    Kind.POSITION: ("native/kernels/position.cpp, apply_position", "values.py, apply_position"),
}
LOWERED = {
    Kind.GEOMETRY: "native/lowering/maps.cpp, to_map, and native/targets/stages.cpp: a branch",
    Kind.VALUE: "native/lowering/luts.cpp: a branch",
    Kind.NEIGHBORHOOD: "native/lowering/kernel_weights.cpp, build_kernels: a branch",
}
# Policies that need magnitudes, or are no part of another transform: they have tests of their own.
WITHOUT_EXAMPLE = ("AdaptiveRandAugment", "MultiView")
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
            yield f"docs/reference/functional.md: {home} in a line `:defined-in:`, for {function}"
    if not is_operation and name not in {*map(type_name, POLICIES), *WITHOUT_EXAMPLE}:
        yield f"tests/ops/examples.py: a {name} in POLICIES"
    op = getattr(cls, "_op", None)
    if op is not None:
        yield from missing_of_instruction(op)


def missing_of_instruction(op: Op) -> Iterator[str]:
    """The same of an instruction that transforms emit."""
    if op not in SPECS:
        yield f"variegate/program/ops.py: a row of SPECS for Op.{op.name}; then ask again, as its kind decides the rest"
        return
    spec = SPECS[op]
    meaning = meaning_of(op)
    if spec.level is None and (meaning is None or not meaning.__doc__):
        file = ORACLE[spec.kind].__name__.replace(".", "/")
        yield f"{file}.py: {op.name.lower()}(img_HWC, instruction), its meaning in NumPy, with a docstring for the page"
    if not has_arguments(op):
        yield f"tests/programs.py: an entry of _ARGUMENTS for Op.{op.name}; or an example of a class with this _op"
    if spec.level is not None:
        if not mentions("native/lowering/luts.cpp", f"Op::{op.name}"):
            yield f"native/lowering/luts.cpp: a case Op::{op.name} in fill_channel"
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


def missing_of_format(name: str) -> Iterator[str]:
    """The same of a format of sources."""
    format = FORMATS[name]
    module, _, function = format.reader.partition(":")
    file = f"variegate/data/{module.replace('.', '/')}.py"
    if not (ROOT / file).exists() or not mentions(file, f"def {function}"):
        yield f"{file}: {function}(files), which opens a list of Locations as Samples"
    table = (DOCS / "loader.md").read_text(encoding="utf-8").partition("## Sources")[2].partition("\n## ")[0]
    contract = (ROOT / "tests/data/contract.py").read_text(encoding="utf-8")
    for suffix in format.suffixes[:1]:
        if suffix not in table:
            yield f"docs/loader.md: a row with {suffix} in the table of sources"
        if not re.fullmatch(URL_SUFFIXES, suffix):
            yield f"variegate/io/addresses.py: {suffix} in _EXTENSION, so that secrets behind it in a URL are not shown"
    if not any(word in contract for word in (format.suffix if format.suffixes else name, f"def {name}(")):
        yield f"tests/data/contract.py: a function in SOURCES that writes pictures as {name}, and opens them"


def missing_of_policy(name: str) -> Iterator[str]:
    """The same of a name that ``load_policy`` takes."""
    if f'"{name}"' not in (load_policy.__doc__ or ""):
        yield f"variegate/policies/load.py: {name} in the docstring of load_policy"


def missing_of_option(name: str) -> Iterator[str]:
    """The same of an option of functions and commands."""
    homes = [cls for cls in option_classes() if name in cls.__annotations__]
    users = (path for path in python_files("variegate") if path not in {ROOT / file_of(cls) for cls in homes})
    if all(file_of(cls).startswith("variegate/options/") for cls in homes) and not any(
        re.search(rf"\b{name}\b", text_of(path)) for path in users
    ):
        yield f"variegate: code that reads the option {name} of {homes[0].__name__}"
    if not any(re.search(rf"\b{name}\b|--{name.replace('_', '-')}\b", text_of(path)) for path in python_files("tests")):
        yield f"tests: a test with the option {name} of {homes[0].__name__}"


def missing_of_command(name: str) -> Iterator[str]:
    """The same of a command."""
    if not any(f"variegate {name}" in page for page in pages().values()):
        yield f"docs: `variegate {name}` on a page that shows it"
    if not any(f'"{name}"' in text_of(path) for path in python_files("tests")):
        yield f"tests/cli: a test that runs `variegate {name}`"


def missing_of_generated() -> Iterator[str]:
    """Files that are out of date."""
    for path, made in GENERATED.items():
        if not path.exists() or path.read_text(encoding="utf-8") != made():
            yield f"{path.relative_to(ROOT)}: is out of date; run `make generated`"


def type_name(value: object) -> str:
    return type(value).__name__


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def python_files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


@cache
def pages() -> dict[str, str]:
    """The pages of the documentation, by their file names."""
    return {page.name: text_of(page) for page in DOCS.glob("*.md")}


def option_classes() -> Iterator[type[Options]]:
    """All dataclasses of options of the package."""
    waiting: list[type[Options]] = [Options]
    while waiting:
        cls = waiting.pop()
        waiting += cls.__subclasses__()
        if cls.__module__.startswith("variegate."):
            yield cls


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
    found |= {name: partial(missing_of_format, name) for name in FORMATS}
    found |= {name: partial(missing_of_policy, name) for name in POLICY_NAMES}
    for owner in option_classes():
        found |= {name: partial(missing_of_option, name) for name in owner.__annotations__ if name not in found}
    commands: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    for name in commands:
        found[name] = partial(missing_of_command, name)
    return found


# How to begin with something that is not there yet.
FIRST_STEPS = """
Nothing of this name is there yet. To begin (docs/architecture.md, Where new things go):
  an operation: its class in a file of variegate/ops/; for a new instruction also its number in Op and its row of SPECS
    in variegate/program/ops.py
  a source: a row of FORMATS in variegate/data/kinds.py
  an option: a field of a dataclass in variegate/options/
  a policy: its class in a file of variegate/policies/; a name for it in variegate/policies/load.py
  a command: a function in variegate/cli/, and its place in _PANELS of variegate/cli/commands.py"""
# What to run meanwhile, by the folder of the edited file.
_TEST_SOURCE = (
    "pytest tests/data/test_contract.py -n 0 -k {name}; pytest tests/data/test_opening.py tests/test_words.py"
)
COMMANDS = {
    "native": "make native  # compiles what changed, for this processor",
    "variegate/program": "make generated native  # constants are in every C++ file: all are compiled, once",
    "tests/oracle": "pytest tests/executors/test_contract.py -n 0 -k {upper}  # the CPU beside the oracle",
    "variegate/executors/cuda": "pytest tests/executors/cuda/test_interpreted.py -n 0 -k {upper}  # the GPU's kernels",
    "variegate/data": _TEST_SOURCE,
    "tests/data": _TEST_SOURCE,
    "variegate/transforms": "pytest tests/ops/test_every_class.py -n 0 -k {name}",
}


def commands_for(names: list[str], lines: list[str]) -> list[str]:
    """Commands that check the parts of these lines within seconds."""
    name = names[0] if names else ""
    upper = re.sub("(?<=[a-z])(?=[A-Z])", "_", name).upper()
    found = [
        command.format(name=name, upper=upper)
        for folder, command in COMMANDS.items()
        if any(line.startswith(folder) for line in lines)
    ]
    return list(dict.fromkeys([*found, " ".join(["python -m tests.missing", *names])]))


def main(names: list[str]) -> int:
    for package in (ops, policies):
        for module in pkgutil.iter_modules(package.__path__):
            import_module(f"{package.__name__}.{module.name}")
    known = subjects()
    if unknown := [name for name in names if name not in known]:
        print(f"{unknown[0]}: no transform, instruction, format, policy, option or command.{FIRST_STEPS}")
        return 2
    lines = [line for name in names or known for line in known[name]()]
    lines = list(dict.fromkeys([*lines, *missing_of_generated()]))
    print("\n".join(lines) or "nothing is missing")
    if lines:
        print("\nWhile you work:", *commands_for(names, lines), sep="\n  ")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
