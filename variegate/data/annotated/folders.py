"""Folders of images with objects, and the images and text files below them, of this machine or at an address."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from variegate.data import base
from variegate.data.annotated.frames import Size, StoredImage, TargetStore
from variegate.data.annotated.objects import AnnotationErrors, Objects
from variegate.data.annotated.values import STORED
from variegate.data.base import SourceError
from variegate.data.folder import walk, walk_remote
from variegate.data.kinds import is_image_name
from variegate.data.reading import read_file
from variegate.data.samples import Samples, name_column, names_in, no_labels
from variegate.errors import DecodeError
from variegate.io.amounts import pluralize
from variegate.io.location import Location

ReadT = TypeVar("ReadT")
_THREADS = 8
_REMOTE_THREADS = 32


def names_below(folder: Location) -> set[str] | None:
    """The paths of all files below it; None where there is no such folder. Raises SourceError for addresses that cannot
    be listed."""
    if not folder.is_url and not os.path.isdir(folder.address()):
        return None
    walked = walk_remote(folder) if folder.is_url else walk(folder.address())
    found = {f"{above}/{name}" if above else name for above, names in walked.files.items() for name in names_in(names)}
    # At addresses, folders may be mere prefixes of file names: without a file there is no folder.
    return None if folder.is_url and not found and not walked.irregular else found


def images_by_stem(root: Location, below: str) -> dict[str, str]:
    """Name without extension, with its folders below ``below`` -> path below ``root``, of all images in there. Raises
    SourceError without the folder or images, and where two images differ in their extension alone."""
    folder = root.below(below)
    paths = names_below(folder)
    if paths is None:
        raise SourceError(f"{root}: no folder {below} in it")
    found: dict[str, str] = {}
    for path in sorted(filter(is_image_name, paths)):
        stem = os.path.splitext(path)[0]
        full = path if below in ("", ".") else f"{below}/{path}"
        if stem in found:
            raise SourceError(f"{root}: {found[stem]} and {full} would have the same annotations")
        found[stem] = full
    if not found:
        raise SourceError(f"{folder}: no images in it")
    return dict(sorted(found.items()))


def read_each(
    folder: Location, names: Sequence[str], read: Callable[[Location], ReadT]
) -> list[ReadT | ValueError | None]:
    """Results of ``read`` for these files below a folder, or its errors, many at a time; None for missing files."""
    # At an address one listing answers for all.
    there = (names_below(folder) or set()) if folder.is_url else None

    def read_one(name: str) -> ReadT | ValueError | None:
        place = folder.child(name)
        is_there = os.path.lexists(place.address()) if there is None else name in there
        try:
            return read(place) if is_there else None
        except ValueError as error:
            return error

    threads = _THREADS if there is None else _REMOTE_THREADS
    with ThreadPoolExecutor(threads, "variegate-annotations") as pool:
        return list(pool.map(read_one, names))


def text_of(data: bytes, name: str) -> str:
    """Raises DecodeError."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DecodeError(name, "not UTF-8; accepted: a text file") from None


def read_text(place: Location) -> str:
    """A text file. Raises SourceError naming it."""
    try:
        return text_of(read_file(place), str(place))
    except DecodeError as error:
        raise SourceError(str(error)) from None


@dataclass(eq=False)
class AnnotatedStore(TargetStore):
    """Images of a folder, and their objects, which Samples have in memory.

    ``unoutlined``: what masks show of objects without an outline (``options.OPTIONS``).
    """

    unoutlined: str

    def digest(self, samples: Samples) -> str:
        """Digest of the classes, the names of the images and all annotations."""
        masks = str(samples.mask) + f" {self.unoutlined}" * (self.unoutlined != "fill")
        return digest_names(samples, [*samples.paths(), masks], self.exif, samples.objects.digest())

    def stored_image(self, samples: Samples, row: int) -> StoredImage:
        folder = samples.folder
        assert folder is not None
        path = samples.row_name(row).file
        data = read_file(folder.below(samples.text(samples.path, row)))
        height, width = samples.objects.sizes[row].tolist()

        def targets(size: Size) -> Mapping[str, Any]:
            try:
                found: Mapping[str, Any] = samples.objects.targets(row, size, samples.mask, self.unoutlined)
            except ValueError as error:
                raise DecodeError(path, f"its annotations hold {error}") from None
            return found

        size = (height, width) if height > 0 and width > 0 else None
        return StoredImage(data, path, str(folder), size, targets)


def digest_names(samples: Samples, names: Sequence[str], exif: str | None, *more: bytes) -> str:
    """Digest of the classes, and of the names of files and settings."""
    stored = [STORED] if exif == STORED else []
    return base.digest_of("\0".join([*samples.classes, "", *names, *stored]), *more)


def annotated_folder(
    folder: Location,
    classes: Sequence[str],
    paths: Sequence[str],
    objects: Objects,
    errors: AnnotationErrors,
    metadata: Mapping[str, Any],
    options: Mapping[str, Any],
    *,
    remarks: Sequence[str] = (),
    ignored: str = "",
    noted: int = 0,
) -> Samples:
    """Images with objects.

    ``paths``: of each image, relative to ``folder``, with forward slashes. ``classes`` are the classes of objects; an
    image itself has the label -1. ``metadata``: JSON metadata that a data set in the same layout needs besides objects:
    ``format``, and, by format, COCO's ``categories`` unchanged, VOC's ``split``, YOLO's ``folders`` of images and
    ``kpt_shape``. ``options``: of the layout. ``ignored``: the data set's word for objects that do not count.
    ``noted``: the number of images without objects that are in the remarks already.
    """
    mask = options.get("mask")
    unoutlined = options.get("unoutlined", "fill")
    notes = [*remarks, *errors.notes(ignored), *objects.notes_on_masks(mask, unoutlined, len(classes))]
    without = int(np.count_nonzero(np.diff(objects.starts) == 0)) - noted
    if without:
        notes.append(f"{pluralize(without, 'image')} without objects")
    store = AnnotatedStore(options["exif"], unoutlined)
    return samples_with_targets(
        folder, store, classes, paths, notes, metadata, has_edges=True, objects=objects, mask=mask
    )


def samples_with_targets(
    folder: Location,
    store: TargetStore,
    classes: Sequence[str],
    paths: Sequence[str],
    remarks: Sequence[str],
    metadata: Mapping[str, Any],
    **more: Any,
) -> Samples:
    """Images of a folder, ``paths`` below it, without labels."""
    return Samples(
        place=str(folder),
        size=len(paths),
        store=store,
        classes=tuple(classes),
        path=name_column(paths),
        folder=folder,
        label=no_labels,
        remarks=remarks,
        is_remote=folder.is_url,
        has_targets=True,
        has_image_labels=False,
        layout="folder",
        layout_record=metadata,
        **more,
    )
