"""The source of a function, as a syntax tree with the lines of its file."""

from __future__ import annotations

import ast
import copy
import linecache
import types
from functools import lru_cache

_Defined = ast.FunctionDef | ast.Lambda


def definition_of(function: types.FunctionType) -> ast.FunctionDef | None:
    """A copy of the definition of ``function``; None where its source is not there, or is no plain function.

    A lambda becomes a function that returns its expression, if it is the only one on its line with its arguments.
    """
    code = function.__code__
    lines = linecache.getlines(code.co_filename, function.__globals__)
    tree = _parsed(code.co_filename, "".join(lines))
    if tree is None:
        return None
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    found = [node for node in ast.walk(tree) if _is_at(node, code.co_name, code.co_firstlineno, arguments)]
    if len(found) != 1:
        return None
    node = copy.deepcopy(found[0])
    if isinstance(node, ast.FunctionDef):
        return None if any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in ast.walk(node)) else node
    assert isinstance(node, ast.Lambda)
    body = ast.copy_location(ast.Return(value=node.body), node.body)
    made = ast.FunctionDef(name="_vg_lambda", args=node.args, body=[body], decorator_list=[], returns=None)
    if "type_params" in ast.FunctionDef._fields:
        made.type_params = []  # type: ignore[attr-defined,unused-ignore]
    return ast.fix_missing_locations(ast.copy_location(made, node))


@lru_cache(maxsize=64)
def _parsed(file: str, source: str) -> ast.Module | None:
    if not source:
        return None
    try:
        return ast.parse(source, file)
    except (SyntaxError, ValueError):
        return None


def _is_at(node: ast.AST, name: str, line: int, arguments: tuple[str, ...]) -> bool:
    if isinstance(node, ast.FunctionDef):
        # The first line of a decorated function's code is that of its first decorator.
        lines = {node.lineno, *(decorator.lineno for decorator in node.decorator_list)}
        is_there = node.name == name and line in lines
    else:
        is_there = isinstance(node, ast.Lambda) and name == "<lambda>" and node.lineno == line
    if not is_there:
        return False
    assert isinstance(node, (ast.FunctionDef, ast.Lambda))
    named = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return tuple(argument.arg for argument in named) == arguments
