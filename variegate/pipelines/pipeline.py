"""``vg.pipeline``: a Python function of one image, as a transform."""

from __future__ import annotations

import hashlib
import inspect
import sys
import textwrap
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from importlib import import_module
from typing import Any, ClassVar, overload

import numpy as np

from variegate.arrays import UInt32Array
from variegate.errors import short_repr
from variegate.ops.arguments import ArgumentError
from variegate.ops.base import Transform, set_field
from variegate.pipelines.chance import refuse_chance
from variegate.pipelines.image import PipelineImage, refuse
from variegate.pipelines.run import Run, Samples, shown_place
from variegate.pipelines.sites import CONVERTED
from variegate.program.sampling import Rows, Sampling
from variegate.program.scalar_draw import ScalarDraw

# Pipelines of modules that are imported, by "module:function": files may name these.
_named: dict[str, types.FunctionType] = {}

_PARAMETERS = "an image first, then values given with the batch, then constants, which have a default"
_PLAIN = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.KEYWORD_ONLY)
_FUNCTION = "a Python function of an image"
_EMPTY = inspect.Parameter.empty


@dataclass(frozen=True, eq=False, repr=False)
class Pipeline(Transform):
    """Run a Python function of the image, once for each sample; ``vg.pipeline`` makes it.

    Args:
        function: the function, or as descriptions name it: "module:function", of a pipeline in a module that is
            imported already.
        constants: values of parameters that have a default.
        source: a hash of the function's source, as descriptions hold it; None accepts any source.
    """

    function: Any
    constants: Mapping[str, Any] | None = None
    source: str | None = None
    num_slots = 1
    # Values that the function takes, by their order and by their names.
    in_order: ClassVar[tuple[str, ...]]
    by_name: ClassVar[tuple[str, ...]]
    given_constants: ClassVar[dict[str, Any]]
    # Known sites: names by their keys, and drawn slots, by the pipeline's slot.
    chains: ClassVar[dict[Any, tuple[str, Any]]]
    slots: ClassVar[dict[int, tuple[tuple[int, ...], UInt32Array]]]
    _makes_rows = True  # where the function calls AugMix

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.function, str):
            set_field(self, "function", self._named_function(self.function))
        if not isinstance(self.function, types.FunctionType):
            raise ArgumentError(self, "function", self.function, _FUNCTION)
        set_field(self, "__doc__", self.function.__doc__)
        set_field(self, "chains", {})
        set_field(self, "slots", {})
        self._read_parameters()
        refuse_chance(self.function)
        if self.source is not None and not (isinstance(self.source, str) and self.source == self.source_hash):
            accepted = f'{self.source_hash!r}: {self.full_name} was changed since; without "source" any is taken'
            raise ArgumentError(self, "source", self.source, accepted)
        set_field(self, "source", None)

    def _named_function(self, name: str) -> types.FunctionType:
        module = name.partition(":")[0]
        if module == CONVERTED:
            import_module(CONVERTED)  # a part of Variegate
        if name not in _named:
            accepted = f"a pipeline of an imported module; import {module} first (commands: --import)"
            raise ArgumentError(self, "function", name, accepted)
        return _named[name]

    def _read_parameters(self) -> None:
        """Note the values that the function takes, by their order and by their names, and its constants."""
        parameters = list(inspect.signature(self.function).parameters.values())
        where = shown_place(self.function.__code__.co_filename, self.function.__code__.co_firstlineno)
        if not parameters or any(p.kind not in _PLAIN for p in parameters) or parameters[0].default is not _EMPTY:
            refuse(f"{where}: the parameters of {self.name}", _PARAMETERS)
        given = [p for p in parameters[1:] if p.default is _EMPTY]
        by_name = inspect.Parameter.KEYWORD_ONLY
        set_field(self, "in_order", tuple(p.name for p in given if p.kind is not by_name))
        set_field(self, "by_name", tuple(p.name for p in given if p.kind is by_name))
        constants = {} if self.constants is None else self.constants
        if not isinstance(constants, Mapping):
            raise ArgumentError(self, "constants", constants, "a dict of parameters that have a default")
        defaults = [p.name for p in parameters[1:] if p.default is not _EMPTY]
        for name in constants:
            if name not in defaults:
                listed = ", ".join(defaults) or "none"
                accepted = f"parameters of {self.name} with a default: {listed}"
                raise ArgumentError(self, f"constants[{name!r}]", constants[name], accepted)
        set_field(self, "constants", dict(constants) or None)
        set_field(self, "given_constants", dict(constants))

    # -- names ---------------------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The name in messages."""
        return str(self.function.__name__).replace("<lambda>", "pipeline")

    @property
    def full_name(self) -> str:
        """The function's module and name, "module:function"."""
        return f"{self.function.__module__}:{self.function.__qualname__}"

    @property
    def is_named(self) -> bool:
        """True if the function can be found by its name: it is not made within another."""
        return _named.get(self.full_name) is self.function

    @cached_property
    def source_hash(self) -> str | None:
        """Hash of the function's source; None if Python cannot read it."""
        try:
            source = textwrap.dedent(inspect.getsource(self.function))
        except (OSError, TypeError):
            return None
        return hashlib.sha256(source.encode()).hexdigest()[:16]

    def __repr__(self) -> str:
        constants = f", constants={self.constants!r}" if self.constants else ""
        return f"Pipeline({self.full_name!r}{constants})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pipeline):
            return False
        return self.function is other.function and self.constants == other.constants

    def __hash__(self) -> int:
        return hash((Pipeline, self.function))

    def to_dict(self) -> dict[str, Any]:
        """``{"type": "Pipeline", "function": "module:function", "constants": {...}, "source": hash}``.

        Raises ValueError for a function within another, which has no name.
        """
        if not self.is_named:
            accepted = "a function that a module declares, which files can name"
            raise ValueError(f"{self!r}: a function within another cannot be written down; accepted: {accepted}")
        described = {**super().to_dict(), "function": self.full_name}
        return described if self.source_hash is None else {**described, "source": self.source_hash}

    def __reduce__(self) -> tuple[Any, ...]:
        # The name of the function means this transform, so that pickle would not find the function by it.
        if self.is_named:
            return _restore, (self.function.__module__, self.function.__qualname__, self.constants)
        return Pipeline, (self.function, self.constants)

    # -- running it --------------------------------------------------------------------------------------------

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        if not len(rows):
            return
        ids, keys = sampling.streams(rows)
        shapes = np.column_stack([sampling.size[rows], sampling.channels[rows]])
        samples = Samples(
            ids,
            keys,
            shapes.tolist(),
            sampling.epoch,
            sampling.output,
            rows,
            sampling.source[rows],
            sampling.given,
        )
        run = Run(self, samples, slot, sampling)
        run.append(run.results())

    def draw_one(self, samples: Samples, make_batch: Callable[[], Sampling]) -> ScalarDraw | Sampling:
        """Run for one sample -> its instructions; the batch with them if only that can hold them."""
        run = Run(self, samples, 0, make_batch)
        results = run.results()
        image = results[0].as_one_image()
        if image is None:
            run.append(results)
        return image or run.sampling

    def __call__(self, image: Any, *others: Any, targets: Any = None, **named: Any) -> Any:
        """Augment an image; inside another pipeline's function, record this pipeline's operations on its image.

        There values may be given in the order of the function's parameters, and its constants by name.
        """
        if isinstance(image, PipelineImage):
            return self._call_within(image, others, named)
        if others or named:
            raise TypeError(
                f"{self.name}: got {len(others) + len(named)} arguments besides the image; accepted: one image. "
                'vg.as_transform(t)(image, conditions={"label": 3}) takes values of the sample'
            )
        return super().__call__(image, targets=targets)

    def _call_within(self, image: PipelineImage, others: tuple[Any, ...], named: dict[str, Any]) -> PipelineImage:
        run = image._run
        signature = inspect.signature(self.function)
        try:
            bound = signature.bind_partial(image, *others, **named)
        except TypeError as error:
            refuse(f"{self.name}: {error}", f"its parameters: {', '.join(signature.parameters)}")
        for name in (*self.in_order, *self.by_name):
            if name not in bound.arguments:
                bound.arguments[name] = run.given(name)[run.row]
        bound.arguments = {**self.given_constants, **bound.arguments}
        # In the order of the signature, as ``args`` expects them.
        bound.arguments = {name: bound.arguments[name] for name in signature.parameters if name in bound.arguments}
        return run.image_of(self.function(*bound.args, **bound.kwargs), self)


def _restore(module: str, name: str, constants: Mapping[str, Any] | None) -> Pipeline:
    """The pipeline of a function of a module, imported if need be: for pickle, which imports as well."""
    found: Any = reduce(getattr, name.split("."), sys.modules.get(module) or import_module(module))
    function = found.function if isinstance(found, Pipeline) else found
    _named.setdefault(f"{module}:{name}", function)
    return Pipeline(function, constants)


@overload
def pipeline(function: Callable[..., Any], /, **constants: Any) -> Pipeline: ...
@overload
def pipeline(function: None = None, /, **constants: Any) -> Callable[[Callable[..., Any]], Pipeline]: ...
def pipeline(function: Callable[..., Any] | None = None, /, **constants: Any) -> Any:
    """Turn a Python function into a transform, as a decorator or by a call.

    Args:
        function: takes the image first and returns it. Its other parameters are values of each sample, by name:
            ``label`` or whatever ``conditions`` hold, and always ``epoch`` and the image's ``height``, ``width``,
            ``channels``, ``area`` and ``aspect``. Parameters with a default are constants.
        constants: values of the parameters with a default.

    The function runs once for each sample, on an image without pixels that records the operations on it. ``vg.coin``,
    ``vg.uniform``, ``vg.randint``, ``vg.normal`` and ``vg.choice`` return plain numbers there.

    Raises:
        PipelineError: for parameters that it cannot take.
    """
    if function is None:
        return lambda decorated: pipeline(decorated, **constants)
    if isinstance(function, Pipeline):
        return Pipeline(function.function, {**function.given_constants, **constants})
    if not isinstance(function, types.FunctionType):
        raise TypeError(f"function: got {short_repr(function)}; accepted: {_FUNCTION}")
    made = Pipeline(function, constants)
    if "<" not in made.full_name:
        _named[made.full_name] = made.function
    return made
