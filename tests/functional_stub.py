"""The stub of ``variegate.transforms.functional``, for editors: ``python -m tests.functional_stub`` writes it."""

from __future__ import annotations

import dataclasses
import inspect
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from variegate.ops import arguments
from variegate.ops.base import Transform
from variegate.ops.schema import Range
from variegate.transforms import functional as F
from variegate.transforms.functional.declared import fields_of, of_constant, signature_of

STUB = Path(F.__file__).with_suffix(".pyi")
_WIDTH = 120


def functional_stub() -> str:
    """Imports of the functions that are written out, and a signature of each that an operation declares."""
    types = {("variegate.transforms.functional.single", "Img")}
    written, aliases, declared = [], [], []
    for name in sorted(F.__all__):
        function = getattr(F, name)
        if function.__name__ != name:
            aliases.append(f"{name} = {function.__name__}\n")
        elif name in Transform.functions:
            cls = Transform.functions[name]
            types |= {found for field in fields_of(cls).values() for found in _names(cls, field)}
            declared.append(_definition(name, cls))
        else:
            written.append(f"from {function.__module__} import {name} as {name}")
    names = "".join(f'    "{name}",\n' for name in sorted(F.__all__))
    head = f'"""{F.__doc__}"""\n\n# Written by python -m tests.functional_stub.\n'
    for module in {module for module, _ in types}:
        names_there = sorted(name for home, name in types if home == module)
        written.append(f"from {module} import {', '.join(names_there)}")
    written.sort(key=lambda line: line.split(" import "))
    return head + "\n".join([*written, "", f"__all__ = [\n{names}]\n", *declared]) + "\n" + "".join(aliases)


def _definition(name: str, cls: type[Transform]) -> str:
    fields = fields_of(cls)
    lines = [f"def {name}("]
    for parameter in signature_of(cls).parameters.values():
        kind = {"img": "Img", "device": "str"}.get(parameter.name) or _type(cls, fields[parameter.name])
        has_default = parameter.default is not inspect.Parameter.empty
        default = str(parameter.default) if not isinstance(parameter.default, str) else f'"{parameter.default}"'
        lines.append(f"    {parameter.name}: {kind}{f' = {default}' if has_default else ''},")
    return "\n".join([*lines, ") -> Img:", *_docstring(getattr(F, name).__doc__), ""])


def _docstring(text: str) -> Iterator[str]:
    lines = text.splitlines()
    if len(lines) == 1:
        lines = textwrap.wrap(text, _WIDTH - 10)
    text = "\n    ".join(lines)
    yield re.sub(r" +$", "", f'    """{text}', flags=re.M) + ('"""' if len(lines) == 1 else '\n    """')


def _type(cls: type[Transform], field: dataclasses.Field[Any]) -> str:
    argument = of_constant(cls, field.name) if field.name in cls._arguments else None
    if isinstance(argument, Range):
        return "int" if argument.is_integer else "float"
    return str(field.type)


def _names(cls: type[Transform], field: dataclasses.Field[Any]) -> Iterator[tuple[str, str]]:
    """Modules and names of the types of a field."""
    for name in _type(cls, field).split(" | "):
        if name in vars(arguments):
            yield arguments.__name__, name
        elif name in vars(inspect.getmodule(cls)):
            yield cls.__module__, name


if __name__ == "__main__":
    STUB.write_text(functional_stub(), encoding="utf-8")
