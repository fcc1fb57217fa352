"""``vg.pipeline``: a Python function, traced once into a transform."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable
from typing import Any, overload

from variegate.checks import as_number
from variegate.errors import shown
from variegate.ops.arguments import ArgumentError
from variegate.ops.base import Transform, set_field
from variegate.ops.compose import Compose, Cond
from variegate.ops.output import Identity
from variegate.ops.traced import Function, Measure, TracedPipeline
from variegate.pipelines.calling import call
from variegate.pipelines.convert import convert
from variegate.pipelines.graph import Graph, PipelineError, current, none_swallowed, refuse, shown_place, tracing
from variegate.pipelines.image import Fork, Missing, TracedImage
from variegate.pipelines.scalar import Scalar, negated

Known = dict[str, bool]
Steps = list[Transform]


class TreeBuilder:
    """Builds the tree of one image, and notes which values it reads."""

    def __init__(self, graph: Graph) -> None:
        self.read: set[str] = set()
        self._graph = graph
        self._measured: set[str] = set()

    def build(self, image: TracedImage) -> Steps:
        return self._steps(way(image, None), {})

    def _steps(self, images: list[TracedImage], known: Known) -> Steps:
        steps: Steps = []
        for image in images:
            if isinstance(image.step, Fork):
                steps += self._chosen(image, known)
            elif image.step is not None:
                if isinstance(image.step, Function):
                    self._reads(set(image.step._names), image.where)  # type: ignore[attr-defined]
                steps.append(image.step)
            if image.measured is not None:
                self._measured.add(image.measured)
                steps.append(Measure(image.measured))
        return steps

    def _chosen(self, image: TracedImage, known: Known) -> Steps:
        """An ``if`` with all its ``elif``: cases by condition, and what else."""
        base, where = image.parent, image.where
        cases: list[tuple[Scalar, Steps]] = []
        while True:
            assert isinstance(image.step, Fork)
            condition, yes, no = image.step.condition, image.step.yes, image.step.no
            while (inner := negated(condition)) is not None:
                condition, yes, no = inner, no, yes
            condition, yes, no = self._turned(condition, yes, no, base)
            if cases and condition.name not in known and self._compared(condition) != self._compared(cases[-1][0]):
                return self._cond(cases, self._steps([image], known), where)
            if condition.name in known:
                rest = way(yes if known[condition.name] else no, base)
            else:
                cases.append((condition, self._steps(way(yes, base), self._with(known, condition, True))))
                known = self._with(known, condition, False)
                rest = way(no, base)
            if len(rest) == 1 and isinstance(rest[0].step, Fork) and rest[0].measured is None:
                image = rest[0]
                continue
            return self._cond(cases, self._steps(rest, known), where)

    def _turned(
        self, condition: Scalar, yes: TracedImage, no: TracedImage, base: TracedImage | None
    ) -> tuple[Scalar, TracedImage, TracedImage]:
        """(x if a else y) if a or b else z -> x if a else (y if b else z): a loop that returns makes the former."""
        while True:
            what, *operands = self._graph.definitions.get(condition.name, ("",))
            inner = way(yes, base)
            if what != "or" or condition.name == operands[0] or len(inner) != 1 or inner[0].measured is not None:
                return condition, yes, no
            fork = inner[0].step
            if not isinstance(fork, Fork):
                return condition, yes, no
            first, x, y = fork.condition, fork.yes, fork.no
            while (opposite := negated(first)) is not None:
                first, x, y = opposite, y, x
            if first.name != operands[0]:
                return condition, yes, no
            rest = Fork(Scalar(self._graph, operands[1], True), y, no)
            condition, yes, no = first, x, TracedImage(self._graph, base, rest)

    def _cond(self, cases: list[tuple[Scalar, Steps]], default: Steps, where: str) -> Steps:
        try:
            return self._cond_of(cases, default, where)
        except ArgumentError as error:
            refuse(f"{error.argument}={shown(error.got)}", error.accepted, where)

    def _cond_of(self, cases: list[tuple[Scalar, Steps]], default: Steps, where: str) -> Steps:
        while cases and not cases[-1][1] and not default:
            cases.pop()
        if not cases:
            return default
        otherwise = _one(default) if default else None
        if len(cases) == 1:
            condition, steps = cases[0]
            self._reads({condition.name}, where)
            if not steps:
                return [Cond(condition.name, {"False": _one(default)})]
            return [Cond(condition.name, {"True": _one(steps)}, otherwise)]
        by, keys = self._dispatch([condition for condition, _ in cases])
        self._reads({by}, where)
        return [Cond(by, {key: _one(steps) for key, (_, steps) in zip(keys, cases, strict=True)}, otherwise)]

    def _dispatch(self, conditions: list[Scalar]) -> tuple[str, list[str]]:
        """One value that tells the cases apart: the drawn number itself where all compare it, else which is first."""
        by = self._compared(conditions[0])
        if by:
            constants = [str(self._graph.definitions[condition.name][2]) for condition in conditions]
            if len(set(constants)) == len(constants):
                return by, constants
        index = self._graph.define("first", *(condition.name for condition in conditions))
        return index, [str(number) for number in range(len(conditions))]

    def _compared(self, condition: Scalar) -> str:
        """The drawn whole number that a condition compares with a constant, or nothing."""
        what, *operands = self._graph.definitions.get(condition.name, ("",))
        if what != "==" or type(operands[1]) is not int:
            return ""
        drawn = self._graph.definitions.get(operands[0], ("",))[0] in ("randint", "pick")
        return operands[0] if drawn else ""

    def _with(self, known: Known, condition: Scalar, holds: bool) -> Known:
        """Conditions known in a branch: of an ``and`` that holds, both sides do."""
        known = {**known, condition.name: holds}
        what, *operands = self._graph.definitions.get(condition.name, ("",))
        if what == ("and" if holds else "or"):
            for name in operands:
                known = self._with(known, Scalar(self._graph, name, True), holds)
        elif what == "not":
            known = self._with(known, Scalar(self._graph, operands[0], True), not holds)
        return known

    def _reads(self, names: set[str], where: str) -> None:
        self.read |= names
        for size in self._graph.sizes_of(names) - self._measured:
            what = "the size of an image that is not on the way to this one"
            refuse(f"{what} (asked for at {self._graph.measured[size]})", "sizes of the image itself", where)


def way(image: TracedImage, base: TracedImage | None) -> list[TracedImage]:
    """The images from ``base`` on, which is not among them, to ``image``."""
    images: list[TracedImage] = []
    step: TracedImage | None = image
    while step is not base:
        assert step is not None
        images.append(step)
        step = step.parent
    return images[::-1]


def _one(steps: Steps) -> Transform:
    if not steps:
        return Identity()
    return steps[0] if len(steps) == 1 else Compose(steps)


_PARAMETERS = "an image first, then values given with the batch, then constants, which have a default"
_PLAIN = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.KEYWORD_ONLY)


@overload
def pipeline(function: Callable[..., Any], /, **constants: Any) -> TracedPipeline: ...
@overload
def pipeline(function: None = None, /, **constants: Any) -> Callable[[Callable[..., Any]], TracedPipeline]: ...
def pipeline(function: Callable[..., Any] | None = None, /, **constants: Any) -> Any:
    """Trace a Python function into a transform, as a decorator or by a call.

    Args:
        function: takes the image first and returns it. Its other parameters are values of each sample, by name:
            ``label`` or whatever ``conditions`` hold, and always ``epoch`` and the image's ``height``, ``width``,
            ``channels``, ``area`` and ``aspect``. Parameters with a default are constants.
        constants: values of the parameters with a default.

    The function runs once, here. Decisions by drawn values (``vg.coin``, ``vg.uniform``, ``vg.randint``, ``vg.normal``,
    ``vg.choice``) or given ones become a ``Cond`` of both branches. Everything else, including loops, is decided at
    once.

    Raises:
        PipelineError: naming the line that cannot be traced.
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
