"""Rules of Albumentations' crops that keep boxes."""

from __future__ import annotations

from variegate.integrations.converters.albumentations_arguments import Arguments
from variegate.integrations.converters.albumentations_crops import SIZE, resampled
from variegate.ops.base import Transform
from variegate.ops.box_crops import RandomAtLeastOneBoxCrop, RandomBoxSafeCrop, RandomResizedBoxSafeCrop

_HOW = "there a single box is not eroded, as it is here, and the crop's last row and column may be a pixel less"


def safe_crop(given: Arguments) -> Transform:
    given.place.differs("", None, _HOW)
    return given.place.build(RandomBoxSafeCrop, {"erosion_rate": given.take("erosion_rate", 0.0)})


def resized_safe_crop(given: Arguments) -> Transform:
    given.place.differs("", None, _HOW)
    arguments = {
        "size": (given.take("height"), given.take("width")),
        "erosion_rate": given.take("erosion_rate", 0.0),
        **resampled(given),
    }
    return given.place.build(RandomResizedBoxSafeCrop, arguments, SIZE)


def crop_with_one(given: Arguments) -> Transform:
    given.place.differs("", None, "drawn among the places that hold enough of the box, in whole pixels")
    arguments = {
        "size": (given.take("height"), given.take("width")),
        "erosion_factor": given.take("erosion_factor", 0.0),
    }
    return given.place.build(RandomAtLeastOneBoxCrop, arguments, SIZE)
