"""Containers of transforms.

Every child has a fixed range of slots, whether or not it is chosen. A choice for one image therefore does not change
the random numbers of any other transform or image.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from variegate.ops.arguments import MAX_DEPTH, MAX_SLOTS, MAX_TRANSFORMS, ArgumentError
from variegate.ops.base import Transform, set_field
from variegate.program.draws.recorder import DrawContext
from variegate.program.draws.values import Number


class Verbatim(str):
    """Text that error messages show instead of a value, without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


class Container(Transform, abstract=True):
    """Base class of transforms with children ``transforms``. The container's random slots precede the children's."""

    transforms: Sequence[Transform]
    _first_slots: tuple[int, ...]

    def _adopt(self, own: int, is_choice: bool = True, in_a_row: bool = False) -> None:
        children = self.transforms
        if isinstance(children, Transform):
            children = (children,)
        if not isinstance(children, (list, tuple)) or not children:
            raise ArgumentError(self, "transforms", children, "a list of at least one transform")
        for i, child in enumerate(children):
            if not isinstance(child, Transform):
                raise ArgumentError(self, f"transforms[{i}]", child, "a transform such as RandomHorizontalFlip()")
        set_field(self, "transforms", tuple(children))
        adopt(self, "transforms", children, own, is_choice)
        if in_a_row:
            self._check_order(children)

    def _check_order(self, children: Sequence[Transform]) -> None:
        last: Transform | None = None
        for i, child in enumerate(children):
            if last is not None and child._changes_bytes:
                name = type(last).__name__
                accepted = f"{type(child).__name__} before {name}"
                raise ArgumentError(self, f"transforms[{i}]", Verbatim(f"{child!r} after {name}"), accepted)
            last = last or child._final_op or next(iter(child._mixers), None)

    def _draw_all(self, image: DrawContext, slot: int) -> None:
        for child, first in zip(self.transforms, self._first_slots, strict=True):
            image.run(child, slot + first)

    def _draw_one_of(self, image: DrawContext, choice: Number, slot: int) -> None:
        """Draw the child with index ``choice``."""
        children = [(child, slot + first) for child, first in zip(self.transforms, self._first_slots, strict=True)]
        image.run_one_of(choice, children)


def adopt(owner: Transform, argument: str, children: Sequence[Transform], own: int, is_choice: bool) -> None:
    """Assign slots to every child, after ``own`` slots of the owner, and set the properties of the tree.

    ``argument``: name of the argument with the children, for errors. ``is_choice``: whether images may get different
    children.

    Raises ArgumentError for a tree that exceeds the limits of one transform. It is also raised for a choice that could
    give the images of a batch different output formats.
    """
    alone = next((child for child in children if child._must_be_root), None)
    if alone is not None:
        raise ArgumentError(
            owner, argument, Verbatim(f"{type(alone).__name__} inside {type(owner).__name__}"),
            f"transforms that make one image; {type(alone).__name__} stands alone, and has what all views begin or end "
            "with in each of its transforms",
        )  # fmt: skip
    setter = next((child._format_setter for child in children if child._format_setter is not None), None)
    if is_choice and setter is not None:
        raise ArgumentError(
            owner, argument, Verbatim(f"{type(setter).__name__} inside a choice"),
            f"what leaves all images of a batch in one format; {setter._format_advice}",
        )  # fmt: skip
    set_field(owner, "_format_setter", setter)
    set_field(owner, "_mixers", mixers_of(owner, argument, children))
    set_field(owner, "_object_labels", tuple(label for child in children for label in child._object_labels))
    set_field(owner, "_makes_rows", any(child._makes_rows for child in children))
    set_field(owner, "_changes_bytes", any(child._changes_bytes for child in children))
    set_field(owner, "_final_op", next((child._final_op for child in children if child._final_op is not None), None))
    ends = np.cumsum([own, *(child.num_slots for child in children)]).tolist()
    size = 1 + sum(child._tree_size for child in children)
    depth = 1 + max(child._tree_depth for child in children)
    for what, number, limit in (
        ("transforms in all", size, MAX_TRANSFORMS),
        ("transforms within one another", depth, MAX_DEPTH),
        ("blocks of random numbers", ends[-1], MAX_SLOTS),
    ):
        if number > limit:
            raise ArgumentError(owner, argument, Verbatim(f"{number:,} {what}"), f"at most {limit:,}")
    set_field(owner, "_first_slots", tuple(ends[:-1]))
    set_field(owner, "num_slots", ends[-1])
    set_field(owner, "_tree_size", size)
    set_field(owner, "_tree_depth", depth)


def mixers_of(owner: Transform, argument: str, children: Sequence[Transform]) -> tuple[Any, ...]:
    """Return the mixing transforms in the children's trees. Raises ArgumentError if they create different labels."""
    mixers = tuple(mixer for child in children for mixer in child._mixers)
    if len({mixer.num_classes for mixer in mixers}) > 1:
        got = Verbatim(" and ".join(sorted({f"num_classes={mixer.num_classes}" for mixer in mixers})))
        raise ArgumentError(owner, argument, got, "one num_classes in all transforms that mix images")
    return mixers
