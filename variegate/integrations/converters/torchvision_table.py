"""torchvision's classes, and what becomes of them. A class that Variegate has as well is one name in ``SAME``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# Classes of the same name, arguments and meaning here. One that this version does not have is refused.
SAME = {
    *("Resize", "RandomResizedCrop", "CenterCrop", "RandomCrop", "Pad", "RandomHorizontalFlip", "RandomVerticalFlip"),
    *("RandomRotation", "RandomAffine", "RandomPerspective", "ElasticTransform", "RandomZoomOut", "ScaleJitter"),
    *("RandomShortestSize", "RandomResize", "ColorJitter", "RandomGrayscale", "Grayscale", "GaussianBlur"),
    *("GaussianNoise", "RandomInvert", "RandomPosterize", "RandomSolarize", "RandomAdjustSharpness"),
    *("RandomAutocontrast", "RandomEqualize", "RandomPhotometricDistort", "RandomChannelPermutation", "JPEG"),
    *("RandomErasing", "AutoAugment", "RandAugment", "TrivialAugmentWide", "AugMix", "MixUp", "CutMix"),
    *("RandomIoUCrop", "SanitizeBoundingBoxes", "ClampBoundingBoxes"),
}
# Attributes that torchvision's objects carry beside their arguments.
IGNORED: Mapping[str, tuple[str, ...]] = {"AutoAugment": ("policies",), "ClampBoundingBoxes": ("clamping_mode",)}
# Attributes that have another name than the argument they come from.
RENAMED: Mapping[str, Mapping[str, str]] = {"RandomIoUCrop": {"options": "sampler_options"}}
# What is said of every object of a class.
_MIXED = "every image has a share and a partner of its own, on whole levels; one draw serves a batch in torchvision"
DIFFERS: Mapping[str, str] = {"MixUp": _MIXED, "CutMix": _MIXED}
# Arguments of Variegate's classes under which they mean torchvision's to the bit.
EXTRA: Mapping[str, Mapping[str, Any]] = {"RandomResizedCrop": {"edges": "crop"}}
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
_VALUES = "operations on colour images; it needs all values of an image at once, behind the pipeline"
REFUSED = {
    **dict.fromkeys(("ConvertBoundingBoxFormat", "SetClampingMode"), _FORMATS),
    **dict.fromkeys(("ClampKeyPoints", "SanitizeKeyPoints"), _POINTS),
    **dict.fromkeys(("FiveCrop", "TenCrop"), _VIEWS),
    "LinearTransformation": _VALUES,
    "Lambda": "an operation that can be described; write a CustomOp, or call the function behind the pipeline",
    "UniformTemporalSubsample": "transforms of images; choose the frames before",
}

# -- on tensors, whose kernels in torchvision are not those of PIL images --------------------------------------------

_MAPS = ("RandomRotation", "RandomAffine", "RandomPerspective", "ElasticTransform")
_HUES = ("ColorJitter", "RandomPhotometricDistort")


def differs_on_tensors(name: str, arguments: Mapping[str, Any]) -> str | None:
    """What torchvision does to a tensor in another way than to a PIL image, beyond a level or two."""
    if name in _MAPS and arguments.get("interpolation") != "nearest":
        return "pixels at the border are blended with the fill there, on tensors; here they are as on PIL images"
    if name in _HUES and arguments.get("hue") not in (None, (0.0, 0.0)):
        return "hues have 8 bits here, as on PIL images; on tensors 0.4 levels differ on average, 6 at most in a photo"
    return None


# -- on floats ---------------------------------------------------------------------------------------------------

# Operations that only move pixels, or invert them: the same on floats as on levels. Interpolating ones are not.
EXACT_ON_FLOATS = {
    *("RandomHorizontalFlip", "RandomVerticalFlip", "RandomCrop", "CenterCrop", "Pad", "RandomInvert"),
    *("RandomSolarize", "RandomChannelPermutation", "RandomIoUCrop", "SanitizeBoundingBoxes", "ClampBoundingBoxes"),
}
# Arguments that are values of pixels: on floats from 0 to 1 where the pixels are.
ON_LEVELS = {"fill", "threshold"}

# -- values of arguments -----------------------------------------------------------------------------------------

# Pillow's codes, which torchvision takes for names.
_INTERPOLATIONS = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic", 4: "box", 5: "hamming"}


def interpolation_name(value: Any) -> Any:
    return _INTERPOLATIONS.get(value, value) if type(value) is int else value
