"""``from_timm``: the pipeline that ``timm.data.create_transform`` makes of its arguments, in Variegate's transforms."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from variegate.checks import did_you_mean
from variegate.errors import PolicyError
from variegate.interop.convert import drawn
from variegate.interop.convert.report import Node, ReportBuilder, plain
from variegate.ops.arguments import (
    MAX_LENGTH,
    AreaRange,
    FactorRange,
    Probability,
    several_integers,
    several_numbers,
)
from variegate.ops.base import Transform
from variegate.ops.color import ColorJitter, RandomGrayscale
from variegate.ops.compose import Compose, RandomApply, RandomChoice
from variegate.ops.crop import CenterCrop, Pad, RandomCrop, RandomHorizontalFlip, RandomVerticalFlip
from variegate.ops.erase import RandomErasing
from variegate.ops.filters import GaussianBlur
from variegate.ops.output import Normalize
from variegate.ops.resize import RandomResizedCrop, Resize
from variegate.ops.schema import Converted, Range, arguments_of_class
from variegate.pipelines import Pipeline
from variegate.policies.timm import parse_timm
from variegate.program.program import MAX_CHANNELS


class _CropShare(Range):
    """A share of the side; 0 means the default in timm."""

    def convert(self, value: Any) -> Any:
        return value if value == 0 else super().convert(value)


def _image_size(value: Any) -> int | tuple[int, ...] | None:
    sides = several_integers(value, (1, 2, 3), 1, MAX_LENGTH)
    if isinstance(sides, tuple):
        return sides[-2:] if len(sides) > 1 else None
    return sides


def _statistic(value: Any) -> Any:
    return several_numbers(value, MAX_CHANNELS)


_SIZES = f"a number of pixels, (height, width) or (channels, height, width), up to {MAX_LENGTH:,}"
ImageSize = Annotated[Any, Converted(_image_size, _SIZES)]
Statistic = Annotated[Any, Converted(_statistic, "a number for each channel, or one for all")]
# What sequences of patches and TensorFlow's resampling would need; the three stages can be made one by one.
Unsupported = Literal[False]


@dataclass(frozen=True)
class TimmArguments:
    """Names and defaults follow timm 1.0.

    Annotated arguments are checked whatever the others are; the transforms check the rest.
    """

    input_size: ImageSize = 224
    is_training: bool = False
    no_aug: bool = False
    train_crop_mode: Literal["rrc", "rkrc", "rkrr"] | None = None
    scale: AreaRange | None = None
    ratio: FactorRange | None = None
    hflip: Probability = 0.5
    vflip: Probability = 0.0
    color_jitter: Any = 0.4
    color_jitter_prob: Probability | None = None
    grayscale_prob: Probability | None = 0.0
    gaussian_blur_prob: Probability | None = 0.0
    auto_augment: str | None = None
    interpolation: str = "bilinear"
    mean: Statistic = (0.485, 0.456, 0.406)
    std: Statistic = (0.229, 0.224, 0.225)
    re_prob: Probability = 0.0
    re_mode: Literal["const", "", "pixel", "rand"] = "const"
    re_count: Annotated[int, Range(1, 16)] = 1
    re_num_splits: Annotated[int, Range(0)] = 0  # of batches
    crop_pct: Annotated[float, _CropShare(0.01, 100.0)] | None = None
    crop_mode: Literal["center", "squash", "border"] | None = None
    crop_border_pixels: Annotated[int, Range(0, MAX_LENGTH)] | None = None
    tf_preprocessing: Unsupported = False
    use_prefetcher: bool = False
    normalize: bool = True
    separate: Unsupported = False
    naflex: Unsupported = False
    patch_size: Any = 16  # of naflex
    max_seq_len: int = 576
    patchify: Unsupported = False


_ERASED_AREA = (0.02, 1 / 3)
_ERASED_RATIO = (0.3, 1 / 0.3)
_ERASED_WITH: dict[str, int | str] = {"const": 0, "": 0, "pixel": "random", "rand": "color"}
_BLUR_SIZE = 23


def from_timm(input_size: Any = 224, is_training: bool = False, **arguments: Any) -> Compose:
    """Create the pipeline of ``timm.data.create_transform(input_size, is_training, ...)``.

    Args:
        input_size: as in timm: a number, (height, width), or (channels, height, width).
        is_training: True for the random transforms of training, False for evaluation.
        arguments: timm's, by name and with timm's defaults: auto_augment, re_prob, re_mode, re_count, color_jitter,
            hflip, vflip, scale, ratio, interpolation, mean, std, crop_pct and the others of ``TimmArguments``.

    Raises:
        ConversionError: (a ValueError) for an argument that is unknown to timm or unsupported here.
    """
    builder = ReportBuilder()
    node = Node("create_transform", builder)
    known = [field.name for field in dataclasses.fields(TimmArguments)]
    for name, value in arguments.items():
        if name not in known:
            accepted = f"arguments of timm's create_transform: {', '.join(known)}{did_you_mean(name, known)}"
            node.refuse(name, value, accepted)
    values = {name: plain(value) for name, value in arguments.items()}
    values |= {"input_size": plain(input_size), "is_training": is_training}
    for name, argument in arguments_of_class(TimmArguments).items():
        if name in values:
            values[name] = argument.check(name, values[name], error=node.error)
    converted = _Pipeline(TimmArguments(**values), node).convert()
    builder.finish(skip_refused=False)
    return converted


def _choose(transforms: Sequence[Transform]) -> Transform:
    return transforms[0] if len(transforms) == 1 else RandomChoice(transforms)


@dataclass(frozen=True)
class _Pipeline:
    options: TimmArguments
    node: Node

    @property
    def sides(self) -> tuple[int, int]:
        size: Any = self.options.input_size
        return size if isinstance(size, tuple) else (size, size)

    def convert(self) -> Compose:
        options = self.options
        is_augmented = options.is_training and not options.no_aug
        if is_augmented:
            steps = [*self.training_crop(), *self.flips_and_colors()]
        elif options.is_training:
            kind = "bilinear" if options.interpolation == "random" else options.interpolation
            steps = [self.resize(options.input_size, kind), CenterCrop(options.input_size)]
        else:
            steps = self.evaluation()
        is_float = options.normalize and not options.use_prefetcher
        if is_float:
            steps.append(self.node.build(Normalize, mean=options.mean, std=options.std))
        if is_augmented and options.re_prob > 0:
            if is_float:
                steps.append(self.erasing())
            else:
                self.node.add_difference(
                    "nothing is erased without normalizing; timm's loader erases batches (re_prob)"
                )
        return Compose(steps)

    def resize(self, size: Any, kind: str) -> Resize:
        return self.node.build(Resize, {"size": "input_size"}, size=size, interpolation=kind)

    def pipeline(self, made_by: Pipeline, **constants: Any) -> Pipeline:
        return self.node.build(Pipeline, function=made_by.function, constants=constants)

    def training_crop(self) -> list[Transform]:
        options = self.options
        kinds = ("bilinear", "bicubic") if options.interpolation == "random" else (options.interpolation,)
        mode = options.train_crop_mode or "rrc"
        if mode == "rrc":
            names = {"size": "input_size"}
            arguments: dict[str, Any] = {"size": options.input_size, "edges": "crop"}  # timm crops, then resizes
            arguments |= {"scale": options.scale or (0.08, 1.0), "ratio": options.ratio or (3 / 4, 4 / 3)}
            return [
                _choose([self.node.build(RandomResizedCrop, names, interpolation=kind, **arguments) for kind in kinds])
            ]
        factors = {"scale": options.scale or (0.8, 1.0), "aspect": options.ratio or (0.9, 1 / 0.9)}
        resizes = [
            self.pipeline(drawn.resize_keep_ratio, size=self.sides, interpolation=kind, **factors) for kind in kinds
        ]
        if mode == "rkrr":
            return [_choose(resizes), RandomCrop(self.sides, pad_if_needed=True, padding_mode="reflect")]
        return [_choose(resizes), self.pipeline(drawn.center_crop_or_pad, size=self.sides, padding_mode="reflect")]

    def flips_and_colors(self) -> list[Transform]:
        options = self.options
        steps: list[Transform] = []
        if options.hflip > 0:
            steps.append(RandomHorizontalFlip(options.hflip))
        if options.vflip > 0:
            steps.append(RandomVerticalFlip(options.vflip))
        if options.auto_augment:
            steps.append(self.policy(options.auto_augment))
        # A policy replaces the jitter, except timm's 3-Augment.
        if options.color_jitter is not None and (not options.auto_augment or "3a" in options.auto_augment):
            steps.append(self.jitter())
        if options.grayscale_prob:
            steps.append(RandomGrayscale(options.grayscale_prob))
        if options.gaussian_blur_prob:
            steps.append(RandomApply([GaussianBlur(_BLUR_SIZE)], options.gaussian_blur_prob))
        return steps

    def policy(self, text: Any) -> Transform:
        """The policy of timm's ``auto_augment``, with the pipeline's mean as fill and its interpolation."""
        if not isinstance(text, str):
            self.node.refuse("auto_augment", text, "None, or a string such as rand-m9-mstd0.5-inc1")
        mean = self.options.mean if isinstance(self.options.mean, tuple) else (self.options.mean,) * 3
        fill = tuple(min(255, round(255 * value)) for value in mean)
        kind = self.options.interpolation or "random"
        try:
            return parse_timm("augmix-m3" if text == "augmix" else text, fill=fill, interpolation=kind)
        except PolicyError as error:
            raise self.node.error("auto_augment", text, error.accepted) from error

    def jitter(self) -> Transform:
        value = self.options.color_jitter
        factors = value if isinstance(value, tuple) else (value,) * 3
        if len(factors) not in (3, 4):
            accepted = "a number, or three or four (brightness, contrast, saturation, hue)"
            self.node.refuse("color_jitter", value, accepted)
        names = ("brightness", "contrast", "saturation", "hue")
        arguments = dict(zip(names, factors, strict=False))
        jitter = self.node.build(ColorJitter, dict.fromkeys(names, "color_jitter"), **arguments)
        p = self.options.color_jitter_prob
        return jitter if p is None else RandomApply([jitter], p)

    def erasing(self) -> Transform:
        """Up to ``re_count`` rectangles, among which the area is divided."""
        options = self.options
        value = _ERASED_WITH[options.re_mode]

        def rectangle(number: int, p: float) -> RandomErasing:
            return RandomErasing(p, tuple(share / number for share in _ERASED_AREA), _ERASED_RATIO, value)

        if options.re_count == 1:
            return rectangle(1, options.re_prob)
        counts = range(1, options.re_count + 1)
        return RandomApply([RandomChoice([Compose([rectangle(n, 1.0)] * n) for n in counts])], options.re_prob)

    def evaluation(self) -> list[Transform]:
        options = self.options
        kind = options.interpolation
        if kind == "random":
            self.node.add_difference("bilinear: timm has no evaluation with interpolation='random'")
            kind = "bilinear"
        share = options.crop_pct or 0.875
        scaled = tuple(math.floor(side / share) for side in self.sides)
        steps: list[Transform] = [Pad(-options.crop_border_pixels)] if options.crop_border_pixels else []
        if options.crop_mode == "border":
            mean = options.mean if isinstance(options.mean, tuple) else (options.mean,)
            fill = [round(255 * level) for level in mean]
            steps.append(self.pipeline(drawn.resize_keep_ratio, size=scaled, interpolation=kind, is_inside=True))
            return [*steps, self.pipeline(drawn.center_crop_or_pad, size=self.sides, fill=fill)]
        if options.crop_mode == "squash":
            steps.append(self.resize(scaled, kind))
        elif scaled[0] == scaled[1]:
            steps.append(self.resize(scaled[0], kind))
        else:
            steps.append(self.pipeline(drawn.resize_keep_ratio, size=scaled, interpolation=kind))
        return [*steps, CenterCrop(options.input_size)]
