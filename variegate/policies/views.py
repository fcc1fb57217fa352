"""Several views of each image from one decode, as self-supervised training compares them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from variegate.arrays import IntArray
from variegate.checks import as_integer, as_numbers
from variegate.ops.arguments import ArgumentError
from variegate.ops.base import Transform, set_field
from variegate.ops.container import Verbatim, adopt
from variegate.program.program import Grouping, Output
from variegate.program.sampling import Rows, Sampling

# Of one image. Multi-crop has about ten.
_MAX_VIEWS = 256


@dataclass(frozen=True)
class MultiView(Transform):
    """Return several views of each image, in groups: ``counts[g]`` views by ``transforms[g]``.

    >>> views = MultiView([crop_224, crop_96], counts=[2, 6])  # doctest: +SKIP

    This returns a tuple of two tensors, [N, 2, C, 224, 224] and [N, 6, C, 96, 96]. The views of an image are next to
    each other, as in ``default_collate`` of views and torchvision's ``FiveCrop``. If sizes differ between the images of
    a group, it is a list of one tensor per image.

    Args:
        transforms: one per group, or a list with one for each view of its group, as in ``MultiView([[first, second],
            local], counts=[2, 6])``.
        counts: views per group. None for one view each, without an axis of its own: ``MultiView([a, b])`` returns two
            tensors [N, C, H, W].

    Each view has its own random numbers, which follow from (seed, epoch, id, copy), its group and its position; the
    very first view is the one that its transform returns without MultiView. Further views or groups do not change the
    existing ones.

    It cannot be part of another transform: steps shared by all views (such as Normalize) go into each. All views have
    one format; others raise ValueError while sampling.
    """

    transforms: Sequence[Transform | Sequence[Transform]]
    counts: Sequence[int] | None = None
    _must_be_root: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        groups = (self.transforms,) if isinstance(self.transforms, Transform) else self.transforms
        if not isinstance(groups, (list, tuple)) or not groups:
            raise ArgumentError(self, "transforms", groups, "a list of at least one transform")
        checked = tuple(_group(self, i, group) for i, group in enumerate(groups))
        set_field(self, "transforms", checked)
        counts = _check_counts(self, self.counts, len(checked))
        for i, (group, count) in enumerate(zip(checked, counts, strict=True)):
            if isinstance(group, tuple) and len(group) != count:
                accepted = f"as many transforms as the group has views (counts), {count} here, or one for all"
                raise ArgumentError(self, f"transforms[{i}]", group, accepted)
        if self.counts is not None:
            set_field(self, "counts", counts)
        each = [one for group in checked for one in (group if isinstance(group, tuple) else (group,))]
        if mixers := [mixer for one in each for mixer in one._mixers]:
            accepted = "transforms that change one image alone; mix the batch of each view afterwards"
            raise ArgumentError(self, "transforms", Verbatim(f"{type(mixers[0]).__name__} inside MultiView"), accepted)
        adopt(self, "transforms", each, own=0, is_choice=False)
        # Every view begins at slot 0 of words of its own.
        set_field(self, "_view_slots", max(one.num_slots for one in each))
        set_field(self, "num_slots", 0)
        set_field(self, "_counts", counts)

    def sample(self, sampling: Sampling, rows: Rows, slot: int) -> None:
        before, outputs = sampling.output, []
        places = sampling.split(self.grouping, self._view_slots)  # type: ignore[attr-defined]
        for transform, views in self.shares:
            share = places[:, views].reshape(-1)
            sampling.output = before
            sampling.expect(share)
            transform.sample(sampling, share, 0)
            outputs.append(sampling.output)
        _check_alike(outputs, sampling.channels.reshape(len(rows), -1))

    @property
    def grouping(self) -> Grouping:
        return Grouping(self._counts, self.counts is not None)  # type: ignore[attr-defined]

    @property
    def shares(self) -> list[tuple[Transform, list[int]]]:
        """Each transform, and the views that it makes of an image, by number."""
        shares: list[tuple[Transform, list[int]]] = []
        first = 0
        for group, count in zip(self.transforms, self._counts, strict=True):  # type: ignore[attr-defined]
            views = list(range(first, first + count))
            each = zip(group, views, strict=True) if isinstance(group, tuple) else []
            shares += [(one, [view]) for one, view in each] or [(group, views)]  # type: ignore[list-item]
            first += count
        return shares


def _check_alike(outputs: Sequence[Output], channels: IntArray) -> None:
    """``channels``: int[images, views]."""
    if (channels != channels[:, :1]).any():
        got = "Grayscale(num_output_channels=3) in some views of a gray image"
        raise ValueError(f"MultiView: got {got}; accepted: in all of them, or in none")
    if any(output != outputs[0] for output in outputs):
        raise ValueError(
            "MultiView: its views leave in several formats (Normalize, ToDtype or Grayscale in some alone, or with "
            "other numbers); accepted: the same at the end of each transform"
        )


def _group(owner: MultiView, i: int, group: Any) -> Transform | tuple[Transform, ...]:
    if isinstance(group, Transform):
        return group
    accepted = "a transform such as RandomHorizontalFlip()"
    if not isinstance(group, (list, tuple)) or not group:
        accepted = f"{accepted}, or a list with one for each view of the group"
        raise ArgumentError(owner, f"transforms[{i}]", group, accepted)
    for place, one in enumerate(group):
        if not isinstance(one, Transform):
            raise ArgumentError(owner, f"transforms[{i}][{place}]", one, accepted)
    return tuple(group)


def _check_counts(owner: MultiView, given: Any, groups: int) -> tuple[int, ...]:
    if given is None:
        return (1,) * groups
    single = as_integer(given)
    counts = as_numbers(given, whole=True) if single is None else (single,)
    if counts is None or len(counts) != groups or min(counts) < 1 or sum(counts) > _MAX_VIEWS:
        accepted = f"None, or a positive integer for each of the {groups} transforms, at most {_MAX_VIEWS} in all"
        raise ArgumentError(owner, "counts", given, accepted)
    return tuple(int(count) for count in counts)
