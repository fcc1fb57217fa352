"""``from_torchvision``: a pipeline of torchvision's transforms, v2 or v1, as objects.

Images are uint8 here until the last step: ``FloatTail`` holds what a pipeline does to floats, and it comes last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, overload

import numpy as np

from variegate.interop.convert.report import (
    UNREADABLE,
    ConversionReport,
    Notes,
    Place,
    as_refusal,
    parameters,
    plain,
)
from variegate.ops.arguments import for_images
from variegate.ops.base import Transform
from variegate.ops.compose import Compose, RandomApply, RandomChoice, RandomOrder
from variegate.ops.crop import RandomCrop
from variegate.ops.erase import RandomErasing
from variegate.ops.output import Identity, Normalize, ToDtype

# Classes of the same name, arguments and meaning here.
SAME = {
    "Resize",
    "RandomResizedCrop",
    "CenterCrop",
    "RandomCrop",
    "Pad",
    "RandomHorizontalFlip",
    "RandomVerticalFlip",
    "RandomRotation",
    "RandomAffine",
    "RandomPerspective",
    "ElasticTransform",
    "RandomZoomOut",
    "ScaleJitter",
    "RandomShortestSize",
    "RandomResize",
    "ColorJitter",
    "RandomGrayscale",
    "Grayscale",
    "GaussianBlur",
    "GaussianNoise",
    "RandomInvert",
    "RandomPosterize",
    "RandomSolarize",
    "RandomAdjustSharpness",
    "RandomAutocontrast",
    "RandomEqualize",
    "RandomPhotometricDistort",
    "RandomChannelPermutation",
    "JPEG",
    "RandomErasing",
    "AutoAugment",
    "RandAugment",
    "TrivialAugmentWide",
    "AugMix",
    "MixUp",
    "CutMix",
    "RandomIoUCrop",
    "SanitizeBoundingBoxes",
    "ClampBoundingBoxes",
}
# Attributes that torchvision's objects carry beside their arguments.
IGNORED: Mapping[str, tuple[str, ...]] = {"AutoAugment": ("policies",), "ClampBoundingBoxes": ("clamping_mode",)}
# Attributes that have another name than the argument they come from.
RENAMED: Mapping[str, Mapping[str, str]] = {"RandomIoUCrop": {"options": "sampler_options"}}
# What is said of every object of a class.
_MIXED = "every image has a share and a partner of its own, on whole levels; one draw serves a batch in torchvision"
DIFFERS: Mapping[str, str] = {"MixUp": _MIXED, "CutMix": _MIXED}
# Arguments of Variegate's classes under which they mean torchvision's to the bit.
EXTRA = {"RandomResizedCrop": {"edges": "crop"}}
# Classes that do nothing to an image here, with what is to be said of that.
NOTHING = {
    "Identity": "",
    "ToImage": "",
    "PILToTensor": "",
    "ToPureTensor": "",
    "RGB": "gray images stay gray here; image folders and decoders give RGB as in torchvision",
}
_FORMATS = "vg.Targets(box_format=...), which says what boxes are; all end at their image's edges"
_POINTS = "nothing in its place: key points that leave the image get visibility 0"
_VIEWS = "transforms that give one image for each; take the crops one by one"
_VALUES = "operations on color images; it needs all values of an image at once, after the pipeline"
REFUSED = {
    **dict.fromkeys(("ConvertBoundingBoxFormat", "SetClampingMode"), _FORMATS),
    **dict.fromkeys(("ClampKeyPoints", "SanitizeKeyPoints"), _POINTS),
    **dict.fromkeys(("FiveCrop", "TenCrop"), _VIEWS),
    "LinearTransformation": _VALUES,
    "Lambda": "an operation that can be described; write a CustomOp, or call the function behind the pipeline",
    "UniformTemporalSubsample": "transforms of images; choose the frames before",
}

# On tensors torchvision's kernels are not those for PIL images: by more than a level or two.
_MAPS = ("RandomRotation", "RandomAffine", "RandomPerspective", "ElasticTransform")
_BLENDED = "pixels at the border are blended with the fill there, on tensors; here they are as on PIL images"
_HUES = ("ColorJitter", "RandomPhotometricDistort")
_HUES_DIFFER = "hues have 8 bits here, as on PIL images; on tensors 0.4 levels differ on average, 6 at most in a photo"
# Operations that only move pixels, or invert them: the same on floats as on levels. Interpolating ones are not.
EXACT_ON_FLOATS = {
    "RandomHorizontalFlip",
    "RandomVerticalFlip",
    "RandomCrop",
    "CenterCrop",
    "Pad",
    "RandomInvert",
    "RandomSolarize",
    "RandomChannelPermutation",
    "RandomIoUCrop",
    "SanitizeBoundingBoxes",
    "ClampBoundingBoxes",
}
# Operations that take floats to be from 0 to 1, and cut them off there.
FROM_0_TO_1 = {
    "ColorJitter",
    "RandomPhotometricDistort",
    "RandomInvert",
    "RandomSolarize",
    "RandomPosterize",
    "RandomEqualize",
    "RandomAutocontrast",
    "RandomAdjustSharpness",
    "GaussianNoise",
    "JPEG",
    "AutoAugment",
    "RandAugment",
    "TrivialAugmentWide",
    "AugMix",
}
# Arguments that are values of pixels: on floats from 0 to 1 where the pixels are.
ON_LEVELS = {"fill", "threshold"}

# Pillow's codes, which torchvision takes for names.
_INTERPOLATIONS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}
_ROWS = ("Compose", "Sequential", "ModuleList", "list", "tuple")
_CONTAINERS: dict[str, type[Transform]] = {
    "RandomApply": RandomApply,
    "RandomChoice": RandomChoice,
    "RandomOrder": RandomOrder,
}
_HOMES = ("torchvision.transforms", "torch.nn.modules", "torchvision.prototype.transforms")
# What torch.nn.Module keeps of its own.
_MODULE = ("training", "call_super_init", "dump_patches", "transforms")


@overload
def from_torchvision(compose: Any, report: Literal[False] = False) -> Transform: ...


@overload
def from_torchvision(compose: Any, report: Literal[True]) -> tuple[Transform, ConversionReport]: ...


def from_torchvision(compose: Any, report: bool = False) -> Transform | tuple[Transform, ConversionReport]:
    """Convert a torchvision pipeline to Variegate's transforms.

    Args:
        compose: a transform of ``torchvision.transforms.v2`` or ``torchvision.transforms``: a ``Compose``, with any
            nesting, a list of transforms, or a single one. Variegate's own transforms may be part of it.
        report: also return the ``ConversionReport``, as ``from_albumentations`` does. Unsupported transforms are then
            skipped.

    Approximate conversions give a ConversionWarning with the differences. docs/converting.md lists the classes.

    Raises:
        ConversionError: (a ValueError) for an unsupported transform, with its place, its value and what is accepted.
    """
    notes = Notes()
    converter = _Converter(notes)
    converter.take(compose, "")
    converted = converter.finished()
    if not report:
        notes.raise_refused()
    notes.warn()
    return (converted, notes.made()) if report else converted


class _Converter:
    """Goes through a pipeline once, in order."""

    def __init__(self, report: Notes) -> None:
        self._report = report
        self._tail = FloatTail()
        self._steps: list[Transform] = []
        self._is_tensor = False

    def take(self, source: Any, path: str) -> None:
        """Append ``source`` to the pipeline; compositions in the main line are unrolled."""
        name = type(source).__name__
        children = _children(source)
        if children is not None and not isinstance(source, Transform) and name in _ROWS:
            for i, child in enumerate(children):
                self.take(child, f"{path}transforms[{i}].")
            return
        place = Place(f"{path.removesuffix('.')} {name}".strip(), self._report)
        try:
            if self._tail.take(place, name, source):
                self._is_tensor = name != "ToPILImage"
            elif (step := self._convert(place, source, path)) is not None:
                if self._tail.is_closed:
                    self._tail.check_may_follow(place, name, step)
                self._steps.append(step)
        except UNREADABLE as error:
            self._report.refuse(place.path, as_refusal(error, place, source))
        else:
            self._report.convert(place.path)

    def finished(self) -> Transform:
        steps = [*self._steps, *self._tail.finished()]
        if not steps:
            return Identity()
        return steps[0] if len(steps) == 1 else Compose(steps)

    def _convert(self, place: Place, source: Any, path: str) -> Transform | None:
        """One transform, or None for what does nothing to an image."""
        if isinstance(source, Transform):
            return source
        name = type(source).__name__
        if not type(source).__module__.startswith(_HOMES):
            accepted = "transforms of torchvision and Variegate; see vg.from_timm for timm's, and CustomOp for yours"
            place.refuse("", source, accepted)
        if name in REFUSED:
            place.refuse("", source, REFUSED[name])
        if name in NOTHING:
            self._is_tensor = self._is_tensor or name in ("ToImage", "PILToTensor")
            if NOTHING[name]:
                place.differs("", source, NOTHING[name])
            return None
        if name in _CONTAINERS or name in _ROWS:
            return self._container(place, source, path)
        if self._tail.changes_format(name):
            place.refuse("", source, "it in the main line of the pipeline, where it applies to every image")
        if name not in SAME:
            place.refuse("", source, "one of " + ", ".join(sorted(known())))
        return self._same(place, name, source)

    def _container(self, place: Place, source: Any, path: str) -> Transform:
        steps = []
        for i, child in enumerate(_children(source) or ()):
            where = f"{path}transforms[{i}]"
            inner = Place(f"{where} {type(child).__name__}", self._report)
            steps.append(self._convert(inner, child, f"{where}.") or Identity())
        cls = _CONTAINERS.get(type(source).__name__)
        if cls is None:
            return place.build(Compose, transforms=steps) if steps else Identity()
        rest = {"p": plain(source.p)} if "p" in parameters(cls) else {}
        return place.build(cls, transforms=steps, **rest)

    def _same(self, place: Place, name: str, source: Any) -> Transform:
        """The class of the same name, of arguments of the same names and meaning."""
        if self._tail.is_unscaled and name in FROM_0_TO_1:
            how = "it before ToDtype, or behind one with scale=True: floats above 1 are not levels to it in torchvision"
            place.refuse("", source, how)
        cls = Transform.registry[name]
        names = parameters(cls)
        arguments: dict[str, Any] = {**EXTRA.get(name, {})}
        for key, value in vars(source).items():
            if key.startswith("_") or key in _MODULE or key in IGNORED.get(name, ()):
                continue
            key = RENAMED.get(name, {}).get(key, key)
            if key not in names:
                place.refuse(key, value, f"arguments of {name}: {', '.join(names)}")
            arguments[key] = self._argument(place, key, value)
        is_v2 = type(source).__module__.startswith("torchvision.transforms.v2")
        if name == "RandomCrop" and is_v2 and isinstance(source.padding, list):
            left, right, top, bottom = source.padding  # as v2 alone keeps it
            arguments["padding"] = (left, top, right, bottom)
        if name in DIFFERS:
            place.differs("", None, DIFFERS[name])
        is_blended = arguments.get("interpolation") != "nearest"
        if self._is_tensor and name in _MAPS and is_blended:
            place.differs("", None, _BLENDED)
        if self._is_tensor and name in _HUES and arguments.get("hue") not in (None, (0.0, 0.0)):
            place.differs("", None, _HUES_DIFFER)
        if self._tail.is_float and name not in EXACT_ON_FLOATS and (is_blended or name in FROM_0_TO_1):
            how = "works on floats there, on levels 0..255 here, rounded after each operation: one or two levels differ"
            place.differs("", None, how)
        made = place.build(cls, **arguments)
        self._report.pair(place.path, source, made)
        return made

    def _argument(self, place: Place, key: str, value: Any) -> Any:
        if key == "antialias":
            if value is False and not self._is_tensor:
                how = "makes no difference to PIL images, which are antialiased there and here"
                place.differs(key, value, f"{how}; tensors would not be there")
                return True
            return None if value == "warn" else value  # as torchvision 0.15 wrote None
        value = plain(for_images(value) if key in ("fill", "dtype") else value)
        if key == "interpolation":
            return _INTERPOLATIONS.get(value, value) if type(value) is int else value
        if key == "value" and value in (None, "random"):
            how = "noise is uniform over 0..255 here; torchvision casts normal noise to uint8, levels near 0 and 255"
            place.differs("value", "random", how)
            return "random"  # for which v2 keeps None
        if key in ON_LEVELS and self._tail.is_float and value is not None:
            return self._tail.as_levels(value)
        return value


def known() -> set[str]:
    """Names of torchvision's classes that are converted."""
    return SAME | set(NOTHING) | set(_CONTAINERS) | {"Compose"} | set(FloatTail.CLASSES)


def _children(source: Any) -> list[Any] | None:
    """Parts of a composition: those of an attribute, or the modules of torch.nn's."""
    held = source if isinstance(source, (list, tuple)) else getattr(source, "transforms", None)
    if held is None and type(source).__name__ in _ROWS:
        held = source
    return list(held) if isinstance(held, Iterable) else None


_FLOATS = ("float32", "float16", "bfloat16")
# The last two leave pixels alone.
_MAY_FOLLOW = {
    "RandomHorizontalFlip",
    "RandomVerticalFlip",
    "RandomCrop",
    "SanitizeBoundingBoxes",
    "ClampBoundingBoxes",
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
    def is_unscaled(self) -> bool:
        return self._white == 255.0

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
        self._normals.append(place.build(Normalize, **arguments))

    def _take_erasing(self, place: Place, source: Any) -> None:
        value = plain(source.value)
        value = "random" if value is None or value == "random" else value  # v2 keeps None for "random"
        arguments = {"p": source.p, "scale": plain(source.scale), "ratio": plain(source.ratio), "value": value}
        erasing = place.build(RandomErasing, **arguments)
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
