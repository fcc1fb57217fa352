"""Folders of images with objects, or with masks of the same names, whose pixels are classes as they are stored.

And the images and text files that lie below such a folder, of this machine or at an address.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from variegate.data import base
from variegate.data.annotated.frames import STORED, Frame, Frames
from variegate.data.annotated.objects import AnnotationErrors, Objects, skip_missing
from variegate.data.annotated.options import check_options
from variegate.data.base import SourceError
from variegate.data.folder import walk, walk_remote
from variegate.data.kinds import is_image_name
from variegate.data.labels import NO_LABEL, check_classes
from variegate.data.reading import read_file
from variegate.data.samples import Samples, Store, name_column, names_in, no_labels
from variegate.decode.image import read_mask
from variegate.errors import DecodeError
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
    # At addresses folders may be but what the names of files begin with: without any, there is none.
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


def mask_of(data: bytes, name: str, frame: Frame, exif: str | None, image: str = "its image") -> Any:
    """The mask in an image file, uint8 or int32 [H, W]. Raises DecodeError if its size is not that of its image, whose
    ``frame`` it is."""
    mask = read_mask(data, name)
    found = mask.shape[0], mask.shape[1]
    if found != frame.size(exif):
        shown = [f"{height} x {width}" for height, width in (found, frame.size(exif))]
        raise DecodeError(name, f"is {shown[0]}, and {image} {shown[1]} (height x width){frame.hint(found, exif)}")
    return mask


@dataclass(eq=False)
class AnnotatedStore(Store):
    """Images of a folder, and their objects, which Samples have in memory.

    ``exif``: frame of the annotations (``frames.EXIF``). ``unoutlined``: what
    masks show of objects without an outline (``options.OPTIONS``).
    """

    exif: str | None
    unoutlined: str

    def __post_init__(self) -> None:
        self._frames = Frames(self.exif)

    def digest(self, samples: Samples) -> str:
        """Of the classes, the names of the images and all annotations."""
        masks = str(samples.mask) + f" {self.unoutlined}" * (self.unoutlined != "fill")
        return _digest_names(samples, samples.paths(), [masks], self.exif, samples.objects.digest())

    def read(self, samples: Samples, row: int) -> base.Item:
        """The bytes of the image file, and its targets. Raises DecodeError naming the file, also where the image is of
        another size than the annotations say."""
        folder = samples.folder
        assert folder is not None
        path = samples.row_name(row).file
        data = read_file(folder.below(samples.text(samples.path, row)))
        height, width = (int(side) for side in samples.objects.sizes[row])
        known = (height, width) if height > 0 and width > 0 else None
        frame = self._frames.of(data, path, str(folder), has_size=known is not None)
        size = frame.size(self.exif)
        if known not in (None, size):
            hint = frame.hint((height, width), self.exif)
            by_annotations = f"{height} x {width} by its annotations{hint}"
            raise DecodeError(path, f"is {size[0]} x {size[1]} (height x width), and {by_annotations}")
        try:
            targets = samples.objects.targets(row, size, samples.mask, self.unoutlined)
        except ValueError as error:
            raise DecodeError(path, f"its annotations hold {error}") from None
        return base.Item(data, NO_LABEL, self._frames.displayed(targets, frame))


@dataclass(eq=False)
class MaskStore(Store):
    """Images of a folder, and their masks, which are files of their own."""

    exif: str | None

    def __post_init__(self) -> None:
        self._frames = Frames(self.exif)

    def digest(self, samples: Samples) -> str:
        """Of the classes and the names: masks are not read for it."""
        pairs = zip(samples.paths(), names_in(samples.masks), strict=True)
        return _digest_names(samples, [name for pair in pairs for name in pair], [], self.exif)

    def read(self, samples: Samples, row: int) -> base.Item:
        """Raises DecodeError naming the image or the mask, also where these are of different sizes."""
        folder = samples.folder
        assert folder is not None
        path = samples.text(samples.path, row)
        image = folder.below(path)
        place = folder.below(samples.text(samples.masks, row))
        data = read_file(image)
        content = read_file(place)
        frame = self._frames.of(data, str(image), str(folder), has_size=True)
        targets = {"mask": mask_of(content, str(place), frame, self.exif, f"its image {path}")}
        return base.Item(data, NO_LABEL, self._frames.displayed(targets, frame))


def _digest_names(
    samples: Samples, names: Sequence[str], settings: Sequence[str], exif: str | None, *more: bytes
) -> str:
    stored = [STORED] if exif == STORED else []
    return base.digest_of("\0".join([*samples.classes, "", *names, *settings, *stored]), *more)


def annotated_folder(
    folder: Location,
    classes: Sequence[str],
    paths: Sequence[str],
    objects: Objects,
    errors: AnnotationErrors,
    about: Mapping[str, Any],
    options: Mapping[str, Any],
    *,
    remarks: Sequence[str] = (),
    ignored: str = "",
    noted: int = 0,
) -> Samples:
    """Images with objects.

    ``paths``: of each image, relative to ``folder``, with forward slashes. ``classes`` are those of the objects; an
    image itself has the label -1. ``about``: what a data set in the same layout needs to have beside objects, as JSON
    has it: ``format``, and by that COCO's ``categories`` as they are, VOC's ``split``, YOLO's ``folders`` of images and
    ``kpt_shape``. ``options``: of the layout. ``ignored``: the data set's word for objects that do not count.
    ``noted``: the number of images without objects that are in the remarks already.
    """
    mask = options.get("mask")
    unoutlined = options.get("unoutlined", "fill")
    notes = [*remarks, *errors.notes(ignored), *objects.notes_on_masks(mask, unoutlined, len(classes))]
    without = int(np.count_nonzero(np.diff(objects.starts) == 0)) - noted
    if without:
        notes.append(f"{without:,} images have no objects")
    store = AnnotatedStore(options["exif"], unoutlined)
    return _samples(folder, store, classes, paths, notes, about, has_edges=True, objects=objects, mask=mask)


def _samples(
    folder: Location,
    store: AnnotatedStore | MaskStore,
    classes: Sequence[str],
    paths: Sequence[str],
    remarks: Sequence[str],
    about: Mapping[str, Any],
    **more: Any,
) -> Samples:
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
        layout_record=about,
        **more,
    )


def open_masks(
    folder: Location, annotations: Mapping[str, Any], on_error: str, classes: Sequence[str] | None
) -> Samples:
    """``images``, ``masks``: folders below ``folder``. Raises SourceError for images without a mask, unless they are
    skipped."""
    options = check_options("masks", annotations)
    images = options["images"]
    masks = options["masks"]
    pictures = images_by_stem(folder, images)
    found = images_by_stem(folder, masks)
    missing = [path for stem, path in pictures.items() if stem not in found]
    wanted = "".join(os.path.splitext(os.path.basename(path))[0] + ".png" for path in missing[:1])
    advice = f"; accepted: a file of the same name, such as {wanted}"
    what = f"have no mask in {masks}"
    notes = skip_missing(missing, len(pictures), what, on_error, str(folder), advice)
    if more := [path for stem, path in found.items() if stem not in pictures]:
        notes.append(f"{len(more):,} masks belong to no image: {base.first_names(more)}")
    stems = [stem for stem in pictures if stem in found]
    about = {"format": "masks", "images": images}
    of_masks = name_column([found[stem] for stem in stems])
    paths = [pictures[stem] for stem in stems]
    return _samples(folder, MaskStore(options["exif"]), check_classes(classes), paths, notes, about, masks=of_masks)
