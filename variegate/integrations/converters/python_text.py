"""Values that Python text writes down: it is parsed, and never run.

A name has a value where its scope binds it once, or by lines that stand one after another, and the text nowhere changes
in place what it stands for. All else is text without a value.
"""

from __future__ import annotations

import ast
import dataclasses
import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from variegate.integrations.converters.report import ConversionError
from variegate.integrations.converters.text_names import CHANGING, LIBRARIES, OWN, TextNames

# Of one value, with all that it is made of; names may be used again and again in each other.
_MOST_VALUES, _MOST_LEVELS, _MOST_NUMBER = 5000, 40, 1e12
WHOLE = ("Compose", "ReplayCompose", "Sequential", "create_transform")
_CONVERSIONS: dict[str, Callable[[Any], Any]] = {"?.int": math.trunc, "?.float": float, "?.round": round}
_NUMBERS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    **{ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul},
    **{ast.Div: operator.truediv, ast.FloorDiv: operator.floordiv},
}
_ARRAYS = ("numpy.array", "?.np.array", "torch.tensor")
_CONSTANTS: dict[str, Any] = {"INTER_NEAREST": 0, "INTER_LINEAR": 1, "INTER_CUBIC": 2, "INTER_AREA": 3}
_CONSTANTS |= {"INTER_LANCZOS4": 4, "BORDER_CONSTANT": 0, "BORDER_REPLICATE": 1, "BORDER_REFLECT": 2}
_CONSTANTS |= {"BORDER_WRAP": 3, "BORDER_REFLECT_101": 4}
_CONSTANTS |= {"IMAGENET_DEFAULT_MEAN": (0.485, 0.456, 0.406), "IMAGENET_DEFAULT_STD": (0.229, 0.224, 0.225)}
_CONSTANTS |= {"IMAGENET_INCEPTION_MEAN": (0.5, 0.5, 0.5), "IMAGENET_INCEPTION_STD": (0.5, 0.5, 0.5)}


class WrittenArray(tuple[Any, ...]):
    """Numbers of an array or tensor, which "+" does not join."""


@dataclasses.dataclass(frozen=True, eq=False)
class WrittenText:
    """Code that stands for no value here: a function, or a name of elsewhere. ``path``: of a dotted name;
    ``is_changed``: what it stands for is changed in place."""

    node: ast.AST
    path: str = ""
    is_changed: bool = False

    def __repr__(self) -> str:
        return ast.unparse(self.node)

    def __bool__(self) -> bool:
        raise TypeError(f"the text does not write down whether {self!r} is true")


@dataclasses.dataclass(frozen=True, eq=False)
class WrittenCall:
    """A call of a transform. ``path``: the dotted name of what is called, behind its import."""

    path: str
    arguments: tuple[Any, ...]
    named: dict[str, Any]
    line: int
    node: ast.AST

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    @property
    def home(self) -> str:
        return self.path.partition(".")[0]

    def __repr__(self) -> str:
        return ast.unparse(self.node)[:60]

    def bound(self, names: Sequence[str]) -> dict[str, Any]:
        """Arguments by their names. Raises ConversionError."""
        if {"type", "__class_fullname__"} & set(self.named):  # which descriptions have for the class
            raise ConversionError(f"line {self.line}: {self.name}", self, "arguments of the class")
        if len(self.arguments) > len(names):
            got = self.arguments[len(names)]
            raise ConversionError(f"line {self.line}: {self.name}", got, "arguments by their names")
        return {**dict(zip(names, self.arguments, strict=False)), **self.named}


class WrittenNames:
    """Values of a text's names, and the pipelines in it.

    ``usual``: dotted names that names stand for without an import. ``is_transform``: of calls that are kept.
    """

    def __init__(self, tree: ast.Module, usual: Mapping[str, str], is_transform: Callable[[WrittenCall], bool]) -> None:
        self._usual, self._is_transform = usual, is_transform
        self._names = TextNames(tree)
        self._known: dict[ast.AST, Any] = {}
        self._sizes: dict[int, tuple[Any, int, int]] = {}
        self._parts: dict[int, Any] = {}  # values that are part of others; held, so that no other has their ids
        self._found: list[tuple[Any, ast.AST]] = []
        self._is_composed = self._is_changed = False
        self._seek(tree)

    def pipeline(self) -> tuple[WrittenCall | None, tuple[str, ...]]:
        """The first composition that is no part of another, with notes; without one, the first list or transform.

        Raises ConversionError for one that the text may change.
        """
        found = [(value, node) for value, node in self._found if id(value) not in self._parts]
        whole = [each for each in found if isinstance(each[0], WrittenCall) and each[0].name in WHOLE]
        lists = [] if self._is_composed else [each for each in found if isinstance(each[0], list)]
        candidates = whole or lists or ([] if self._is_composed else found)
        if not candidates:
            return None, ()
        chosen, node = candidates[0]
        if self._may_change(node) or _is_of_changed(chosen):
            raise ConversionError("text", chosen, "a pipeline that the text does not change afterwards")
        if isinstance(chosen, list):
            first = next(calls_in(chosen))
            chosen = WrittenCall(f"{first.home}.transforms.Compose", (chosen,), {}, first.line, node)
        others = [star for star in self._names.stars if star.partition(".")[0] not in LIBRARIES]
        notes = [f": what {star} has by names that are used here is not known" for star in others[:1]]
        if len(candidates) > 1:
            notes.append(f": the first of {len(candidates)} pipelines, that of line {chosen.line}")
        return chosen, tuple(notes)

    def _may_change(self, node: ast.AST) -> bool:
        """True if a pipeline is changed, by its name or, where it is known by others, by any."""
        match self._names.above[node]:
            case ast.Assign(targets=[ast.Name() as target]) | ast.AnnAssign(target=ast.Name() as target):
                key, value = self._names.find(target)
                if key is not None and value is node:
                    return self._names.is_changed(key, True) or (self._is_changed and self._names.escapes(key))
            case ast.Assign(targets=targets) if len(targets) > 1:
                keys = [self._names.find(each)[0] for each in targets if isinstance(each, ast.Name)]
                return self._is_changed or any(key is None or self._names.is_changed(key, True) for key in keys)
        return self._is_changed

    def _seek(self, node: ast.AST) -> None:
        """Note pipelines, in the order of the text, and whether any is changed in place."""
        above = self._names.above.get(node)
        match node:
            case ast.Call():
                value = self._value(node)
                if isinstance(value, WrittenCall):
                    # Of what an operator makes of it, nothing is known.
                    self._found += [] if isinstance(above, (ast.BinOp, ast.Subscript)) else [(value, node)]
                    return
                name = str(getattr(node.func, "id", getattr(node.func, "attr", "")))
                self._is_composed |= name in ("Compose", "ReplayCompose")
                if isinstance(node.func, ast.Attribute) and name in CHANGING:
                    given = [self._value(each) for each in [*node.args, *(each.value for each in node.keywords)]]
                    holds = any(call.name not in WHOLE for call in calls_in(given))
                    self._is_changed |= holds or _is_of_transforms(node.func)
            case ast.List():
                calls = [*calls_in(self._value(node))]
                if any(each.name not in WHOLE for each in calls):
                    is_alone = not isinstance(above, (ast.BinOp, ast.Subscript, ast.Call, ast.keyword))
                    self._found += [(self._value(node), node)] if is_alone else []
                    return
            case ast.Attribute(attr=name, value=value, ctx=ast.Store() | ast.Del()):
                is_list = name == "transforms" and not isinstance(value, ast.Name)
                self._is_changed |= is_list or _is_of_transforms(value)
            case ast.Subscript(ctx=ast.Store() | ast.Del()):
                self._is_changed |= _is_of_transforms(node.value)
        for child in ast.iter_child_nodes(node):
            self._seek(child)

    # -- values ------------------------------------------------------------------------------------------------------

    def _value(self, node: ast.AST) -> Any:
        if node not in self._known:
            self._known[node] = WrittenText(node)  # of what stands within its own value
            self._known[node] = self._evaluated(node)
        return self._known[node]

    def _evaluated(self, node: ast.AST) -> Any:
        match node:
            case ast.Constant(value=value):
                return self._number(value, node)
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                parts = self._spread(elements)
                return self._made(parts if isinstance(node, ast.List) else tuple(parts), parts)
            case ast.Dict(keys=keys, values=values) if all(isinstance(key, ast.Constant) for key in keys):
                made = {key.value: self._value(each) for key, each in zip(keys, values, strict=True)}  # type: ignore[union-attr]
                return self._made(made, list(made.values()))
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                number = self._value(operand)
                if type(number) in (int, float):
                    return -number if isinstance(node.op, ast.USub) else number
            case ast.BinOp(left=left, op=kind, right=right):
                return self._combined(kind, self._value(left), self._value(right), node)
            case ast.Name():
                return self._named(node)
            case ast.Attribute(value=value, attr=name):
                if (setting := self._names.setting(node)) is not None:
                    return self._value(setting)
                owner = self._value(value) if isinstance(value, (ast.Name, ast.Attribute)) else None
                path = f"{owner.path}.{name}" if isinstance(owner, WrittenText) and owner.path else ""
                return _free(node, path)
            case ast.Subscript(value=value, slice=ast.Constant(value=index)):  # CONFIG["size"], sizes[0]
                held, place = self._value(value), index if type(index) is int else 0
                with suppress(LookupError):
                    if isinstance(held, dict):
                        return held[index]
                    if isinstance(held, (list, tuple)) and place is index:
                        return held[place]
            case ast.Call():
                return self._call(node)
        return WrittenText(node)

    def _named(self, node: ast.Name) -> Any:
        key, given = self._names.find(node)
        if key is None:
            return _free(node, self._names.free(node.id, self._usual))
        if isinstance(given, (str, ast.ClassDef)):
            return _free(node, given if isinstance(given, str) else f"{OWN}.{given.name}")
        given = self._names.default(given) if isinstance(given, ast.arg) else given
        value = WrittenText(node, is_changed=self._names.is_extended(key)) if given is None else self._value(given)
        is_known = not isinstance(value, (list, dict, WrittenCall))
        holds_calls = next(calls_in([value]), None) is not None
        is_kept = isinstance(value, WrittenCall) or not holds_calls
        if is_known or not self._names.is_changed(key, is_kept):
            return WrittenText(node, value.path, value.is_changed) if isinstance(value, WrittenText) else value
        return WrittenText(node, is_changed=holds_calls)

    def _spread(self, elements: Sequence[ast.expr]) -> list[Any]:
        """Values of a list's elements, and of lists that are spread out in it."""
        parts: list[Any] = []
        for each in elements:
            value = self._value(each.value if isinstance(each, ast.Starred) else each)
            is_many = isinstance(each, ast.Starred) and isinstance(value, (list, tuple))
            rest = WrittenText(each, is_changed=getattr(value, "is_changed", False))
            parts += value if is_many else [rest if isinstance(each, ast.Starred) else value]
            self._parts |= {id(value): value} if is_many else {}
        return parts

    def _number(self, value: Any, node: ast.AST) -> Any:
        is_huge = type(value) in (int, float) and not abs(value) <= _MOST_NUMBER
        return WrittenText(node) if is_huge else value

    def _combined(self, kind: ast.operator, left: Any, right: Any, node: ast.AST) -> Any:
        are_numbers = type(left) in (int, float) and type(right) in (int, float)
        if are_numbers and type(kind) in _NUMBERS and not (right == 0 and isinstance(kind, (ast.Div, ast.FloorDiv))):
            return self._number(_NUMBERS[type(kind)](left, right), node)
        if isinstance(kind, ast.Mult) and type(left) in (list, tuple) and type(right) is int and right <= _MOST_LEVELS:
            self._parts |= {id(left): left}
            repeated = left * right
            return self._made(repeated, repeated)
        if isinstance(kind, ast.Add) and type(left) is type(right) and type(left) in (list, tuple):
            self._parts |= {id(left): left, id(right): right}
            joined = left + right
            return self._made(joined, joined)
        return WrittenText(node)

    def _made(self, value: Any, parts: Sequence[Any]) -> Any:
        """A value of several, within limits. Parts of a call are no pipelines of their own."""
        sizes = [self._sizes.get(id(each), (None, 1, 0)) for each in parts]
        size, levels = 1 + sum(each[1] for each in sizes), 1 + max((each[2] for each in sizes), default=0)
        if size > _MOST_VALUES or levels > _MOST_LEVELS:
            got = f"{size:,} values in {levels} levels"
            raise ConversionError("text", got, f"at most {_MOST_VALUES:,} values in {_MOST_LEVELS} levels")
        self._sizes[id(value)] = value, size, levels
        left = list(parts) if isinstance(value, WrittenCall) else []
        while left:
            one = left.pop()
            if isinstance(one, (list, WrittenCall)) and id(one) not in self._parts:
                self._parts[id(one)] = one
                left += one if isinstance(one, list) else ()
        return value

    def _call(self, node: ast.Call) -> Any:
        function = self._value(node.func)
        path = function.path if isinstance(function, WrittenText) else ""
        name = path.rpartition(".")[2]
        given = self._spread(node.args)
        named = {each.arg: self._value(each.value) for each in node.keywords if each.arg is not None}
        is_read = len(named) == len(node.keywords)
        is_read &= not any(isinstance(each, WrittenText) and isinstance(each.node, ast.Starred) for each in given)
        is_of_one = len(given) == 1 and not node.keywords and isinstance(given[0], (list, tuple))
        if is_of_one and path in ("?.list", "?.tuple"):
            return self._made(list(given[0]) if name == "list" else tuple(given[0]), given[0])
        if is_of_one and path in _ARRAYS:
            return self._made(WrittenArray(given[0]), given[0])
        if path == "?.dict" and is_read and not given:
            return self._made(named, list(named.values()))
        if (convert := _CONVERSIONS.get(path)) and len(given) == 1 and type(given[0]) in (int, float):
            return convert(given[0])
        given, named = (given, named) if is_read else ([WrittenText(node)], {})
        call = WrittenCall(path, tuple(given), named, node.lineno, node)
        # "T.Resize = Mine" makes another of it.
        if (is_read or name in WHOLE) and name not in self._names.stored and self._is_transform(call):
            return self._made(call, [*given, *named.values()])
        return WrittenText(node)


def _free(node: ast.AST, path: str) -> Any:
    constant = _CONSTANTS.get(path.removeprefix("cv2.").replace("REFLECT101", "REFLECT_101"))
    if constant is None and path.startswith("timm."):
        constant = _CONSTANTS.get(path.rpartition(".")[2])
    return WrittenText(node, path) if constant is None else constant


def _is_of_transforms(node: ast.expr) -> bool:
    """True if a pipeline's list is on the way: t.transforms.append, t.transforms[0]."""
    left: ast.AST | None = node
    while isinstance(left, (ast.Attribute, ast.Subscript, ast.Call)):
        if getattr(left, "attr", "") == "transforms":
            return True
        left = left.func if isinstance(left, ast.Call) else left.value
    return False


def _is_of_changed(value: Any) -> bool:
    """True if a transform, or a list of some, is changed in place, anywhere within."""
    if isinstance(value, WrittenCall):
        return any(map(_is_of_changed, [*value.arguments, *value.named.values()]))
    return any(map(_is_of_changed, value)) if isinstance(value, list) else getattr(value, "is_changed", False)


def calls_in(value: Any) -> Iterator[WrittenCall]:
    """Calls in a list, not those in their arguments."""
    for each in value if isinstance(value, (list, tuple)) else ():
        if isinstance(each, WrittenCall):
            yield each
        yield from calls_in(each)
