"""A function rewritten so that it can be traced: every decision that Python would take becomes a call of
``runtime.py``, which takes it if it can be taken now, and else traces both branches.

    if c:                       def then(): nonlocal x; x = f(x)
        x = f(x)                def otherwise(): nonlocal x; x = g(x)
    else:                       _vg.if_statement(c, then, otherwise, get, put, ("x",), ...)
        x = g(x)
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from variegate.pipelines.jumps import (
    PLAIN,
    Jumps,
    assign,
    assigned,
    at,
    name,
    runtime,
    statements,
    unset_call,
    within,
)

COMPARISONS = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
COMPARISONS |= {ast.In: "in", ast.NotIn: "not in", ast.Is: "is", ast.IsNot: "is not"}
# Called by these names alone, they look at the frame they are called from.
_OF_THE_FRAME = {"super", "locals", "globals", "vars", "dir", "eval", "exec"}
# Before the names of variables that belong to the module.
GLOBAL = "global "
# What an ``if`` becomes.
_BRANCHES = """
def _vg_then{n}():
    {declared}
def _vg_else{n}():
    {declared}
def _vg_get{n}():
    return ({values})
def _vg_put{n}(_vg_values):
    {declared}
    ({values}) = _vg_values
_vg.if_statement(None, _vg_then{n}, _vg_else{n}, _vg_get{n}, _vg_put{n}, {titles!r})
"""


def rewrite(function: ast.FunctionDef) -> ast.FunctionDef:
    """In place: ``function``, without decorators, default values and annotations."""
    function.decorator_list, function.returns = [], None
    Jumps().lower(function)
    return _Scope(function, is_outermost=True).rewritten()


class _Scope(ast.NodeTransformer):
    """One function; functions within it get a scope of their own."""

    def __init__(self, function: ast.FunctionDef, is_outermost: bool = False) -> None:
        self._function = function
        self._is_outermost = is_outermost
        self._count = 0
        every = function.args
        arguments = [*every.posonlyargs, *every.args, *every.kwonlyargs, every.vararg, every.kwarg]
        self._arguments = {argument.arg for argument in arguments if argument is not None}
        self._of_others = {
            kind: {n for node in within(function.body) if isinstance(node, kind) for n in node.names}
            for kind in (ast.Global, ast.Nonlocal)
        }
        # Variables that a branch assigns: what they are behind it is a matter of both branches.
        self._branched: set[str] = set()
        for node in within(function.body):
            if isinstance(node, ast.If) and not hasattr(node, PLAIN):
                self._branched |= assigned([*node.body, *node.orelse])

    def rewritten(self) -> ast.FunctionDef:
        function, every = self._function, self._function.args
        for argument in [*every.posonlyargs, *every.args, *every.kwonlyargs, every.vararg, every.kwarg]:
            if argument is not None:
                argument.annotation = None
        if self._is_outermost:
            every.defaults = [ast.Constant(None) for _ in every.defaults]
            every.kw_defaults = [d if d is None else ast.Constant(None) for d in every.kw_defaults]
        first = function.body[0]
        body = [new for statement in function.body for new in self._all(self.visit(statement))]
        theirs = self._of_others[ast.Global] | self._of_others[ast.Nonlocal]
        own = sorted(self._branched - self._arguments - theirs)
        declared = [s for s in body if isinstance(s, (ast.Global, ast.Nonlocal))]
        body = [s for s in body if not isinstance(s, (ast.Global, ast.Nonlocal))]
        unset = [assign(n, unset_call(n), first) for n in own]
        function.body = [*declared, *unset, *body]
        return function

    @staticmethod
    def _all(made: ast.AST | Sequence[ast.stmt] | None) -> list[ast.stmt]:
        if made is None:
            return []
        return [made] if isinstance(made, ast.stmt) else list(made)  # type: ignore[arg-type]

    # -- statements --------------------------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.decorator_list = [self.visit(each) for each in node.decorator_list]
        node.args.defaults = [self.visit(each) for each in node.args.defaults]
        node.args.kw_defaults = [d if d is None else self.visit(d) for d in node.args.kw_defaults]
        node.returns = None
        if any(isinstance(each, (ast.Yield, ast.YieldFrom)) for each in within(node.body)):
            return node
        Jumps().lower(node)
        return _Scope(node).rewritten()

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return at(ast.Pass(), node)
        return at(ast.Assign(targets=[self.visit(node.target)], value=self.visit(node.value)), node)

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        if hasattr(node, PLAIN):
            return self.generic_visit(node)
        self._count += 1
        names = sorted(assigned([*node.body, *node.orelse]))
        bodies = [[new for s in block for new in self._all(self.visit(s))] for block in (node.body, node.orelse)]
        declared = self._declared(names)
        values = "".join(f"{n}, " for n in names)
        titles = tuple(f"{GLOBAL}{n}" if n in self._of_others[ast.Global] else n for n in names)
        made = statements(_BRANCHES.format(n=self._count, declared=declared, values=values, titles=titles), node)
        for branch, body in zip(made, bodies, strict=False):
            assert isinstance(branch, ast.FunctionDef)
            branch.body += [statement for statement in body if not isinstance(statement, (ast.Global, ast.Nonlocal))]
        call: Any = made[-1]
        call.value.args[0] = self.visit(node.test)
        return made

    def _declared(self, names: list[str]) -> str:
        """Declarations of the variables that a branch assigns."""
        of_module = [n for n in names if n in self._of_others[ast.Global]]
        here = [n for n in names if n not in of_module]
        lines = [f"global {', '.join(of_module)}"] if of_module else []
        if here:
            lines.append(f"nonlocal {', '.join(here)}")
        return "; ".join(lines) or "pass"

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        if not isinstance(node.target, ast.Name) or node.target.id not in self._branched:
            return node
        return [at(ast.Expr(value=runtime("load", name(node.target.id))), node), node]

    def visit_While(self, node: ast.While) -> ast.AST:
        self.generic_visit(node)
        node.test = at(runtime("loop_test", node.test), node.test)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        self.generic_visit(node)
        node.test = at(runtime("assert_test", node.test), node.test)
        return node

    def visit_Raise(self, node: ast.Raise) -> list[ast.stmt]:
        self.generic_visit(node)
        return [at(ast.Expr(value=runtime("check_raise")), node), node]

    # -- expressions -------------------------------------------------------------------------------------------

    def visit_Name(self, node: ast.Name) -> ast.AST:
        if isinstance(node.ctx, ast.Load) and node.id in self._branched:
            return at(runtime("load", node), node)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        if _binds(node.body) or _binds(node.orelse):
            return self.generic_visit(node)
        self.generic_visit(node)
        return at(runtime("if_expression", node.test, _lambda(node.body), _lambda(node.orelse)), node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        if any(map(_binds, node.values[1:])):
            return self.generic_visit(node)
        self.generic_visit(node)
        which = "and_" if isinstance(node.op, ast.And) else "or_"
        return at(runtime(which, node.values[0], *map(_lambda, node.values[1:])), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return at(runtime("not_", node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        symbols = [COMPARISONS[type(op)] for op in node.ops]
        operators = ast.Tuple(elts=[ast.Constant(symbol) for symbol in symbols], ctx=ast.Load())
        return at(runtime("compare", operators, node.left, *node.comparators), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.ctx, ast.Load) or any(isinstance(n, ast.Slice) for n in ast.walk(node.slice)):
            return node
        return at(runtime("item", node.value, node.slice), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if hasattr(node, PLAIN) or (isinstance(node.func, ast.Name) and node.func.id in _OF_THE_FRAME):
            return node
        made = runtime("call", node.func, *node.args)
        made.keywords = node.keywords
        return at(made, node)


def _binds(node: ast.AST) -> bool:
    return any(isinstance(each, ast.NamedExpr) for each in ast.walk(node))


def _lambda(body: ast.expr) -> ast.Lambda:
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.Lambda(args=nothing, body=body)
