"""Values that Python text writes down: it is parsed, statement by statement, and never run."""

from __future__ import annotations

import ast
import dataclasses
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from variegate.integrations.converters.report import ConversionError

# Of one value, with all that it is made of; names may be used again and again in each other.
_MOST_VALUES, _MOST_LEVELS, _MOST_NUMBER = 5000, 40, 1e12
GUESSED = "?"  # first part of the dotted name of what no import names
_OWN = "__main__"
_WHOLE = ("Compose", "ReplayCompose", "Sequential", "create_transform")
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {"?.int": math.trunc, "?.float": float, "?.round": round}
_NUMBERS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul},
    **{ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv},
}
_CV2 = {"INTER_NEAREST": 0, "INTER_LINEAR": 1, "INTER_CUBIC": 2, "INTER_AREA": 3, "INTER_LANCZOS4": 4}
_CV2 |= {"BORDER_CONSTANT": 0, "BORDER_REPLICATE": 1, "BORDER_REFLECT": 2, "BORDER_WRAP": 3, "BORDER_REFLECT_101": 4}


@dataclasses.dataclass(frozen=True, eq=False)
class WrittenText:
    """Code that stands for no value here: a function, or a name of elsewhere. ``path``: of a dotted name."""

    text: str
    path: str = ""

    def __repr__(self) -> str:
        return self.text


@dataclasses.dataclass(frozen=True, eq=False)
class WrittenCall:
    """A call of a transform. ``path``: the dotted name of what is called, behind its import."""

    path: str
    arguments: tuple[Any, ...]
    named: dict[str, Any]
    line: int
    text: str = ""

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    def __repr__(self) -> str:
        return self.text[:60]

    def bound(self, names: Sequence[str]) -> dict[str, Any]:
        """Arguments by their names. Raises ConversionError."""
        if len(self.arguments) > len(names):
            got = self.arguments[len(names)]
            raise ConversionError(f"line {self.line}: {self.name}", got, "arguments by their names")
        return {**dict(zip(names, self.arguments, strict=False)), **self.named}


class WrittenNames:
    """Values of a text's names as its statements are read, one after another, and the pipelines in them.

    ``usual``: dotted names that names stand for without an import. ``is_transform``: of calls that are kept.
    """

    def __init__(self, usual: Mapping[str, str], is_transform: Callable[[WrittenCall], bool]) -> None:
        self._paths, self._values, self._is_transform = dict(usual), dict[str, Any](), is_transform
        self._star, self.count = "", 0  # of pipelines
        self._found: list[Any] = []
        self._parts: list[Any] = []  # values that are part of others; held, so that no other has their ids
        self._changed: list[Any] = []
        self._sizes: dict[int, tuple[Any, int, int]] = {}

    def pipeline(self) -> WrittenCall | None:
        """The first composition that is no part of another; without one, the first transform."""
        parts = {id(each) for each in self._parts}
        found = [each for each in self._found if id(each) not in parts]
        whole = [each for each in found if isinstance(each, list) or each.name in _WHOLE]
        self.count = len(whole)
        chosen = next(iter(whole or found), None)
        if any(each is chosen for each in self._changed):
            raise ConversionError("text", chosen, "a pipeline that the text does not change afterwards")
        if not isinstance(chosen, list):
            return chosen
        first = next(calls_in(chosen))
        home = first.path.partition(".")[0]
        return WrittenCall(f"{home}.transforms.Compose", (chosen,), {}, first.line, repr(chosen))

    @property
    def is_empty(self) -> bool:
        """No name was assigned and no pipeline found."""
        return not self._values and not self._found

    # -- statements ----------------------------------------------------------------------------------------------

    def read(self, body: Sequence[ast.stmt]) -> None:
        for node in body:
            match node:
                case ast.Import(names=names):
                    self._paths |= {one.asname or one.name.partition(".")[0]: one.name for one in names if one.asname}
                    self._paths |= {root: root for one in names if not one.asname for root in [one.name.split(".")[0]]}
                case ast.ImportFrom(module=module, names=names):
                    self._star = module or "" if names[0].name == "*" else self._star
                    self._paths |= {one.asname or one.name: f"{module}.{one.name}" for one in names}
                case ast.Assign(targets=targets, value=value):
                    self._assign(targets, self._found_in(value))
                case ast.AnnAssign(target=target, value=ast.expr() as value):
                    self._assign([target], self._found_in(value))
                case ast.AugAssign(target=target, op=kind, value=value):
                    changed = self._combined(kind, self._value(_loaded(target)), self._value(value), node)
                    self._assign([target], self._found_in(changed))
                case ast.Expr(value=value) | ast.Return(value=ast.expr() as value):
                    self._found_in(value)
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    self._read_within(node)
                case _ if hasattr(node, "body") or hasattr(node, "cases"):
                    self._read_branches(node)

    def _read_within(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        """A function, with the defaults of its arguments, or a class."""
        before = dict(self._values)
        if not isinstance(node, ast.ClassDef):
            given, last = node.args, [*node.args.posonlyargs, *node.args.args]
            names = [*last, *given.kwonlyargs, *filter(None, (given.vararg, given.kwarg))]
            self._values |= {one.arg: WrittenText(one.arg) for one in names}
            defaults = zip(reversed(last), reversed(given.defaults), strict=False)
            for one, default in [*defaults, *zip(given.kwonlyargs, given.kw_defaults, strict=True)]:
                if default is not None:
                    self._values[one.arg] = self._value(default)
        self.read(node.body)
        inner, self._values = self._values, before
        self._values.pop(node.name, None)
        if isinstance(node, ast.ClassDef):  # as of CFG.size, which stands for settings in many scripts
            stored = {name: value for name, value in inner.items() if before.get(name) is not value}
            self._values |= {f"{node.name}.{name}": value for name, value in stored.items()}
        self._paths[node.name] = f"{_OWN}.{node.name}"

    def _read_branches(self, node: ast.stmt) -> None:
        """Code that may run or not: behind it, the names that it changes are not known."""
        bodies = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
        bodies += [each.body for each in (*getattr(node, "handlers", ()), *getattr(node, "cases", ()))]
        is_loop = isinstance(node, (ast.For, ast.While))
        stored = [each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)]
        before, changed = dict(self._values), set[str](stored)
        for body in bodies:
            self._values = dict(before)
            for name in stored if is_loop else ():
                self._values[name] = WrittenText(name)
            self.read(body)
            changed |= {name for name, value in self._values.items() if before.get(name) is not value}
        self._values = before
        for name in changed:
            self._values[name] = WrittenText(name)

    def _assign(self, targets: Sequence[ast.expr], value: Any) -> None:
        for target in targets:
            match target:
                case ast.Name(id=name):
                    self._values[name] = value
                case ast.Tuple(elts=parts) | ast.List(elts=parts):
                    is_known = isinstance(value, (tuple, list)) and len(value) == len(parts)
                    for n, part in enumerate(parts):
                        self._assign([part], value[n] if is_known else WrittenText(ast.unparse(part)))
                case ast.Subscript() | ast.Attribute() | ast.Starred():  # a change within
                    self._values.pop(ast.unparse(target), None)
                    self._forget(target)

    def _forget(self, node: ast.expr) -> None:
        root = node
        while isinstance(root, (ast.Attribute, ast.Subscript, ast.Starred)):
            root = root.value
        if isinstance(root, ast.Name) and isinstance(self._values.get(root.id), (list, dict, WrittenCall)):
            self._changed.append(self._values[root.id])
            self._values[root.id] = WrittenText(root.id)

    # -- values ------------------------------------------------------------------------------------------------------

    def _found_in(self, given: Any) -> Any:
        """A value, whose pipelines are noted."""
        value = self._value(given) if isinstance(given, ast.expr) else given
        if isinstance(value, dict):
            for each in value.values():
                self._found_in(each)
        elif isinstance(value, WrittenCall) or (isinstance(value, list) and next(calls_in(value), None) is not None):
            self._found.append(value)
        return value

    def _value(self, node: ast.expr) -> Any:
        mark = len(self._found)
        value = self._evaluated(node)
        if isinstance(value, (list, WrittenCall)):
            del self._found[mark:]  # of its parts
        return value

    def _evaluated(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant(value=value):
                return self._number(value, node)
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                parts: list[Any] = []
                for each in elements:
                    value = self._value(each.value if isinstance(each, ast.Starred) else each)
                    is_many = isinstance(each, ast.Starred) and isinstance(value, (list, tuple))
                    parts += value if is_many else [WrittenText(ast.unparse(each)) if each is None else value]
                    self._parts += [value] if is_many else []
                return self._made(parts if isinstance(node, ast.List) else tuple(parts), parts)
            case ast.Dict(keys=keys, values=values) if all(isinstance(key, ast.Constant) for key in keys):
                made = {key.value: self._value(each) for key, each in zip(keys, values, strict=True)}  # type: ignore[union-attr]
                return self._made(made, list(made.values()), is_whole=False)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                value = self._value(operand)
                if type(value) in (int, float):
                    return -value if isinstance(node.op, ast.USub) else value
            case ast.BinOp(left=left, op=kind, right=right):
                return self._combined(kind, self._value(left), self._value(right), node)
            case ast.Name(id=name) if name in self._values:
                return self._values[name]
            case ast.Attribute() if (name := ast.unparse(node)) in self._values:
                return self._values[name]
            case ast.Name() | ast.Attribute():
                path = self._path(node)
                constant = _CV2.get(path.removeprefix("cv2.").replace("REFLECT101", "REFLECT_101"))
                return WrittenText(ast.unparse(node), path) if constant is None else constant
            case ast.Call():
                return self._call(node)
        for inner in ast.iter_child_nodes(node):  # of a condition, a comprehension
            if isinstance(inner, ast.expr):
                self._found_in(inner)
        return WrittenText(ast.unparse(node))

    def _number(self, value: Any, node: ast.AST) -> Any:
        is_huge = type(value) in (int, float) and not abs(value) <= _MOST_NUMBER
        return WrittenText(ast.unparse(node)) if is_huge else value

    def _combined(self, kind: ast.operator, left: Any, right: Any, node: ast.AST) -> Any:
        are_numbers = type(left) in (int, float) and type(right) in (int, float)
        if are_numbers and type(kind) in _NUMBERS and not (right == 0 and isinstance(kind, (ast.Div, ast.FloorDiv))):
            return self._number(_NUMBERS[type(kind)](left, right), node)
        if isinstance(kind, ast.Add) and type(left) is type(right) and isinstance(left, (list, tuple)):
            self._parts += [left, right]
            joined = left + right
            return self._made(joined, joined)
        return WrittenText(ast.unparse(node))

    def _made(self, value: Any, parts: Sequence[Any], is_whole: bool = True) -> Any:
        """A value of several, within limits. ``is_whole``: the parts are no pipelines of their own."""
        sizes = [self._sizes.get(id(each), (None, 1, 0)) for each in parts]
        size, levels = 1 + sum(each[1] for each in sizes), 1 + max((each[2] for each in sizes), default=0)
        if size > _MOST_VALUES or levels > _MOST_LEVELS:
            got = f"{size:,} values in {levels} levels"
            raise ConversionError("text", got, f"at most {_MOST_VALUES:,} values in {_MOST_LEVELS} levels")
        self._sizes[id(value)] = value, size, levels
        if is_whole:
            self._parts += [each for each in parts if isinstance(each, (list, WrittenCall))]
        return value

    def _call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute):
            self._forget(node.func.value)  # it may change, as by append
        path, name = self._path(node.func), self._path(node.func).rpartition(".")[2]
        given = [self._value(each) for each in node.args if not isinstance(each, ast.Starred)]
        named = {each.arg: self._value(each.value) for each in node.keywords if each.arg is not None}
        is_read = len(given) == len(node.args) and len(named) == len(node.keywords)
        if name in ("tensor", "array", "list", "tuple") and len(given) == 1 and isinstance(given[0], (list, tuple)):
            return given[0]
        if (convert := _CONVERSIONS.get(path)) and len(given) == 1 and type(given[0]) in (int, float):
            return convert(given[0])
        call = WrittenCall(path, tuple(given), named, node.lineno, ast.unparse(node)[:200])
        values = [*given, *named.values()]
        if is_read and self._is_transform(call):
            return self._made(call, values)
        for each in values:
            self._found_in(each)
        return WrittenText(ast.unparse(node))

    def _path(self, node: ast.expr) -> str:
        """A dotted name, its first part as it was imported; "" for anything else."""
        if isinstance(node, ast.Attribute):
            return f"{self._path(node.value)}.{node.attr}"
        if not isinstance(node, ast.Name) or node.id in self._values:
            return ""
        if self._star.partition(".")[0] in ("albumentations", "torchvision") and node.id not in self._paths:
            return f"{self._star}.{node.id}"
        return self._paths.get(node.id, f"{GUESSED}.{node.id}")


def _loaded(target: ast.expr) -> ast.expr:
    return ast.Name(target.id, ast.Load()) if isinstance(target, ast.Name) else target


def calls_in(value: Any) -> Iterator[WrittenCall]:
    """Calls in a list, not those in their arguments."""
    for each in value if isinstance(value, (list, tuple)) else ():
        if isinstance(each, WrittenCall):
            yield each
        yield from calls_in(each)
