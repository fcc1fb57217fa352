"""Tables of pages that follow from code: a block ```{table} NAME``` becomes the table of that name."""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.report import case_row, library_rows, table
from tests.oracle.executor import meaning_of
from variegate.interop.convert import ConversionWarning
from variegate.interop.convert.albumentations import COMPOSITIONS, from_albumentations
from variegate.interop.convert.albumentations_arguments import VERSIONS, library_defaults
from variegate.interop.convert.torchvision import NOTHING, SAME
from variegate.interop.convert.torchvision import REFUSED as torchvision_refused
from variegate.ops import tone, windows  # noqa: F401  # which declare instructions
from variegate.ops.base import Transform
from variegate.policies.spaces import Rule, space
from variegate.program.ops import NEEDS_RGB, SPECS, Kind, Op, OpSpec

RESULTS = Path(__file__).resolve().parent / "results"
# Those that a page shows as a table.
RECORDS = ("w2-batch64", "w1i-batch64", "w2o-batch64", "w8-batch64", "deep-batch64")
NOT_SHOWN = ("how", "on core", "target")
NAMED = re.compile(r"^```\{table\} (\S+)\n```$", re.M)


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table."""
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    return lines + [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows]


# -- instructions ------------------------------------------------------------------------------------------------------


def instructions() -> Iterator[str]:
    """All instructions that transforms emit, by their kind: arguments, meaning, and details below."""
    for kind in Kind:
        ops = [op for op in SPECS if SPECS[op].kind is kind and op < Op.MAP_FIXED]
        yield from (f"## {kind.name.capitalize()}", "")
        described = {op: description_of(op).split("\n\n") for op in ops}
        rows = [[f"`{op.name}`", arguments_of(SPECS[op]), one_line(described[op][0])] for op in ops]
        yield from (*markdown(["instruction", "arguments", "meaning"], rows), "")
        for op in ops:
            for number, paragraph in enumerate(described[op][1:]):
                yield from (f"**{op.name}.** " * (not number) + one_line(paragraph), "")


def description_of(op: Op) -> str:
    """The docstring of the function that defines an instruction; of a table, its class and what a level becomes."""
    level = SPECS[op].level
    if level is None:
        return inspect.getdoc(meaning_of(op)) or ""
    (declared,) = (cls for cls in Transform.registry.values() if cls.__dict__.get("_op") is op and "level" in vars(cls))
    first = (inspect.getdoc(declared) or "").partition("\n\n")[0]
    parsed = ast.parse(textwrap.dedent(inspect.getsource(level)))
    (result,) = (node.value for node in ast.walk(parsed) if isinstance(node, ast.Return) and node.value)
    return f"{first} Level x becomes ``{ast.unparse(result)}``."


def arguments_of(spec: OpSpec) -> str:
    return ", ".join(name.removeprefix("_") for name in spec.args)


def one_line(text: str) -> str:
    return " ".join(text.split())


# -- channels ----------------------------------------------------------------------------------------------------------


def needing_colors() -> Iterator[str]:
    """The instructions that images of other channels than red, green and blue do not have."""
    names = sorted(SPECS[op].name for op in SPECS if NEEDS_RGB[op] and op < Op.MAP_FIXED)
    yield ", ".join(f"`{name}`" for name in names)


# -- magnitude spaces --------------------------------------------------------------------------------------------------

SPACES = (
    *("torchvision-autoaugment", "torchvision-randaugment", "torchvision-trivialaugment", "timm", "timm-increasing"),
    *("tf", "dali-autoaugment", "dali-randaugment", "dali-trivialaugment", "pba"),
)
OPERATIONS = ("Rotate", "ShearX", "TranslateX", "Brightness", "Posterize", "Solarize")


def magnitudes() -> Iterator[str]:
    """Arguments of some operations at level 9 of each magnitude space."""
    rows = []
    for name in SPACES:
        found = space(name)
        rules = [found.rules[operation] for operation in OPERATIONS]
        rows.append([name, f"0..{found.bins - 1}", *map(argument_at_9, rules)])
    yield from markdown(["space", "levels", *OPERATIONS], rows)


def argument_at_9(rule: Rule) -> str:
    sign = "±" if rule.signed and rule.base == 0 else ""
    share = " w" if rule.size >= 0 else ""
    return f"{sign}{rule.argument(9.0):.4g}{share}"


# -- conversions -------------------------------------------------------------------------------------------------------


def albumentations() -> Iterator[str]:
    """What ``from_albumentations`` makes of each class with its default arguments; equal rows are one."""
    rows: dict[tuple[str, str], list[str]] = {}
    for name, described in library_defaults(VERSIONS[0]).items():
        becomes = "the same composition"
        differs = ""
        if name not in COMPOSITIONS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConversionWarning)
                transform, report = from_albumentations(described, report=True)
            instead = report.refused.get(name)
            becomes = f"refused: use {instead}" if instead else leaves_of(transform.to_dict())
            differs = "; ".join(report.approximate.get(name, ()))
        rows.setdefault((becomes, differs), []).append(f"`{name}`")
    cells = [[", ".join(names), becomes, differs] for (becomes, differs), names in rows.items()]
    yield from markdown(["Albumentations", "becomes", "differs"], sorted(cells, key=lambda row: "refused" in row[1]))


def leaves_of(described: Any) -> str:
    """The names of the transforms in a description, without those that only hold others."""
    names: list[str] = []
    stack = [described]
    while stack:
        part = stack.pop()
        if isinstance(part, dict) and "transforms" not in part and "type" in part:
            names.append("a pipeline" if part["type"] == "Pipeline" else f"`{part['type']}`")
        elif isinstance(part, (dict, list)):
            stack += reversed(list(part.values() if isinstance(part, dict) else part))
    return ", ".join(dict.fromkeys(names)).replace("`Identity`", "nothing")


def torchvision() -> Iterator[str]:
    """The classes that ``from_torchvision`` converts to those of the same name, and those that it refuses."""
    rows = [[", ".join(f"`{name}`" for name in sorted(SAME)), "the same class, with all arguments"]]
    rows += [[f"`{name}`", "nothing" + (f": {how}" if how else "")] for name, how in NOTHING.items()]
    for instead in dict.fromkeys(torchvision_refused.values()):
        names = [f"`{name}`" for name, how in torchvision_refused.items() if how == instead]
        rows.append([", ".join(names), f"refused: use {instead}"])
    yield from markdown(["torchvision", "becomes"], rows)


# -- results -----------------------------------------------------------------------------------------------------------


def of_record(name: str) -> Iterator[str]:
    """The table of a record in docs/results: a row per library, or per case of many."""
    record = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    if "rows" in record:
        rows = [case_row(case) for case in record["rows"].values()]
    else:
        rows = library_rows(record["libraries"])
    yield from table([{head: cell for head, cell in row.items() if head not in NOT_SHOWN} for row in rows])


TABLES: dict[str, Callable[[], Iterator[str]]] = {
    "magnitudes": magnitudes,
    "instructions": instructions,
    "needing-colors": needing_colors,
    "albumentations": albumentations,
    "torchvision": torchvision,
    **{name: partial(of_record, name) for name in RECORDS},
}


def expanded(text: str) -> str:
    """A page with its tables."""
    return NAMED.sub(lambda block: "\n".join(TABLES[block[1]]()), text)
