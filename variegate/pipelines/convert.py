"""A function of the user's as one that can be traced: rewritten, compiled at its own lines, with its own closure."""

from __future__ import annotations

import ast
import copy
import linecache
import os
import sys
import types
from functools import lru_cache
from typing import Any

from variegate.pipelines.jumps import statements
from variegate.pipelines.rewrite import rewrite

_Defined = ast.FunctionDef | ast.Lambda


def definition_of(function: types.FunctionType) -> ast.FunctionDef | None:
    """A copy of a function's definition, of a lambda too that is the only one on its line; None without source."""
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
    [made] = statements("def _vg_lambda(): return", node)
    assert isinstance(made, ast.FunctionDef)
    made.args = node.args
    made.body = [ast.copy_location(ast.Return(value=node.body), node.body)]
    return made


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


# Functions of these are called as they are: nothing in them decides by a value of each sample.
_AS_THEY_ARE = {"variegate", "numpy", "torch", "torchvision", "PIL", "builtins"} | set(sys.stdlib_module_names)
_AS_THEY_ARE -= {"__main__"}
_FACTORY, _INNER = "_vg_factory", "_vg_function"

# By the code's identity, with the code itself, which so is never another's.
_done: dict[int, tuple[types.CodeType, types.CodeType | None]] = {}
_rewritten: dict[int, types.CodeType] = {}


def is_users(function: types.FunctionType) -> bool:
    module = str(function.__globals__.get("__name__", ""))
    return module.partition(".")[0] not in _AS_THEY_ARE


def is_library(module: str, package: str) -> bool:
    """True if a module is Python's or an installed one that is not ``package``: its objects are its own matter."""
    root = module.partition(".")[0]
    if root in _AS_THEY_ARE or root == package:
        return root in _AS_THEY_ARE
    file = str(getattr(sys.modules.get(module), "__file__", None) or "")
    return f"{os.sep}site-packages{os.sep}" in file or f"{os.sep}dist-packages{os.sep}" in file


def is_converted(code: types.CodeType) -> bool:
    return id(code) in _rewritten


def convert(function: types.FunctionType, runtime: object) -> types.FunctionType | None:
    """``function``, rewritten; None where its source is not there. ``runtime``: what rewritten code calls."""
    code = function.__code__
    if is_converted(code):
        return function
    if id(code) not in _done:
        _done[id(code)] = code, _compiled(function)
    made = _done[id(code)][1]
    if made is None:
        return None
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    cells["_vg"] = types.CellType(runtime)
    closure = tuple(cells[name] for name in made.co_freevars)
    again = types.FunctionType(made, function.__globals__, function.__name__, function.__defaults__, closure)
    again.__kwdefaults__ = function.__kwdefaults__
    again.__qualname__ = function.__qualname__
    return again


def _compiled(function: types.FunctionType) -> types.CodeType | None:
    definition = definition_of(function)
    if definition is None:
        return None
    _mangle(definition, function)
    rewritten = rewrite(definition)
    rewritten.name = _INNER  # its own name is one of the module's, or of the function around it
    names = ["_vg", *function.__code__.co_freevars]
    [factory] = statements(f"def {_FACTORY}({', '.join(names)}): return {_INNER}", rewritten)
    assert isinstance(factory, ast.FunctionDef)
    factory.body.insert(0, rewritten)
    module = ast.Module(body=[factory], type_ignores=[])
    code = compile(ast.fix_missing_locations(module), function.__code__.co_filename, "exec", dont_inherit=True)
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    made: types.CodeType = namespace[_FACTORY](*names).__code__.replace(co_name=function.__name__)
    _note(made)
    return made


def _mangle(definition: ast.FunctionDef, function: types.FunctionType) -> None:
    """Private names of a class (``self.__amount``), which Python writes out within the class alone."""
    owner = function.__qualname__.rpartition(".")[0].rpartition(".")[2].lstrip("_")
    if not owner or owner == "<locals>":
        return
    for node in ast.walk(definition):
        field = {ast.Attribute: "attr", ast.Name: "id", ast.arg: "arg"}.get(type(node), "")
        name = getattr(node, field, "")
        if name.startswith("__") and not name.endswith("__"):
            setattr(node, field, f"_{owner}{name}")


def _note(code: types.CodeType) -> None:
    _rewritten[id(code)] = code
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            _note(inner)
