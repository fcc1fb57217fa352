"""A function that was traced: the values of each sample, and the transforms that choose and act by them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from variegate.checks import Refusal, refused
from variegate.ops.arguments import ArgumentError, checks
from variegate.ops.base import Traced, Transform, set_field
from variegate.ops.container import Container
from variegate.ops.traced.values import SIDES, PipelineValues, Recipes, check_definitions, is_name, measured_as
from variegate.program.draws.recorder import DrawContext
from variegate.program.sampling import Rows, Sampling

_LONGEST_NAME = 200


def _title(name: str, value: Any, *, error: Refusal = refused) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= _LONGEST_NAME:
        raise error(name, value, f"a text of up to {_LONGEST_NAME} characters")
    return value


@dataclass(frozen=True)
class TracedPipeline(Container):
    """Apply ``transforms`` in order, which may read ``values``; ``vg.pipeline`` creates it from a function.

    ``values``: lists [name, operator, operand, ...], each of earlier values only, such as ``["$coin1", "coin", 0.3]``
    and ``["$label", "given", "label"]``. A ``Cond`` reads a value by its name, ``by="$coin1"``, and so do the arguments
    of a ``Function``. ``name`` identifies the pipeline in messages.
    """

    transforms: Sequence[Transform]
    values: Sequence[Sequence[Any]] = ()
    name: str = "pipeline"
    _recipes: ClassVar[Recipes]
    _checks = checks(name=_title)

    def __post_init__(self) -> None:
        super().__post_init__()
        definitions = check_definitions(self.values, lambda got, accepted: ArgumentError(self, "values", got, accepted))
        set_field(self, "values", tuple((name, *definition) for name, definition in definitions.items()))
        set_field(self, "_recipes", Recipes(definitions))
        self._adopt(own=len(self._recipes.slots), is_choice=False, in_a_row=True)

    def draw(self, image: DrawContext, slot: int) -> None:
        sampling = image.sampling
        outer, sampling.given = sampling.given, PipelineValues(self, self._recipes, sampling, slot)
        try:
            self._draw_all(image, slot)
        finally:
            sampling.given = image.sampling.given = outer

    def __call__(self, image: Any, *others: Any, **constants: Any) -> Any:
        """Augment one image; or within a function that is traced, do to its image what this one does.

        There values may be given in the order of the function's parameters, and its constants by name.
        """
        if isinstance(image, Traced):
            return image.through(self, others, constants)
        if others or constants:
            raise TypeError(
                f"{self.name}: got {len(others) + len(constants)} arguments besides the image; accepted: one image. "
                'vg.as_transform(t)(image, conditions={"label": 3}) takes values of the sample'
            )
        return super().__call__(image)

    def __getstate__(self) -> dict[str, Any]:
        # The function that it was traced from is no part of it: it goes by a name that now means this.
        return {name: value for name, value in super().__getstate__().items() if name != "_function"}


def _size_name(name: str, value: Any, *, error: Refusal = refused) -> str:
    if not is_name(value) or not 1 < len(value) <= _LONGEST_NAME or measured_as(value):
        raise error(name, value, 'a name with "$" first, such as "$size1"')
    return str(value)


@dataclass(frozen=True)
class Measure(Transform):
    """Record the image's size at this stage for later values, as ``name`` + ".height" and ".width"."""

    name: str
    _changes_bytes = False
    _checks = checks(name=_size_name)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        values = sampling.given
        if not isinstance(values, PipelineValues):
            return  # nobody reads it
        for axis, side in enumerate(SIDES):
            noted = np.array(values[f"{self.name}.{side}"])
            noted[sampling.source[rows]] = sampling.size[rows, axis]
            values.note(f"{self.name}.{side}", noted)
