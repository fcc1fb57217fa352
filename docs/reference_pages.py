"""The reference pages: which names of which module they list, and the directives that those become."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator

# ```{api} MODULE, then a name a line; after a colon, the members that are described with it.
LISTED = re.compile(r"^```\{api\} (\S+)\n(.*?)^```$", re.M | re.S)


def entries(text: str) -> Iterator[tuple[str, str, str]]:
    """Module, name and members of everything that a page describes."""
    for block in LISTED.finditer(text):
        for line in block[2].splitlines():
            name, _, members = line.partition(":")
            yield block[1], name.strip(), ", ".join(members.split())


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
        return [*lines, "   :undoc-members:"] if members else lines
    if callable(value):
        if value.__name__ != name:
            return [f".. py:function:: {module}.{name}", "", f"   Another name of :func:`{module}.{value.__name__}`."]
        return [f".. autofunction:: {module}.{name}"]
    return [f".. py:data:: {module}.{name}", f"   :value: {value!r}"]


def expanded(text: str) -> str:
    """Each list as a table of names with their first sentences, and what each says in full."""

    def directives(block: re.Match[str]) -> str:
        module = block[1]
        listed = list(entries(block[0]))
        table = [f"   {name}" for _, name, _ in listed if not is_plain(module, name)]
        lines = [f".. currentmodule:: {module}", "", ".. autosummary::", "   :nosignatures:", "", *table, ""]
        if len(table) < 2:
            lines = lines[:2]
        for entry in listed:
            lines += [*described(*entry), ""]
        return "\n".join(["```{eval-rst}", *lines, "```"])

    return LISTED.sub(directives, text)


def is_plain(module: str, name: str) -> bool:
    """Nothing with a docstring of its own: a constant, or a module."""
    value = getattr(importlib.import_module(module), name)
    return inspect.ismodule(value) or not callable(value)
