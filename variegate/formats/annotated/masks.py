"""Folders of images and of masks with the same names: a mask's pixels are classes, as they are stored."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from variegate.decode.mask import read_mask
from variegate.errors import DecodeError
from variegate.formats.annotated.listing import images_by_stem, place_in
from variegate.formats.annotated.source import size_of
from variegate.formats.base import IndexedSource, Item, SampleName, SourceError, check_index, describe, first_names
from variegate.formats.labels import NO_LABEL, check_classes
from variegate.formats.reading import read_file
from variegate.io.location import Location, inside
from variegate.threads import computed_once


@dataclass(frozen=True, repr=False, eq=False)
class MaskedFolder(IndexedSource):
    """``paths``: of each image and its mask, relative to ``folder``. ``about``: as of an ``AnnotatedFolder``, with
    ``images``, the folder of these."""

    folder: Location
    classes: tuple[str, ...]
    paths: tuple[tuple[str, str], ...]
    told: tuple[str, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)
    has_targets: ClassVar[bool] = True
    has_image_labels: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_remote", self.folder.is_url)

    def __repr__(self) -> str:
        return describe(self, str(self.folder))

    def __len__(self) -> int:
        return len(self.paths)

    @computed_once
    def fingerprint(self) -> str:
        """Of the classes and the names: masks are not read for it."""
        names = "\0".join([*self.classes, "", *(name for pair in self.paths for name in pair)])
        return hashlib.sha256(names.encode("utf-8", "surrogateescape")).hexdigest()[:16]

    def read(self, index: int) -> Item:
        """Raises DecodeError naming the image or the mask, also where these are of different sizes."""
        check_index(index, len(self))
        image, place = (place_in(self.folder, path) for path in self.paths[index])
        data = read_file(image)
        mask = read_mask(read_file(place), str(place))
        size = size_of(data, str(image))
        if mask.shape != size:
            shown = [f"{height} x {width}" for height, width in (mask.shape, size)]
            what = f"is {shown[0]}, and its image {self.paths[index][0]} {shown[1]} (height x width)"
            raise DecodeError(str(place), what)
        return Item(data, NO_LABEL, {"mask": mask})

    def name(self, index: int) -> SampleName:
        return SampleName(inside(str(self.folder), self.paths[index][0]))

    def relative_path(self, index: int) -> str:
        return self.paths[index][0]

    def path_beside(self, index: int) -> str:
        """Of the mask."""
        return self.paths[index][1]

    def notes(self) -> list[str]:
        return list(self.told)


def open_masks(folder: Location, images: str, masks: str, on_error: str, classes: Sequence[str] | None) -> MaskedFolder:
    """``images``, ``masks``: folders below ``folder``. Raises SourceError for images without a mask, unless they are
    skipped."""
    pictures, found = images_by_stem(folder, images), images_by_stem(folder, masks)
    missing = [path for stem, path in pictures.items() if stem not in found]
    notes = []
    if missing:
        line = f"{len(missing):,} of {len(pictures):,} images have no mask in {masks}: {first_names(missing)}"
        if on_error != "skip" or len(missing) == len(pictures):
            raise SourceError(f"{folder}: {line}; accepted: a file of the same name, such as {_wanted(missing[0])}")
        notes.append(f"{line}; they are left out")
    if more := [path for stem, path in found.items() if stem not in pictures]:
        notes.append(f"{len(more):,} masks belong to no image: {first_names(more)}")
    pairs = tuple((path, found[stem]) for stem, path in pictures.items() if stem in found)
    about = {"format": "masks", "images": images}
    return MaskedFolder(folder, check_classes(classes), pairs, tuple(notes), about)


def _wanted(image: str) -> str:
    return os.path.splitext(os.path.basename(image))[0] + ".png"
