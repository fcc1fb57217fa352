"""``from_timm``: what ``timm.data.create_transform`` makes of its arguments, in Variegate's transforms."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from variegate.checks import as_integer, as_numbers, meant, spelt
from variegate.convert.report import ConversionError, Made, Notes, Place, argument_names, plain
from variegate.convert.timm_arguments import TimmArguments
from variegate.errors import PolicyError
from variegate.policies.timm_strings import parse_timm
from variegate.transforms.base import Transform
from variegate.transforms.compose import Compose, RandomApply, RandomChoice
from variegate.transforms.crop import CenterCrop, Pad, RandomHorizontalFlip, RandomVerticalFlip
from variegate.transforms.erase import RandomErasing
from variegate.transforms.filters import GaussianBlur
from variegate.transforms.jitter import ColorJitter, RandomGrayscale
from variegate.transforms.output import Normalize
from variegate.transforms.resize import RandomResizedCrop, Resize

_RANDOM = ("bilinear", "bicubic")
_ERASED_AREA, _ERASED_RATIO = (0.02, 1 / 3), (0.3, 1 / 0.3)
_CROP_PCT = 0.875
_BLUR = 23


@spelt()
def from_timm(input_size: Any = 224, is_training: bool = False, **arguments: Any) -> Transform:
    """The pipeline of ``timm.data.create_transform(input_size, is_training, ...)``.

    Args:
        input_size: as timm takes it: a number, (height, width), or (channels, height, width).
        is_training: the random transforms of a training, or those of an evaluation.
        arguments: timm's by name, with timm's defaults: auto_augment, re_prob, re_mode, re_count, color_jitter, hflip,
            vflip, scale, ratio, interpolation, mean, std, crop_pct and the others of ``TimmArguments``.

    Raises ConversionError (a ValueError) for an argument that timm does not have or that has no equal here.
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


class _Timm:
    def __init__(self, given: TimmArguments, place: Place) -> None:
        self._given, self._place = given, place
        sides = as_integer(given.input_size) or as_numbers(given.input_size, whole=True)
        if isinstance(sides, tuple) and len(sides) in (2, 3):
            sides = sides[-2:]
        elif not isinstance(sides, int):
            place.refuse("input_size", given.input_size, "a number, (height, width) or (channels, height, width)")
        self._size: int | tuple[int, ...] = sides

    def converted(self) -> Transform:
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

    def _build(self, cls: type[Made], names: dict[str, str] | None = None, **arguments: Any) -> Made:
        return self._place.build(cls, arguments, names)

    # -- training ------------------------------------------------------------------------------------------------

    def _training(self) -> list[Transform]:
        given = self._given
        steps = [self._crop()]
        if given.hflip > 0:
            steps.append(self._build(RandomHorizontalFlip, {"p": "hflip"}, p=given.hflip))
        if given.vflip > 0:
            steps.append(self._build(RandomVerticalFlip, {"p": "vflip"}, p=given.vflip))
        if given.auto_augment:
            steps.append(self._policy(given.auto_augment))
        # A policy of operations stands for the jitter, but for timm's 3-Augment.
        if given.color_jitter is not None and (not given.auto_augment or "3a" in given.auto_augment):
            steps.append(self._jitter(given.color_jitter))
        if given.grayscale_prob:
            steps.append(self._build(RandomGrayscale, {"p": "grayscale_prob"}, p=given.grayscale_prob))
        if given.gaussian_blur_prob:
            blur = [GaussianBlur(_BLUR)]
            steps.append(
                self._build(RandomApply, {"p": "gaussian_blur_prob"}, transforms=blur, p=given.gaussian_blur_prob)
            )
        return steps

    def _crop(self) -> Transform:
        given = self._given
        if given.train_crop_mode not in (None, "rrc"):
            self._place.refuse("train_crop_mode", given.train_crop_mode, "None or 'rrc' (RandomResizedCrop)")
        arguments = {"size": self._size, "scale": given.scale or (0.08, 1.0), "ratio": given.ratio or (3 / 4, 4 / 3)}
        if "edges" in argument_names(RandomResizedCrop):
            arguments["edges"] = "crop"  # timm crops, then resizes
        kinds = _RANDOM if given.interpolation == "random" else (given.interpolation,)
        names = {"size": "input_size"}
        crops = [self._build(RandomResizedCrop, names, interpolation=kind, **arguments) for kind in kinds]
        return crops[0] if len(crops) == 1 else RandomChoice(crops)

    def _policy(self, text: Any) -> Transform:
        """What timm's string means, filled with the mean and resampled as the rest is."""
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
            self._place.refuse(
                "color_jitter", given, "a number, or three or four (brightness, contrast, saturation, hue)"
            )
        names = ("brightness", "contrast", "saturation", "hue")
        jitter = self._build(
            ColorJitter, dict.fromkeys(names, "color_jitter"), **dict(zip(names, factors, strict=False))
        )
        p = self._given.color_jitter_prob
        return jitter if p is None else self._build(RandomApply, {"p": "color_jitter_prob"}, transforms=[jitter], p=p)

    def _erasing(self) -> list[Transform]:
        given = self._given
        if not given.re_prob > 0:
            return []
        if given.use_prefetcher or not given.normalize:
            how = "create_transform does not erase without normalising; timm's loader does, on the batch"
            self._place.differs("re_prob", given.re_prob, how)
            return []
        if given.re_mode not in ("const", "pixel", ""):
            self._place.refuse("re_mode", given.re_mode, "'const' or 'pixel'; one random colour per rectangle is not")
        count = as_integer(given.re_count)
        if count is None or not 1 <= count <= 16:
            self._place.refuse("re_count", given.re_count, "an integer from 1 to 16")
        value = "random" if given.re_mode == "pixel" else 0

        def rectangles(number: int) -> list[Transform]:
            area = tuple(share / number for share in _ERASED_AREA)
            p = given.re_prob if count == 1 else 1.0
            one = self._build(RandomErasing, {"p": "re_prob"}, p=p, scale=area, ratio=_ERASED_RATIO, value=value)
            return [one] * number

        if count == 1:
            return rectangles(1)
        choice = RandomChoice([Compose(rectangles(number)) for number in range(1, count + 1)])
        return [self._build(RandomApply, {"p": "re_prob"}, transforms=[choice], p=given.re_prob)]

    # -- evaluation ----------------------------------------------------------------------------------------------

    def _evaluation(self) -> list[Transform]:
        given, size = self._given, self._size
        share = given.crop_pct or _CROP_PCT
        sides = size if isinstance(size, tuple) else (size, size)
        scaled = tuple(math.floor(side / share) for side in sides)
        steps: list[Transform] = []
        if given.crop_border_pixels:
            border = -given.crop_border_pixels
            steps.append(self._build(Pad, {"padding": "crop_border_pixels"}, padding=border))
        if given.crop_mode == "squash":
            steps.append(self._resize(scaled))
        elif given.crop_mode == "border":
            self._place.refuse("crop_mode", given.crop_mode, "None, 'center' or 'squash'")
        elif scaled[0] != scaled[1]:
            self._place.refuse("input_size", given.input_size, "a square, or any size with crop_mode='squash'")
        else:
            steps.append(self._resize(scaled[0]))
        return [*steps, self._build(CenterCrop, {"size": "input_size"}, size=size)]

    def _fixed_interpolation(self) -> str:
        return "bilinear" if self._given.interpolation == "random" else self._given.interpolation

    def _resize(self, size: Any, interpolation: str | None = None) -> Transform:
        kind = interpolation or self._given.interpolation
        resize: Transform = self._build(Resize, {"size": "input_size"}, size=size, interpolation=kind)
        return resize
