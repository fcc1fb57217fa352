"""The end of a torchvision pipeline: to floats, normalise, erase. It comes last here, wherever it stands there.

A RandomErasing on floats between the two is exact behind Normalize, with its value normalised.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from variegate.integrations.converters.report import Place, plain
from variegate.ops.arguments import for_images
from variegate.ops.base import Transform
from variegate.ops.crop import RandomCrop
from variegate.ops.erase import RandomErasing
from variegate.ops.output import Normalize, ToDtype

_FLOATS = ("float32", "float16", "bfloat16")
_MAY_FOLLOW = {
    *("RandomHorizontalFlip", "RandomVerticalFlip", "RandomCrop"),
    *("SanitizeBoundingBoxes", "ClampBoundingBoxes"),  # which leave pixels alone
}


class FloatTail:
    """Conversions, normalisations and erasings of a pipeline, and the format that it is in."""

    CLASSES = ("ToTensor", "ToDtype", "ConvertImageDtype", "ToPILImage", "Normalize", "RandomErasing")

    def __init__(self) -> None:
        # What level 255 is where the pipeline stands: None for levels, 1 or 255 for floats.
        self._white: float | None = None
        self._dtype: ToDtype | None = None
        self._normals: list[Normalize] = []
        # With how many Normalize stand before it.
        self._erasings: list[tuple[Place, RandomErasing, int]] = []

    @property
    def is_float(self) -> bool:
        return self._white is not None

    @property
    def is_closed(self) -> bool:
        """True if something was taken that must not change places with what follows."""
        return bool(self._normals or self._erasings)

    def changes_format(self, name: str) -> bool:
        return name in self.CLASSES and (name != "RandomErasing" or self.is_float)

    def as_levels(self, value: Any) -> Any:
        """Values of pixels at this stage as levels 0..255."""
        factor = 255.0 / (self._white or 255.0)
        return tuple(each * factor for each in value) if isinstance(value, tuple) else value * factor

    def take(self, place: Place, name: str, source: Any) -> bool:
        """Take ``source`` if it is one of these -> whether it is."""
        is_theirs = type(source).__module__.startswith("torchvision.")
        if isinstance(source, Transform) or not is_theirs or not self.changes_format(name):
            return False
        if name == "Normalize":
            self._take_normalize(place, source)
        elif name == "RandomErasing":
            self._take_erasing(place, source)
        elif name == "ToPILImage":
            self._to_levels(place, source)
        elif name == "ToTensor":
            self._to_floats(place, "float32", True)
        else:
            dtype = str(for_images(source.dtype)).removeprefix("torch.")
            scale = name == "ConvertImageDtype" or bool(source.scale)
            if dtype == "uint8" and (scale or not self.is_float):
                self._to_levels(place, source)
            elif dtype != "None":
                self._to_floats(place, dtype, scale)
        return True

    def _to_levels(self, place: Place, source: Any) -> None:
        if self.is_closed:
            place.refuse("", source, "it before Normalize and RandomErasing, which make floats that no level can hold")
        self._white = self._dtype = None

    def _to_floats(self, place: Place, dtype: str, scale: bool) -> None:
        if dtype not in _FLOATS:
            place.refuse("dtype", dtype, "one of " + ", ".join(_FLOATS))
        if self.is_float:
            assert self._dtype is not None
            scale = self._dtype.scale  # floats to floats: the type alone
        else:
            self._white = 1.0 if scale else 255.0
        self._dtype = ToDtype(dtype, scale=scale)  # type: ignore[arg-type]

    def _take_normalize(self, place: Place, source: Any) -> None:
        if not self.is_float:
            place.refuse("", source, "it behind ToTensor or ToDtype(torch.float32, scale=True), as in torchvision")
        arguments = {"mean": plain(source.mean), "std": plain(source.std)}
        self._normals.append(place.build(Normalize, arguments))

    def _take_erasing(self, place: Place, source: Any) -> None:
        value = plain(source.value)
        value = "random" if value is None or value == "random" else value  # v2 keeps None for "random"
        arguments = {"p": source.p, "scale": plain(source.scale), "ratio": plain(source.ratio), "value": value}
        erasing = place.build(RandomErasing, arguments)
        self._erasings.append((place, erasing, len(self._normals)))

    def check_may_follow(self, place: Place, name: str, step: Transform) -> None:
        """Raise ConversionError for what may not be done in front of Normalize and RandomErasing instead."""
        moves = name in _MAY_FOLLOW and not isinstance(step, RandomCrop)
        if isinstance(step, RandomCrop):
            moves = not (self._erasings or step.padding or step.pad_if_needed)
        elif step._mixers:
            moves = not self._erasings
        if not moves:
            place.refuse("", step, "it before Normalize and RandomErasing; flips alone may follow both")

    def finished(self) -> list[Transform]:
        """The steps at the end of the converted pipeline."""
        is_said = self._dtype is not None and (not self._normals or self._dtype != ToDtype("float32", scale=True))
        steps: list[Any] = [self._dtype] if is_said else []
        erasings = [self._behind(place, erasing, self._normals[before:]) for place, erasing, before in self._erasings]
        return steps + self._normals + erasings

    def _behind(self, place: Place, erasing: RandomErasing, normals: list[Normalize]) -> RandomErasing:
        if not normals:
            return erasing
        if erasing.value == "random":
            place.refuse("value", "random", 'a number or three, or "random" behind Normalize')
        value = np.atleast_1d(np.asarray(erasing.value, np.float64))
        for normal in normals:
            value = (value - np.asarray(normal.mean)) / np.asarray(normal.std)
        return RandomErasing(erasing.p, erasing.scale, erasing.ratio, tuple(value.tolist()))
