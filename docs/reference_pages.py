"""The reference pages: which names of which module they list, and the directives that those become."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

from variegate.ops.base import Transform
from variegate.options import Options
from variegate.transforms.functional.declared import accepted_by

# ```{api} MODULE, then a name a line; after a colon, the members that are described with it. A line ":defined-in: FILE
# FILE" stands for all public names that these files define.
LISTED = re.compile(r"^```\{api\} (\S+)\n(.*?)^```$", re.M | re.S)
DEFINED_IN = ":defined-in:"
FUNCTIONS = "variegate.transforms.functional"


def entries(text: str) -> Iterator[tuple[str, str, str]]:
    """Module, name and members of everything that a page describes."""
    for block in LISTED.finditer(text):
        for line in block[2].splitlines():
            if line.startswith(DEFINED_IN):
                for name in defined_in(block[1], line.removeprefix(DEFINED_IN).split()):
                    yield block[1], name, ""
                continue
            name, _, members = line.partition(":")
            yield block[1], name.strip(), ", ".join(members.split())


def defined_in(module: str, files: list[str]) -> list[str]:
    """The public names of ``module`` that these files define, a file after another."""
    public = importlib.import_module(module)
    homes = {name: home_of(module, name).rpartition(".")[2] for name in public.__all__}
    return [name for file in files for name, home in homes.items() if home == file]


def home_of(module: str, name: str) -> str:
    """The module that defines a public name; of a function that follows from a class, the module of that class."""
    if module == FUNCTIONS and name in Transform.functions:
        return Transform.functions[name].__module__
    return str(getattr(getattr(importlib.import_module(module), name), "__module__", ""))


def accepted(value: Any) -> list[str]:
    """What the arguments of a transform or of a function accept, as their annotations say, as lines of a list."""
    if not inspect.isclass(value):
        declared = accepted_by(value)
    else:
        declared = value._arguments if issubclass(value, Transform) else {}
    names = [name for name in inspect.signature(value).parameters if name in declared] if declared else []
    listed = [f"   - ``{name}``: {declared[name].describe()}" for name in names]
    return ["", "   Accepted values:", "", *listed] if listed else []


def without_types(value: Any) -> str:
    """The signature; the list of accepted values says more than types."""
    signature = inspect.signature(value)
    parameters = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    return str(signature.replace(parameters=parameters, return_annotation=inspect.Signature.empty))


def described(module: str, name: str, members: str) -> list[str]:
    value = getattr(importlib.import_module(module), name)
    if inspect.ismodule(value):
        return [f".. py:module:: {module}.{name}", "", f"   {inspect.getdoc(value)}"]
    if inspect.isclass(value):
        lines = [f".. autoclass:: {module}.{name}"]
        if members:
            lines.append(f"   :members: {members}")
        if "__call__" in members:
            lines.append("   :special-members: __call__")
        if listed := accepted(value):
            return [lines[0] + without_types(value), *lines[1:], *listed]
        if issubclass(value, Options):  # whose types are declarations of options
            lines[0] += without_types(value)
        return [*lines, "   :undoc-members:"] if members else lines
    if callable(value):
        if value.__name__ != name:
            return [f".. py:function:: {module}.{name}", "", f"   Another name of :func:`{module}.{value.__name__}`."]
        if listed := accepted(value):
            return [f".. autofunction:: {module}.{name}{without_types(value)}", *listed]
        return [f".. autofunction:: {module}.{name}"]
    return [f".. py:data:: {module}.{name}", f"   :value: {value!r}"]


def with_pictures(lines: list[str], html: str) -> list[str]:
    """The directive of a class with pictures at the head of its content."""
    if not html:
        return lines
    content = lines.index("") if "" in lines else len(lines)
    return [*lines[:content], "", "   .. raw:: html", "", f"      {html}", *lines[content:]]


def expanded(text: str, pictures: Callable[[str], str]) -> str:
    """Each list as a table of names with their first sentences, and what each says in full.

    ``pictures`` returns the HTML of a transform's pictures, or nothing.
    """

    def directives(block: re.Match[str]) -> str:
        module = block[1]
        listed = list(entries(block[0]))
        table = [f"   {name}" for _, name, _ in listed if not is_plain(module, name)]
        lines = [f".. currentmodule:: {module}", "", ".. autosummary::", "   :nosignatures:", "", *table, ""]
        if len(table) < 2:
            lines = lines[:2]
        for entry in listed:
            html = pictures(entry[1]) if module == "variegate.transforms" else ""
            lines += [*with_pictures(described(*entry), html), ""]
        return "\n".join(["```{eval-rst}", *lines, "```"])

    return LISTED.sub(directives, text)


def is_plain(module: str, name: str) -> bool:
    """Nothing with a docstring of its own: a constant, or a module."""
    value = getattr(importlib.import_module(module), name)
    return inspect.ismodule(value) or not callable(value)
