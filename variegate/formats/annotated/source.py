"""A folder of images, each with objects."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from variegate.decode import PillowFile, is_jpeg, read_bytes
from variegate.decode.header import read_header
from variegate.errors import DecodeError
from variegate.formats.annotated.objects import Objects
from variegate.formats.base import IndexedSource, Item, SampleName, check_index, describe
from variegate.formats.labels import NO_LABEL
from variegate.formats.reading import read_file
from variegate.io.location import Location, inside
from variegate.threads import computed_once


@dataclass(frozen=True, repr=False, eq=False)
class AnnotatedFolder(IndexedSource):
    """``classes`` are those of the objects; an image itself has the label -1. ``paths`` are relative to ``folder``,
    with forward slashes. ``mask``: what form masks are given in (``objects.MASKS``). ``told``: notes. ``about``: what a
    data set in the same layout needs to have beside objects, as JSON has it: ``format``, and by that COCO's
    ``categories`` as they are, VOC's ``split``, and YOLO's ``folders`` of
    images and ``kpt_shape``."""

    folder: Location
    classes: tuple[str, ...]
    paths: tuple[str, ...]
    objects: Objects
    mask: str | None = None
    told: tuple[str, ...] = ()
    about: Mapping[str, Any] = field(default_factory=dict)
    has_targets: ClassVar[bool] = True
    has_edges: ClassVar[bool] = True
    has_image_labels: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "is_remote", self.folder.is_url)

    def __repr__(self) -> str:
        return describe(self, str(self.folder))

    def __len__(self) -> int:
        return len(self.paths)

    @computed_once
    def fingerprint(self) -> str:
        """Of the classes, the names of the images and all annotations."""
        names = "\0".join([*self.classes, "", *self.paths, str(self.mask)])
        digest = hashlib.sha256(names.encode("utf-8", "surrogateescape"))
        digest.update(self.objects.digest())
        return digest.hexdigest()[:16]

    def read(self, index: int) -> Item:
        """The bytes of the image file, and its targets. Raises DecodeError naming the file, also where the image is of
        another size than the annotations say."""
        check_index(index, len(self))
        path = self.name(index).file
        data = read_file(self.folder.child(self.paths[index])) if self.is_remote else read_bytes(path)
        height, width = (int(side) for side in self.objects.sizes[index])
        is_told = height > 0 and width > 0
        size = None
        if is_told or self.mask is not None or self.objects.is_normalised:
            size = size_of(data, path)
            if is_told and size != (height, width):
                raise DecodeError(
                    path, f"is {size[0]} x {size[1]} (height x width), and {height} x {width} by its annotations"
                )
        try:
            return Item(data, NO_LABEL, self.objects.targets(index, size, self.mask))
        except ValueError as error:
            raise DecodeError(path, f"its annotations hold {error}") from None

    def without(self, missing: frozenset[str], told: tuple[str, ...]) -> AnnotatedFolder:
        """The images but for some, with notes."""
        if not missing:
            return replace(self, told=told)
        kept = np.array([path not in missing for path in self.paths], np.bool_)
        paths = tuple(path for path in self.paths if path not in missing)
        return replace(self, paths=paths, objects=self.objects.of_images(kept), told=told)

    def name(self, index: int) -> SampleName:
        # Joining takes twice as long, and this is done for every sample of every epoch.
        path = self.paths[index]
        return SampleName(inside(str(self.folder), path) if self.is_remote else self._prefix + path)

    def relative_path(self, index: int) -> str:
        return self.paths[index]

    def notes(self) -> list[str]:
        without = int((np.diff(self.objects.starts) == 0).sum())
        return [*self.told, *([f"{without:,} images have no objects"] if without else [])]

    @computed_once
    def _prefix(self) -> str:
        return os.path.join(self.folder.address(), "")


def size_of(data: bytes, name: str) -> tuple[int, int]:
    """Height and width of an image file, upright, by its header. Raises DecodeError."""
    if is_jpeg(data):
        try:
            return read_header(data).oriented_size
        except ValueError:  # a JPEG that Pillow reads, perhaps
            pass
    with PillowFile(data, name) as file:
        return file.size()
