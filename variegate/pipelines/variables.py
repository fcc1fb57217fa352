"""Which variables code assigns, by its syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def within(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    """All nodes of a function's own scope."""
    for node in body:
        yield node
        if not isinstance(node, SCOPES):
            yield from within(list(ast.iter_child_nodes(node)))


def assigned(body: Sequence[ast.stmt]) -> set[str]:
    """The variables that statements assign, in whatever way."""
    found: set[str] = set()
    waiting: list[ast.AST] = list(body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(each.asname or each.name).split(".")[0] for each in node.names}
        elif isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.add(node.id)
        elif not isinstance(node, (ast.Lambda, *_COMPREHENSIONS)):
            waiting += ast.iter_child_nodes(node)
    return found
