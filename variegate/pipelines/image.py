"""The image of a function that is traced, step by step since it came in; and what a variable is where two branches
meet, behind an ``if`` whose condition differs from sample to sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from variegate.checks import as_number
from variegate.errors import shown
from variegate.ops.arguments import ArgumentError
from variegate.ops.base import Traced, Transform, set_field
from variegate.ops.traced import Function
from variegate.pipelines.graph import Graph, place, refuse
from variegate.pipelines.scalar import Scalar, is_plain, make, operand, same

_NOT_PIXELS = "conditions on values that are drawn or given with the batch, and on image.height, .width and .channels"


@dataclass(frozen=True, eq=False)
class Fork:
    """One of two images, by a condition."""

    condition: Scalar
    yes: TracedImage
    no: TracedImage


class TracedImage(Traced):
    """An image after ``step``, done to ``parent``. It never changes: what is done to it makes another."""

    __slots__ = ("depth", "graph", "measured", "parent", "step", "where")
    __hash__ = object.__hash__

    def __init__(self, graph: Graph, parent: TracedImage | None = None, step: Transform | Fork | None = None) -> None:
        self.graph, self.parent, self.step = graph, parent, step
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.measured: str | None = None
        self.where = place()
        graph.count_step()

    def through(self, transform: Transform, others: tuple[Any, ...], named: dict[str, Any]) -> TracedImage:
        function = transform.__dict__.get("_function")
        if function is not None:
            made: TracedImage = function.inline(self, others, named)
            return made
        if others or named:
            refuse(f"{type(transform).__name__} takes one image", "t(image)")
        return TracedImage(self.graph, self, transform)

    def through_function(self, name: str, arguments: Mapping[str, Any]) -> TracedImage:
        try:
            function = Function(name, {key: _named(value) for key, value in arguments.items()})
        except ArgumentError as error:
            argument = error.argument.removeprefix("arguments['").removesuffix("']")
            refuse(f"F.{name}: {argument}={shown(error.got)}", error.accepted)
        set_field(function, "_where", place())
        return self.through(function, (), {})

    def __repr__(self) -> str:
        return "<image>"

    # -- its size ----------------------------------------------------------------------------------------------

    @property
    def height(self) -> Scalar:
        return self._side("height")

    @property
    def width(self) -> Scalar:
        return self._side("width")

    @property
    def channels(self) -> Scalar:
        return Scalar(self.graph, self.graph.define("given", "channels"))

    @property
    def shape(self) -> tuple[Scalar, Scalar, Scalar]:
        return self.height, self.width, self.channels

    @property
    def area(self) -> Any:
        return make("*", self.height, self.width)

    @property
    def aspect(self) -> Any:
        return make("/", self.width, self.height)

    def _side(self, name: str) -> Scalar:
        if self.parent is None:
            return Scalar(self.graph, self.graph.define("given", name))
        if self.measured is None:
            self.measured = self.graph.new_name("size")
            self.graph.measured[self.measured] = place()
        return Scalar(self.graph, f"{self.measured}.{name}")

    # -- its pixels --------------------------------------------------------------------------------------------

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._refused(f"image.{name}")

    def _refused(self, what: str) -> NoReturn:
        refuse(f"{what} depends on pixels, which do not exist while the function is traced", _NOT_PIXELS)


def _named(value: Any) -> Any:
    """An argument of a function, with the names of values in their place."""
    if isinstance(value, (list, tuple)):
        return [_named(entry) for entry in value]
    return operand(value) if isinstance(value, (Scalar, str)) else value


def _pixels(what: str) -> Any:
    def refused(self: TracedImage, *_: Any, **__: Any) -> NoReturn:
        self._refused(what)

    return refused


_UNARY = ["bool", "float", "int", "index", "len", "iter", "neg", "abs", "invert"]
_UNARY += ["array", "array_ufunc", "array_function"]
_BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "matmul"]
for _name in (*_UNARY, *_BINARY, *(f"r{_each}" for _each in _BINARY), "lt", "le", "gt", "ge", "eq", "ne", "getitem"):
    setattr(TracedImage, f"__{_name}__", _pixels({"getitem": "image[...]", "bool": "bool(image)"}.get(_name, "this")))


class Missing:
    """In the place of a variable without a value that could be used; the first use says why."""

    def __init__(self, reason: str, accepted: str = "", where: str | None = None) -> None:
        self._reason, self._accepted, self._where = reason, accepted, where

    def refused(self) -> NoReturn:
        if not self._accepted:
            raise UnboundLocalError(self._reason)
        refuse(self._reason, self._accepted, self._where)


def unset(name: str) -> Missing:
    return Missing(f"cannot access local variable {name!r} where it is not associated with a value")


def merge(condition: Scalar, yes: Any, no: Any, name: str, is_result: bool = False) -> Any:
    """``yes`` where the condition holds, else ``no``. ``is_result``: a branch without one goes on, and gives its own
    later."""
    if yes is no:
        return yes
    if isinstance(yes, Missing) or isinstance(no, Missing):
        if is_result:
            return no if isinstance(yes, Missing) else yes
        if isinstance(yes, Missing) and isinstance(no, Missing):
            return yes
        return Missing(f"{name} has a value in one branch only", "a value in both branches, or one before the `if`")
    if isinstance(yes, TracedImage) and isinstance(no, TracedImage):
        return merge_images(condition, yes, no)
    if same_plain(yes, no):
        return yes
    if (_is_number(yes) and _is_number(no)) or (_is_text(yes) and _is_text(no)):
        return make("where", condition, yes, no)
    if type(yes) is type(no) and isinstance(yes, (list, tuple)) and len(yes) == len(no):
        return type(yes)([merge(condition, a, b, name) for a, b in zip(yes, no, strict=True)])
    if isinstance(yes, dict) and isinstance(no, dict) and list(yes) == list(no):
        return {key: merge(condition, yes[key], no[key], name) for key in yes}
    if is_result and no is not None and yes is None:
        yes, no = no, yes
    kinds = "the function returns" if is_result else f"{name} is"
    return Missing(
        f"{kinds} {_kind(yes)} in one branch and {_kind(no)} in the other",
        "numbers, texts or images that differ; lists of them of one length",
        place() if is_result else None,
    )


def merge_images(condition: Scalar, yes: TracedImage, no: TracedImage) -> TracedImage:
    """Both have come a part of their way together."""
    if yes is no:
        return yes
    first, second = yes, no
    while first is not second:
        if first.depth >= second.depth:
            assert first.parent is not None
            first = first.parent
        else:
            assert second.parent is not None
            second = second.parent
    return TracedImage(first.graph, first, Fork(condition, yes, no))


def same_plain(yes: Any, no: Any) -> bool:
    if isinstance(yes, Scalar) or isinstance(no, Scalar):
        return same(yes, no)
    if is_plain(yes) and is_plain(no):
        return same(yes, no)
    return False


def _is_number(value: Any) -> bool:
    return isinstance(value, (Scalar, bool)) or (not isinstance(value, TracedImage) and as_number(value) is not None)


def _is_text(value: Any) -> bool:
    return isinstance(value, (Scalar, str))


def _kind(value: Any) -> str:
    if isinstance(value, TracedImage):
        return "an image"
    if value is None:
        return "nothing"
    return f"{value!r}" if is_plain(value) else f"a {type(value).__name__}"
