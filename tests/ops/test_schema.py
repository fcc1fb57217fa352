"""The annotation of a field is all that a class says of an argument: check, kept form and error follow from it."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
import pytest
import torch

from variegate import transforms as T
from variegate.checks import refused
from variegate.ops.arguments import Fill, Integers, Number, Pair, Probability, Size
from variegate.ops.magnitude import MagnitudeOp
from variegate.ops.schema import Argument, Around, Exactly, MagnitudeRange, Range, read_arguments

if TYPE_CHECKING:
    from elsewhere import Unknown  # type: ignore[import-not-found]

# What holds transforms or functions, or depends on other arguments, is checked by the class.
BY_THEIR_CLASS = {
    "Augmentation": {"op", "mag_to_param"},
    "AutoAugment": {"policy", "space"},
    "Compose": {"transforms"},
    "Cond": {"by", "cases", "default", "any_of", "all_of", "none_of", "then"},
    "MultiView": {"transforms", "counts"},
    "OneOf": {"transforms", "weights"},
    "PBA": {"schedule"},
    "Pipeline": {"function", "constants", "source"},
    "RandAugment": {"magnitude"},
    "RandomApply": {"transforms"},
    "RandomChoice": {"transforms", "p"},
    "RandomOrder": {"transforms"},
    "Resize": {"max_size"},
    "SomeOf": {"transforms", "n"},
    "TimmRandAugment": {"num_ops"},
}


def check(annotation: Any, value: Any) -> Any:
    return read_arguments({"x": annotation})["x"].check("x", value)


@pytest.mark.parametrize(
    ("annotation", "value", "kept"),
    [
        (Annotated[int, Range(0, 3)], np.int64(3), 3),
        (Annotated[int, Range(0, 3)], torch.tensor(3), 3),
        (Annotated[float, Range(0.0, 1.0)], np.float32(0.5), 0.5),
        (Annotated[Number, Range(0.0, 1.0)], [0.25], 0.25),
        (Annotated[Number, Range(0.0, 1.0)], np.array([0.25, 0.5]), (0.25, 0.5)),
        (Annotated[Integers, Range(3, 7, step=2)], [3, 7], (3, 7)),
        (Annotated[Pair, Range(0.0, 1.0)], [0, 1], (0, 1)),
        (Annotated[Number, Around(1.0, 0.0)], 3, (0.0, 4.0)),
        (Annotated[Number, Around(0, -1.0, 1.0)], (-0.5, 1), (-0.5, 1)),
        (Annotated[float, Range()] | None, None, None),
        (Literal["a", 1], "a", "a"),
        (bool, True, True),
        (Size, 4, (4, 4)),
        (Fill, None, (0, 0, 0)),
        (Fill | None, None, None),
    ],
)
def test_an_accepted_value_is_kept_in_one_form(annotation: Any, value: Any, kept: Any) -> None:
    found = check(annotation, value)
    assert found == kept
    assert type(found) is type(kept)


@pytest.mark.parametrize(
    ("annotation", "value", "accepted"),
    [
        (Annotated[int, Range(0, 3)], 0.5, "an integer from 0 to 3"),
        (Annotated[int, Range(1, 1 << 20)], True, "an integer from 1 to 1,048,576"),
        (Annotated[float, Range(0.0, 1.0)], 1.5, "a number from 0 to 1"),
        (Annotated[float, Range(0.0, 1.0)], (0.1, 0.2), "a number from 0 to 1"),
        (Annotated[Number, Range(0.0, 1.0)], (0.5, 0.1), "a number, or a pair (low, high) of them, from 0 to 1"),
        (
            Annotated[Integers, Range(3, 7, step=2)],
            (3, 4),
            "an odd integer, or a pair (low, high) of them, from 3 to 7",
        ),
        (Annotated[Pair, Range(0.0, 1.0)], 0.5, "a pair (low, high) from 0 to 1"),
        (Annotated[Number, Around(0, -1.0, 1.0)], -1, "a number from 0 to 1, or a pair (low, high) from -1 to 1"),
        (Annotated[bool, Exactly(False, "False, as it is")], 0, "False, as it is"),
        (Annotated[float, Range(0.0, 1.0)] | None, 2, "None, or a number from 0 to 1"),
        (Literal["near", "far"], "neer", "one of 'near', 'far'; did you mean 'near'?"),
        (bool, 1, "one of True, False"),
    ],
)
def test_an_error_says_what_the_annotation_accepts(annotation: Any, value: Any, accepted: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(str(refused('x', value, accepted)))}$"):
        check(annotation, value)


def test_bases_and_later_annotations_and_what_cannot_be_read() -> None:
    @dataclass(frozen=True)
    class Base(MagnitudeOp, abstract=True):
        strength: Annotated[Integers, MagnitudeRange(0, 4)]
        p: Probability = 0.5
        other: Unknown = None

    @dataclass(frozen=True)
    class Derived(Base, abstract=True):
        p: float = 1.0  # as its base says
        strength: Annotated[Number, MagnitudeRange(0.0, 2.0)] = 1.0  # type: ignore[assignment]

    assert (Base._magnitude_name, Base._magnitude_range.is_integer, Base._magnitude_range.high) == ("strength", True, 4)
    assert (Derived._magnitude_name, Derived._magnitude_range.is_integer, Derived._magnitude_range.high) == (
        "strength",
        False,
        2.0,
    )
    assert Derived(strength=np.float32(1.5), other="anything").strength == 1.5
    with pytest.raises(T.ArgumentError, match=r"^Derived: p=2; accepted: a number from 0 to 1$"):
        Derived(p=2)


def test_an_operation_with_a_number_says_which() -> None:
    with pytest.raises(TypeError, match="class Numberless: no field has a MagnitudeRange; accepted: one"):

        class Numberless(MagnitudeOp):
            strength: Annotated[Number, Range()]

    assert "Numberless" not in T.Transform.registry


class _Awaited(Argument):
    """Accepts anything; the first check waits until another thread has made a transform."""

    def __init__(self) -> None:
        self.is_begun, self.is_made = Event(), Event()

    def convert(self, value: Any) -> Any:
        if not self.is_begun.is_set():
            self.is_begun.set()
            assert self.is_made.wait(10)
        return value


AWAITED = _Awaited()


def test_threads_may_make_the_first_transforms_of_a_class_together() -> None:
    @dataclass(frozen=True)
    class _Shared(T.Transform):
        p: Probability = 0.5
        name: Annotated[str, AWAITED] = "default"

    with ThreadPoolExecutor(1) as pool:
        made = pool.submit(_Shared)
        assert AWAITED.is_begun.wait(10)
        try:
            assert _Shared().p == 0.5
        finally:
            AWAITED.is_made.set()
        assert made.result().name == "default"


def test_every_argument_says_what_it_accepts() -> None:
    for name, cls in T.Transform.registry.items():
        if cls.__module__.startswith("variegate.") and dataclasses.is_dataclass(cls):
            fields: Sequence[Any] = dataclasses.fields(cls)
            unchecked = {field.name for field in fields if field.init} - {*cls._arguments}
            assert unchecked == BY_THEIR_CLASS.get(name, set()), name
