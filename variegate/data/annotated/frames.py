"""Targets of stored images: their reading, and their frame where EXIF turns the photo.

Annotations refer to the photo as displayed, or to the stored pixels. A photo is always decoded upright. Annotations in
the stored frame are turned along with it when they are read.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from variegate.data.annotated.values import DISPLAYED, STORED
from variegate.data.base import Item
from variegate.data.labels import NO_LABEL
from variegate.data.samples import Samples, Store
from variegate.decode import PillowFile, image_size, is_jpeg
from variegate.decode.header import apply_orientation, read_header, shown_box
from variegate.decode.image import read_mask
from variegate.decode.plugins import is_dicom
from variegate.errors import DecodeError
from variegate.io.addresses import redact_text

_TURNED_SIDES = 5  # from this orientation on, rows are columns
Size = tuple[int, int]


class Frame(NamedTuple):
    """A photo's EXIF orientation, 1 to 8, and its height and width as stored."""

    orientation: int
    height: int
    width: int

    @property
    def stored(self) -> tuple[int, int]:
        return self.height, self.width

    @property
    def displayed(self) -> tuple[int, int]:
        return (self.width, self.height) if self.orientation >= _TURNED_SIDES else (self.height, self.width)

    def size(self, exif: str | None) -> tuple[int, int]:
        """Height and width in the frame of an option ``exif``."""
        return self.stored if exif == STORED else self.displayed

    def hint(self, size: tuple[int, int], exif: str | None) -> str:
        """Text to add to an error about annotations of ``size``, if the other frame has that size."""
        other = DISPLAYED if exif == STORED else STORED
        return f'; its EXIF orientation is {self.orientation}: set exif="{other}"' if size == self.size(other) else ""

    def is_unclear(self, has_size: bool, exif: str | None) -> bool:
        """True if nothing says which frame annotations are in. ``has_size``: they say the size of the image."""
        return exif is None and self.orientation != 1 and (not has_size or self.stored == self.displayed)


def frame_of(data: Any, name: str) -> Frame:
    """The frame of an image file, or of pixels [H, W, C]. Raises DecodeError."""
    if isinstance(data, np.ndarray):
        return Frame(1, data.shape[0], data.shape[1])
    if is_jpeg(data):
        try:
            header = read_header(data)
            return Frame(header.orientation, header.height, header.width)
        except ValueError:  # a JPEG that Pillow reads, perhaps
            pass
    if is_dicom(data):
        return Frame(1, *image_size(data, name))
    with PillowFile(data, name) as file:
        orientation = file.orientation()
        height, width = file.stored_size
        # Pillow names a TIFF's size as displayed.
        is_swapped = file.kind == "TIFF" and orientation >= _TURNED_SIDES
        return Frame(orientation, width, height) if is_swapped else Frame(orientation, height, width)


class StoredImage(NamedTuple):
    """A stored image, and how to get its targets.

    ``data``: an image file, or pixels. ``size``: height and width by the annotations, None if they do not say.
    ``targets``: returns the targets for a height and width; may raise DecodeError. ``mask``: the mask, as the bytes of
    an image file, and its name.
    """

    data: Any
    name: str
    place: str  # of the data set
    size: Size | None = None
    targets: Callable[[Size], Mapping[str, Any]] | None = None
    mask: tuple[bytes, str] | None = None


@dataclass(eq=False)
class TargetStore(Store):
    """Reads images with boxes, key points or masks.

    ``exif``: the frame of the annotations, ``DISPLAYED`` or ``STORED``; None if nothing says which. The first read of
    a photo that EXIF turns then warns.
    """

    exif: str | None

    def __post_init__(self) -> None:
        self._has_warned = False

    @abstractmethod
    def stored_image(self, samples: Samples, row: int) -> StoredImage:
        """Raises DecodeError."""

    def read(self, samples: Samples, row: int) -> Item:
        """Raises DecodeError naming the sample, also if annotations or a mask are of another size than the image."""
        image = self.stored_image(samples, row)
        frame = frame_of(image.data, image.name)
        has_size = image.size is not None or image.mask is not None
        if not self._has_warned and frame.is_unclear(has_size, self.exif):
            self._has_warned = True
            note = (
                f"{image.place}: EXIF turns photos, and nothing says whether their annotations are turned as well; "
                f"they are taken as those of the displayed photo (the first: {image.name}). To say which, set "
                'exif="pixels" or exif="stored"'
            )
            warnings.warn(redact_text(note), stacklevel=4)
        size = frame.size(self.exif)
        if image.size not in (None, size):
            self._refuse(image.name, size, f"{_in_words(image.size)} by its annotations", image.size, frame)
        targets = {} if image.targets is None else dict(image.targets(size))
        if image.mask is not None:
            content, name = image.mask
            mask = targets["mask"] = read_mask(content, name)
            if mask.shape != size:
                self._refuse(name, mask.shape, f"its image {_in_words(size)}", mask.shape, frame)
        return Item(image.data, NO_LABEL, turned(targets, frame) if self.exif == STORED else targets)

    def _refuse(self, name: str, size: Size, other: str, annotated: Size, frame: Frame) -> None:
        """Raise DecodeError for two sizes that differ. ``annotated``: the one of the annotations."""
        hint = frame.hint(annotated, self.exif)
        raise DecodeError(name, f"is {_in_words(size)} (height x width), and {other}{hint}")


def _in_words(size: Size) -> str:
    return f"{size[0]} x {size[1]}"


def turned(targets: dict[str, Any], frame: Frame) -> dict[str, Any]:
    """Boxes (edges), key points and masks of the stored frame in that of the displayed photo, in pixels."""
    found = dict(targets)
    orientation = frame.orientation
    if orientation == 1:
        return found
    if "boxes" in found:
        left, top, right, bottom = found["boxes"].T
        top, left, bottom, right = shown_box(orientation, *frame.stored, (top, left, bottom, right))
        found["boxes"] = np.stack([left, top, right, bottom], axis=1)
    if "keypoints" in found:
        x, y, visibility = np.moveaxis(found["keypoints"], -1, 0)
        top, left, _, _ = shown_box(orientation, *frame.stored, (y, x, y, x))
        # Points at (0, 0) without visibility stand for none, and stay.
        is_point = found["keypoints"].any(axis=-1, keepdims=True)
        found["keypoints"] = np.stack([left, top, visibility], axis=-1) * is_point
    if "mask" in found:
        found["mask"] = apply_orientation(found["mask"][:, :, None], orientation)[:, :, 0]
    if "masks" in found:
        masks_HWM = apply_orientation(np.moveaxis(found["masks"], 0, 2), orientation)
        found["masks"] = np.ascontiguousarray(np.moveaxis(masks_HWM, 2, 0))
    return found
