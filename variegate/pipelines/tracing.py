"""``vg.pipeline``: a Python function, traced once into a transform."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any, overload

from variegate.checks import as_number
from variegate.errors import shown
from variegate.ops.base import set_field
from variegate.ops.output import Identity
from variegate.ops.traced import TracedPipeline
from variegate.pipelines.calling import call
from variegate.pipelines.convert import convert
from variegate.pipelines.graph import Graph, current, tracing
from variegate.pipelines.image import TracedImage
from variegate.pipelines.merging import Missing
from variegate.pipelines.refusals import PipelineError, none_swallowed, refuse, shown_place
from variegate.pipelines.scalar import Scalar
from variegate.pipelines.tree import TreeBuilder

_PARAMETERS = "an image first, then values given with the batch, then constants, which have a default"
_PLAIN = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.KEYWORD_ONLY)


@overload
def pipeline(function: Callable[..., Any], /, **constants: Any) -> TracedPipeline: ...
@overload
def pipeline(function: None = None, /, **constants: Any) -> Callable[[Callable[..., Any]], TracedPipeline]: ...
def pipeline(function: Callable[..., Any] | None = None, /, **constants: Any) -> Any:
    """Trace a function into a transform, as a decorator or called with the function.

    The function gets the image first and returns it. Its other parameters are values that come with every sample, by
    their names (``label``, or whatever ``conditions`` hold; ``epoch``, and the image's ``height``, ``width``,
    ``channels``, ``area`` and ``aspect``, are always there); those with a default are constants, set by ``constants``.

    It runs once, here. Decisions by what is drawn (``vg.coin``, ``vg.uniform``, ``vg.randint``, ``vg.normal``,
    ``vg.choice``) or given become a ``Cond`` of both branches; everything else is decided at once, loops among it.

    Raises PipelineError naming the line of what cannot be traced.
    """
    if function is None:
        return lambda decorated: pipeline(decorated, **constants)
    if isinstance(function, TracedPipeline) and "_function" in function.__dict__:
        traced: TracedFunction = function.__dict__["_function"]
        return TracedFunction(traced.function, {**traced.constants, **constants}).trace()
    if not isinstance(function, types.FunctionType):
        raise TypeError(f"function: got {shown(function)}; accepted: a Python function of an image")
    return TracedFunction(function, constants).trace()


class TracedFunction:
    """A function with its constants."""

    def __init__(self, function: types.FunctionType, constants: dict[str, Any]) -> None:
        self.function, self.constants = function, constants
        self.where = shown_place(function.__code__.co_filename, function.__code__.co_firstlineno)
        parameters = list(inspect.signature(function).parameters.values())
        if not parameters or any(p.kind not in _PLAIN for p in parameters) or parameters[0].default is not _EMPTY:
            refuse(f"the parameters of {function.__name__}", _PARAMETERS, self.where)
        self.given = [p.name for p in parameters[1:] if p.default is _EMPTY]
        self.defaults = [p.name for p in parameters[1:] if p.default is not _EMPTY]
        self.image = parameters[0].name
        for name in constants:
            if name not in self.defaults:
                listed = ", ".join(self.defaults) or "none"
                refuse(
                    f"the constant {name!r}", f"parameters of {function.__name__} with a default: {listed}", self.where
                )

    def trace(self) -> TracedPipeline:
        graph = Graph()
        with tracing(graph), none_swallowed():
            image = self._run(TracedImage(graph), {name: _given(graph, name) for name in self.given}, self.constants)
            builder = TreeBuilder(graph)
            steps = builder.build(image)
        values = graph.needed(builder.read)
        definitions = [(name, *definition) for name, definition in values.items()]
        traced = TracedPipeline(steps or [Identity()], definitions, self._name())
        set_field(traced, "_function", self)
        set_field(traced, "__doc__", self.function.__doc__)
        return traced

    def inline(self, image: TracedImage, others: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Within another function that is traced."""
        try:
            bound = inspect.signature(self.function).bind_partial(image, *others, **named)
        except TypeError as error:
            refuse(
                f"{self._name()}: {error}", f"its parameters: {', '.join([self.image, *self.given, *self.defaults])}"
            )
        arguments = dict(list(bound.arguments.items())[1:])
        for name in self.given:
            if name not in arguments:
                arguments[name] = _given(image.graph, name)
        return self._run(image, arguments, {k: v for k, v in self.constants.items() if k not in arguments})

    def _run(self, image: TracedImage, values: dict[str, Any], constants: dict[str, Any]) -> TracedImage:
        import variegate.pipelines.runtime as runtime

        function = convert(self.function, runtime) or self.function
        try:
            positional = {p.name for p in inspect.signature(self.function).parameters.values() if p.kind is _PLAIN[1]}
            in_order = [value for name, value in values.items() if name in positional]
            named = {name: value for name, value in values.items() if name not in positional}
            result = call(function, image, *in_order, **named, **constants)
        except RecursionError as error:
            raise PipelineError(
                f"{self.where}: {self._name()} calls itself without end while it is traced; accepted: an end that is "
                "decided by constants"
            ) from error
        return self._image_of(result)

    def _image_of(self, result: Any) -> TracedImage:
        if isinstance(result, Missing):
            result.refused()
        if isinstance(result, (tuple, list)) and result and all(map(_is_value, result[1:])):
            result = result[0]  # values come with the batch, and go on beside it
        if not isinstance(result, TracedImage):
            got = "nothing" if result is None else shown(result)
            refuse(f"{self._name()} returns {got}", "the image", self.where)
        if result.graph is not current():
            refuse(f"{self._name()} returns an image of another pipeline", "its own", self.where)
        return result

    def _name(self) -> str:
        return self.function.__name__.replace("<lambda>", "pipeline")[:100]


_EMPTY = inspect.Parameter.empty


def _is_value(value: Any) -> bool:
    return isinstance(value, Scalar) or as_number(value) is not None


def _given(graph: Graph, name: str) -> Scalar:
    return Scalar(graph, graph.define("given", name))
