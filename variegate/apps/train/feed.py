"""Feed of a training: loaders over images that train and images that score, and the transforms in between."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch

from variegate import transforms as T
from variegate.apps.train.adaptation import adapted, compared_indices
from variegate.apps.train.fitting import Data, Fit, fit_training
from variegate.apps.train.images import (
    LARGEST_KEPT,
    BaselineAugmentation,
    sampled_sizes,
)
from variegate.apps.train.models import statistics_of
from variegate.apps.train.ranks import Ranks
from variegate.apps.train.step import in_channels_last
from variegate.augmenter.planner import MixedLabels, num_partners
from variegate.decode import read_image
from variegate.errors import DecodeError
from variegate.formats.base import Source, SourceError, StreamSource, first_names
from variegate.formats.opening import open_source
from variegate.io.addresses import shown, speakable
from variegate.jobs.arguments import WHOLE, parse_size
from variegate.loader import Batch, Loader
from variegate.loader.batch import Failure
from variegate.options.training import TrainOptions
from variegate.policies.load import scaled_policy
from variegate.policies.whole import is_whole, whole_size

Size = tuple[int, int]

# Sizes grow in such steps, so that a network that halves them several times sees whole numbers, and libraries few
# shapes; and within this share of the epochs, the rest of which is for the size that counts.
_LARGE, _LARGE_STEP, _SMALL_STEP = 128, 32, 4
_GROWING_SHARE = 0.8


def kept_size_steps(options: TrainOptions, size: Size, fill: tuple[int, int, int]) -> list[T.Transform]:
    """The parts of the row, for images that keep their (height, width). ``fill``: color of the cutout.

    Raises ValueError for a part of 0 pixels.
    """
    row, side = options.row, min(size)
    default_padding = side // 8 if options.padding is None else options.padding
    padding, cutout = row.pixels("policy", default_padding, side // 2 if options.cutout is None else options.cutout)
    return [
        *([T.RandomCrop(size, padding=padding, padding_mode=options.padding_mode)] if padding else []),
        *_flips(options),
        *([T.Cutout(cutout, fill=fill)] if cutout else []),
        *_smaller(sizes_of(options, size)),
    ]


def _smaller(stages: list[tuple[int, Size]]) -> list[T.Transform]:
    """Resizes to the sizes before the last, each in its epochs."""
    smaller: list[tuple[int, T.Transform]] = [(begin, T.Resize(one)) for begin, one in stages[:-1]]
    return [_by_epoch(smaller, stages[-1][0])] if smaller else []


def sizes_of(options: TrainOptions, size: Size) -> list[tuple[int, Size]]:
    """(epoch, (height, width)) from that epoch on, by the options alone; the last is ``size``. Raises ValueError."""
    start, longest = options.progressive, max(size)
    if start is None:
        return [(0, size)]
    if start >= longest:
        raise ValueError(f"progressive: got {start} with images of {longest} pixels; accepted: from 4 to below that")
    step = _LARGE_STEP if longest >= _LARGE else _SMALL_STEP
    stages: list[tuple[int, Size]] = []
    for epoch in range(options.epochs):
        share = min(1.0, epoch / (_GROWING_SHARE * (options.epochs - 1))) if options.epochs > 1 else 1.0
        side = min(longest, max(step, step * round((start + share * (longest - start)) / step)))
        height, width = (max(step, step * round(one * side / longest / step)) for one in size)
        found = size if share == 1.0 or side == longest else (min(height, size[0]), min(width, size[1]))
        if not stages or stages[-1][1] != found:
            stages.append((epoch, found))
    return stages


def _center(size: Size) -> T.Transform:
    """Resize, and crop the center, as for images that score."""
    around = min(round(side / _KEPT_SHARE) for side in size)
    return T.Compose([T.Resize(around), T.CenterCrop(size)])


def _flips(options: TrainOptions) -> list[T.Transform]:
    if not options.row.flip:
        return []
    return [T.AlternatingHorizontalFlip() if options.alternate_flip else T.RandomHorizontalFlip()]


def _by_epoch(stages: list[tuple[int, T.Transform]], end: int | None = None) -> T.Transform:
    """Each of these from its epoch on, until the next; none from ``end`` on."""
    ends = [*(begin for begin, _ in stages[1:]), end]
    return T.Cond("epoch", [(begin, until, step) for (begin, step), until in zip(stages, ends, strict=True)])


def _note_on(options: TrainOptions, is_whole: bool, has_padded_crop: bool) -> str | None:
    """Options without effect, since the row has no such part; for a policy that crops by itself, also that it does."""
    row = options.row
    unused = {
        "--padding": options.padding and not has_padded_crop,
        "--padding-mode": options.padding_mode != TrainOptions.padding_mode and not has_padded_crop,
        "--cutout": options.cutout and row.cutout is not None,
        "--alternate-flip": options.alternate_flip and not row.flip,
    }
    names = ", ".join(name for name, is_unused in unused.items() if is_unused)
    if is_whole:
        return f"{options.policy}: {WHOLE}" + f"; without effect: {names}" * bool(names)
    return f"{names}: without effect with --policy {row.name} here" if names else None


# Of ImageNet: the same numbers whatever the images, so that a model is used as it was trained.
_MEAN, _STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
_GRAY_MEAN, _GRAY_STD = (0.449,), (0.226,)
_SIDE, _KEPT_SHARE = 224, 0.875
_CACHE_BYTES = 1 << 30
# For models whose first weights follow from images.
_LEAST_PLAIN, _MOST_PLAIN, _PLAIN_VALUES = 64, 2048, 1 << 23
_LOOKED_AT = 100


class Feed:
    """Loaders of this rank's share: ``train``, ``scored`` (None without), and ``compared``, where ``adaptation`` needs
    losses of images that train. Raises SourceError, PolicyError, ValueError naming an option."""

    def __init__(self, source: Any, validation: Any, options: TrainOptions, ranks: Ranks) -> None:
        self.source, self.place = _open(source)
        self.length = len(self.source) if isinstance(self.source, Source) else None
        self.classes = classes_of(self.source, self.place)
        if len(self.classes) < 2:
            raise SourceError(f"{self.place}: has one class ({first_names(self.classes)}); accepted: two or more")
        self.options = options
        row = options.row
        self._policy = None if row.policy is None else scaled_policy(row.policy, options.epochs)
        self.channels, self.fit = self._fit(ranks)
        self.model, self.size, self.batch_size = self.fit.model, self.fit.size, self.fit.batch_size
        for name in ("pretrained", "drop_path"):
            if getattr(options, name) and not self.model.startswith("timm:"):
                got = f"{getattr(options, name)!r} with model {self.model}"
                raise ValueError(f"{name}: got {got}; accepted with timm:NAME alone")
        self._device, self._is_first = ranks.device, ranks.is_first
        self.transform, self.plain = self._transforms(validation)
        more: dict[str, Any] = {"device": ranks.device, "rank": ranks.rank, "world_size": ranks.ranks}
        more |= {"seed": options.seed, "num_threads": options.threads, "layout": "NHWC", "batch_size": self.batch_size}
        more |= {"targets": False, **self._cache()}
        partners: Literal["epoch", "batch"] = "batch" if self.length is None else "epoch"
        given = self.adaptation.of_epoch if self.adaptation.gives else None
        trained: dict[str, Any] = {"on_error": "skip", "max_errors": 0.1, "partners": partners}
        trained |= {"copies": options.copies, "conditions": given}
        trained["index"] = None if options.index.lower() == "none" else options.index
        self.train = Loader(self.source, self.transform, **more, **trained)
        if self.length is not None:
            self.length *= options.copies
        self.scored = self.compared = None
        if validation is not None:
            others, place = _open(validation)
            self._check_same_classes(others, place)
            self.scored = Loader(others, self.plain, shuffle=False, on_error="skip", **more)
            if self.adaptation.needs_losses and isinstance(self.source, Source):
                some = compared_indices(self.source, others, options.seed)
                self.compared = Loader(self.source, self.plain, shuffle=False, sampler=some, on_error="skip", **more)

    def _cache(self) -> dict[str, Any]:
        """Small images are decoded once: reading them costs more than what is done to them."""
        is_decoded = hasattr(type(self.source), "pixels")
        if is_decoded or self.length is None or max(self.size) > LARGEST_KEPT:
            return {}
        return {"cache": "host", "cache_bytes": _CACHE_BYTES}

    def unread(self) -> list[Failure]:
        return [*self.train.errors, *(self.scored.errors if self.scored is not None else [])]

    def _fit(self, ranks: Ranks) -> tuple[int, Fit]:
        """-> channels, and what the data and the memory decide; the same on every rank."""
        options, together = self.options, ranks.ranks * self.options.accumulate
        if self.length is not None and (options.batch_size or 0) * together > self.length:
            by = f" x {options.accumulate} batches x {ranks.ranks} ranks" if together > 1 else ""
            raise ValueError(
                f"batch_size: got {options.batch_size}{by}, with {self.length:,} images to train; accepted: no more "
                "than that in a step"
            )
        channels, first = _first_image(self.source, self.place)
        sizes = sampled_sizes(self.source) if isinstance(self.source, Source) else []
        data = Data(self.length, sizes, channels, len(self.classes))
        whole = whole_size(self._policy)
        size = whole if options.size == "auto" else parse_size(options.size) or first
        if whole not in (None, size):
            got, wanted = (f"{height}x{width}" for height, width in (size or first, whole))
            raise ValueError(f"size: got {got}, with a policy that crops to {wanted}; accepted: {wanted}")
        fit = fit_training(data, options, size, together, ranks.device)
        smallest = min(ranks.gather(fit.batch_size))
        is_kept = fit.is_kept or options.size.lower() == "none"
        return channels, replace(fit, batch_size=smallest, is_kept=is_kept)

    def _transforms(self, validation: Any) -> tuple[T.Transform, T.Transform]:
        """-> for images that train, and for those that score."""
        options, source, row, policy, size = self.options, self.source, self.options.row, self._policy, self.size
        mean: tuple[float, ...]
        std: tuple[float, ...]
        mean, std = (_GRAY_MEAN, _GRAY_STD) if self.channels == 1 else (_MEAN, _STD)
        if options.pretrained and self.channels == 3:
            mean, std = statistics_of(self.model)
        keeps_size, whole = self.fit.is_kept, whole_size(policy)
        is_all = policy is not None and is_whole(policy)
        if is_all:
            row.check_is_whole("policy")
        policy, self.adaptation, self.recorded = adapted(policy, source, validation, options)
        # Who mixes images stands behind all that is done to one.
        mixing = [policy] if policy is not None and num_partners(policy) else []
        alone = [policy] if policy is not None and not mixing else []
        if mixing and (options.mixup or options.cutmix):
            name = "mixup" if options.mixup else "cutmix"
            raise ValueError(f"{name}: got {getattr(options, name):g} with a policy that mixes images; accepted: one")
        mixers: list[T.Transform] = [T.MixUp(options.mixup)] if options.mixup else []
        mixers += [T.CutMix(options.cutmix)] if options.cutmix else []
        mixing = mixing or ([T.RandomChoice(mixers)] if len(mixers) > 1 else mixers)
        normalize = T.Normalize(mean, std)
        is_kept = keeps_size or whole is not None
        # Photos of many sizes are cut to one by the crop itself, unless the row says by how many pixels it moves.
        is_resized_crop = not is_kept and row.crop is None
        if self._is_first and (note := _note_on(options, is_all, row.crop is None and not is_resized_crop)):
            warnings.warn(note, stacklevel=3)
        end = [*mixing, normalize, *([T.RandomErasing(options.random_erasing)] if options.random_erasing else [])]
        self.sizes = sizes_of(options, size)
        fill = BaselineAugmentation(size, mean, std).fill
        if is_kept:
            plain = normalize if keeps_size else T.Compose([T.Resize(size), normalize])
        else:
            plain = T.Compose([_center(size), normalize])
        if is_kept or not (is_all or is_resized_crop):
            around = _smaller(self.sizes) if is_all else kept_size_steps(options, size, fill)
            return T.Compose([*([] if is_kept else [_center(size)]), *alone, *around, *end]), plain
        make = _center if is_all else T.RandomResizedCrop
        crops: list[tuple[int, T.Transform]] = [(begin, make(one)) for begin, one in self.sizes]
        crop = crops[0][1] if len(crops) == 1 else _by_epoch(crops)
        cutout = row.pixels("policy", 1, min(size) // 2 if options.cutout is None else options.cutout)[1]
        cutouts = [T.Cutout(cutout, fill=fill)] if cutout else []
        return T.Compose([crop, *_flips(options), *alone, *cutouts, *end]), plain

    def size_at(self, epoch: int) -> tuple[int, int]:
        """(height, width) of the images that train then."""
        return next(size for begin, size in reversed(self.sizes) if begin <= epoch)

    def plain_images(self) -> torch.Tensor:
        """float32 [N, C, H, W] on the device: up to some thousand images as they score, drawn by the seed. Raises
        SourceError."""
        number = max(_LEAST_PLAIN, min(_MOST_PLAIN, _PLAIN_VALUES // (self.size[0] * self.size[1] * self.channels)))
        number = number if self.length is None else min(number, self.length)
        more: dict[str, Any] = {"seed": self.options.seed, "num_threads": self.options.threads, "layout": "NHWC"}
        more |= {"device": self._device, "rank": 0, "world_size": 1, "on_error": "skip", "prefetch": 0}
        batch = next(iter(Loader(self.source, self.plain, number, **more)), None)
        if batch is not None and isinstance(batch.images, torch.Tensor):
            return in_channels_last(batch.images[torch.from_numpy(~batch.padding).to(batch.images.device)])
        raise SourceError(
            f"{self.place}: has no images that can be read, of one size; accepted: --size cuts them to one"
        )

    def _check_same_classes(self, others: Source | StreamSource, place: str) -> None:
        if others.classes and self.source.classes and tuple(others.classes) != tuple(self.classes):
            wanted = set(self.classes) ^ set(others.classes)
            names = first_names(sorted(wanted)) or "in another order"
            raise SourceError(
                f"{place}: has other classes than {self.place} ({names}); accepted: the same {len(self.classes)}"
            )


def classes_of(source: Source | StreamSource, place: str) -> tuple[str, ...]:
    """Their names, or numbers; warns of those without images. Raises SourceError where they are not known."""
    ask = getattr(source, "labels", None)
    if not isinstance(source, Source) or ask is None:
        if not source.classes:
            first = next(iter(source.read_shard(0)), None) if isinstance(source, StreamSource) else None
            if first is not None and first.is_end and isinstance(first.item, DecodeError):
                raise SourceError(str(first.item))
            raise SourceError(
                f"{place}: does not say which classes there are; accepted: class folders, a classnames.txt beside "
                "shards, open_source(..., classes=[...]), or a data set with `targets`"
            )
        return tuple(source.classes)
    labels = np.asarray(ask(np.arange(len(source), dtype=np.int64)))
    if labels.dtype.kind not in "iu" or labels.ndim != 1 or len(labels) == 0 or labels.min() < 0:
        raise SourceError(
            f"{place}: every image needs the number of its class as label; accepted: class folders, or a column of "
            "integers"
        )
    names = tuple(source.classes) or tuple(str(number) for number in range(int(labels.max()) + 1))
    counts = np.bincount(labels, minlength=len(names))
    if len(counts) > len(names):
        raise SourceError(f"{place}: has label {len(counts) - 1}; accepted: 0 to {len(names) - 1}")
    present = np.flatnonzero(counts)
    if len(present) == 1 < len(names):
        has = f"has images of one class ({names[int(present[0])]}), of {len(names)}"
        raise SourceError(f"{place}: {has}; accepted: two or more")
    # A folder's own notes name those that it has listed.
    reported = getattr(source, "empty_classes", ())
    empty = [name for name, count in zip(names, counts.tolist(), strict=True) if count == 0 and name not in reported]
    if empty:
        text = f"{place}: classes without images, which keep their index: {first_names(empty)}"
        warnings.warn(speakable(text), stacklevel=4)
    return names


def tensors_of(batch: Batch, device: str) -> tuple[torch.Tensor, Any, torch.Tensor | None]:
    """-> images, labels (classes, soft ones or ``MixedLabels``) and, where there is padding, weights of 0 and 1, as
    models on the device take them. Raises SourceError for images of several sizes, and for several labels of each."""
    images, labels, weights = batch.images, batch.labels, None
    if not isinstance(images, torch.Tensor):
        raise SourceError("the images have several sizes, or views; give one size that all are cut to (--size)")
    if not isinstance(labels, (MixedLabels, torch.Tensor)):
        raise SourceError("labels: got several for each image; accepted: one class, or shares of classes")
    if batch.padding.any():
        weights = torch.from_numpy(~batch.padding).to(device, torch.float32)
    is_mixed = isinstance(labels, MixedLabels)
    moved = MixedLabels(*(part.to(device) for part in labels)) if is_mixed else labels.to(device)
    return in_channels_last(images).to(device), moved, weights


def _open(given: Any) -> tuple[Source | StreamSource, str]:
    opened: Source | StreamSource = open_source(given)
    for one in opened.notes() if opened is not given else []:
        warnings.warn(speakable(f"{given}: {one}"), stacklevel=4)
    return opened, shown(str(given)) if isinstance(given, str) or hasattr(given, "__fspath__") else "source"


def _first_image(source: Source | StreamSource, place: str) -> tuple[int, tuple[int, int]]:
    """-> channels, (height, width), of the first image that can be read."""
    if not isinstance(source, Source):
        return 3, (_SIDE, _SIDE)
    for index in range(min(len(source), _LOOKED_AT)):
        try:
            data: Any = source.read(index).data
            pixels = np.asarray(read_image(data) if isinstance(data, bytes) else data)
        except DecodeError:  # is told when it is loaded
            continue
        height, width = pixels.shape[:2]
        return 1 if pixels.ndim == 2 else pixels.shape[2], (height, width)
    raise SourceError(f"{place}: none of its first {_LOOKED_AT} images can be read")
