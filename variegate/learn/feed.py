"""Loaders of a training over its training and validation images, and their transforms."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from variegate import transforms as T
from variegate.augmenter.planner import num_partners
from variegate.data.base import SourceError, summarize_names
from variegate.data.opening import new_notes, open_source
from variegate.data.samples import Samples
from variegate.errors import DecodeError
from variegate.io.addresses import redact_text, redact_url
from variegate.jobs.arguments import WHOLE, parse_size
from variegate.learn.adaptation import adapted
from variegate.learn.averaging import DistContext
from variegate.learn.batches import classes_of, plain_images
from variegate.learn.choices import LARGEST_KEPT, TRAIN, Choice, Data, choose, choose_epochs, fit_memory, sample_sizes
from variegate.learn.images import BaselineAugmentation
from variegate.learn.models import statistics_of
from variegate.learn.reading import check_levels, loader_arguments, measure_source, read_pixels
from variegate.loader import Loader
from variegate.loader.batch import Failure
from variegate.options.rows import Row
from variegate.options.training import TrainOptions
from variegate.policies.base_augment import crop_size, has_base_augment
from variegate.policies.load import scaled_policy
from variegate.program.depth import Depth, depth_of

Size = tuple[int, int]

# ImageNet's statistics for all images of 8 bits, so that pretrained models see their usual inputs.
_MEAN = (0.485, 0.456, 0.406)
_STD = (0.229, 0.224, 0.225)
_GRAY_MEAN = (0.449,)
_GRAY_STD = (0.226,)
_CENTER_SHARE = 0.875
_CACHE_BYTES = 1 << 30
_MAX_UNREADABLE = 100


def resized_steps(row: Row, size: Size, policy: list[T.Transform], fill: tuple[int, int, int]) -> list[T.Transform]:
    """The parts of the row and the policy, for images of many sizes that ``RandomResizedCrop`` crops to ``size``."""
    steps: list[T.Transform] = [T.RandomResizedCrop(size)]
    if row.flip:
        steps.append(T.RandomHorizontalFlip())
    steps += policy
    _, cutout = row.pixels("policy", 1, min(size) // 2)
    if cutout:
        steps.append(T.Cutout(cutout, fill=fill))
    return steps


def center_steps(size: Size) -> list[T.Transform]:
    """Resize and crop the center, as images are scored."""
    shorter = min(round(side / _CENTER_SHARE) for side in size)
    return [T.Resize(shorter), T.CenterCrop(size)]


class DataPipeline:
    """Loaders of this rank's share: ``train``, and ``scored`` (None without validation).

    Raises SourceError, PolicyError, ValueError naming an option.
    """

    def __init__(self, source: Any, validation: Any, options: TrainOptions, ranks: DistContext) -> None:
        self.source, self.place = _open(source)
        self.length = len(self.source)
        self.classes = classes_of(self.source, self.place)
        if len(self.classes) < 2:
            raise SourceError(f"{self.place}: has one class ({summarize_names(self.classes)}); accepted: two or more")
        epochs = options.epochs or choose_epochs(self.length, TRAIN)
        self.options = options = replace(options, epochs=epochs)
        row = options.row
        self._policy = None if row.policy is None else scaled_policy(row.policy, epochs)
        self._reading = loader_arguments(options)
        self.channels, self.depth, self.choice = self._choose(ranks)
        chosen = self.choice
        self.model, self.size, self.batch_size = chosen.model, chosen.size, chosen.batch_size
        if options.pretrained and not self.model.startswith("timm:"):
            raise ValueError(f"pretrained: got True with model {self.model}; accepted with timm:NAME alone")
        self._device = ranks.device
        self._is_first = ranks.is_first
        self.transform, self.plain = self._transforms()
        try:
            check_levels(self.transform, self.depth, epochs)
        except ValueError as error:
            raise ValueError(f"policy: got {row.name!r}: {error}") from error
        common: dict[str, Any] = {
            "batch_size": self.batch_size,
            "device": ranks.device,
            "seed": options.seed,
            "num_threads": options.threads,
            "layout": "NHWC",
            "rank": ranks.rank,
            "world_size": ranks.ranks,
            "targets": False,
            "on_error": "skip",
            **self._reading,
            **self._cache(),
        }
        conditions = self.adaptation.of_epoch if self.adaptation.has_magnitudes else None
        self.train = Loader(self.source, self.transform, max_errors=0.1, conditions=conditions, **common)
        self.scored = None
        if validation is not None:
            others, place = _open(validation)
            self._check_same_classes(others, place)
            self.scored = Loader(others, self.plain, shuffle=False, **common)

    def _cache(self) -> dict[str, Any]:
        """Decode small images once, because reading them costs more than augmenting them."""
        if self.source.is_decoded or max(self.size) > LARGEST_KEPT:
            return {}
        return {"cache": "host", "cache_bytes": _CACHE_BYTES}

    def unread(self) -> list[Failure]:
        return [*self.train.errors, *(self.scored.errors if self.scored is not None else [])]

    def _choose(self, ranks: DistContext) -> tuple[int, Depth, Choice]:
        """Channels, depth, and the choices by the data and the memory; the same on every rank."""
        options = self.options
        together = ranks.ranks * options.accumulate
        if (options.batch_size or 0) * together > self.length:
            by = f" x {options.accumulate} batches x {ranks.ranks} ranks" if together > 1 else ""
            raise ValueError(
                f"batch_size: got {options.batch_size}{by}, with {self.length:,} images to train; accepted: no more "
                "than that in a step"
            )
        channels, first, depth = _first_image(self.source, self.place, options)
        data = Data(self.length, max(1, self.length // together), sample_sizes(self.source, options))
        whole = crop_size(self._policy)
        size = whole if options.size == "auto" else parse_size(options.size) or first
        if whole not in (None, size):
            got, wanted = (f"{height}x{width}" for height, width in (size or first, whole))
            raise ValueError(f"size: got {got}, with a policy that crops to {wanted}; accepted: {wanted}")
        chosen = choose(
            data, TRAIN, model=options.model, size=size, batch_size=options.batch_size, epochs=options.epochs
        )
        chosen = fit_memory(chosen, data, channels, len(self.classes), options, options.seed, ranks.device)
        smallest = min(ranks.gather(chosen.batch_size))
        is_kept = chosen.is_kept or options.size.lower() == "none"
        return channels, depth, replace(chosen, batch_size=smallest, is_kept=is_kept)

    def _transforms(self) -> tuple[T.Transform, T.Transform]:
        """-> of training images, and of images that are scored."""
        options = self.options
        row = self.options.row
        size = self.size
        baseline = self._baseline()
        normalize = baseline.plain
        crops_itself = self._policy is not None and has_base_augment(self._policy)
        if crops_itself:
            row.check_has_own_crop("policy")
            if self._is_first:
                warnings.warn(f"{options.policy}: {WHOLE}", stacklevel=3)
        policy, self.adaptation = adapted(self._policy, self.source, options)
        before, mixing = self._mixing(policy)
        end: list[T.Transform] = [*mixing, normalize]
        if options.random_erasing:
            end.append(T.RandomErasing(options.random_erasing))

        keeps_size = self.choice.is_kept
        is_resized = not keeps_size and crop_size(self._policy) is None
        if keeps_size:
            plain: list[T.Transform] = []
        elif is_resized:
            plain = center_steps(size)
        else:
            plain = [T.Resize(size)]
        scoring = T.Compose([*plain, normalize]) if plain else normalize
        if crops_itself:
            steps = [*(plain if is_resized else []), *before]
        elif is_resized and row.crop is None:
            steps = resized_steps(row, size, before, baseline.fill)
        else:
            # Photos are cropped to one size first if the row sets its shift in pixels.
            steps = [*(plain if is_resized else []), *before, *baseline.with_row(row, "policy").steps()]
        return T.Compose([*steps, *end]), scoring

    def _baseline(self) -> BaselineAugmentation:
        """Crop and cutout as options set them, and the statistics that the model expects."""
        mean: tuple[float, ...]
        std: tuple[float, ...]
        mean, std = (_GRAY_MEAN, _GRAY_STD) if self.channels == 1 else (_MEAN, _STD)
        if self.depth.is_deep:
            found = measure_source(self.source, self.channels, self.options)
            mean, std = found.mean, found.std
        elif self.options.pretrained and self.channels == 3:
            mean, std = statistics_of(self.model)
        side = min(self.size)
        return BaselineAugmentation(self.size, mean, std, side // 8, True, side // 2)

    def _mixing(self, policy: T.Transform | None) -> tuple[list[T.Transform], list[T.Transform]]:
        """-> the policy if it changes single images, and what mixes images, which comes last."""
        options = self.options
        mixers: list[T.Transform] = []
        if options.mixup:
            mixers.append(T.MixUp(options.mixup))
        if options.cutmix:
            mixers.append(T.CutMix(options.cutmix))
        if policy is not None and num_partners(policy):
            if mixers:
                name = "mixup" if options.mixup else "cutmix"
                got = f"{name}: got {getattr(options, name):g}"
                raise ValueError(f"{got} with a policy that mixes images; accepted: one")
            return [], [policy]
        if len(mixers) > 1:
            mixers = [T.RandomChoice(mixers)]
        return ([] if policy is None else [policy]), mixers

    def plain_images(self) -> Any:
        """Images that initialize a model; see ``batches.plain_images``."""
        values = self.size[0] * self.size[1] * self.channels
        options = self.options
        return plain_images(self.source, self.plain, self._device, options.seed, options.threads, values, self._reading)

    def _check_same_classes(self, others: Samples, place: str) -> None:
        if others.classes and self.source.classes and tuple(others.classes) != tuple(self.classes):
            wanted = set(self.classes) ^ set(others.classes)
            names = summarize_names(sorted(wanted)) or "in another order"
            raise SourceError(
                f"{place}: has other classes than {self.place} ({names}); accepted: the same {len(self.classes)}"
            )


def _open(given: Any) -> tuple[Samples, str]:
    opened: Samples = open_source(given, stream=False)
    for one in new_notes(opened, given):
        warnings.warn(redact_text(f"{given}: {one}"), stacklevel=4)
    return opened, redact_url(str(given)) if isinstance(given, str) or hasattr(given, "__fspath__") else "source"


def _first_image(source: Samples, place: str, options: TrainOptions) -> tuple[int, tuple[int, int], Depth]:
    """-> channels, (height, width), depth, of the first image that can be read."""
    failure: DecodeError | None = None
    for index in range(min(len(source), _MAX_UNREADABLE)):
        try:
            pixels = read_pixels(source, index, options)
        except DecodeError as error:  # notes were already printed when the source was opened
            failure = failure or error
            continue
        height, width, channels = pixels.shape
        depth = depth_of(pixels.dtype)
        assert depth is not None
        return channels, (height, width), depth
    raise SourceError(f"{place}: none of its first {_MAX_UNREADABLE} images can be read; the first: {failure}")
