"""``from_torchvision``: a pipeline of torchvision's transforms, v2 or v1, as objects.

Images are uint8 here until the last step, so conversions to floats, ``Normalize`` and ``RandomErasing`` of floats are
collected and put last.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, overload

import numpy as np

from variegate.interop.convert.report import ConversionReport, Node, ReportBuilder, parameters, plain
from variegate.ops.arguments import for_images
from variegate.ops.base import Transform
from variegate.ops.compose import Compose, RandomApply, RandomChoice, RandomOrder
from variegate.ops.crop import RandomCrop
from variegate.ops.erase import RandomErasing
from variegate.ops.output import Identity, Normalize, ToDtype

# Classes of the same name, arguments and meaning here. First: transforms that only move pixels, so that they are equal
# on floats and on bytes (interpolating ones are not). Second: transforms that assume floats from 0 to 1, and clip them.
# Third: others.
_MOVING_NAMES = (
    "RandomHorizontalFlip RandomVerticalFlip RandomCrop CenterCrop Pad RandomChannelPermutation RandomIoUCrop "
    "SanitizeBoundingBoxes ClampBoundingBoxes"
)
_FROM_0_TO_1_NAMES = (
    "ColorJitter RandomPhotometricDistort RandomPosterize RandomEqualize RandomAutocontrast RandomAdjustSharpness "
    "GaussianNoise JPEG AutoAugment RandAugment TrivialAugmentWide AugMix"
)
_OTHER_NAMES = (
    "Resize RandomResizedCrop RandomZoomOut ScaleJitter RandomShortestSize RandomResize RandomGrayscale Grayscale "
    "GaussianBlur RandomErasing MixUp CutMix"
)
_MOVING = frozenset(_MOVING_NAMES.split())
_EXACT_VALUES = frozenset(["RandomInvert", "RandomSolarize"])
_FROM_0_TO_1 = _EXACT_VALUES | frozenset(_FROM_0_TO_1_NAMES.split())
_MAPS = frozenset(["RandomRotation", "RandomAffine", "RandomPerspective", "ElasticTransform"])
SAME = frozenset({*_MOVING, *_FROM_0_TO_1, *_MAPS, *_OTHER_NAMES.split()})
# Classes that do nothing to an image here, with what differs.
NOTHING = {
    "Identity": "",
    "ToImage": "",
    "PILToTensor": "",
    "ToPureTensor": "",
    "RGB": "gray images stay gray here; image folders and decoders give RGB as in torchvision",
}
_FORMATS = ("ToTensor", "ToDtype", "ConvertImageDtype", "ToPILImage", "Normalize")
_ROWS = ("Compose", "Sequential", "ModuleList", "list", "tuple")
_CONTAINERS: Mapping[str, type[Transform]] = {
    "RandomApply": RandomApply,
    "RandomChoice": RandomChoice,
    "RandomOrder": RandomOrder,
}
_BOXES = "vg.Targets(box_format=...), which says what boxes are; all end at their image's edges"
_POINTS = "nothing in its place: key points that leave the image get visibility 0"
_VIEWS = "transforms that give one image for each; take the crops one by one"
REFUSED: Mapping[str, str] = {
    **dict.fromkeys(("ConvertBoundingBoxFormat", "SetClampingMode"), _BOXES),
    **dict.fromkeys(("ClampKeyPoints", "SanitizeKeyPoints"), _POINTS),
    **dict.fromkeys(("FiveCrop", "TenCrop"), _VIEWS),
    "LinearTransformation": "operations on color images; it needs all values of an image at once, after the pipeline",
    "Lambda": "an operation that can be described; write a CustomOp, or call the function behind the pipeline",
    "UniformTemporalSubsample": "transforms of images; choose the frames before",
}
CONVERTED = frozenset({*SAME, *NOTHING, *_FORMATS, *_CONTAINERS, "Compose"})

# Attributes that torchvision's objects have besides their arguments, and torch.nn.Module's attributes.
_IGNORED: Mapping[str, tuple[str, ...]] = {"AutoAugment": ("policies",), "ClampBoundingBoxes": ("clamping_mode",)}
_MODULE = ("training", "call_super_init", "dump_patches", "transforms")
_ARGUMENT_NAMES = {"options": "sampler_options"}  # of RandomIoUCrop
_HOMES = ("torchvision.transforms", "torch.nn.modules", "torchvision.prototype.transforms")
_V2 = "torchvision.transforms.v2"
# Pillow's codes, which torchvision takes for names.
_INTERPOLATIONS = ("nearest", "lanczos", "bilinear", "bicubic", "box", "hamming")
_FLOATS = ("float32", "float16", "bfloat16")
# May follow Normalize and RandomErasing: flips, and classes that leave pixels alone.
_MAY_FOLLOW = ("RandomHorizontalFlip", "RandomVerticalFlip", "SanitizeBoundingBoxes", "ClampBoundingBoxes")

_MIXED = "every image has a share and a partner of its own, on whole levels; one draw serves a batch in torchvision"
# On tensors torchvision's kernels differ from its kernels for PIL images, by more than one or two values.
_BLENDED = "border pixels: blended with the fill there, on tensors; here they are as on PIL images"
_HUES = "0.4 levels on average, 6 at most in a photo: hues have 8 bits here, as on PIL images"
_ROUNDED = "one or two levels: works on floats there, on levels 0..255 here, rounded after each operation"
_NOISE = "noise is uniform over 0..255 here; torchvision casts normal noise to uint8, levels near 0 and 255"
_ANTIALIASED = "antialias=False makes no difference to PIL images, which are antialiased there and here"
_MAIN_LINE = "it in the main line of the pipeline, where it applies to every image"


@overload
def from_torchvision(compose: Any, report: Literal[False] = False) -> Transform: ...


@overload
def from_torchvision(compose: Any, report: Literal[True]) -> tuple[Transform, ConversionReport]: ...


def from_torchvision(compose: Any, report: bool = False) -> Transform | tuple[Transform, ConversionReport]:
    """Convert a torchvision pipeline to Variegate's transforms.

    Args:
        compose: a transform of ``torchvision.transforms.v2`` or ``torchvision.transforms``: a ``Compose``, with any
            nesting, a list of transforms, or a single one. It may contain Variegate's own transforms.
        report: also return the ``ConversionReport``, as ``from_albumentations`` does. Unsupported transforms are then
            skipped.

    Approximate conversions give a ConversionWarning with the differences. docs/migration/torchvision.md lists the
    classes.

    Raises:
        ConversionError: (a ValueError) for an unsupported transform, with its place, its value and accepted values.
    """
    converter = _Converter(ReportBuilder())
    converter.append(compose, "")
    converted = converter.finish()
    result = converter.report.finish(skip_refused=report)
    return (converted, result) if report else converted


def _children(source: Any) -> list[Any] | None:
    """Parts of a composition: an attribute, or the modules of torch.nn's; None for a single transform."""
    parts = source if isinstance(source, (list, tuple)) else getattr(source, "transforms", None)
    if parts is None and type(source).__name__ in _ROWS:
        parts = source
    return list(parts) if isinstance(parts, Iterable) else None


@dataclass
class _Converter:
    """Goes through a pipeline once, in order. ``white``: the value of level 255 at this stage, None on levels.

    ``erasings``: erasings of floats, each with the number of Normalize before it.
    """

    report: ReportBuilder
    steps: list[Transform] = field(default_factory=list)
    is_tensor: bool = False
    white: float | None = None
    dtype: ToDtype | None = None
    normals: list[Normalize] = field(default_factory=list)
    erasings: list[tuple[Node, RandomErasing, int]] = field(default_factory=list)

    @property
    def is_float(self) -> bool:
        return self.white is not None

    def append(self, source: Any, path: str) -> None:
        """Convert ``source`` and append it to the pipeline; compositions in the main line are unrolled."""
        name = type(source).__name__
        children = _children(source)
        if children is not None and not isinstance(source, Transform) and name in _ROWS:
            for i, child in enumerate(children):
                self.append(child, f"{path}transforms[{i}].")
            return
        node = Node(f"{path.removesuffix('.')} {name}".strip(), self.report)
        with node.converting(source):
            if self.changes_format(name, source):
                self.change_format(node, name, source)
            elif (step := self.convert(node, source, path)) is not None:
                self.check_order(node, name, step)
                self.steps.append(step)
            if children is None:
                node.add_converted()

    def convert(self, node: Node, source: Any, path: str) -> Transform | None:
        """Convert one transform; None if it does not change images."""
        if isinstance(source, Transform):
            return source
        name = type(source).__name__
        if not type(source).__module__.startswith(_HOMES):
            accepted = "transforms of torchvision and Variegate; see vg.from_timm for timm's, and CustomOp for yours"
            node.refuse("", source, accepted)
        if name in REFUSED:
            node.refuse("", source, REFUSED[name])
        if name in NOTHING:
            self.is_tensor = self.is_tensor or name in ("ToImage", "PILToTensor")
            if NOTHING[name]:
                node.add_difference(NOTHING[name])
            return None
        if name in _CONTAINERS or name in _ROWS:
            return self.container(node, source, path)
        if self.changes_format(name, source):
            node.refuse("", source, _MAIN_LINE)
        if name not in SAME:
            node.refuse("", source, "one of " + ", ".join(sorted(CONVERTED)))
        return self.same_class(node, name, source)

    def container(self, node: Node, source: Any, path: str) -> Transform:
        steps = []
        for i, child in enumerate(_children(source) or ()):
            where = f"{path}transforms[{i}]"
            inner = Node(f"{where} {type(child).__name__}", self.report)
            steps.append(self.convert(inner, child, f"{where}.") or Identity())
            if _children(child) is None:
                inner.add_converted()
        cls = _CONTAINERS.get(type(source).__name__)
        if cls is None:
            return node.build(Compose, transforms=steps) if steps else Identity()
        rest = {"p": plain(source.p)} if "p" in parameters(cls) else {}
        return node.build(cls, transforms=steps, **rest)

    def same_class(self, node: Node, name: str, source: Any) -> Transform:
        if self.white == 255.0 and name in _FROM_0_TO_1:
            how = "it before ToDtype, or behind one with scale=True: floats above 1 are not levels to it in torchvision"
            node.refuse("", source, how)
        arguments = self.arguments(node, name, source)
        is_nearest = arguments.get("interpolation") == "nearest"
        if name in ("MixUp", "CutMix"):
            node.add_difference(_MIXED)
        if self.is_tensor and name in _MAPS and not is_nearest:
            node.add_difference(_BLENDED)
        if self.is_tensor and arguments.get("hue") not in (None, (0.0, 0.0)):
            node.add_difference(_HUES)
        is_exact = name in _MOVING | _EXACT_VALUES or (is_nearest and name not in _FROM_0_TO_1)
        if self.is_float and not is_exact:
            node.add_difference(_ROUNDED)
        made = node.build(Transform.registry[name], **arguments)
        node.add_converted(source, made)
        return made

    def arguments(self, node: Node, name: str, source: Any) -> dict[str, Any]:
        """Arguments of the class of the same name here."""
        names = parameters(Transform.registry[name])
        # torchvision blends pixels of the crop alone.
        arguments: dict[str, Any] = {"edges": "crop"} if name == "RandomResizedCrop" else {}
        for attribute, value in vars(source).items():
            if attribute.startswith("_") or attribute in (*_MODULE, *_IGNORED.get(name, ())):
                continue
            key = _ARGUMENT_NAMES.get(attribute, attribute)
            if key not in names:
                node.refuse(key, value, f"arguments of {name}: {', '.join(names)}")
            arguments[key] = self.argument(node, key, value)
        is_v2 = type(source).__module__.startswith(_V2)
        if name == "RandomCrop" and is_v2 and isinstance(source.padding, list):
            left, right, top, bottom = source.padding  # in v2's order
            arguments["padding"] = (left, top, right, bottom)
        return arguments

    def argument(self, node: Node, key: str, value: Any) -> Any:
        if key == "antialias":
            if value is False and not self.is_tensor:
                node.add_difference(_ANTIALIASED)
                return True
            return None if value == "warn" else value  # torchvision 0.15's None
        value = plain(for_images(value) if key in ("fill", "dtype") else value)
        if key == "interpolation" and type(value) is int:
            return _INTERPOLATIONS[value]
        if key == "value" and value in (None, "random"):  # v2 keeps None
            node.add_difference(_NOISE)
            return "random"
        if key in ("fill", "threshold") and self.is_float and value is not None:
            factor = 255.0 / (self.white or 255.0)
            return tuple(each * factor for each in value) if isinstance(value, tuple) else value * factor
        return value

    # -- formats -------------------------------------------------------------------------------------------------

    def changes_format(self, name: str, source: Any) -> bool:
        is_format = name in _FORMATS or (name == "RandomErasing" and self.is_float)
        return is_format and type(source).__module__.startswith("torchvision.")

    def change_format(self, node: Node, name: str, source: Any) -> None:
        self.is_tensor = name != "ToPILImage"
        if name == "Normalize":
            if not self.is_float:
                node.refuse("", source, "it behind ToTensor or ToDtype(torch.float32, scale=True), as in torchvision")
            self.normals.append(node.build(Normalize, mean=plain(source.mean), std=plain(source.std)))
        elif name == "RandomErasing":
            value = plain(source.value)
            value = "random" if value is None else value  # v2 keeps None
            arguments = {"p": source.p, "scale": plain(source.scale), "ratio": plain(source.ratio), "value": value}
            self.erasings.append((node, node.build(RandomErasing, **arguments), len(self.normals)))
        elif name == "ToPILImage":
            self.to_levels(node, source)
        elif name == "ToTensor":
            self.to_floats(node, "float32", True)
        else:
            dtype = str(for_images(source.dtype)).removeprefix("torch.")
            scale = name == "ConvertImageDtype" or bool(source.scale)
            if dtype == "uint8" and (scale or not self.is_float):
                self.to_levels(node, source)
            elif dtype != "None":
                self.to_floats(node, dtype, scale)

    def to_levels(self, node: Node, source: Any) -> None:
        if self.normals or self.erasings:
            node.refuse("", source, "it before Normalize and RandomErasing, which make floats that no level can hold")
        self.white = self.dtype = None

    def to_floats(self, node: Node, dtype: str, scale: bool) -> None:
        if dtype not in _FLOATS:
            node.refuse("dtype", dtype, "one of " + ", ".join(_FLOATS))
        if self.dtype is not None:
            scale = self.dtype.scale  # floats to floats: the type alone
        self.white = 1.0 if scale else 255.0
        self.dtype = ToDtype(dtype, scale=scale)  # type: ignore[arg-type]

    def check_order(self, node: Node, name: str, step: Transform) -> None:
        """Raise ConversionError for a step that may not move in front of Normalize and RandomErasing."""
        if isinstance(step, RandomCrop):
            moves = not (self.erasings or step.padding or step.pad_if_needed)
        else:
            moves = name in _MAY_FOLLOW or bool(step._mixers and not self.erasings)
        if (self.normals or self.erasings) and not moves:
            node.refuse("", step, "it before Normalize and RandomErasing; flips alone may follow both")

    def finish(self) -> Transform:
        is_implied = self.normals and self.dtype == ToDtype("float32", scale=True)
        steps = list(self.steps)
        if self.dtype is not None and not is_implied:
            steps.append(self.dtype)
        steps += self.normals
        for node, erasing, before in self.erasings:
            with node.converting(erasing):
                steps.append(_after(node, erasing, self.normals[before:]))
        if not steps:
            return Identity()
        return steps[0] if len(steps) == 1 else Compose(steps)


def _after(node: Node, erasing: RandomErasing, normals: list[Normalize]) -> RandomErasing:
    """The erasing, after ``normals`` that it was before."""
    if not normals:
        return erasing
    if erasing.value == "random":
        node.refuse("value", "random", 'a number or three, or "random" behind Normalize')
    value = np.atleast_1d(np.asarray(erasing.value, np.float64))
    for normal in normals:
        value = (value - np.asarray(normal.mean)) / np.asarray(normal.std)
    return RandomErasing(erasing.p, erasing.scale, erasing.ratio, tuple(value.tolist()))
