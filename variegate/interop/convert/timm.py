"""``from_timm``: what ``timm.data.create_transform`` makes of its arguments, in Variegate's transforms."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from variegate.checks import as_integer, as_numbers, meant
from variegate.errors import PolicyError
from variegate.interop.convert import drawn
from variegate.interop.convert.report import ConversionError, Made, Notes, Place, plain
from variegate.ops.arguments import MAX_LENGTH, AreaRange, FactorRange, Probability, several_numbers
from variegate.ops.base import Transform
from variegate.ops.colour import ColorJitter, RandomGrayscale
from variegate.ops.compose import Compose, RandomApply, RandomChoice
from variegate.ops.crop import CenterCrop, Pad, RandomHorizontalFlip, RandomVerticalFlip
from variegate.ops.erase import RandomErasing
from variegate.ops.filters import GaussianBlur
from variegate.ops.output import Normalize
from variegate.ops.resize import RandomResizedCrop, Resize
from variegate.ops.schema import Converted, Range, arguments_of_class
from variegate.policies.timm import parse_timm
from variegate.program.program import MAX_CHANNELS

_MEAN = (0.485, 0.456, 0.406)
_STD = (0.229, 0.224, 0.225)


def _statistic(value: Any) -> Any:
    return several_numbers(value, MAX_CHANNELS)


class _CropShare(Range):
    """A share of the side; 0 means the default in timm."""

    def convert(self, value: Any) -> Any:
        return value if value == 0 else super().convert(value)


Statistic = Annotated[Any, Converted(_statistic, "a number for each channel, or one for all")]


@dataclass(frozen=True)
class TimmArguments:
    """Names and defaults are those of timm 1.0.

    What is annotated with an ``Argument`` is checked whatever the other arguments are; the transforms check the rest.
    """

    input_size: Any = 224
    is_training: bool = False
    no_aug: bool = False
    train_crop_mode: str | None = None
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
    mean: Statistic = _MEAN
    std: Statistic = _STD
    re_prob: Probability = 0.0
    re_mode: str = "const"
    re_count: int = 1
    # Of batches, which single images leave alone.
    re_num_splits: Annotated[int, Range(0)] = 0
    crop_pct: Annotated[float, _CropShare(0.01, 100.0)] | None = None
    crop_mode: Literal["center", "squash", "border"] | None = None
    crop_border_pixels: Annotated[int, Range(0, MAX_LENGTH)] | None = None
    tf_preprocessing: bool = False
    use_prefetcher: bool = False
    normalize: bool = True
    separate: bool = False
    naflex: bool = False
    # Of naflex and patchify.
    patch_size: Any = 16
    max_seq_len: int = 576
    patchify: bool = False


_ERASED_AREA = (0.02, 1 / 3)
_ERASED_RATIO = (0.3, 1 / 0.3)
_ERASED = {"const": 0, "": 0, "pixel": "random", "rand": "colour"}
_CROP_PCT = 0.875
_BLUR = 23


def from_timm(input_size: Any = 224, is_training: bool = False, **arguments: Any) -> Compose:
    """Create the pipeline of ``timm.data.create_transform(input_size, is_training, ...)``.

    Args:
        input_size: as in timm: a number, (height, width), or (channels, height, width).
        is_training: True for the random transforms of training, False for those of evaluation.
        arguments: timm's, by name and with timm's defaults: auto_augment, re_prob, re_mode, re_count, color_jitter,
            hflip, vflip, scale, ratio, interpolation, mean, std, crop_pct and the others of ``TimmArguments``.

    Raises:
        ConversionError: (a ValueError) for an argument that is unknown to timm or unsupported here.
    """
    report = Notes()
    place = Place("create_transform", report)
    known = [field.name for field in dataclasses.fields(TimmArguments)]
    for name, value in arguments.items():
        if name not in known:
            accepted = f"arguments of timm's create_transform: {', '.join(known)}{meant(name, known)}"
            place.refuse(name, value, accepted)
    given = TimmArguments(input_size, is_training, **{name: plain(value) for name, value in arguments.items()})
    converted = _Timm(given, place).converted()
    report.warn()
    return converted


def _one_of(transforms: list[Any]) -> Transform:
    only: Transform = transforms[0]
    return only if len(transforms) == 1 else RandomChoice(transforms)


def _sides(size: int | tuple[int, ...]) -> tuple[int, ...]:
    return size if isinstance(size, tuple) else (size, size)


_SIZES = f"a number of pixels, (height, width) or (channels, height, width), up to {MAX_LENGTH:,}"


class _Timm:
    def __init__(self, given: TimmArguments, place: Place) -> None:
        self._given = given
        self._place = place
        self._build = place.build
        for name, argument in arguments_of_class(TimmArguments).items():
            argument.check(name, getattr(given, name), error=self._refused)
        sides = as_integer(given.input_size) or as_numbers(given.input_size, whole=True)
        if isinstance(sides, tuple) and len(sides) in (2, 3):
            sides = sides[-2:]
        elif not isinstance(sides, int):
            place.refuse("input_size", given.input_size, _SIZES)
        if not all(1 <= side <= MAX_LENGTH for side in _sides(sides)):
            place.refuse("input_size", given.input_size, _SIZES)
        self._size: int | tuple[int, ...] = sides

    def _refused(self, name: str, got: object, accepted: str) -> Exception:
        return ConversionError(self._place.argument(name), got, accepted)

    def converted(self) -> Compose:
        self._check_whole()
        if not self._given.is_training:
            steps = self._evaluation()
        elif self._given.no_aug:
            steps = [self._resize(self._size, self._fixed_interpolation()), self._build(CenterCrop, size=self._size)]
        else:
            steps = self._training()
        if self._given.normalize and not self._given.use_prefetcher:
            steps.append(self._build(Normalize, mean=self._given.mean, std=self._given.std))
        if self._given.is_training and not self._given.no_aug:
            steps += self._erasing()
        return self._build(Compose, transforms=steps)

    def _check_whole(self) -> None:
        for name, accepted in (
            ("naflex", "False: sequences of patches are cut behind the pipeline"),
            ("patchify", "False: cut the patches behind the pipeline"),
            ("separate", "False; make each of the three stages of its own"),
        ):
            if getattr(self._given, name):
                self._place.refuse(name, getattr(self._given, name), accepted)
        if self._given.tf_preprocessing and self._given.use_prefetcher:
            self._place.refuse("tf_preprocessing", True, "False: TensorFlow's resampling is not Pillow's")

    # -- training ------------------------------------------------------------------------------------------------

    def _training(self) -> list[Transform]:
        given = self._given
        steps = self._crop()
        if given.hflip > 0:
            steps.append(self._by_chance("hflip", RandomHorizontalFlip))
        if given.vflip > 0:
            steps.append(self._by_chance("vflip", RandomVerticalFlip))
        if given.auto_augment:
            steps.append(self._policy(given.auto_augment))
        # A policy of operations stands for the jitter, but for timm's 3-Augment.
        if given.color_jitter is not None and (not given.auto_augment or "3a" in given.auto_augment):
            steps.append(self._jitter(given.color_jitter))
        if given.grayscale_prob:
            steps.append(self._by_chance("grayscale_prob", RandomGrayscale))
        if given.gaussian_blur_prob:
            steps.append(self._by_chance("gaussian_blur_prob", RandomApply, transforms=[GaussianBlur(_BLUR)]))
        return steps

    def _by_chance(self, argument: str, cls: type[Made], **arguments: Any) -> Made:
        """``cls`` with timm's ``argument`` as its probability."""
        return self._build(cls, {"p": argument}, p=getattr(self._given, argument), **arguments)

    def _crop(self) -> list[Transform]:
        given = self._given
        kinds = ("bilinear", "bicubic") if given.interpolation == "random" else (given.interpolation,)
        mode = given.train_crop_mode or "rrc"
        if mode not in ("rrc", "rkrc", "rkrr"):
            self._place.refuse("train_crop_mode", mode, "None, 'rrc', 'rkrc' or 'rkrr'")
        if mode != "rrc":
            factors = given.scale or (0.8, 1.0), given.ratio or (0.9, 1 / 0.9)
            resizes = [self._keep_ratio(_sides(self._size), kind, *factors) for kind in kinds]
            return [_one_of(resizes), self._cut_or_padded(mode == "rkrr", padding_mode="reflect")]
        scale, ratio = given.scale or (0.08, 1.0), given.ratio or (3 / 4, 4 / 3)
        arguments: dict[str, Any] = {"size": self._size, "scale": scale, "ratio": ratio}
        arguments["edges"] = "crop"  # timm crops, then resizes
        names = {"size": "input_size"}
        return [_one_of([self._build(RandomResizedCrop, names, interpolation=kind, **arguments) for kind in kinds])]

    def _keep_ratio(
        self, frame: Any, kind: str, scale: Any = None, aspect: Any = None, inside: bool = False
    ) -> Transform:
        """The whole image, as large as fills ``frame``, or as fits ``inside`` it. By half a chance each, its area is
        divided by one of ``scale``, and its sides are by an aspect that is log-uniform in ``aspect``."""
        chances = {"scale": scale, "aspect": aspect} if scale and aspect else {}
        return drawn.build(self._place, drawn.keep_ratio, frame=frame, kind=kind, inside=inside, **chances)

    def _cut_or_padded(self, by_chance: bool = False, **padding: Any) -> Transform:
        """The central part of the input's size, or one of any place; smaller images are padded to it."""
        return drawn.build(self._place, drawn.cut_or_padded, size=_sides(self._size), by_chance=by_chance, **padding)

    def _policy(self, text: Any) -> Transform:
        """The policy of timm's string, filled with the mean and resampled as the rest is."""
        if not isinstance(text, str):
            self._place.refuse("auto_augment", text, "None, or a string such as rand-m9-mstd0.5-inc1")
        mean = self._given.mean if isinstance(self._given.mean, tuple) else (self._given.mean,) * 3
        fill = tuple(min(255, round(255 * value)) for value in mean)
        kind = self._given.interpolation or "random"
        try:
            return parse_timm("augmix-m3" if text == "augmix" else text, fill=fill, interpolation=kind)
        except PolicyError as error:
            raise ConversionError(self._place.argument("auto_augment"), text, error.accepted) from error

    def _jitter(self, given: Any) -> Transform:
        factors = given if isinstance(given, tuple) else (given,) * 3
        if len(factors) not in (3, 4):
            accepted = "a number, or three or four (brightness, contrast, saturation, hue)"
            self._place.refuse("color_jitter", given, accepted)
        names = ("brightness", "contrast", "saturation", "hue")
        called = dict.fromkeys(names, "color_jitter")
        jitter = self._build(ColorJitter, called, **dict(zip(names, factors, strict=False)))
        if self._given.color_jitter_prob is None:
            return jitter
        return self._by_chance("color_jitter_prob", RandomApply, transforms=[jitter])

    def _erasing(self) -> list[Transform]:
        given = self._given
        if not given.re_prob > 0:
            return []
        if given.use_prefetcher or not given.normalize:
            how = "create_transform does not erase without normalizing; timm's loader does, on the batch"
            self._place.differs("re_prob", given.re_prob, how)
            return []
        if not isinstance(given.re_mode, str) or given.re_mode not in _ERASED:
            self._place.refuse("re_mode", given.re_mode, "'const', 'rand' or 'pixel'")
        count = as_integer(given.re_count)
        if count is None or not 1 <= count <= 16:
            self._place.refuse("re_count", given.re_count, "an integer from 1 to 16")
        value = _ERASED[given.re_mode]

        def rectangles(number: int) -> list[Transform]:
            area = tuple(share / number for share in _ERASED_AREA)
            p = given.re_prob if count == 1 else 1.0
            one = self._build(RandomErasing, {"p": "re_prob"}, p=p, scale=area, ratio=_ERASED_RATIO, value=value)
            return [one] * number

        if count == 1:
            return rectangles(1)
        choice = RandomChoice([Compose(rectangles(number)) for number in range(1, count + 1)])
        return [self._by_chance("re_prob", RandomApply, transforms=[choice])]

    # -- evaluation ----------------------------------------------------------------------------------------------

    def _evaluation(self) -> list[Transform]:
        given = self._given
        size = self._size
        share = given.crop_pct or _CROP_PCT
        scaled = tuple(math.floor(side / share) for side in _sides(size))
        steps: list[Transform] = []
        if given.crop_border_pixels:
            border = -given.crop_border_pixels
            steps.append(self._build(Pad, {"padding": "crop_border_pixels"}, padding=border))
        if given.crop_mode == "squash":
            steps.append(self._resize(scaled))
        elif given.crop_mode == "border":
            mean = given.mean if isinstance(given.mean, tuple) else (given.mean,)
            inside = self._keep_ratio(scaled, self._evaluated_at(), inside=True)
            return [*steps, inside, self._cut_or_padded(fill=[round(255 * level) for level in mean])]
        elif scaled[0] != scaled[1]:
            steps.append(self._keep_ratio(scaled, self._evaluated_at()))
        else:
            steps.append(self._resize(scaled[0]))
        return [*steps, self._build(CenterCrop, {"size": "input_size"}, size=size)]

    def _fixed_interpolation(self) -> str:
        return "bilinear" if self._given.interpolation == "random" else self._given.interpolation

    def _evaluated_at(self) -> str:
        if self._given.interpolation == "random":
            self._place.differs("interpolation", "random", "bilinear here; timm has no evaluation with it")
        return self._fixed_interpolation()

    def _resize(self, size: Any, interpolation: str | None = None) -> Transform:
        kind = interpolation or self._evaluated_at()
        resize: Transform = self._build(Resize, {"size": "input_size"}, size=size, interpolation=kind)
        return resize
