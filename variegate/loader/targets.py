"""Targets of a loader's images: with their samples from the source on, checked, and joined to batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from variegate.arrays import BoolArray, Int32Array, Int64Array, UInt32Array, UInt64Array
from variegate.data.samples import Samples
from variegate.errors import DecodeError
from variegate.loader.batch import RowFields
from variegate.ops.base import refuse_views
from variegate.targets.samples import ImageTargets, check_batch, of_images, unlike_most
from variegate.targets.settings import KEYS, Targets

if TYPE_CHECKING:
    from variegate.loader.batch import Batch
    from variegate.loader.options import LoaderOptions

# What fills the rows of a padded batch that are no sample's own; other keys have zeros.
_PADDING = {"labels": -1}


class Annotated(NamedTuple):
    """A label on its way from the source to the batch: the label, and the image's targets."""

    label: Any
    targets: Mapping[str, Any] | None


class TargetBatch(dict[str, Any], RowFields):
    """A batch of images with boxes, masks or key points: a dict with the keys of the source's samples.

    - "image": a tensor [N, C, H, W] or [N, H, W, C], or a list of tensors if shapes differ.
    - "mask": a tensor [N, H, W] if sizes agree.
    - "label": a tensor.
    - Every other key: a list with one entry per sample.

    With ``vg.Targets(padded=True)``, a key with an entry per box is one tensor [N, M, ...]; M is the largest number of
    boxes in a sample. Padding is -1 for labels and 0 for everything else; "count", int64 [N], is the number of valid
    entries of each sample. Lists of names, and key points that belong to no box, remain lists.

    Images and masks are on the loader's device, everything else in host memory. For the attributes ``ids``,
    ``padding``, ``copies`` and ``source`` see ``Batch``; ``values`` are the dict's items.
    """

    def __init__(
        self,
        values: Any = (),
        ids: UInt64Array | None = None,
        padding: BoolArray | None = None,
        copies: UInt32Array | None = None,
        source: Int64Array | None = None,
    ) -> None:
        # Frameworks that move a batch to a device rebuild it from a dict of its values.
        super().__init__(values)
        self._set_rows(ids, padding, copies, source)

    @property
    def images(self) -> torch.Tensor | list[torch.Tensor]:
        found: torch.Tensor | list[torch.Tensor] = self["image"]
        return found

    @property
    def nbytes(self) -> int:
        """Bytes of the images."""
        images = self.images
        return images.nbytes if isinstance(images, torch.Tensor) else sum(image.nbytes for image in images)

    def on_device(self) -> Iterator[torch.Tensor]:
        """Every tensor on a GPU."""
        return (tensor for tensor in _tensors_in(list(self.values())) if tensor.is_cuda)


if TYPE_CHECKING:

    class AnyBatch(Batch, TargetBatch):  # type: ignore[misc]
        """Static type of a loader's batches: a ``Batch``, or with targets a ``TargetBatch``."""

        images: torch.Tensor
        nbytes: int

        def __getitem__(self, key: Any) -> Any: ...
        def __iter__(self) -> Iterator[Any]: ...


class RowsRefused(ValueError):
    """Rows of a batch whose files or targets are wrong, and why."""

    def __init__(self, errors: dict[int, DecodeError]) -> None:
        super().__init__(str(errors[min(errors)]))
        self.errors = errors


class BatchTargets:
    """Targets of batches. ``has_labels``: images also have labels of their own. ``has_edges``: a source's, whose places
    are not read as ``options`` say, but only written so."""

    def __init__(
        self, options: Targets, has_labels: bool, has_edges: bool = False, classes: Sequence[str] = ()
    ) -> None:
        self.options = options
        self.has_labels = has_labels
        self.classes = classes
        self._given = options.of_edges() if has_edges else options

    def check(self, targets: Sequence[Any], shapes: Int32Array, names: Sequence[str]) -> list[ImageTargets]:
        """Raises RowsRefused. ``shapes``: of the images, int32[N, 3]."""
        try:
            samples = [{"image": None, **of_row} for of_row in targets]
            check_batch(samples, self._given)
            if all(targets):
                return of_images(samples, shapes, self._given)
        except (TypeError, ValueError):
            pass  # found again below, with all rows that are wrong
        return self._check_each(targets, shapes, names)

    def _check_each(self, targets: Sequence[Any], shapes: Int32Array, names: Sequence[str]) -> list[ImageTargets]:
        found = []
        errors = {}
        known = {*KEYS, *self._given.per_box, *self._given.passed}
        # Each sample once: in the places of bad rows stand others of the batch.
        distinct = {id(of_row): frozenset(of_row) for of_row in targets if of_row and known.issuperset(of_row)}
        usual = Counter(distinct.values()).most_common(1)
        for row, (of_row, name) in enumerate(zip(targets, names, strict=True)):
            try:
                if not of_row:
                    raise ValueError("has no targets; accepted: boxes, masks or key points, or targets=False")
                sample = {"image": None, **of_row}
                check_batch([sample], self._given, "sample")
                if of_row.keys() != usual[0][0]:
                    others = _listed(sorted(usual[0][0]))
                    raise ValueError(f"has {_listed(of_row)}, most of its batch {others}; accepted: the same in all")
                found += of_images([sample], shapes[row : row + 1], self._given, "sample")
            except (TypeError, ValueError) as error:
                errors[row] = DecodeError(name, str(error))
                errors[row].__cause__ = error
        if not errors:
            errors = {row: DecodeError(names[row], error) for row, error in unlike_most(found).items()}
        if errors:
            raise RowsRefused(errors)
        return found

    def join(self, images: Any, samples: Sequence[Mapping[str, Any]], labels: Any) -> dict[str, Any]:
        """Merge to one dict for the full batch. ``labels``: of the images, stacked."""
        made = {"image": images}
        counts = [len(sample["boxes"]) for sample in samples if "boxes" in sample]
        is_padded = self.options.padded and bool(counts)
        for key in samples[0]:
            values = [sample[key] for sample in samples]
            if key in ("mask", "masks") and isinstance(values[0], dict):
                made[key] = {name: _stacked([value.get(name) for value in values]) for name in values[0]}
            elif key == "mask":
                made[key] = _stacked(values)
            elif is_padded and key not in self.options.passed:
                made[key] = _padded(values, counts, _PADDING.get(key, 0))
            else:
                made[key] = values
        if is_padded:
            made["count"] = torch.tensor(counts, dtype=torch.int64)
        return {**made, "label": labels} if self.has_labels else made


def targets_of(options: LoaderOptions, source: Any, transform: Any) -> BatchTargets | None:
    """None where batches are images and labels. Raises ValueError for options that do not go together with targets."""
    asked = options.targets
    if asked is False or (asked is None and not getattr(source, "has_targets", False)):
        return None
    accepted = "; accepted: {}, or targets=False"
    refuse_views(transform, "views" if options.views is not None else "transform of samples with targets")
    if options.cache_side is not None:
        what = "with targets, which are in pixels of the whole picture"
        raise ValueError(f"cache_side: got {options.cache_side!r} {what}{accepted.format('None')}")
    if options.cache not in (None, "host", "device"):
        what = "with targets, which a folder does not keep"
        raise ValueError(f"cache: got {str(options.cache)!r} {what}{accepted.format(repr('host'))}")
    has_labels = getattr(source, "has_image_labels", True)
    has_edges = getattr(source, "has_edges", False)
    classes = getattr(source, "classes", ()) or ()
    return BatchTargets(Targets() if asked is None else asked, has_labels, has_edges, classes)


def with_asked(source: Any, asked: Any) -> Any:
    """The source; if requested, with the other entries of a data set's samples as targets."""
    takes_targets = isinstance(source, Samples) and isinstance(asked, Targets)
    return source.with_targets(asked.box_format, asked.normalized) if takes_targets else source


def targets_nbytes(label: Any) -> int:
    """Memory of a picture's targets, which replace its label."""
    return _nbytes(label.targets) if isinstance(label, Annotated) else 0


def _nbytes(value: Any) -> int:
    return sum(map(_nbytes, value.values())) if isinstance(value, Mapping) else int(getattr(value, "nbytes", 0))


def _tensors_in(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (Mapping, list, tuple)):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from _tensors_in(part)


def _listed(keys: Any) -> str:
    return ", ".join(map(repr, keys))


def _stacked(values: list[Any]) -> Any:
    """Stack to one tensor if shapes and dtypes agree."""
    are_tensors = all(isinstance(value, torch.Tensor) for value in values)
    return torch.stack(values) if are_tensors and len({(one.shape, one.dtype) for one in values}) == 1 else values


def _padded(values: list[Any], counts: Sequence[int], fill: int) -> Any:
    """[N, M, ...], where each value is a tensor with as many entries as its sample has boxes and they agree else."""
    if not all(isinstance(value, torch.Tensor) for value in values):
        return values
    kinds = {(value.shape[1:], value.dtype) for value in values}
    if len(kinds) > 1 or [len(value) for value in values] != list(counts):
        return values
    shape, dtype = next(iter(kinds))
    whole = torch.full((len(values), max(counts), *shape), fill, dtype=dtype, device=values[0].device)
    for row, value in enumerate(values):
        whole[row, : len(value)] = value
    return whole
