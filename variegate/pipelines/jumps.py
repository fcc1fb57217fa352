"""``return`` in a branch, ``break`` and ``continue``, said by flags: whether the rest is done is then a value like
any other, which may differ from sample to sample.

    if a:                       if a:
        return x                    result, done = x, True
    return y                    if not done:
                                    result, done = y, True
                                return result
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

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


DONE, RESULT = "_vg_done", "_vg_result"
# Written on a generated ``if`` that only ever decides while the function is traced.
PLAIN = "_vg_plain"

Node = TypeVar("Node", bound=ast.AST)
Flags = frozenset[str]
_NONE: Flags = frozenset()
_LOOPS = (ast.For, ast.While)
_VARIABLE = (ast.Name, ast.Attribute)


def is_flag(name: str) -> bool:
    return name == DONE or name.startswith(("_vg_break", "_vg_continue"))


@dataclass
class _Loop:
    stop: str
    skip: str


class Jumps:
    """Rewrites the body of one function, and of none within it."""

    def __init__(self) -> None:
        self._loops: list[_Loop] = []
        self._returns = False
        self._count = 0

    def lower(self, function: ast.FunctionDef) -> None:
        self._returns = any(_returns_early(statement, False) for statement in function.body)
        body, flags = self._block(function.body)
        if self._returns:
            first, last = function.body[0], function.body[-1]
            start = [assign(DONE, ast.Constant(False), first), assign(RESULT, unset_call("result"), first)]
            end = [unless(flags, [assign(RESULT, ast.Constant(None), last)], last)] if flags else []
            body = [*start, *body, *end, at(ast.Return(value=name(RESULT)), last)]
        function.body = body

    def _block(self, statements: Sequence[ast.stmt]) -> tuple[list[ast.stmt], Flags]:
        """-> what stands in their place, and the flags that it may set."""
        out: list[ast.stmt] = []
        for number, statement in enumerate(statements):
            jump = self._jump(statement)
            if jump is not None:
                flag, lowered = jump
                return [*out, *lowered], frozenset({flag})
            lowered, flags = self._statement(statement)
            out += lowered
            if flags:
                rest, later = self._block(statements[number + 1 :])
                if rest:
                    out.append(unless(flags, rest, statements[number + 1]))
                return out, flags | later
        return out, _NONE

    def _jump(self, statement: ast.stmt) -> tuple[str, list[ast.stmt]] | None:
        if isinstance(statement, ast.Return) and self._returns:
            value = statement.value or ast.Constant(None)
            return DONE, [assign(RESULT, value, statement), assign(DONE, ast.Constant(True), statement)]
        if isinstance(statement, (ast.Break, ast.Continue)):
            flag = self._loops[-1].stop if isinstance(statement, ast.Break) else self._loops[-1].skip
            return flag, [assign(flag, ast.Constant(True), statement)]
        return None

    def _statement(self, node: ast.stmt) -> tuple[list[ast.stmt], Flags]:
        if isinstance(node, _LOOPS):
            return self._loop(node)
        if isinstance(node, SCOPES):
            return [node], _NONE
        found = _NONE
        for part in _parts(node):
            for field in ("body", "orelse", "finalbody"):
                block = getattr(part, field, None)
                if isinstance(block, list):
                    lowered, flags = self._block(block)
                    setattr(part, field, lowered)
                    found |= flags
        return [node], found

    def _loop(self, node: ast.For | ast.While) -> tuple[list[ast.stmt], Flags]:
        self._count += 1
        loop = _Loop(f"_vg_break{self._count}", f"_vg_continue{self._count}")
        self._loops.append(loop)
        body, flags = self._block(node.body)
        self._loops.pop()
        before: list[ast.stmt] = []
        if loop.skip in flags:
            body = [assign(loop.skip, ast.Constant(False), node.body[0]), *body]
        if loop.stop in flags:
            before = [assign(loop.stop, ast.Constant(False), node)]
        stops = flags - {loop.skip}
        if stops:
            if isinstance(node, ast.For):  # whose variable stays as it is where the loop was left
                entry = f"_vg_item{self._count}_{len(self._loops)}"
                taken = at(ast.Assign(targets=[node.target], value=name(entry)), node.target)
                node.target, body = at(ast.Name(id=entry, ctx=ast.Store()), node.target), [taken, *body]
            source = (
                [copy.deepcopy(node.iter)] if isinstance(node, ast.For) and isinstance(node.iter, _VARIABLE) else []
            )
            leave = at(ast.If(test=runtime("is_true", any_of(stops), *source), body=[ast.Break()], orelse=[]), node)
            setattr(leave, PLAIN, True)
            body = [leave, unless(stops, body, node.body[0])]
        after: list[ast.stmt] = []
        if node.orelse:
            otherwise, more = self._block(node.orelse)
            first = node.orelse[0]
            after, node.orelse = ([unless(stops, otherwise, first)], []) if stops else ([], otherwise)
            flags = (flags - {loop.stop, loop.skip}) | more
        node.body = body
        return [*before, node, *after], flags - {loop.stop, loop.skip}


def _parts(node: ast.stmt) -> Iterator[ast.AST]:
    yield node
    yield from getattr(node, "handlers", [])
    yield from getattr(node, "cases", [])


def _returns_early(node: ast.AST, in_branch: bool) -> bool:
    """True if there is a ``return`` within an ``if`` or a loop."""
    if isinstance(node, ast.Return):
        return in_branch
    if isinstance(node, SCOPES):
        return False
    in_branch = in_branch or isinstance(node, (ast.If, *_LOOPS))
    return any(_returns_early(child, in_branch) for child in ast.iter_child_nodes(node))


# -- pieces of code ----------------------------------------------------------------------------------------------


def at(node: Node, like: ast.AST) -> Node:
    """``node`` at the line that ``like`` begins in: errors name the last line of what spans several."""
    node = ast.copy_location(node, like)
    node.end_lineno, node.end_col_offset = node.lineno, node.col_offset  # type: ignore[attr-defined]
    return ast.fix_missing_locations(node)


def name(identifier: str) -> ast.Name:
    return ast.Name(id=identifier, ctx=ast.Load())


def assign(identifier: str, value: ast.expr, like: ast.AST) -> ast.stmt:
    return at(ast.Assign(targets=[ast.Name(id=identifier, ctx=ast.Store())], value=value), like)


def runtime(function: str, *arguments: ast.expr) -> ast.Call:
    """A call of what rewritten code calls (``runtime.py``)."""
    called = ast.Attribute(value=name("_vg"), attr=function, ctx=ast.Load())
    made = ast.Call(func=called, args=list(arguments), keywords=[])
    setattr(made, PLAIN, True)
    return made


def unset_call(variable: str) -> ast.expr:
    return runtime("unset", ast.Constant(variable))


def any_of(flags: Flags) -> ast.expr:
    names: list[ast.expr] = [name(flag) for flag in sorted(flags)]
    return names[0] if len(names) == 1 else ast.BoolOp(op=ast.Or(), values=names)


def unless(flags: Flags, body: list[ast.stmt], like: ast.AST) -> ast.stmt:
    return at(ast.If(test=ast.UnaryOp(op=ast.Not(), operand=any_of(flags)), body=body, orelse=[]), like)


def statements(source: str, like: ast.AST) -> list[ast.stmt]:
    """Generated code, all of it at the line that ``like`` begins in."""
    made = ast.parse(source).body
    for statement in made:
        for node in ast.walk(statement):
            if isinstance(node, (ast.stmt, ast.expr, ast.arg)):
                at(node, like)
    return made
