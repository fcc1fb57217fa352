"""The frame of annotations of photos that EXIF turns: the photo as it is displayed, or the pixels as they are stored.

A photo is always decoded upright. Annotations in the stored frame are turned along with it when they are read.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np

from variegate.decode import PillowFile, is_jpeg
from variegate.decode.header import apply_orientation, read_header, shown_box
from variegate.io.addresses import speakable

STORED = "stored"
DISPLAYED = "pixels"
_TURNED_SIDES = 5  # from this orientation on, rows are columns


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
    """Of an image file, or of pixels [H, W, C]. Raises DecodeError."""
    if isinstance(data, np.ndarray):
        return Frame(1, data.shape[0], data.shape[1])
    if is_jpeg(data):
        try:
            header = read_header(data)
            return Frame(header.orientation, header.height, header.width)
        except ValueError:  # a JPEG that Pillow reads, perhaps
            pass
    with PillowFile(data, name) as file:
        orientation = file.orientation()
        height, width = file.stored_size
        # Pillow names a TIFF's size as displayed.
        is_swapped = file.kind == "TIFF" and orientation >= _TURNED_SIDES
        return Frame(orientation, width, height) if is_swapped else Frame(orientation, height, width)


class Frames:
    """The frames of a source's photos. ``exif``: the frame of its annotations, None if nothing says which."""

    def __init__(self, exif: str | None) -> None:
        self.exif = exif
        self._is_noted = False

    def of(self, data: Any, name: str, source: str, has_size: bool = False) -> Frame:
        """The frame of an image file or of pixels. Raises DecodeError.

        Warns, once per source, if nothing says which frame the annotations of a photo that EXIF turns are in.
        ``has_size``: the annotations say the size of the image.
        """
        frame = frame_of(data, name)
        if not self._is_noted and frame.is_unclear(has_size, self.exif):
            self._is_noted = True
            note = (
                f"{source}: EXIF turns photos, and nothing says whether their annotations are turned as well; they are "
                f'taken as those of the displayed photo (the first: {name}). To say which, set exif="pixels" or '
                'exif="stored"'
            )
            warnings.warn(speakable(note), stacklevel=4)
        return frame

    def displayed(self, targets: dict[str, Any], frame: Frame) -> dict[str, Any]:
        """``targets`` in the frame of the displayed photo."""
        return turned(targets, frame) if self.exif == STORED else targets


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
