"""Image transforms: one class per operation, with names and arguments of torchvision.transforms.v2.

Policies, which choose among operations, are listed here as well. Nothing below imports this file.
``functional`` has each operation as a function of one image, without randomness.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from variegate.checks import missing_name, spelt
from variegate.ops import (
    box_crops,
    colour,
    compose,
    copy_paste,
    crop,
    custom,
    deform,
    domain,
    erase,
    filters,
    finish,
    geometry,
    lighting,
    mix,
    optics,
    output,
    overlay,
    resize,
    sizes,
    tone,
    weather,
)
from variegate.ops.arguments import ArgumentError, AutoAugmentPolicy, InterpolationMode
from variegate.ops.base import Transform
from variegate.ops.box_crops import *
from variegate.ops.colour import *
from variegate.ops.compose import *
from variegate.ops.copy_paste import *
from variegate.ops.crop import *
from variegate.ops.custom import *
from variegate.ops.deform import *
from variegate.ops.description import from_dict
from variegate.ops.domain import *
from variegate.ops.erase import *
from variegate.ops.filters import *
from variegate.ops.finish import *
from variegate.ops.geometry import *
from variegate.ops.lighting import *
from variegate.ops.mix import *
from variegate.ops.optics import *
from variegate.ops.output import *
from variegate.ops.overlay import *
from variegate.ops.resize import *
from variegate.ops.sizes import *
from variegate.ops.tone import *
from variegate.ops.traced import Function, Measure, TracedPipeline
from variegate.ops.weather import *
from variegate.policies.augmentation import Augmentation
from variegate.policies.augmix import AugMix
from variegate.policies.autoaugment import AutoAugment
from variegate.policies.pba import PBA
from variegate.policies.schedule import Schedule
from variegate.policies.timm import TimmAugMix, TimmRandAugment
from variegate.policies.uniform import AdaptiveRandAugment, RandAugment, ThreeAugment, TrivialAugmentWide
from variegate.policies.views import MultiView

if TYPE_CHECKING:
    from variegate.transforms import functional as functional

__all__ = ["ArgumentError", "AutoAugmentPolicy", "InterpolationMode", "Transform", "from_dict"]
__all__ += box_crops.__all__
__all__ += colour.__all__
__all__ += compose.__all__
__all__ += copy_paste.__all__
__all__ += crop.__all__
__all__ += custom.__all__
__all__ += deform.__all__
__all__ += domain.__all__
__all__ += erase.__all__
__all__ += filters.__all__
__all__ += finish.__all__
__all__ += geometry.__all__
__all__ += lighting.__all__
__all__ += mix.__all__
__all__ += optics.__all__
__all__ += output.__all__
__all__ += overlay.__all__
__all__ += resize.__all__
__all__ += sizes.__all__
__all__ += tone.__all__
__all__ += weather.__all__
__all__ += ["Function", "Measure", "TracedPipeline"]
__all__ += ["PBA", "Augmentation", "AutoAugment", "Schedule", "TimmAugMix", "TimmRandAugment"]
__all__ += ["AdaptiveRandAugment", "AugMix", "MultiView", "RandAugment", "ThreeAugment", "TrivialAugmentWide"]

# Dataclasses, whose constructors are made when their bodies are read.
for _transform in (*Transform.registry.values(), Lambda):
    if "__init__" in vars(_transform):
        _transform.__init__ = spelt()(vars(_transform)["__init__"])  # type: ignore[misc]

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """The functions, which are made of these transforms, are imported on first access."""
        if name == "functional":
            return import_module(f"{__name__}.functional")
        raise missing_name(__name__, name, __all__)
